"""Mutants of the oracle's arithmetic: rounding, zero points, multipliers, bias."""

from typing import Final

from tests.mutants.harness import Mutant, change
from tests.mutants.models import DIGITS

REQUANTIZE: Final = "oracle/requantize.py"
CONTRACTION: Final = "oracle/contraction.py"
CONV: Final = "oracle/ops/conv.py"
BOTH: Final = ("BL008", "BL009")

HALF_UP: Final = change(REQUANTIZE, "        np.rint(acc, out=acc)\n", "        np.floor(acc + 0.5, out=acc)\n")

ROUNDING: Final = (
    Mutant(
        id="half-up-srs",
        breaks="half-up instead of half-even where every scale is 2**k",
        edits=HALF_UP,
        model="conv_shift",
        items=BOTH,
        words=("'y.q'", "'conv', Conv", "ties are rounded half up"),
    ),
    Mutant(
        id="half-up-scale-f32",
        breaks="half-up instead of half-even with the float32 multiplier of a QOperator node",
        edits=HALF_UP,
        model="qop_shift",
        items=BOTH,
        words=("'y_codes'", "'conv', Conv", "ties are rounded half up"),
    ),
    Mutant(
        id="half-up-rational",
        breaks="half-up instead of half-even in the exact rational path",
        edits=change(
            "oracle/rational.py",
            "(twice == denominator) & (quotient % 2 == 1)",
            "(twice == denominator)",
        ),
        model="gemm_sixth",
        items=BOTH,
        words=("'y.q'", "'fc', Gemm", "ties are rounded half up in the oracle"),
    ),
    Mutant(
        id="half-up-kernel-shift",
        breaks="half-up instead of half-even in `srs`, the shift that kernels are held against",
        edits=change(
            "oracle/fixedpoint.py",
            "above | (tie & (quotient % 2 == 1)),",
            "above | tie,",
        ),
        model="conv_shift",
        items=("BL014",),
        words=("'y.q'", "'conv', Conv", "the shift primitive `srs`", "(tie)"),
    ),
    Mutant(
        id="near-tie-by-float",
        breaks="float64 decides near ties instead of exact integers",
        edits=change(
            "oracle/rational.py",
            "                self._repair(values, scaled, rounded)\n",
            "                pass\n",
        ),
        model="gemm_float_ties",
        items=("BL008",),
        words=("'y.q'", "'fc', Gemm"),
    ),
    Mutant(
        id="zero-point-inside",
        breaks="the zero point is added before the rounding",
        edits=change(
            REQUANTIZE,
            "return affine(output, ratios, offsets, inside=requant.zero_point_inside, bound=form.bound)",
            "return affine(output, ratios, offsets, inside=True, bound=form.bound)",
        ),
        model="conv_shift",
        items=BOTH,
        words=("'y.q'", "'conv', Conv", "the zero point is inside the rounding in the oracle"),
    ),
    Mutant(
        id="zero-point-dropped",
        breaks="the zero point of the input is not subtracted",
        edits=change(
            "oracle/ops/gemm.py",
            "        centre(x, sums.point, columns)\n",
            "        centre(x, 0, columns)\n",
        ),
        model="odd_scales",
        items=BOTH,
        words=("'y.q'", "'mm', MatMul", "the zero point of the first input is not subtracted in the oracle"),
    ),
    Mutant(
        id="weight-zero-point-dropped",
        breaks="the zero point of uint8 weights is not subtracted",
        edits=change(
            CONTRACTION,
            "return stored.astype(np.int64) - np.array(quant.zero_points, np.int64).reshape(shape), ",
            "return stored.astype(np.int64), ",
        ),
        model="qop_shift",
        items=BOTH,
        words=("'y_codes'", "'conv', Conv", "the zero point of the second input is not subtracted in the oracle"),
    ),
    Mutant(
        id="saturation-dropped",
        breaks="codes wrap instead of saturating",
        edits=change(
            REQUANTIZE,
            "        np.clip(acc, _cut(self._low, part), _cut(self._high, part), out=acc)\n"
            "        np.rint(acc, out=acc)\n",
            "        np.rint(acc, out=acc)\n"
            "        low, high = _cut(self._low, part), _cut(self._high, part)\n"
            "        acc[...] = np.mod(acc - low, high - low + 1) + low\n",
        ),
        model="conv_shift",
        items=("BL008",),
        words=("'y.q'", "'conv', Conv", "the code wraps instead of saturating in the oracle"),
    ),
    Mutant(
        id="multiplier-order",
        breaks="the multiplier of a QOperator node is sx * (sw / sy) instead of (sx * sw) / sy",
        edits=change(
            CONTRACTION,
            "scaled * np.array(scales, f32) / f32(out.scales[0])",
            "scaled * (np.array(scales, f32) / f32(out.scales[0]))",
        ),
        model="qop_conv",
        items=BOTH,
        words=("'y_codes'", "'conv', Conv", "the float32 multiplier (sx * sw) / sy is applied in onnxruntime"),
    ),
    Mutant(
        id="int32-wrap-ignored",
        breaks="the accumulator of a QOperator node does not wrap at int32",
        edits=change(
            REQUANTIZE,
            "wrap_bits=32 if form.bound >= 1 << 31 else 0",
            "wrap_bits=0",
        ),
        model="qop_wrap",
        items=BOTH,
        words=("'y_codes'", "'conv', Conv", "the accumulator wraps at int32 in onnxruntime"),
    ),
    Mutant(
        id="float32-sums",
        breaks="products of 16-bit codes are summed in float32 beyond 2**24",
        edits=change(
            "oracle/gemm.py",
            "single = max(self.bound, reach, int(magnitude.max(initial=0))) <= FLOAT32_EXACT",
            "single = True",
        ),
        model="gemm_wide",
        items=("BL008",),
        words=("'y.q'", "'fc', Gemm"),
    ),
    Mutant(
        id="input-by-reciprocal",
        breaks="the graph input is multiplied by 1 / scale instead of divided",
        edits=change(
            "oracle/ops/quantize_linear.py",
            "scaled = np.divide(blocks[0], scale, dtype=f32)",
            "scaled = np.multiply(blocks[0], f32(1) / scale, dtype=f32)",
        ),
        model="odd_scales",
        items=("BL008",),
        words=("'x_real.q'", "QuantizeLinear"),
    ),
    Mutant(
        id="target-zero-point-inside",
        breaks="the target adds the zero point before the rounding",
        edits=change(
            REQUANTIZE,
            "[o / n * f for o, n, f in pairs], inside=requant.zero_point_inside, bound=bound)",
            "[o / n * f for o, n, f in pairs], inside=True, bound=bound)",
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
        edits=change(
            CONV,
            "        finish(layer.sums.bias(acc, (1, -1, 1)), out[block])\n",
            "        finish(acc, out[block])\n"
            "        late = np.rint(layer.sums.addend * layer.sums.multiplier).reshape(1, -1, 1)\n"
            "        limits = np.iinfo(out.dtype)\n"
            "        out[block] = np.clip(out[block] + late, limits.min, limits.max)\n",
        ),
        model="conv_shift",
        items=BOTH,
        words=("'y.q'", "'conv', Conv", "the bias is added after the shift in the oracle"),
    ),
    Mutant(
        id="bias-shift-dropped",
        breaks="the pre-shift of an int8 bias is dropped",
        edits=change(
            CONTRACTION,
            "addend = [c << max(s, 0) for c, s in zip(codes, shifts, strict=True)]",
            "addend = codes",
        ),
        model="conv_shift",
        items=BOTH,
        words=("'y.q'", "'conv', Conv", "the bias pre-shift is missing in the oracle"),
    ),
    Mutant(
        id="bias-dropped",
        breaks="the bias is not added",
        edits=change(
            CONTRACTION,
            "        if self.promote is None and self.addend is None:\n",
            "        if acc is not None:\n",
        ),
        model=DIGITS,
        args=("--max-samples", "8"),
        items=BOTH,
        words=("Conv", "the bias is missing in the oracle"),
    ),
    Mutant(
        id="first-channel-scale",
        breaks="scale of channel 0 for every output channel",
        edits=change(
            CONTRACTION,
            "units = [scale * Fraction(w) * Fraction(alpha) for w in scales]",
            "units = [scale * Fraction(scales[0]) * Fraction(alpha) for w in scales]",
        ),
        model="folded",
        items=BOTH,
        words=("'y.q'", "'mm', MatMul", "every channel takes the scale of channel 0 in the oracle"),
    ),
)

ARITHMETIC: Final = (*ROUNDING, *BIAS)
