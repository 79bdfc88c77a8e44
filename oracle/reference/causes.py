"""Guess why elements differ: recompute them under a list of wrong hypotheses and name the one that fits.

Why a guess is worth it: "off by one in 3 % of the elements" costs an afternoon, "looks like half-up rounding" a minute.
"""

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from math import floor
from typing import Final

from manifest.errors import PortError
from manifest.model import QRANGE
from oracle.reference.sample import Sample, code_of, known, part, values_of
from oracle.reference.variants import VARIANTS, without_bias

Codes = tuple[int, ...]
_FIT: Final = 0.9
"""Share of the sampled elements that a hypothesis has to reproduce."""

_NAMED: Final = 2
"""Hypotheses that are named where several fit."""

UNKNOWN: Final = "unknown"


def guess(sample: Sample) -> str:
    """Name the hypothesis that gives one side's codes; `unknown` where none does."""
    sample = part(sample, known(sample))
    if not sample.terms:
        return UNKNOWN
    plain = _codes(sample, values_of(sample))
    for hypotheses in (_hypotheses(sample), _shifts(sample)):
        found = _fitting(sample, plain, hypotheses)
        if found:
            return found
    return _fallback(sample, plain)


def _fitting(sample: Sample, plain: Codes, hypotheses: Iterator[tuple[str, Codes]]) -> str:
    """The hypotheses that give the codes of one side, "" where none does."""
    sides = [side for side in (sample.got, sample.expected) if _agreement(side, plain) <= 1 - _FIT]
    fitting: dict[Codes, list[str]] = {side: [] for side in sides}
    for text, codes in hypotheses:
        for side in sides:
            if _agreement(side, codes) >= _FIT:
                fitting[side].append(text)
    for side, whose in ((sample.got, "the oracle"), (sample.expected, "onnxruntime")):
        if fitting.get(side):
            return f"looks as if {' or '.join(fitting[side][:_NAMED])} in {whose}"
    return ""


def _fallback(sample: Sample, plain: Codes) -> str:
    if _agreement(plain, sample.got) >= _FIT:
        return f"{UNKNOWN}: the oracle's codes are the exact ones of the manifest, onnxruntime computes something else"
    if _agreement(plain, sample.expected) >= _FIT:
        return f"{UNKNOWN}: onnxruntime's codes are the exact ones of the manifest, the oracle computes something else"
    return UNKNOWN


def _codes(sample: Sample, values: Sequence[Fraction]) -> Codes:
    return tuple(code_of(v, sample.zero_point, sample.limits) for v in values)


def _agreement(a: Codes, b: Codes) -> float:
    return sum(x == y for x, y in zip(a, b, strict=True)) / len(a)


def _hypotheses(sample: Sample) -> Iterator[tuple[str, Codes]]:
    for text, rule in _ROUNDINGS.items():
        yield text, tuple(rule(v, sample) for v in values_of(sample))
    for text, variant in VARIANTS.items():
        try:
            values = variant(sample)
        except (PortError, ValueError, KeyError, IndexError):
            continue  # the changed stage is no valid one: not this
        if values is not None:
            yield text, _codes(sample, values)
    yield from _late_bias(sample)


def _shifts(sample: Sample) -> Iterator[tuple[str, Codes]]:
    for shift in (1, -1, 2, -2, 3, -3, 4, -4, 8, -8):
        text = f"the shift is {abs(shift)} too {'small' if shift > 0 else 'large'}"
        factor = Fraction(2) ** shift
        yield text, _codes(sample, [v * factor for v in values_of(sample)])


def _late_bias(sample: Sample) -> Iterator[tuple[str, Codes]]:
    """The bias is added behind the rounding instead of in front of it."""
    bare = without_bias(sample)
    if bare is None:
        return
    codes = tuple(
        _clamp(round(b) + round(v - b) + sample.zero_point, sample.limits)
        for v, b in zip(values_of(sample), bare, strict=True)
    )
    yield "the bias is added after the shift", codes


def _clamp(code: int, limits: tuple[int, int]) -> int:
    return max(limits[0], min(limits[1], code))


def _half_up(value: Fraction, sample: Sample) -> int:
    return _clamp(floor(value + Fraction(1, 2)) + sample.zero_point, sample.limits)


def _half_away(value: Fraction, sample: Sample) -> int:
    size = floor(abs(value) + Fraction(1, 2))
    return _clamp((size if value >= 0 else -size) + sample.zero_point, sample.limits)


def _floored(value: Fraction, sample: Sample) -> int:
    return _clamp(floor(value) + sample.zero_point, sample.limits)


def _truncated(value: Fraction, sample: Sample) -> int:
    return _clamp(int(value) + sample.zero_point, sample.limits)


def _zero_point_inside(value: Fraction, sample: Sample) -> int:
    return _clamp(round(value + sample.zero_point), sample.limits)


def _without_zero_point(value: Fraction, sample: Sample) -> int:
    return _clamp(round(value), sample.limits)


def _wrapped(value: Fraction, sample: Sample) -> int:
    low, high = QRANGE[sample.tensor.dtype]
    return (round(value) + sample.zero_point - low) % (high - low + 1) + low


def _without_activation(value: Fraction, sample: Sample) -> int:
    return code_of(value, sample.zero_point, QRANGE[sample.tensor.dtype])


def _relu(value: Fraction, sample: Sample) -> int:
    return code_of(max(value, Fraction(0)), sample.zero_point, QRANGE[sample.tensor.dtype])


_ROUNDINGS: Final[dict[str, Callable[[Fraction, Sample], int]]] = {
    "ties are rounded half up": _half_up,
    "ties are rounded half away from zero": _half_away,
    "the zero point is inside the rounding": _zero_point_inside,
    "the result is rounded down": _floored,
    "the result is truncated": _truncated,
    "the fused Relu or Clip is missing": _without_activation,
    "negative values are cut off (Relu)": _relu,
    "the output zero point is missing": _without_zero_point,
    "the code wraps instead of saturating": _wrapped,
}
