"""Mutants of the importer, of the manifest's layouts and of phase 1's own quantization."""

from typing import Final

from tests.mutants.harness import Edit, Mutant
from tests.mutants.models import DIGITS
from tests.mutants.oracle_mutants import BOTH, CONTRACTION

REQUANTIZE: Final = "manifest/onnx_import/requantize.py"
QUANT: Final = "manifest/onnx_import/quant.py"
CALIBRATE: Final = "manifest/onnx_import/quantize/calibrate.py"
FEW: Final = ("--max-samples", "8")

MEANING: Final = (
    Mutant(
        id="relu-folded-away",
        breaks="a Relu in front of a symmetric int8 QuantizeLinear is taken for the saturation",
        edits=(
            Edit(
                file="manifest/onnx_import/emit.py",
                find="qmin=code_of(bounds.low, quant, low, high),",
                replace="qmin=low,",
            ),
        ),
        model="gemm_shift",
        items=BOTH,
        words=("'h.q'", "'fc1', Gemm", "negative values are cut off (Relu) in onnxruntime"),
    ),
    Mutant(
        id="integer-clip-dropped",
        breaks="an integer Clip between QuantizeLinear and DequantizeLinear is dropped",
        edits=(
            Edit(
                file="manifest/onnx_import/passing.py",
                find="low, high = int(max(low, item.own.low)), int(min(high, item.own.high))",
                replace="low, high = qrange(source.tensor.dtype)",
            ),
        ),
        model="clipped",
        items=BOTH,
        words=("'x_small'", "'narrow', Clip"),
    ),
    Mutant(
        id="reinterpret-ignored",
        breaks="codes are read at the scale that they were written at, whatever the DequantizeLinear says",
        edits=(
            Edit(
                file="manifest/onnx_import/operands.py",
                find="    if tensor.quant == quant and not copy:\n",
                replace="    if not copy:\n",
            ),
        ),
        model="reinterpreted",
        items=BOTH,
        words=("'y.q'", "'fc', Gemm", "the shift is 1 too"),
    ),
    Mutant(
        id="second-scale-ignored",
        breaks="a weight used at two scales keeps the first",
        edits=(
            Edit(
                file="manifest/onnx_import/builder.py",
                find="if found.array is None or found.quant != quant:",
                replace="if found.array is None:",
            ),
        ),
        model="shared_weight",
        items=BOTH,
        words=("'y.q'", "'fc2', Gemm", "the shift is 1 too"),
    ),
    Mutant(
        id="channel-axis-dropped",
        breaks="only the first of the scales per channel is read",
        edits=(
            Edit(
                file=QUANT,
                find="    return quantization(scales, points, where), kind\n",
                replace="    return quantization(scales[:1], points[:1], where), kind\n",
            ),
        ),
        model="conv_shift",
        items=BOTH,
        words=("'y.q'", "'conv', Conv"),
    ),
    Mutant(
        id="channel-axis-not-turned",
        breaks="folding a Transpose of a weight leaves its channel axis behind",
        edits=(
            Edit(
                file="manifest/onnx_import/fold.py",
                find="axis = perm.index(source.quant.axis)",
                replace="axis = source.quant.axis",
            ),
        ),
        model="folded",
        words=("'mm'", "has its scales along axis 0", "axis 1"),
        exit=2,
    ),
    Mutant(
        id="fold-without-moving",
        breaks="folding a Transpose of a square weight moves its channel axis and not its elements",
        edits=(
            Edit(
                file="manifest/onnx_import/fold.py",
                find="_codes_or_values(node, source, source.array.transpose(perm), axis)",
                replace="_codes_or_values(node, source, source.array, axis)",
            ),
        ),
        model="folded",
        items=BOTH,
        words=("'y.q'", "'mm', MatMul"),
    ),
    Mutant(
        id="bias-shift-not-stated",
        breaks="the manifest states no pre-shift for an int8 bias of a coarser scale",
        edits=(
            Edit(
                file="manifest/onnx_import/bias.py",
                find="kept = tuple(shifts[:1] if same else shifts)",
                replace="kept = (0,) if same else (0,) * len(shifts)",
            ),
        ),
        model="conv_shift",
        items=BOTH,
        words=("'y.q'", "'conv', Conv", "the bias pre-shift is missing in the oracle"),
    ),
    Mutant(
        id="pads-by-axis",
        breaks="pads are read as (begin, end) per axis instead of all begins, then all ends",
        edits=(
            Edit(
                file="manifest/onnx_import/shapes.py",
                find="return pads[0], pads[1], pads[2], pads[3]",
                replace="return pads[0], pads[2], pads[1], pads[3]",
            ),
        ),
        model="conv_shift",
        items=BOTH,
        words=("'y.q'", "'conv', Conv", "shape or type differ"),
    ),
    Mutant(
        id="transb-not-read",
        breaks="transB of a Gemm with a square weight is not read",
        edits=(
            Edit(
                file="manifest/onnx_import/ops/gemm.py",
                find='"transB": node.integer("transB", 0),',
                replace='"transB": 0,',
            ),
        ),
        model="gemm_shift",
        items=BOTH,
        words=("'h.q'", "'fc1', Gemm", "transB is the other way round in onnxruntime"),
    ),
    Mutant(
        id="factor-dropped",
        breaks="the constant that XINT8 multiplies an average with is dropped",
        edits=(
            Edit(
                file="manifest/onnx_import/fuse.py",
                find="                factor = value\n",
                replace="                factor = 1.0\n",
            ),
        ),
        model="scaled_mean",
        items=BOTH,
        words=("'y.q'", "'gap', GlobalAveragePool"),
    ),
    Mutant(
        id="concat-reversed",
        breaks="the inputs of a Concat are written down in reverse order",
        edits=(
            Edit(
                file="manifest/onnx_import/ops/concat.py",
                find="inputs=tuple(p.name for p in parts),",
                replace="inputs=tuple(p.name for p in parts[::-1]),",
            ),
        ),
        model="layouts",
        items=BOTH,
        words=("'c.q'", "'join', Concat", "the inputs are in reverse order in onnxruntime"),
    ),
)

NUMBERS: Final = (
    Mutant(
        id="bound-too-small",
        breaks="the bound of an accumulator takes the smaller end of the input's range",
        edits=(
            Edit(
                file="manifest/onnx_import/accumulate.py",
                find="return max(abs(low - zero_point), abs(high - zero_point))",
                replace="return min(abs(low - zero_point), abs(high - zero_point))",
            ),
        ),
        model="conv_shift",
        items=("BL007",),
        words=("op 'conv'", "beyond the bound"),
    ),
    Mutant(
        id="bound-without-bias",
        breaks="the bound of an accumulator leaves the bias out",
        edits=(
            Edit(
                file="manifest/onnx_import/accumulate.py",
                find=" + abs(bias[i % len(bias)])",
                replace="",
            ),
        ),
        model="qop_wrap",
        items=("BL007",),
        words=("op 'conv'", "beyond the bound", "the bias left out"),
    ),
    Mutant(
        id="multiplier-off-by-one",
        breaks="the 31-bit multiplier is one too large",
        edits=(
            Edit(
                file=REQUANTIZE,
                find="    return multiplier, shift\n",
                replace="    return multiplier + 1, shift\n",
            ),
        ),
        model="odd_scales",
        items=("BL014",),
        words=("'y.q'", "'mm', MatMul", "not what the scales say"),
    ),
    Mutant(
        id="proved-multiplier-off-by-one",
        breaks="the multiplier of an average that was found by enumeration is stated one too large",
        edits=(
            Edit(
                file=REQUANTIZE,
                find='return multiplier, shift, f"(sum',
                replace='return multiplier + 1, shift, f"(sum',
            ),
        ),
        model="odd_mean",
        items=("BL014",),
        words=("'y.q'", "'gap', GlobalAveragePool", "stated as proved equal to the reference"),
    ),
    Mutant(
        id="add-multipliers-swapped",
        breaks="the alignments of the two inputs of an Add are exchanged",
        edits=(
            Edit(
                file=REQUANTIZE,
                find="multipliers = [1 << (shared - s) for s in known]",
                replace="multipliers = [1 << (shared - s) for s in known][::-1]",
            ),
        ),
        model="residual",
        items=("BL011", "BL014"),
        words=("'y.q'", "'add'"),
    ),
    Mutant(
        id="channel-multiplier-repeated",
        breaks="the target takes the shift of channel 0 for every output channel",
        edits=(
            Edit(
                file="manifest/onnx_import/linear.py",
                find="return per_channel(unit_ratios(units, output), output, kind)",
                replace="return per_channel(unit_ratios(units, output)[:1], output, kind)",
            ),
        ),
        model="conv_shift",
        items=("BL011", "BL014"),
        words=("'y.q'", "'conv'"),
    ),
    Mutant(
        id="nearly-power-of-two",
        breaks="a scale beside 2**k counts as 2**k",
        edits=(
            Edit(
                file=QUANT,
                find="return exponent - 1 if mantissa == 0.5 else None",
                replace="return exponent - 1 if abs(mantissa - 0.5) < 1e-6 else None",
            ),
        ),
        model="nearly_shift",
        items=("BL002",),
        words=("power-of-two scales are claimed", "'w'"),
    ),
    Mutant(
        id="not-reproducible",
        breaks="keys of arrays depend on the clock",
        edits=(
            Edit(
                file="manifest/onnx_import/builder.py",
                find='key = f"t{len(self.arrays) + 1:06d}"',
                replace="key = f't{id(self) // 16 % 900 * 1000 + len(self.arrays) + 1:06d}'",
            ),
        ),
        model="gemm_shift",
        items=("BL005",),
        words=("two imports of one model differ",),
    ),
    Mutant(
        id="layout-order-swapped",
        breaks="the inner axes of packed Conv weights are exchanged, for packing and unpacking alike",
        edits=(
            Edit(
                file="manifest/layout.py",
                find='"conv_blocks": Transform(axes="OIHW", order="OIHWio"),',
                replace='"conv_blocks": Transform(axes="OIHW", order="OIHWoi"),',
            ),
        ),
        model=DIGITS,
        args=FEW,
        items=("BL006",),
        words=("Conv_35_quantized", "do not stand where the layout says"),
    ),
    Mutant(
        id="layout-packed-columnwise",
        breaks="packing fills the blocks column by column, unpacking reads them row by row",
        edits=(
            Edit(
                file="manifest/layout.py",
                find="unfolded = padded.reshape([sizes[part] for part in letters])",
                replace='unfolded = padded.reshape([sizes[part] for part in letters], order="F")',
            ),
        ),
        model="gemm_shift",
        items=("BL006",),
        words=("'w1'", "'w2'", "pack then unpack changes"),
    ),
    Mutant(
        id="cut-tensor-lost",
        breaks="a dispatch hands on only the first of the tensors that are read behind it",
        edits=(
            Edit(
                file="phases/baseline/partition.py",
                find="return tuple(n for op in ops for n in op.outputs if n in read)",
                replace="return tuple(n for op in ops for n in op.outputs if n in read)[:1]",
            ),
        ),
        model="residual",
        args=("--cut", "b.q"),
        items=("BL013",),
        words=("a dispatch reads", "'b.q'", "hands that on"),
    ),
    Mutant(
        id="calibrated-too-fine",
        breaks="phase 1's own scales of activations are 8 times too fine",
        edits=(
            Edit(
                file=CALIBRATE,
                find="return {name: chosen[plan.group[name]] for name in plan.quantized}, silent",
                replace="return {name: chosen[plan.group[name]] - 3 for name in plan.quantized}, silent",
            ),
        ),
        model=DIGITS,
        args=("--max-samples", "32"),
        items=("BL012",),
        words=("input 'x'", "elements clipped", "calibrated range"),
    ),
    Mutant(
        id="weights-too-coarse",
        breaks="phase 1's own scales of weights are 16 times too coarse",
        edits=(
            Edit(
                file=CALIBRATE,
                find="return best_exponent({k: squared_error(exact, k) for k in candidates(coarse, options.finer)})",
                replace="return best_exponent({k: squared_error(exact, k) for k in candidates(coarse, options.finer)}) + 4",
            ),
        ),
        model=DIGITS,
        args=("--max-samples", "32"),
        items=("BL003",),
        words=("accuracy", "lowest SQNR in"),
    ),
)

CHANGED: Final = (
    Mutant(
        id="data-changed",
        breaks="one bit of the data file changes after the run",
        model="gemm_shift",
        touch="real.npz",
        words=("real.npz: stale: data changed since the last run",),
        exit=3,
    ),
    Mutant(
        id="model-changed",
        breaks="one bit of the model changes after the run",
        model="gemm_shift",
        touch="model.onnx",
        words=("model.onnx: stale: model changed since the last run",),
        exit=3,
    ),
    Mutant(
        id="canary-changed",
        breaks="one bit of the canary changes after the run",
        model="gemm_shift",
        touch="model.port/data/canary.npz",
        words=("data/canary.npz: tampered: changed since the last run",),
        exit=3,
    ),
    Mutant(
        id="weights-changed",
        breaks="one bit of the port's arrays changes after the run",
        model="gemm_shift",
        touch="model.port/tensors.npz",
        words=("tensors.npz: tampered: changed since the last run",),
        exit=3,
    ),
    Mutant(
        id="oracle-broken-later",
        breaks="the bias is dropped from the oracle after a sound run",
        edits=(Edit(file=CONTRACTION, find="addend = [c << max(s, 0) for c, s in zip(codes, shifts, strict=True)]", replace="addend = [0] * channels"),),
        model="conv_shift",
        rerun=True,
        words=("data/canary.npz: rerun: another content", "gates/baseline.json: rerun: another content"),
        exit=3,
    ),
    Mutant(
        id="importer-broken-later",
        breaks="transB is no longer read after a sound run",
        edits=(
            Edit(
                file="manifest/onnx_import/ops/gemm.py",
                find='"transB": node.integer("transB", 0),',
                replace='"transB": 0,',
            ),
        ),
        model="gemm_shift",
        rerun=True,
        words=("manifest.json: rerun: another content", "gates/baseline.json: rerun: another content"),
        exit=3,
    ),
)

IMPORTER: Final = (*MEANING, *NUMBERS, *CHANGED)
