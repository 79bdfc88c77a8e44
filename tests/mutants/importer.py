"""Mutants of the importer, of the manifest's layouts and of phase 1's own quantization."""

from typing import Final

from tests.mutants.arithmetic import BOTH
from tests.mutants.harness import Mutant, change
from tests.mutants.models import DIGITS

REQUANTIZE: Final = "manifest/onnx_import/requantize.py"
QUANT: Final = "manifest/onnx_import/quant.py"
CALIBRATE: Final = "manifest/onnx_import/quantize/calibrate.py"
FEW: Final = ("--max-samples", "8")

MEANING: Final = (
    Mutant(
        id="relu-folded-away",
        breaks="a Relu in front of a symmetric int8 QuantizeLinear is taken for the saturation",
        edits=change(
            "manifest/onnx_import/emit.py",
            "qmin=code_of(bounds.low, quant, low, high),",
            "qmin=low,",
        ),
        model="gemm_shift",
        items=BOTH,
        words=("'h.q'", "'fc1', Gemm", "negative values are cut off (Relu) in onnxruntime"),
    ),
    Mutant(
        id="integer-clip-dropped",
        breaks="an integer Clip between QuantizeLinear and DequantizeLinear is dropped",
        edits=change(
            "manifest/onnx_import/passing.py",
            "low, high = int(max(low, item.own.low)), int(min(high, item.own.high))",
            "low, high = qrange(source.tensor.dtype)",
        ),
        model="clipped",
        items=BOTH,
        words=("'x_small'", "'narrow', Clip"),
    ),
    Mutant(
        id="reinterpret-ignored",
        breaks="codes are read at the scale that they were written at, whatever the DequantizeLinear says",
        edits=change(
            "manifest/onnx_import/operands.py",
            "    if tensor.quant == quant and not copy:\n",
            "    if not copy:\n",
        ),
        model="reinterpreted",
        items=BOTH,
        words=("'y.q'", "'fc', Gemm", "the shift is 1 too"),
    ),
    Mutant(
        id="second-scale-ignored",
        breaks="a weight used at two scales keeps the first",
        edits=change(
            "manifest/onnx_import/builder.py",
            "if found.array is None or found.quant != quant:",
            "if found.array is None:",
        ),
        model="shared_weight",
        items=BOTH,
        words=("'y.q'", "'fc2', Gemm", "the shift is 1 too"),
    ),
    Mutant(
        id="channel-axis-dropped",
        breaks="only the first of the scales per channel is read",
        edits=change(
            QUANT,
            "    return quantization(scales, points, where), kind\n",
            "    return quantization(scales[:1], points[:1], where), kind\n",
        ),
        model="conv_shift",
        items=BOTH,
        words=("'y.q'", "'conv', Conv"),
    ),
    Mutant(
        id="channel-axis-not-turned",
        breaks="folding a Transpose of a weight leaves its channel axis behind",
        edits=change(
            "manifest/onnx_import/fold.py",
            "axis = perm.index(source.quant.axis)",
            "axis = source.quant.axis",
        ),
        model="folded",
        words=("'mm'", "has its scales along axis 0", "axis 1"),
        exit=2,
    ),
    Mutant(
        id="fold-without-moving",
        breaks="folding a Transpose of a square weight moves its channel axis and not its elements",
        edits=change(
            "manifest/onnx_import/fold.py",
            "_codes_or_values(node, source, source.array.transpose(perm), axis)",
            "_codes_or_values(node, source, source.array, axis)",
        ),
        model="folded",
        items=BOTH,
        words=("'y.q'", "'mm', MatMul"),
    ),
    Mutant(
        id="bias-shift-not-stated",
        breaks="the manifest states no pre-shift for an int8 bias of a coarser scale",
        edits=change(
            "manifest/onnx_import/bias.py",
            "kept = tuple(shifts[:1] if same else shifts)",
            "kept = (0,) if same else (0,) * len(shifts)",
        ),
        model="conv_shift",
        items=BOTH,
        words=("'y.q'", "'conv', Conv", "the bias pre-shift is missing in the oracle"),
    ),
    Mutant(
        id="pads-by-axis",
        breaks="pads are read as (begin, end) per axis instead of all begins, then all ends",
        edits=change(
            "manifest/onnx_import/shapes.py",
            "return pads[0], pads[1], pads[2], pads[3]",
            "return pads[0], pads[2], pads[1], pads[3]",
        ),
        model="conv_shift",
        items=BOTH,
        words=("'y.q'", "'conv', Conv", "shape or type differ"),
    ),
    Mutant(
        id="transb-not-read",
        breaks="transB of a Gemm with a square weight is not read",
        edits=change(
            "manifest/onnx_import/ops/gemm.py",
            '"transB": node.integer("transB", 0),',
            '"transB": 0,',
        ),
        model="gemm_shift",
        items=BOTH,
        words=("'h.q'", "'fc1', Gemm", "transB is the other way round in onnxruntime"),
    ),
    Mutant(
        id="factor-dropped",
        breaks="the constant that XINT8 multiplies an average with is dropped",
        edits=change(
            "manifest/onnx_import/fuse.py",
            "                factor = value\n",
            "                factor = 1.0\n",
        ),
        model="scaled_mean",
        items=("BL008",),
        words=("'y.q'", "'gap', GlobalAveragePool"),
    ),
    Mutant(
        id="concat-reversed",
        breaks="the inputs of a Concat are written down in reverse order",
        edits=change(
            "manifest/onnx_import/ops/concat.py",
            "inputs=tuple(p.name for p in parts),",
            "inputs=tuple(p.name for p in parts[::-1]),",
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
        edits=change(
            "manifest/onnx_import/accumulate.py",
            "return max(abs(low - zero_point), abs(high - zero_point))",
            "return min(abs(low - zero_point), abs(high - zero_point))",
        ),
        model="conv_shift",
        items=("BL007",),
        words=("op 'conv'", "beyond the bound"),
    ),
    Mutant(
        id="bound-without-bias",
        breaks="the bound of an accumulator leaves the bias out",
        edits=change(
            "manifest/onnx_import/accumulate.py",
            " + abs(bias[i % len(bias)])",
            "",
        ),
        model="qop_wrap",
        items=("BL007",),
        words=("op 'conv'", "beyond the bound", "the bias left out"),
    ),
    Mutant(
        id="multiplier-off-by-one",
        breaks="the 31-bit multiplier is one too large",
        edits=change(
            REQUANTIZE,
            "    return multiplier, shift\n",
            "    return multiplier + 1, shift\n",
        ),
        model="odd_scales",
        items=("BL014",),
        words=("'y.q'", "'mm', MatMul", "not what the scales say"),
    ),
    Mutant(
        id="proved-multiplier-off-by-one",
        breaks="the multiplier of an average that was found by enumeration is stated one too large",
        edits=change(
            REQUANTIZE,
            'return multiplier, shift, f"(sum',
            'return multiplier + 1, shift, f"(sum',
        ),
        model="odd_mean",
        items=("BL014",),
        words=("'y.q'", "'gap', GlobalAveragePool", "stated as proved equal to the reference"),
    ),
    Mutant(
        id="add-multipliers-swapped",
        breaks="the alignments of the two inputs of an Add are exchanged",
        edits=change(
            REQUANTIZE,
            "multipliers = [1 << (shared - s) for s in known]",
            "multipliers = [1 << (shared - s) for s in known][::-1]",
        ),
        model="residual",
        items=("BL011", "BL014"),
        words=("'y.q'", "'add'"),
    ),
    Mutant(
        id="channel-multiplier-repeated",
        breaks="the target takes the shift of channel 0 for every output channel",
        edits=change(
            "manifest/onnx_import/linear.py",
            "return per_channel(unit_ratios(units, output), output, kind)",
            "return per_channel(unit_ratios(units, output)[:1], output, kind)",
        ),
        model="conv_shift",
        items=("BL011", "BL014"),
        words=("'y.q'", "'conv'"),
    ),
    Mutant(
        id="nearly-power-of-two",
        breaks="a scale beside 2**k counts as 2**k",
        edits=change(
            QUANT,
            "return exponent - 1 if mantissa == 0.5 else None",
            "return exponent - 1 if abs(mantissa - 0.5) < 1e-6 else None",
        ),
        model="nearly_shift",
        items=("BL002",),
        words=("power-of-two scales are claimed", "'w'"),
    ),
    Mutant(
        id="not-reproducible",
        breaks="keys of arrays depend on the clock",
        edits=change(
            "manifest/onnx_import/builder.py",
            'key = f"t{len(self.arrays) + 1:06d}"',
            "key = f't{__import__(\"time\").perf_counter_ns() % 900 * 1000 + len(self.arrays) + 1:06d}'",
        ),
        model="gemm_shift",
        items=("BL005",),
        words=("two imports of one model differ",),
    ),
    Mutant(
        id="layout-order-swapped",
        breaks="the inner axes of packed Conv weights are exchanged, for packing and unpacking alike",
        edits=change(
            "manifest/layout.py",
            '"conv_blocks": Transform(axes="OIHW", order="OIHWio"),',
            '"conv_blocks": Transform(axes="OIHW", order="OIHWoi"),',
        ),
        model=DIGITS,
        args=FEW,
        items=("BL006",),
        words=("Conv_35_quantized", "do not stand where the layout says"),
    ),
    Mutant(
        id="layout-packed-columnwise",
        breaks="packing fills the blocks column by column, unpacking reads them row by row",
        edits=change(
            "manifest/layout.py",
            "unfolded = padded.reshape([sizes[part] for part in letters])",
            'unfolded = padded.reshape([sizes[part] for part in letters], order="F")',
        ),
        model="gemm_shift",
        items=("BL006",),
        words=("'w1'", "'w2'", "pack then unpack changes"),
    ),
    Mutant(
        id="cut-tensor-lost",
        breaks="a dispatch hands on only the first of the tensors that are read behind it",
        edits=change(
            "phases/baseline/budget.py",
            "outputs=leaving,\n                    cut_bytes",
            "outputs=leaving[:1],\n                    cut_bytes",
        ),
        model="residual",
        args=("--cut", "b.q"),
        items=("BL013",),
        words=("a dispatch reads", "'b.q'", "hands that on"),
    ),
    Mutant(
        id="calibrated-too-fine",
        breaks="phase 1's own scales of activations are 8 times too fine",
        edits=change(
            CALIBRATE,
            "return {name: chosen[plan.group[name]] for name in plan.quantized}, silent",
            "return {name: chosen[plan.group[name]] - 3 for name in plan.quantized}, silent",
        ),
        model=DIGITS,
        args=("--max-samples", "32"),
        items=("BL012",),
        words=("input 'x'", "elements clipped", "calibrated range"),
    ),
    Mutant(
        id="weights-too-coarse",
        breaks="phase 1's own scales of weights are 16 times too coarse",
        edits=change(
            CALIBRATE,
            "return best_exponent({k: squared_error(exact, k) for k in candidates(coarse, options.finer)})",
            "return best_exponent({k: squared_error(exact, k) for k in candidates(coarse, options.finer)}) + 4",
        ),
        model=DIGITS,
        args=("--max-samples", "32"),
        items=("BL003",),
        words=("accuracy", "lowest SQNR in"),
    ),
)

IMPORTER: Final = (*MEANING, *NUMBERS)
