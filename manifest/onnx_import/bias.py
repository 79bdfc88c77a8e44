"""How a bias reaches the accumulator: as it is, shifted, or rescaled."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from manifest.model import Bias, BiasKind, Quantization
from manifest.onnx_import.graph import Array
from manifest.onnx_import.quant import exact_scales
from manifest.onnx_import.requantize import shift_of


@dataclass(frozen=True, slots=True, kw_only=True)
class BiasPlan:
    """What the manifest says about a bias and what the bound needs.

    Attributes:
        kind: as in `manifest.model.Bias`.
        shifts: left shifts of the bias, one or one per channel; empty unless `shifted`.
        promotion: left shifts of the accumulator (negative shifts of the bias).
        addends: bias in the unit of the promoted accumulator, one per channel.
        rescaled: int32 array for `target`, None unless `rescaled`.
        power_of_two: whether the bias needs no rounding and has a 2**k scale.
    """

    kind: BiasKind
    shifts: tuple[int, ...]
    promotion: tuple[int, ...]
    addends: tuple[int, ...]
    rescaled: Array | None
    power_of_two: bool

    def record(self, target_array: str | None) -> Bias:
        """The manifest's entry."""
        return Bias(kind=self.kind, shifts=self.shifts, target_array=target_array)


NO_BIAS = BiasPlan(kind="accumulator", shifts=(), promotion=(0,), addends=(0,), rescaled=None, power_of_two=True)


def as_it_is(values: Array) -> BiasPlan:
    """The plan of an int32 bias that a QOperator node adds to its accumulator."""
    addends = tuple(int(v) for v in values)
    return BiasPlan(kind="accumulator", shifts=(), promotion=(0,), addends=addends, rescaled=None, power_of_two=True)


def _spread(values: tuple[Fraction, ...], count: int) -> list[Fraction]:
    """One value per channel."""
    return list(values) * count if len(values) == 1 else list(values)


def _is_product(scale: Fraction, left: Fraction, right: Fraction) -> bool:
    """Whether a bias scale is the product of input and weight scale, exactly or rounded to float32."""
    product = left * right
    return scale in (product, Fraction(float(np.float32(np.float32(float(left)) * np.float32(float(right))))))


def plan_bias(values: Array, quant: Quantization | None, input_scale: Fraction, weights: Quantization) -> BiasPlan:
    """Decide how a bias is added.

    Args:
        values: one per output channel: integer codes where `quant` is set, else float32.
        quant: scales of the codes (zero points 0), None for a float bias.
        input_scale: scale of the input.
        weights: scales of the weights, one or one per output channel.

    Returns:
        `accumulator` where every scale is the product of input and weight scale (exactly, or rounded to float32),
        `shifted` where every ratio to the product is a power of two, else `rescaled`.
    """
    count = len(values)
    weight_scales = _spread(exact_scales(weights), count)
    units = [input_scale * s for s in weight_scales]
    if quant is None:
        return _rescaled([Fraction(float(v)) / u for v, u in zip(values, units, strict=True)])
    codes = [int(v) for v in values]
    scales = _spread(exact_scales(quant), count)
    if all(_is_product(s, input_scale, w) for s, w in zip(scales, weight_scales, strict=True)):
        return BiasPlan(
            kind="accumulator",
            shifts=(),
            promotion=(0,),
            addends=tuple(codes),
            rescaled=None,
            power_of_two=quant.exponents is not None,
        )
    shifts = [shift_of(u / s) for s, u in zip(scales, units, strict=True)]
    known = [s for s in shifts if s is not None]
    if len(known) == count:
        return _shifted(codes, known, power_of_two=quant.exponents is not None)
    return _rescaled([c * s / u for c, s, u in zip(codes, scales, units, strict=True)])


def _shifted(codes: list[int], shifts: list[int], *, power_of_two: bool) -> BiasPlan:
    """A bias whose scale is 2**shift times the product."""
    same = len(set(shifts)) == 1
    kept = tuple(shifts[:1] if same else shifts)
    return BiasPlan(
        kind="shifted",
        shifts=kept,
        promotion=tuple(max(0, -s) for s in kept),
        addends=tuple(c << max(0, s) for c, s in zip(codes, shifts, strict=True)),
        rescaled=None,
        power_of_two=power_of_two,
    )


def _rescaled(exact: list[Fraction]) -> BiasPlan:
    """A bias that `target` rounds to the accumulator's scale (half even, saturated to int32)."""
    rounded = [max(-(2**31), min(2**31 - 1, round(v))) for v in exact]
    bounds = tuple(max(abs(r), -(-abs(v).numerator // v.denominator)) for r, v in zip(rounded, exact, strict=True))
    return BiasPlan(
        kind="rescaled",
        shifts=(),
        promotion=(0,),
        addends=bounds,
        rescaled=np.array(rounded, np.int32),
        power_of_two=False,
    )
