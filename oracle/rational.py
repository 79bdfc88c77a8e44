"""Exact rounding of integer x rational + rational to the nearest integer, ties to even.

Why float64 at all: a Python `Fraction` per element costs a microsecond, a float64 product a nanosecond. The float64
value lies within a proved margin of the exact one, so wherever it is farther than that from a tie it rounds to the
exact integer; the rest is recomputed with integers. Nothing is ever decided by noise.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

_INT64_SAFE = 1 << 61
_FLOAT64_EXACT = 1 << 53
_MARGIN = Fraction(1, 1 << 50)
"""Relative margin: conversion, multiplier, product, offset and sum each err by at most 2**-53 of a term."""


def divide_half_even(numerator: Array, denominator: Array | int) -> Array:
    """Round `numerator / denominator` to the nearest integer, ties to even.

    Args:
        numerator: int64 within +-2**61 or an object array of Python ints.
        denominator: positive, broadcastable, int64 below 2**61 or Python ints.
    """
    quotient = numerator // denominator
    twice = (numerator - quotient * denominator) * 2
    up = (twice > denominator) | ((twice == denominator) & (quotient % 2 == 1))
    result: Array = quotient + up.astype(quotient.dtype if quotient.dtype != object else np.int64)
    return result


def is_dyadic(value: Fraction) -> bool:
    """Whether the denominator is a power of two."""
    return value.denominator & (value.denominator - 1) == 0


def exact_bits(ratios: Sequence[Fraction], offsets: Sequence[Fraction], bound: int) -> int | None:
    """Bits of mantissa that hold every v * ratio + offset with |v| <= bound exactly; None where no number does.

    Binary floating point of that precision (24 for float32, 53 for float64) then computes without rounding. Units
    below 2**-100 or sums above 2**100, which float32 might not reach, count as 25 bits.
    """
    worst = bound
    for ratio, offset in zip(ratios, offsets, strict=True):
        if not (is_dyadic(ratio) and is_dyadic(offset)):
            return None
        unit = max(ratio.denominator, offset.denominator)
        if unit > 1 << 100 or bound * abs(ratio) + abs(offset) > 1 << 100:
            worst = max(worst, 1 << 25)
        worst = max(worst, int((bound * abs(ratio) + abs(offset)) * unit), bound * abs(ratio.numerator))
    return (worst - 1).bit_length() if worst else 0


class AffineRounder:
    """Computes round_half_even(v * ratio[c] + offset[c]) exactly; prepared once, applied to many arrays.

    Args:
        ratios: one, or one per channel; any sign.
        offsets: as many as `ratios`, added before the rounding.
        bound: largest |v|.
        rank: rank of the arrays that it is applied to.
        axis: their channel axis, None where there is one ratio.
    """

    def __init__(
        self, ratios: Sequence[Fraction], offsets: Sequence[Fraction], *, bound: int, rank: int, axis: int | None
    ) -> None:
        self._axis = axis
        shape = () if axis is None else tuple(-1 if i == axis else 1 for i in range(rank))
        bits = exact_bits(ratios, offsets, bound)
        self._exact = bits is not None and bits <= 53
        denominators = [r.denominator * o.denominator for r, o in zip(ratios, offsets, strict=True)]
        multipliers = [int(r * d) for r, d in zip(ratios, denominators, strict=True)]
        addends = [int(o * d) for o, d in zip(offsets, denominators, strict=True)]
        largest = max(bound * abs(m) + abs(a) for m, a in zip(multipliers, addends, strict=True))
        self._small = largest < _INT64_SAFE and max(denominators) < _INT64_SAFE and bound < _INT64_SAFE
        kind: Any = np.int64 if self._small else object
        self._multipliers = np.array(multipliers, dtype=kind)
        self._addends = np.array(addends, dtype=kind)
        self._denominators = np.array(denominators, dtype=kind)
        margins = [float((bound * abs(r) + abs(o)) * _MARGIN) for r, o in zip(ratios, offsets, strict=True)]
        self._safe = 0.5 - max(margins)
        offset = np.array([float(o) for o in offsets])
        self._ratio = np.array([float(r) for r in ratios]).reshape(shape)
        self._offset = offset.reshape(shape) if np.any(offset) else None

    def __call__(self, values: Array) -> Array:
        """Round `values` (integers in any dtype that holds them exactly) to integers held in float64.

        Results beyond 2**53 are only near the exact integer: clamp to an output range afterwards.
        """
        if values.dtype.kind == "O":
            return self._python(values)
        scaled: Array = values.astype(np.float64)  # a cast and a product in one call would go through small buffers
        np.multiply(scaled, self._ratio, out=scaled)
        if self._offset is not None:
            np.add(scaled, self._offset, out=scaled)
        rounded: Array = np.rint(scaled)
        if not self._exact:
            np.subtract(scaled, rounded, out=scaled)
            if max(scaled.max(initial=0.0), -scaled.min(initial=0.0)) >= self._safe:
                self._repair(values, scaled, rounded)
        return rounded

    def _repair(self, values: Array, rest: Array, rounded: Array) -> None:
        """Recompute in place, with integers, the elements that lie within the margin of a tie."""
        where = np.nonzero(np.abs(rest) >= self._safe)
        channel = where[self._axis] if self._axis is not None else np.zeros(len(where[0]), np.intp)
        picked = values[where].astype(np.int64)
        rounded[where] = self._divide(picked, channel)

    def _python(self, values: Array) -> Array:
        """All elements with Python integers (values beyond int64)."""
        shape = tuple(-1 if i == self._axis else 1 for i in range(values.ndim))
        channel = np.arange(self._multipliers.size).reshape(shape) if self._axis is not None else np.zeros((), np.intp)
        return self._divide(values, channel)

    def _divide(self, values: Array, channel: Array) -> Array:
        if not self._small:
            values = values.astype(object)
        numerator = values * self._multipliers[channel] + self._addends[channel]
        return np.asarray(divide_half_even(numerator, self._denominators[channel]).astype(np.float64))
