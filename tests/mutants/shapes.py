"""Mutants of the oracle's shapes: windows, padding, groups, layout ops, feeds."""

from typing import Final

from tests.mutants.arithmetic import BOTH, CONV
from tests.mutants.harness import Mutant, change
from tests.mutants.models import DIGITS

WINDOW: Final = "oracle/window.py"

GEOMETRY: Final = (
    Mutant(
        id="kernel-axes-swapped",
        breaks="kernel height and width exchanged",
        edits=change(
            CONV,
            "weights = stored.transpose(0, 2, 3, 1)",
            "weights = stored.transpose(0, 3, 2, 1)",
        ),
        model=DIGITS,
        args=("--max-samples", "8"),
        items=BOTH,
        words=("Conv", "the kernel axes are swapped in the oracle"),
    ),
    Mutant(
        id="conv-padded-with-zero",
        breaks="the border of a Conv holds code 0 instead of the zero point",
        edits=change(
            CONV,
            "        buffer[:, : low - first] = 0\n        buffer[:, max(high, low) - first :] = 0\n",
            "        buffer[:, : low - first] = -layer.sums.point\n"
            "        buffer[:, max(high, low) - first :] = -layer.sums.point\n",
        )
        + change(
            CONV,
            "            part[:, :, :, : windows.start] = 0\n            part[:, :, :, windows.stop :] = 0\n",
            "            part[:, :, :, : windows.start] = -layer.sums.point\n"
            "            part[:, :, :, windows.stop :] = -layer.sums.point\n",
        ),
        model="conv_shift",
        items=BOTH,
        words=("'y.q'", "'conv', Conv", "padded with code 0 instead of the zero point in the oracle"),
    ),
    Mutant(
        id="max-padded-with-zero",
        breaks="the border of a MaxPool holds 0 instead of the lowest value",
        edits=change(
            "oracle/ops/max_pool.py",
            "        return pooled[:, :, 0] if flat else pooled\n",
            "        whole = np.multiply.outer(*(a.counts(include_pad=False) for a in (rows, cols)))\n"
            "        edge = (whole < rows.kernel * cols.kernel)[:, :, None]\n"
            "        pooled = np.where(edge, np.maximum(pooled, 0), pooled)\n"
            "        return pooled[:, :, 0] if flat else pooled\n",
        ),
        model="pools",
        items=BOTH,
        words=("'m.q'", "'max', MaxPool", "padded with code 0 instead of the zero point in the oracle"),
    ),
    Mutant(
        id="groups-swapped",
        breaks="the groups of a Conv read each other's channels",
        edits=change(
            CONV,
            "reshape(h, self.groups, self.cin, w, n, feeds)",
            "reshape(h, self.groups, self.cin, w, n, feeds)[:, ::-1]",
        ),
        model="conv_shift",
        items=BOTH,
        words=("'y.q'", "'conv', Conv"),
    ),
    Mutant(
        id="pads-swapped",
        breaks="pads of begin and end exchanged",
        edits=change(
            WINDOW,
            "padding = [(pads[i], pads[rank + i]) for i in range(rank)]",
            "padding = [(pads[rank + i], pads[i]) for i in range(rank)]",
        ),
        model="conv_shift",
        items=BOTH,
        words=("'y.q'", "'conv', Conv", "pads of begin and end are swapped in the oracle"),
    ),
    Mutant(
        id="dilation-ignored",
        breaks="taps lie side by side whatever the dilation says",
        edits=change(
            WINDOW,
            "shift = tap * self.dilation - self.begin",
            "shift = tap - self.begin",
        ),
        model="conv_shift",
        items=BOTH,
        words=("'y.q'", "'conv', Conv", "the dilations are ignored in the oracle"),
    ),
    Mutant(
        id="strides-swapped",
        breaks="vertical and horizontal stride exchanged",
        edits=change(
            WINDOW,
            'strides = _ints(op, "strides", (1,) * rank)',
            'strides = _ints(op, "strides", (1,) * rank)[::-1]',
        ),
        model="conv_shift",
        words=("op 'conv' (Conv)", "'y.q'", "another shape than the manifest"),
        exit=2,
    ),
    Mutant(
        id="padding-counted",
        breaks="the average counts the border although count_include_pad is 0",
        edits=change(
            "oracle/ops/average_pool.py",
            'include = bool(op.attributes.get("count_include_pad", 0))',
            'include = not op.attributes.get("count_include_pad", 0)',
        ),
        model="pools",
        items=BOTH,
        words=("'a.q'", "'mean', AveragePool", "count_include_pad is the other way round in the oracle"),
    ),
)

ELEMENTWISE: Final = (
    Mutant(
        id="qadd-zero-point-outside",
        breaks="QLinearAdd adds the zero point after the rounding",
        edits=change(
            "oracle/ops/add.py",
            "        start = f32(zc - fma32(ra, za, f32(rb * zb)))\n",
            "        start = f32(f32(0) - fma32(ra, za, f32(rb * zb)))\n",
        )
        + change(
            "oracle/ops/add.py",
            "        return fma32(a, ra, fma32(b, rb, start))\n",
            "        return np.rint(fma32(a, ra, fma32(b, rb, start))) + zc\n",
        ),
        model="qop_add",
        items=BOTH,
        words=("'y_codes'", "'add', Add", "the zero point is inside the rounding in onnxruntime"),
    ),
    Mutant(
        id="qadd-two-roundings",
        breaks="QLinearAdd multiplies and adds with two roundings instead of one",
        edits=change(
            "oracle/ops/add.py",
            "formula = fused if scope.fma else plain",
            "formula = plain",
        ),
        model="qop_add_fma",
        items=BOTH,
        words=("'y_codes'", "'add', Add"),
    ),
    Mutant(
        id="mean-order",
        breaks="QLinearGlobalAveragePool multiplies with (sx / sy) / n instead of sx / (sy * n)",
        edits=change(
            "oracle/ops/average_pool.py",
            "f32(x) / f32(f32(y) * f32(elements))",
            "f32(f32(x) / f32(y)) / f32(elements)",
        ),
        model="qop_mean",
        items=BOTH,
        words=("'y_codes'", "'gap', GlobalAveragePool"),
    ),
    Mutant(
        id="concat-swapped",
        breaks="Concat puts its inputs side by side in reverse order",
        edits=change(
            "oracle/ops/concat.py",
            "parts = [_part(op, scope, i) for i in range(len(op.inputs))]",
            "parts = [_part(op, scope, i) for i in range(len(op.inputs))][::-1]",
        ),
        model="layouts",
        items=BOTH,
        words=("'c.q'", "'join', Concat", "the inputs are in reverse order in the oracle"),
    ),
    Mutant(
        id="perm-inverted",
        breaks="Transpose applies the inverse permutation",
        edits=change(
            "oracle/ops/transpose.py",
            "order = tuple(int(p) for p in perm)",
            "order = tuple(perm.index(i) for i in range(rank))",
        ),
        model="layouts",
        items=BOTH,
        words=("'t.q'", "'turn', Transpose", "the permutation is inverted in the oracle"),
    ),
    Mutant(
        id="transb-ignored",
        breaks="Gemm ignores transB of a square weight",
        edits=change(
            "oracle/ops/gemm.py",
            'flip = bool(op.attributes.get("transB", 0))',
            "flip = False",
        ),
        model="gemm_shift",
        items=BOTH,
        words=("'h.q'", "'fc1', Gemm", "transB is the other way round in the oracle"),
    ),
    Mutant(
        id="first-matrix-for-all",
        breaks="every matrix of a batch is multiplied with the first one",
        edits=change(
            "oracle/ops/matmul.py",
            "exact_matmul(*_padded(a, b, len(left.shape), len(right.shape)), bound)",
            "exact_matmul(*_padded(a, b[:, :1], len(left.shape), len(right.shape)), bound)",
        ),
        model="products",
        items=BOTH,
        words=("'y.q'", "'mm', MatMul"),
    ),
    Mutant(
        id="feeds-reversed",
        breaks="the oracle gives the feeds of a chunk back in reverse order",
        edits=change(
            "oracle/run.py",
            "arithmetic, out.dtype), out[start : start + size])",
            "arithmetic, out.dtype), out[start : start + size][::-1])",
        ),
        model="gemm_shift",
        items=BOTH,
        words=("'x_real.q'", "QuantizeLinear"),
    ),
)

SHAPES: Final = (*GEOMETRY, *ELEMENTWISE)
