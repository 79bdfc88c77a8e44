"""Mutants of the oracle: rounding, zero points, bias, geometry, elementwise ops."""

from typing import Final

from tests.mutants.harness import Edit, Mutant
from tests.mutants.models import DIGITS

REQUANTIZE: Final = "oracle/requantize.py"
CONTRACTION: Final = "oracle/contraction.py"
CONV: Final = "oracle/ops/conv.py"
WINDOW: Final = "oracle/window.py"
BOTH: Final = ("BL008", "BL009")

HALF_UP: Final = Edit(
    file=REQUANTIZE, find="        np.rint(acc, out=acc)\n", replace="        np.floor(acc + 0.5, out=acc)\n"
)

ROUNDING: Final = (
    Mutant(
        id="half-up-srs",
        breaks="half-up instead of half-even where every scale is 2**k",
        edits=(HALF_UP,),
        model="conv_shift",
        items=BOTH,
        words=("'y.q'", "'conv', Conv", "ties are rounded half up"),
    ),
    Mutant(
        id="half-up-scale-f32",
        breaks="half-up instead of half-even with the float32 multiplier of a QOperator node",
        edits=(HALF_UP,),
        model="qop_shift",
        items=BOTH,
        words=("'y_codes'", "'conv', Conv", "ties are rounded half up"),
    ),
    Mutant(
        id="half-up-rational",
        breaks="half-up instead of half-even in the exact rational path",
        edits=(
            Edit(
                file="oracle/rational.py",
                find="(twice == denominator) & (quotient % 2 == 1)",
                replace="(twice == denominator)",
            ),
        ),
        model="gemm_sixth",
        items=BOTH,
        words=("'y.q'", "'fc', Gemm", "ties are rounded half up in the oracle"),
    ),
    Mutant(
        id="half-up-kernel-shift",
        breaks="half-up instead of half-even in `srs`, the shift that kernels are held against",
        edits=(
            Edit(
                file="oracle/fixedpoint.py",
                find="above | (tie & (quotient % 2 == 1)),",
                replace="above | tie,",
            ),
        ),
        model="conv_shift",
        items=("BL014",),
        words=("'y.q'", "'conv', Conv", "the shift primitive `srs`", "(tie)"),
    ),
    Mutant(
        id="near-tie-by-float",
        breaks="float64 decides near ties instead of exact integers",
        edits=(
            Edit(
                file="oracle/rational.py",
                find="                self._repair(values, scaled, rounded)\n",
                replace="                pass\n",
            ),
        ),
        model="gemm_sixth",
        items=BOTH,
        words=("'y.q'", "'fc', Gemm"),
    ),
    Mutant(
        id="zero-point-inside",
        breaks="the zero point is added before the rounding",
        edits=(
            Edit(
                file=REQUANTIZE,
                find="return affine(output, ratios, offsets, inside=requant.zero_point_inside, bound=form.bound)",
                replace="return affine(output, ratios, offsets, inside=True, bound=form.bound)",
            ),
        ),
        model="conv_shift",
        items=BOTH,
        words=("'y.q'", "'conv', Conv", "the zero point is inside the rounding in the oracle"),
    ),
    Mutant(
        id="zero-point-dropped",
        breaks="the zero point of the input is not subtracted",
        edits=(
            Edit(
                file="oracle/ops/gemm.py",
                find="        centre(x, sums.point, columns)\n",
                replace="        centre(x, 0, columns)\n",
            ),
        ),
        model="odd_scales",
        items=BOTH,
        words=("'y.q'", "'mm', MatMul", "the zero point of the first input is not subtracted in the oracle"),
    ),
    Mutant(
        id="saturation-dropped",
        breaks="codes wrap instead of saturating",
        edits=(
            Edit(
                file=REQUANTIZE,
                find="        np.clip(acc, _cut(self._low, part), _cut(self._high, part), out=acc)\n"
                "        np.rint(acc, out=acc)\n",
                replace="        np.rint(acc, out=acc)\n"
                "        low, high = _cut(self._low, part), _cut(self._high, part)\n"
                "        acc[...] = np.mod(acc - low, high - low + 1) + low\n",
            ),
        ),
        model="conv_shift",
        items=("BL008",),
        words=("'y.q'", "'conv', Conv", "the code wraps instead of saturating in the oracle"),
    ),
    Mutant(
        id="multiplier-order",
        breaks="the multiplier of a QOperator node is sx * (sw / sy) instead of (sx * sw) / sy",
        edits=(
            Edit(
                file=CONTRACTION,
                find="scaled * np.array(scales, f32) / f32(out.scales[0])",
                replace="scaled * (np.array(scales, f32) / f32(out.scales[0]))",
            ),
        ),
        model="qop_conv",
        items=BOTH,
        words=("'y_codes'", "'conv', Conv", "the float32 multiplier (sx * sw) / sy is applied in onnxruntime"),
    ),
    Mutant(
        id="int32-wrap-ignored",
        breaks="the accumulator of a QOperator node does not wrap at int32",
        edits=(
            Edit(
                file=REQUANTIZE,
                find="wrap_bits=32 if form.bound >= 1 << 31 else 0",
                replace="wrap_bits=0",
            ),
        ),
        model="qop_wrap",
        items=BOTH,
        words=("'y_codes'", "'conv', Conv", "the accumulator wraps at int32 in onnxruntime"),
    ),
    Mutant(
        id="input-by-reciprocal",
        breaks="the graph input is multiplied by 1 / scale instead of divided",
        edits=(
            Edit(
                file="oracle/ops/quantize_linear.py",
                find="scaled = np.divide(blocks[0], scale, dtype=f32)",
                replace="scaled = np.multiply(blocks[0], f32(1) / scale, dtype=f32)",
            ),
        ),
        model="odd_scales",
        items=("BL008",),
        words=("'x_real.q'", "QuantizeLinear"),
    ),
    Mutant(
        id="target-zero-point-inside",
        breaks="the target adds the zero point before the rounding",
        edits=(
            Edit(
                file=REQUANTIZE,
                find="[o / n * f for o, n, f in pairs], inside=requant.zero_point_inside, bound=bound)",
                replace="[o / n * f for o, n, f in pairs], inside=True, bound=bound)",
            ),
        ),
        model="conv_shift",
        items=("BL011", "BL014"),
        words=("'y.q'", "'conv'"),
    ),
)

BIAS: Final = (
    Mutant(
        id="bias-after-shift",
        breaks="the bias is rounded on its own and added after the shift",
        edits=(
            Edit(
                file=CONV,
                find="        finish(layer.sums.bias(acc, (1, -1, 1)), out[block])\n",
                replace="        finish(acc, out[block])\n"
                "        late = np.rint(layer.sums.addend * layer.sums.multiplier).reshape(1, -1, 1)\n"
                "        limits = np.iinfo(out.dtype)\n"
                "        out[block] = np.clip(out[block] + late, limits.min, limits.max)\n",
            ),
        ),
        model="conv_shift",
        items=BOTH,
        words=("'y.q'", "'conv', Conv", "the bias is added after the shift in the oracle"),
    ),
    Mutant(
        id="bias-shift-dropped",
        breaks="the pre-shift of an int8 bias is dropped",
        edits=(
            Edit(
                file=CONTRACTION,
                find="addend = [c << max(s, 0) for c, s in zip(codes, shifts, strict=True)]",
                replace="addend = codes",
            ),
        ),
        model="conv_shift",
        items=BOTH,
        words=("'y.q'", "'conv', Conv", "the bias pre-shift is missing in the oracle"),
    ),
    Mutant(
        id="bias-dropped",
        breaks="the bias is not added",
        edits=(
            Edit(
                file=CONTRACTION,
                find="        if self.promote is None and self.addend is None:\n",
                replace="        if acc is not None:\n",
            ),
        ),
        model=DIGITS,
        args=("--max-samples", "8"),
        items=BOTH,
        words=("Conv", "the bias is missing in the oracle"),
    ),
    Mutant(
        id="first-channel-scale",
        breaks="scale of channel 0 for every output channel",
        edits=(
            Edit(
                file=CONTRACTION,
                find="units = [scale * Fraction(w) * Fraction(alpha) for w in scales]",
                replace="units = [scale * Fraction(scales[0]) * Fraction(alpha) for w in scales]",
            ),
        ),
        model="folded",
        items=BOTH,
        words=("'y.q'", "'mm', MatMul", "every channel takes the scale of channel 0 in the oracle"),
    ),
)

GEOMETRY: Final = (
    Mutant(
        id="kernel-axes-swapped",
        breaks="kernel height and width exchanged",
        edits=(
            Edit(
                file=CONV,
                find="weights = stored.transpose(0, 2, 3, 1)",
                replace="weights = stored.transpose(0, 3, 2, 1)",
            ),
        ),
        model=DIGITS,
        args=("--max-samples", "8"),
        items=BOTH,
        words=("Conv", "the kernel axes are swapped in the oracle"),
    ),
    Mutant(
        id="conv-padded-with-zero",
        breaks="the border of a Conv holds code 0 instead of the zero point",
        edits=(
            Edit(
                file=CONV,
                find="        buffer[:, : low - first] = 0\n        buffer[:, max(high, low) - first :] = 0\n",
                replace="        buffer[:, : low - first] = -layer.sums.point\n"
                "        buffer[:, max(high, low) - first :] = -layer.sums.point\n",
            ),
            Edit(
                file=CONV,
                find="            part[:, :, :, : windows.start] = 0\n            part[:, :, :, windows.stop :] = 0\n",
                replace="            part[:, :, :, : windows.start] = -layer.sums.point\n"
                "            part[:, :, :, windows.stop :] = -layer.sums.point\n",
            ),
        ),
        model="conv_shift",
        items=BOTH,
        words=("'y.q'", "'conv', Conv", "padded with code 0 instead of the zero point in the oracle"),
    ),
    Mutant(
        id="max-padded-with-zero",
        breaks="the border of a MaxPool holds 0 instead of the lowest value",
        edits=(
            Edit(
                file="oracle/ops/max_pool.py",
                find="        return pooled[:, :, 0] if flat else pooled\n",
                replace="        whole = np.multiply.outer(*(a.counts(include_pad=False) for a in (rows, cols)))\n"
                "        edge = (whole < rows.kernel * cols.kernel)[:, :, None]\n"
                "        pooled = np.where(edge, np.maximum(pooled, 0), pooled)\n"
                "        return pooled[:, :, 0] if flat else pooled\n",
            ),
        ),
        model="pools",
        items=BOTH,
        words=("'m.q'", "'max', MaxPool", "padded with code 0 instead of the zero point in the oracle"),
    ),
    Mutant(
        id="pads-swapped",
        breaks="pads of begin and end exchanged",
        edits=(
            Edit(
                file=WINDOW,
                find="padding = [(pads[i], pads[rank + i]) for i in range(rank)]",
                replace="padding = [(pads[rank + i], pads[i]) for i in range(rank)]",
            ),
        ),
        model="conv_shift",
        items=BOTH,
        words=("'y.q'", "'conv', Conv", "pads of begin and end are swapped in the oracle"),
    ),
    Mutant(
        id="dilation-ignored",
        breaks="taps lie side by side whatever the dilation says",
        edits=(
            Edit(
                file=WINDOW,
                find="shift = tap * self.dilation - self.begin",
                replace="shift = tap - self.begin",
            ),
        ),
        model="conv_shift",
        items=BOTH,
        words=("'y.q'", "'conv', Conv", "the dilations are ignored in the oracle"),
    ),
    Mutant(
        id="strides-swapped",
        breaks="vertical and horizontal stride exchanged",
        edits=(
            Edit(
                file=WINDOW,
                find='strides = _ints(op, "strides", (1,) * rank)',
                replace='strides = _ints(op, "strides", (1,) * rank)[::-1]',
            ),
        ),
        model="conv_shift",
        words=("op 'conv' (Conv)", "'y.q'", "another shape than the manifest"),
        exit=2,
    ),
    Mutant(
        id="padding-counted",
        breaks="the average counts the border although count_include_pad is 0",
        edits=(
            Edit(
                file="oracle/ops/average_pool.py",
                find='include = bool(op.attributes.get("count_include_pad", 0))',
                replace='include = not op.attributes.get("count_include_pad", 0)',
            ),
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
        edits=(
            Edit(
                file="oracle/ops/add.py",
                find="        start = f32(zc - fma32(ra, za, f32(rb * zb)))\n",
                replace="        start = f32(f32(0) - fma32(ra, za, f32(rb * zb)))\n",
            ),
            Edit(
                file="oracle/ops/add.py",
                find="        return fma32(a, ra, fma32(b, rb, start))\n",
                replace="        return np.rint(fma32(a, ra, fma32(b, rb, start))) + zc\n",
            ),
        ),
        model="qop_add",
        items=BOTH,
        words=("'y_codes'", "'add', Add", "the zero point is inside the rounding in onnxruntime"),
    ),
    Mutant(
        id="qadd-two-roundings",
        breaks="QLinearAdd multiplies and adds with two roundings instead of one",
        edits=(
            Edit(
                file="oracle/ops/add.py",
                find="formula = fused if scope.fma else plain",
                replace="formula = plain",
            ),
        ),
        model="qop_add_fma",
        items=BOTH,
        words=("'y_codes'", "'add', Add"),
    ),
    Mutant(
        id="mean-order",
        breaks="QLinearGlobalAveragePool multiplies with (sx / sy) / n instead of sx / (sy * n)",
        edits=(
            Edit(
                file="oracle/ops/average_pool.py",
                find="f32(x) / f32(f32(y) * f32(elements))",
                replace="f32(f32(x) / f32(y)) / f32(elements)",
            ),
        ),
        model="qop_mean",
        items=BOTH,
        words=("'y_codes'", "'gap', GlobalAveragePool"),
    ),
    Mutant(
        id="concat-swapped",
        breaks="Concat puts its inputs side by side in reverse order",
        edits=(
            Edit(
                file="oracle/ops/concat.py",
                find="parts = [_part(op, scope, i) for i in range(len(op.inputs))]",
                replace="parts = [_part(op, scope, i) for i in range(len(op.inputs))][::-1]",
            ),
        ),
        model="layouts",
        items=BOTH,
        words=("'c.q'", "'join', Concat", "the inputs are in reverse order in the oracle"),
    ),
    Mutant(
        id="perm-inverted",
        breaks="Transpose applies the inverse permutation",
        edits=(
            Edit(
                file="oracle/ops/transpose.py",
                find="order = tuple(int(p) for p in perm)",
                replace="order = tuple(perm.index(i) for i in range(rank))",
            ),
        ),
        model="layouts",
        items=BOTH,
        words=("'t.q'", "'turn', Transpose", "the permutation is inverted in the oracle"),
    ),
    Mutant(
        id="transb-ignored",
        breaks="Gemm ignores transB of a square weight",
        edits=(
            Edit(
                file="oracle/ops/gemm.py",
                find='flip = bool(op.attributes.get("transB", 0))',
                replace="flip = False",
            ),
        ),
        model="gemm_shift",
        items=BOTH,
        words=("'h.q'", "'fc1', Gemm", "transB is the other way round in the oracle"),
    ),
    Mutant(
        id="feeds-reversed",
        breaks="the oracle gives the feeds of a chunk back in reverse order",
        edits=(
            Edit(
                file="oracle/run.py",
                find="stored=stored), out[start : start + size])",
                replace="stored=stored), out[start : start + size][::-1])",
            ),
        ),
        model="gemm_shift",
        items=BOTH,
        words=("'x_real.q'", "QuantizeLinear"),
    ),
)

ORACLE: Final = (*ROUNDING, *BIAS, *GEOMETRY, *ELEMENTWISE)
