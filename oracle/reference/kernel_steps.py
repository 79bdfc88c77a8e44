"""One accumulator step of a kernel as integers, accumulators around its ties, and what they are rounded to."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from manifest.model import Op, Quantization, Requantization
from oracle.fixedpoint import srs
from oracle.rational import is_dyadic
from oracle.requantize import repeat
from oracle.value import Exact, Plan

Array = npt.NDArray[Any]

TIES: Final = 192
"""Ties that are looked for over all channels of an op."""
MOST_CODES: Final = 300
_SHIFTS: Final = range(-40, 63)


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """An op whose kernel is told multipliers and shifts, and how reference and target get there."""

    op: Op
    quant: Quantization
    requant: Requantization
    reference: Plan
    target: Plan

    @property
    def tensor(self) -> str:
        """The tensor that the op writes."""
        return self.op.outputs[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """Per channel the multiplier and shift of one accumulator step; zero point and range of the codes."""

    multipliers: list[int]
    shifts: list[int]
    point: int
    inside: bool
    limits: tuple[int, int]
    rounding: str

    def value(self, acc: int, channel: int) -> Fraction:
        """What an accumulator comes to, in output codes before rounding; with the zero point where that is inside."""
        scaled = Fraction(acc * self.multipliers[channel]) / Fraction(2) ** self.shifts[channel]
        return scaled + self.point if self._inside(channel) else scaled

    def exact(self, acc: Array) -> Array:
        """Codes (C, S) by rational arithmetic, ties to even."""
        return self._codes([[round(self.value(v, c)) for v in row] for c, row in enumerate(acc.tolist())])

    def shifted(self, acc: Array) -> Array:
        """Codes (C, S) by the shift primitive."""
        rows = []
        for c, row in enumerate(acc):
            point = self.point << self.shifts[c] if self._inside(c) else 0
            rows.append(srs(row * self.multipliers[c] + point, self.shifts[c], self.rounding).tolist())
        return self._codes(rows)

    def _inside(self, channel: int) -> bool:
        return self.inside and self.shifts[channel] >= 0

    def _codes(self, rounded: Sequence[Sequence[int]]) -> Array:
        points = np.array([0 if self._inside(c) else self.point for c in range(len(self.shifts))], dtype=object)
        codes = np.array(rounded, dtype=object) + points[:, np.newaxis]
        clamped: Array = np.clip(codes, *self.limits).astype(np.int64)
        return clamped


def steps_of(told: Told, form: Exact) -> Steps | None:
    """The steps of an op; None where an accumulator is no integer of the kernel, or a shift is beyond 62 bits."""
    requant = told.requant
    multipliers = told.target.multipliers or requant.multipliers
    count = max(len(multipliers), len(requant.shifts), len(form.scales))
    units = [s / n for s, n in zip(repeat(form.scales, count), repeat(form.nominal, count), strict=True)]
    shifts = [s + u.denominator.bit_length() - 1 for s, u in zip(repeat(requant.shifts, count), units, strict=True)]
    whole = all(is_dyadic(u) for u in units) and not any(form.offsets) and len(told.quant.scales) == 1
    if not whole or not all(s in _SHIFTS for s in shifts):
        return None
    return Steps(
        multipliers=[m * u.numerator for m, u in zip(repeat(multipliers, count), units, strict=True)],
        shifts=shifts,
        point=told.quant.zero_points[0],
        inside=requant.zero_point_inside,
        limits=(requant.qmin, requant.qmax),
        rounding=requant.rounding,
    )


def accumulators(steps: Steps, bound: int, rng: np.random.Generator) -> Array:
    """(C, S) Python integers: around ties of each channel, the ends of the range, small and random ones."""
    count = max(2, TIES // len(steps.shifts))
    rows = []
    for multiplier, shift in zip(steps.multipliers, steps.shifts, strict=True):
        ratio = Fraction(multiplier) / Fraction(2) ** shift
        reach = min(floor(bound * ratio), MOST_CODES)
        halves = [Fraction(2 * int(n) + 1, 2) for n in rng.integers(-reach - 1, reach + 1, size=count)]
        ties = [v for half in halves for v in (floor(half / ratio), ceil(half / ratio))]
        drawn = [int(v) for v in rng.integers(-bound, bound, size=count, endpoint=True)]
        rows.append([max(-bound, min(bound, v)) for v in (*ties, *drawn, -bound, bound, -1, 0, 1)])
    return np.array(rows, dtype=object)
