"""Parameters that take an exact value to an output code.

Why here and not in the oracle: the manifest states what a kernel is told (multiplier, shift), and the importer may
not use the oracle that later checks it. Ratios are exact rationals of the file's float32 scales: value of one unit
of the integer that is rounded, divided by the output scale.

Conventions of `target`: code = clamp(srs(integer * multiplier, shift) + zero point). One (multiplier, shift) per
output channel for Conv, Gemm and MatMul (also on the channel axis of what follows an exact tensor), one per input
with one shared shift for Add, one per input for Concat. The integer of an average whose windows hold different numbers
n of elements is sum * (L / n) with L their least common multiple.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Final

import numpy as np
import numpy.typing as npt

from manifest.model import DType, Quantization, ReferenceKind, Requantization, TargetKind

I64 = npt.NDArray[np.int64]

MULTIPLIER_BITS: Final = 31
MAX_ENUMERATED: Final = 1 << 22
_MAX_OBJECTS: Final = 1 << 16
_MAX_SHIFT: Final = 46
_MOST_SHIFT: Final = 62
_MOST_STEPS: Final = 8
_LARGEST_SUM: Final = 1 << 62
ALIGN_ERROR: Final = Fraction(1, 1 << 12)
"""Error of an aligned sum, in output codes, that needs no finer multipliers."""
_PROBE: Final = 2048


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """What an op writes: quantization (one scale), code type, range of codes after fused activations."""

    quant: Quantization
    dtype: DType
    qmin: int
    qmax: int

    @property
    def scale(self) -> Fraction:
        """The scale as an exact rational."""
        return Fraction(self.quant.scales[0])

    @property
    def zero_point(self) -> int:
        """The zero point."""
        return self.quant.zero_points[0]

    @property
    def power_of_two(self) -> bool:
        """Whether the scale is exactly 2**k."""
        return self.quant.exponents is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """Every integer that an op can round, with the exact value of one unit over the output scale.

    Attributes:
        low: lowest integer.
        high: highest integer.
        ratio: value of one unit / output scale.
        steps: the integers are the multiples of any of these (windows of different numbers of elements weigh
            their sums so that all share one unit).
    """

    low: int
    high: int
    ratio: Fraction
    steps: tuple[int, ...] = (1,)

    @property
    def count(self) -> int:
        """How many integers there are at most."""
        return sum((self.high - self.low) // step + 1 for step in self.steps)

    @property
    def distinct(self) -> int:
        """How many different integers there are: of few steps by inclusion and exclusion, else counted."""
        steps = [s for s in self.steps if not any(s % t == 0 and t < s for t in self.steps)]
        if len(steps) > _MOST_STEPS:
            return int(self.values().size)
        total = 0
        for size in range(1, len(steps) + 1):
            for chosen in combinations(steps, size):
                step = math.lcm(*chosen)
                total += (-1) ** (size + 1) * (self.high // step - -(-self.low // step) + 1)
        return total

    def values(self) -> I64:
        """All of them, ascending."""
        parts = [np.arange(-(-self.low // s) * s, self.high + 1, s, dtype=np.int64) for s in self.steps]
        return parts[0] if len(parts) == 1 else np.unique(np.concatenate(parts))


def multiplier_shift(ratio: Fraction) -> tuple[int, int]:
    """The nearest multiplier in [2**30, 2**31) and its shift: ratio ~ multiplier / 2**shift; ratio > 0.

    The relative error is at most 2**-31. A negative shift is a left shift.
    """
    low = 1 << (MULTIPLIER_BITS - 1)
    shift = MULTIPLIER_BITS - 1 - (ratio.numerator.bit_length() - ratio.denominator.bit_length())
    multiplier = _scaled(ratio, shift)
    while multiplier < low:
        shift += 1
        multiplier = _scaled(ratio, shift)
    while multiplier >= 2 * low:
        shift -= 1
        multiplier = _scaled(ratio, shift)
    return multiplier, shift


def _scaled(ratio: Fraction, shift: int) -> int:
    """round(ratio * 2**shift), ties to even."""
    return round(ratio * Fraction(2) ** shift)


def dyadic(ratio: Fraction) -> tuple[int, int] | None:
    """(odd multiplier, shift) where ratio is exactly multiplier / 2**shift, else None."""
    if ratio.denominator & (ratio.denominator - 1):
        return None
    twos = (ratio.numerator & -ratio.numerator).bit_length() - 1
    return ratio.numerator >> twos, ratio.denominator.bit_length() - 1 - twos


def shift_of(ratio: Fraction) -> int | None:
    """S where ratio is exactly 2**-s, else None."""
    found = dyadic(ratio)
    return found[1] if found is not None and found[0] == 1 else None


def _requantization(
    output: Output,
    reference: ReferenceKind,
    target: TargetKind,
    pairs: Sequence[tuple[int, int]],
    *,
    inside: bool = False,
    proof: str = "",
) -> Requantization:
    """A Requantization with one (multiplier, shift) per entry."""
    return Requantization(
        reference=reference,
        target=target,
        qmin=output.qmin,
        qmax=output.qmax,
        multipliers=tuple(m for m, _ in pairs),
        shifts=tuple(s for _, s in pairs),
        zero_point_inside=inside,
        proof=proof,
    )


def kernel_ratios(x: Fraction, weights: Sequence[float], alpha: float, output: Output) -> list[Fraction]:
    """The float32 multipliers f32(f32(f32(alpha * sx) * sw) / sy) of onnxruntime's integer kernels, as rationals.

    Why: with them as its multipliers the target differs from a QOperator node only where the float32 product rounds.
    One that underflows or overflows is replaced by the exact ratio.
    """
    f32 = np.float32
    with np.errstate(over="ignore", under="ignore"):
        scaled = f32(alpha) * f32(float(x))
        products = [float(f32(scaled * f32(w))) for w in weights]
    exact = [x * Fraction(w) * Fraction(alpha) for w in weights]
    usable = [Fraction(p) if np.isfinite(p) and p > 0 else e for p, e in zip(products, exact, strict=True)]
    return [kernel_ratio(p, output) for p in usable]


def kernel_ratio(scale: Fraction, output: Output) -> Fraction:
    """f32(s / sy) as a rational; the exact ratio where that underflows or overflows."""
    with np.errstate(over="ignore", under="ignore"):
        found = np.float32(float(scale)) / np.float32(float(output.scale))
    return Fraction(float(found)) if np.isfinite(found) and found > 0 else scale / output.scale


def identity(output: Output) -> Requantization:
    """Codes pass unchanged, clamped to [qmin, qmax]."""
    return _requantization(output, "identity", "identity", [(1, 0)])


def per_channel(
    ratios: Sequence[Fraction], output: Output, reference: ReferenceKind, *, inside: bool = False
) -> Requantization:
    """One (multiplier, shift) per ratio; shifts only where every ratio is a power of two."""
    shifts = [shift_of(r) for r in ratios]
    known = [s for s in shifts if s is not None]
    if len(known) == len(shifts):
        return _requantization(output, reference, "srs", [(1, s) for s in known], inside=inside)
    pairs = [multiplier_shift(r) for r in ratios]
    return _requantization(output, reference, "multiplier_shift", pairs, inside=inside)


def aligned(
    ratios: Sequence[Fraction],
    output: Output,
    reference: ReferenceKind,
    *,
    inside: bool = False,
    sizes: Sequence[int] | None = None,
) -> Requantization:
    """One multiplier per input and one shared shift, so that the sum is rounded once.

    Where the ratios are powers of two the multipliers are the alignments (powers of two), else the largest one
    is in [2**30, 2**31), or larger where an input has a unit so fine that its multiplier would lose what counts.

    Args:
        ratios: value of one unit of each input / output scale.
        output: what is written.
        reference: what the reference arithmetic is called.
        inside: the zero point goes in before the rounding.
        sizes: largest |integer| of each input, where known.
    """
    shifts = [shift_of(r) for r in ratios]
    known = [s for s in shifts if s is not None]
    if len(known) == len(shifts):
        shared = max(0, *known)
        multipliers = [1 << (shared - s) for s in known]
        kind: TargetKind = "srs"
    else:
        shared = multiplier_shift(max(ratios))[1]
        if sizes is not None:
            shared = _finer(ratios, sizes, shared, abs(output.zero_point) if inside else 0)
        multipliers = [_scaled(r, shared) for r in ratios]
        kind = "multiplier_shift"
    return Requantization(
        reference=reference,
        target=kind,
        qmin=output.qmin,
        qmax=output.qmax,
        multipliers=tuple(multipliers),
        shifts=(shared,),
        zero_point_inside=inside,
    )


def _finer(ratios: Sequence[Fraction], sizes: Sequence[int], shift: int, offset: int) -> int:
    """The least shift from `shift` on at which the multipliers' own rounding moves no sum by more than `ALIGN_ERROR`.

    Where no sum within 62 bits allows that: the one that moves it least.
    """
    best = shift
    for finer in range(shift, max(shift, _MOST_SHIFT) + 1):
        largest = sum(_scaled(r, finer) * n for r, n in zip(ratios, sizes, strict=True))
        if finer > shift and largest + (offset << max(finer, 0)) > _LARGEST_SUM:
            break
        if _error(ratios, sizes, finer) < _error(ratios, sizes, best):
            best = finer
        if _error(ratios, sizes, finer) <= ALIGN_ERROR:
            return finer
    return best


def _error(ratios: Sequence[Fraction], sizes: Sequence[int], shift: int) -> Fraction:
    """What rounding the multipliers can add to the sum, in output codes."""
    exact = [r * Fraction(2) ** shift for r in ratios]
    return sum((abs(round(e) - e) * n for e, n in zip(exact, sizes, strict=True)), Fraction(0)) / Fraction(2) ** shift


def round_half_even(values: I64, ratio: Fraction) -> I64 | None:
    """round(values * ratio), ties to even, exactly; None where the integers are too large to do it for so many."""
    largest = int(np.abs(values).max(initial=0))
    numerator, denominator = ratio.numerator, ratio.denominator
    if largest * numerator < 1 << 62 and denominator < 1 << 61:
        product = values * numerator
        floor = product // denominator
        twice = 2 * (product - floor * denominator)
        up = (twice > denominator) | ((twice == denominator) & (floor & 1 == 1))
        return np.asarray(floor + up, np.int64)
    if values.size > _MAX_OBJECTS:
        return None
    return np.array([round(Fraction(int(v)) * ratio) for v in values.ravel()], np.int64)


def _srs(values: I64, multiplier: int, shift: int) -> I64:
    """round(values * multiplier / 2**shift), ties to even; shift 0 to 46."""
    product = values * multiplier
    floor = product >> shift
    twice = 2 * (product - (floor << shift))
    one = 1 << shift
    return np.asarray(floor + ((twice > one) | ((twice == one) & (floor & 1 == 1))), np.int64)


def _around_ties(sums: Sums, low: int, high: int) -> I64:
    """The sums beside each tie of sum * ratio between the codes `low` and `high`, and the ends: no others change code.

    Three of every step's multiples: the one below a tie may be the tie itself.
    """
    ratio = sums.ratio
    first = max(low, math.floor(sums.low * ratio) - 1)
    last = min(high, math.ceil(sums.high * ratio) + 1)
    ties = [(2 * code + 1) * ratio.denominator // (2 * ratio.numerator) for code in range(first, last)]
    below = np.array(ties, np.int64)
    parts = []
    for step in sums.steps:
        ends = np.array([-(-sums.low // step) * step, sums.high // step * step], np.int64)
        base = below // step * step
        parts += [ends, base - step, base, base + step]
    values = np.unique(np.concatenate(parts))
    return values[(values >= sums.low) & (values <= sums.high)]


def _around_steps(codes: I64) -> npt.NDArray[np.intp]:
    """Positions of both ends and of both sides of every change.

    A function that never falls and has these codes there has them everywhere: between two changes it is held at both
    ends. A shift of a product is such a function, so that 2 sums per code stand for all of them.
    """
    changes = np.flatnonzero(codes[1:] != codes[:-1])
    return np.unique(np.concatenate([[0, codes.size - 1], changes, changes + 1]).astype(np.intp))


Expected = Callable[[I64, Sums], I64 | None]


def rational(values: I64, sums: Sums) -> I64 | None:
    """The exact reference: round(sum * ratio), ties to even."""
    return round_half_even(values, sums.ratio)


def search(sums: Sums, output: Output, expected: Expected = rational) -> tuple[int, int, str] | None:
    """The smallest (multiplier, shift) that gives the expected code for every possible sum.

    Args:
        sums: what can be rounded; up to 2**22 integers. Of these the ones where the code changes stand for all.
        output: zero point and range of codes.
        expected: rounded values (before zero point and clamp) for an array of sums.

    Returns:
        (multiplier, shift, proof text), or None where there is none or too many sums to tell.
    """
    if sums.count > MAX_ENUMERATED:
        return None
    low, high = output.qmin - output.zero_point, output.qmax - output.zero_point
    values = _around_ties(sums, low, high) if expected is rational else sums.values()
    wanted = expected(values, sums)
    if wanted is None:
        return None
    wanted = np.clip(wanted, low, high)
    steps = _around_steps(wanted)
    values, wanted, count = values[steps], wanted[steps], sums.distinct
    probe = slice(None, None, max(1, steps.size // _PROBE))
    for shift in range(_MAX_SHIFT + 1):
        scaled = sums.ratio * (1 << shift)
        floor = scaled.numerator // scaled.denominator
        if floor >= 1 << MULTIPLIER_BITS:
            return None
        for multiplier in (floor, floor + 1):
            if multiplier < 1 or max(abs(sums.low), abs(sums.high)) * multiplier >= 1 << 61:
                continue
            if all(
                np.array_equal(np.clip(_srs(values[part], multiplier, shift), low, high), wanted[part])
                for part in (probe, slice(None))
            ):
                return multiplier, shift, f"(sum * {multiplier}) >> {shift} equals the reference on all {count} sums"
    return None


def enumerated(
    sums: Sums,
    output: Output,
    reference: ReferenceKind,
    *,
    expected: Expected | None = rational,
    inside: bool = False,
) -> Requantization:
    """A proved (multiplier, shift), or the best one and no proof.

    Args:
        sums: what can be rounded.
        output: zero point and range of codes.
        reference: what the reference arithmetic is called.
        expected: the reference as a function of the sum (exact, or onnxruntime's float32 formula); None where the
            reference is no function of the sum alone.
        inside: the zero point goes in before the rounding.

    A ratio that is a multiplier over a power of two is taken as it is.
    """
    exact = dyadic(sums.ratio)
    if expected is rational and exact is not None and exact[0] < 1 << MULTIPLIER_BITS:
        proof = f"exact: the ratio is {exact[0]} / 2**{exact[1]}"
        return _requantization(output, reference, "srs", [exact], inside=inside, proof=proof)
    found = None if inside or expected is None else search(sums, output, expected)
    if found is None:
        pair = multiplier_shift(sums.ratio)
        return _requantization(output, reference, "multiplier_shift", [pair], inside=inside)
    return _requantization(output, reference, "multiplier_shift", [found[:2]], inside=inside, proof=found[2])
