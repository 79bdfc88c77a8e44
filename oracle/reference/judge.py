"""Judge differing elements: rounding tie, inexact reference, or unexplained.

Nothing is explained unless the oracle's code is the exact one: rounding of the exact rational value, half to even. So a
wrong rounding rule in the oracle is never taken for noise of onnxruntime.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import floor
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

from manifest.model import QRANGE, Op, Tensor
from oracle.evidence import FLOAT_TOLERANCE, Mismatch
from oracle.reference.causes import guess
from oracle.reference.exact import Term
from oracle.reference.host_noise import float_noise
from oracle.reference.plan import FLOAT_EXACT_BOUND, has_one_meaning
from oracle.reference.sample import Sample, StageRun, code_of, part, terms_at
from oracle.reference.tally import Judged

Array = npt.NDArray[Any]
Explanation = Literal["near_tie", "tolerated", "inexact", "unexplained"]

TIE_RELATIVE: Final = Fraction(1, 10**6)
"""How near to a tie, relative to what onnxruntime summed, an element may lie."""
HOST_CODE_NOISE: Final = 1e-6
"""Error of one host function, as a share of the largest term inside it, where codes are made of its floats."""
MAX_JUDGED: Final = 20_000
"""Elements of one tensor in one chunk that are recomputed with rationals; the rest counts as unexplained."""
_SAMPLE: Final = 48
_HALF: Final = Fraction(1, 2)
_UNIT: Final = Fraction(1, 2**24)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """Which explanations a stage allows.

    Attributes:
        ties: an op of the stage runs in onnxruntime's float arithmetic.
        functions: codes are made of floats that a host function computed: the oracle's float is as good as any.
        inexact: an op in float arithmetic has a proved bound beyond 2**24 (float32 factors and sums of far scales too).
    """

    ties: bool
    functions: bool
    inexact: bool

    @property
    def tolerance(self) -> Fraction:
        """How near to a tie, relative to the sum of the absolute terms."""
        return FLOAT_TOLERANCE if self.functions else TIE_RELATIVE


def rules_of(run: StageRun) -> Rules:
    """The explanations that a stage allows."""
    tensors = run.manifest.by_name()
    ops = run.ops()
    made = {name for op in ops for name in op.outputs}
    functions = any(
        op.type == "QuantizeLinear" and op.inputs[0] in made and tensors[op.inputs[0]].dtype == "float32" for op in ops
    )
    return Rules(
        functions=functions,
        ties=functions or any(not has_one_meaning(op, tensors) for op in ops),
        inexact=any(op.origin == "qdq" and _largest(run, op) > FLOAT_EXACT_BOUND for op in ops),
    )


def _largest(run: StageRun, op: Op) -> int:
    """Proved bound of what an op sums or multiplies, in integers: its accumulator, else the result of a shift.

    Why not of other ops: the tie rule judges them, and is the stricter one.
    """
    if op.accumulator is not None:
        return op.accumulator.bound
    return run.graph.oracle.largest(op.name) if has_one_meaning(op, run.manifest.by_name()) else 0


def judge_codes(run: StageRun, name: str, expected: Array, got: Array) -> Judged:
    """Compare integer codes of one tensor.

    Args:
        run: the stage that makes the tensor.
        name: the tensor.
        expected: onnxruntime's codes, (F, *shape).
        got: the oracle's codes.

    Returns:
        The counts; every element differs where shape or dtype do.
    """
    if expected.shape != got.shape or expected.dtype != got.dtype:
        return _wrong_form(run, expected, got)
    differing = np.argwhere(expected != got)
    if not len(differing):
        return Judged(elements=expected.size)
    if run.manifest.tensor(name).quant is None:
        return _plain(run, differing, expected, got)
    judged = differing[:MAX_JUDGED]
    sample = _sample(run, name, judged, expected, got)
    kinds = _explain(sample, rules_of(run))
    left = len(differing) - len(judged)
    return Judged(
        elements=expected.size,
        near_ties=kinds.count("near_tie"),
        within_tolerance=kinds.count("tolerated"),
        reference_inexact=kinds.count("inexact"),
        unexplained=kinds.count("unexplained") + left,
        first=_first(sample, kinds),
    )


def judge_floats(run: StageRun, name: str, expected: Array, got: Array, *, bit_equal: bool) -> Judged:
    """Compare float32 values of one tensor.

    Args:
        run: the stage that makes the tensor.
        name: the tensor.
        expected: onnxruntime's values, (F, *shape) float32.
        got: the oracle's values.
        bit_equal: the values are dequantised integers: any difference is unexplained. Otherwise differences up to
            `FLOAT_TOLERANCE` relative to the largest value of the feed, or to the largest term inside a host function,
            count as `within_tolerance`, and so does what float32 sums leave of large terms that cancel, where the
            oracle's value is the exact one.
    """
    if expected.shape != got.shape or expected.dtype != got.dtype:
        return _wrong_form(run, expected, got)
    same = (expected == got) | (np.isnan(expected) & np.isnan(got))
    if bool(same.all()):
        return Judged(elements=expected.size)
    if bit_equal:
        far = ~same
    else:
        axes = tuple(range(1, expected.ndim))
        finite = np.isfinite(expected) & np.isfinite(got)
        size = np.max(np.abs(expected), axis=axes, keepdims=True, initial=0.0, where=finite)
        with np.errstate(invalid="ignore"):
            distance = np.where(finite, np.abs(expected.astype(np.float64) - got), np.inf)
        far = ~same & (distance > float(FLOAT_TOLERANCE) * size)
        if far.any() and has_host_function(run):
            far &= distance > float_noise(run, name, float(FLOAT_TOLERANCE))
        for place in np.argwhere(far)[:MAX_JUDGED]:
            far[tuple(place)] = not _is_cancelled(run, name, place, expected, got)
    index = np.argwhere(far if far.any() else ~same)[0]
    place = tuple(int(i) for i in index)
    cause = "" if not far.any() else "unknown: float values differ"
    first = Mismatch(
        index=_shifted(run, place),
        expected=repr(float(expected[place])),
        got=repr(float(got[place])),
        exact="",
        cause=cause or "float rounding of the sum",
    )
    unexplained = int(far.sum())
    return Judged(
        elements=expected.size, within_tolerance=int((~same).sum()) - unexplained, unexplained=unexplained, first=first
    )


def has_host_function(run: StageRun) -> bool:
    """Whether a stage computes in float32 beyond the edge of the graph."""
    return any(op.where == "host" and op.type not in ("QuantizeLinear", "DequantizeLinear") for op in run.ops())


def _is_cancelled(run: StageRun, name: str, place: npt.NDArray[Any], expected: Array, got: Array) -> bool:
    """Whether the oracle's float is the exact value rounded once, and onnxruntime's is that within its sum's error."""
    (term,) = terms_at(run.evaluator(), name, place[np.newaxis])
    index = tuple(place)
    if term is None or not np.isfinite(expected[index]) or got[index] != np.float32(float(term.value)):
        return False
    return abs(term.value - Fraction(float(expected[index]))) <= noise_of(term)


def judge_constant(folded: Array, expected: Array) -> Judged:
    """Compare a constant that the importer folded with what onnxruntime computed for every feed.

    Args:
        folded: codes, (*shape).
        expected: onnxruntime's codes, (F, *shape).
    """
    if folded.shape != expected.shape[1:] or folded.dtype != expected.dtype:
        return Judged(elements=expected.size, unexplained=max(expected.size, 1))
    differing = np.argwhere(expected != folded)
    if not len(differing):
        return Judged(elements=expected.size)
    place = tuple(int(i) for i in differing[0])
    first = Mismatch(
        index=place,
        expected=str(int(expected[place])),
        got=str(int(folded[place[1:]])),
        exact="",
        cause="looks as if a constant was folded wrongly on import",
    )
    return Judged(elements=expected.size, unexplained=len(differing), first=first)


def _plain(run: StageRun, differing: npt.NDArray[Any], expected: Array, got: Array) -> Judged:
    """Integers that are no codes (an ArgMax): any difference is unexplained."""
    place = tuple(int(i) for i in differing[0])
    first = Mismatch(
        index=_shifted(run, place), expected=str(expected[place]), got=str(got[place]), exact="", cause="unknown"
    )
    return Judged(elements=expected.size, unexplained=len(differing), first=first)


def _wrong_form(run: StageRun, expected: Array, got: Array) -> Judged:
    first = Mismatch(
        index=(run.offset,),
        expected=f"{expected.dtype}{list(expected.shape[1:])}",
        got=f"{got.dtype}{list(got.shape[1:])}",
        exact="",
        cause="shape or type differ",
    )
    return Judged(elements=expected.size, unexplained=max(expected.size, 1), first=first)


def _shifted(run: StageRun, index: tuple[int, ...]) -> tuple[int, ...]:
    return (index[0] + run.offset, *index[1:])


def _sample(run: StageRun, name: str, indices: npt.NDArray[Any], expected: Array, got: Array) -> Sample:
    places = tuple(indices.T)
    return Sample(
        run=run,
        op=run.producer(name),
        tensor=run.manifest.tensor(name),
        indices=indices,
        expected=tuple(int(v) for v in expected[places]),
        got=tuple(int(v) for v in got[places]),
        terms=terms_at(run.evaluator(), name, indices),
    )


def _explain(sample: Sample, rules: Rules) -> list[Explanation]:
    """One verdict per element of the sample."""
    if not rules.ties and not rules.inexact:
        return ["unexplained"] * len(sample.terms)
    zero_point, limits = sample.zero_point, sample.limits
    kinds: list[Explanation] = []
    noise = _noise_in_codes(sample) if rules.functions else np.zeros(len(sample.terms))
    for i, (term, expected, got) in enumerate(zip(sample.terms, sample.expected, sample.got, strict=True)):
        is_exact = term is not None and (rules.functions or got == code_of(term.value, zero_point, limits))
        if term is None or not is_exact:
            kinds.append("unexplained")
        elif rules.ties and is_near_tie(term, expected - zero_point, got - zero_point, rules.tolerance):
            kinds.append("tolerated" if rules.functions else "near_tie")
        elif rules.functions and _is_reached(term.value, float(noise[i]), (expected, got), zero_point, limits):
            kinds.append("tolerated")
        elif rules.inexact and is_float_noise(term, expected - zero_point):
            kinds.append("inexact")
        else:
            kinds.append("unexplained")
    return kinds


def _noise_in_codes(sample: Sample) -> Array:
    """What the float that a QuantizeLinear reads may be off by, in output codes, one per element."""
    source, quant = sample.op.inputs[0], sample.tensor.quant
    if sample.op.type != "QuantizeLinear" or quant is None or source not in sample.run.made:
        return np.zeros(len(sample.terms))
    noise = float_noise(sample.run, source, HOST_CODE_NOISE) / quant.scales[0]
    result: Array = noise[tuple(sample.indices.T)]
    return result


def _is_reached(
    value: Fraction, noise: float, codes: tuple[int, int], zero_point: int, limits: tuple[int, int]
) -> bool:
    """Whether both codes are roundings of values that lie within the noise of the oracle's."""
    if not np.isfinite(noise):
        return False
    low, high = (code_of(value + end, zero_point, limits) for end in (-Fraction(noise), Fraction(noise)))
    return low <= min(codes) and max(codes) <= high


def is_near_tie(term: Term, expected: int, got: int, tolerance: Fraction = TIE_RELATIVE) -> bool:
    """Whether a value lies at a rounding tie and the two codes are the ones beside it.

    Args:
        term: exact value in output codes, before the zero point, and what was summed to get there.
        expected: onnxruntime's code less the zero point.
        got: the oracle's code less the zero point.
        tolerance: distance to the tie, relative to the sum of the absolute terms.
    """
    low = floor(term.value)
    if {expected, got} != {low, low + 1}:
        return False
    return abs(term.value - low - _HALF) <= tolerance * max(abs(term.value), term.size)


def is_float_noise(term: Term, expected: int) -> bool:
    """Whether rounding every float32 product and partial sum can lead from the exact value to a code."""
    return abs(term.value - expected) <= _HALF + noise_of(term)


def noise_of(term: Term) -> Fraction:
    """What float32 may lose of a sum, the bound of recursive summation: (terms + 4) * 2**-24 * sum of |terms|."""
    return (term.count + 4) * _UNIT * max(abs(term.value), term.size)


def _first(sample: Sample, kinds: Sequence[Explanation]) -> Mismatch:
    chosen = [i for i, kind in enumerate(kinds) if kind == "unexplained"]
    position = chosen[0] if chosen else 0
    cause = guess(part(sample, chosen[:_SAMPLE])) if chosen else _EXPLAINED[kinds[0]]
    return Mismatch(
        index=_shifted(sample.run, tuple(int(i) for i in sample.indices[position])),
        expected=str(sample.expected[position]),
        got=str(sample.got[position]),
        exact=exact_text(sample.terms[position], sample.zero_point),
        cause=cause,
    )


_EXPLAINED: Final[dict[Explanation, str]] = {
    "near_tie": "rounding tie: float noise of onnxruntime decides",
    "tolerated": "float noise of a host function",
    "inexact": "reference inexact above 2^24",
}


def exact_text(term: Term | None, zero_point: int) -> str:
    """The exact value with its zero point, and that it is a tie where it is one."""
    if term is None:
        return "none"
    tie = " (tie)" if (term.value - _HALF).denominator == 1 else ""
    return f"{float(term.value + zero_point):.9g}{tie}"


def dequantised(tensor: Tensor, codes: Array) -> Array:
    """float32 values of integer codes as onnxruntime computes them: f32(f32(code - zero point) * scale)."""
    if tensor.quant is None:
        msg = f"tensor {tensor.name!r} has no scale"
        raise ValueError(msg)
    shifted = (codes.astype(np.int64) - tensor.quant.zero_points[0]).astype(np.float32)
    result: Array = shifted * np.float32(tensor.quant.scales[0])
    return result


def requantised(tensor: Tensor, values: Array) -> Array:
    """The codes whose dequantisation lies nearest to float32 values (NaN: lowest code)."""
    if tensor.quant is None:
        msg = f"tensor {tensor.name!r} has no scale"
        raise ValueError(msg)
    low, high = QRANGE[tensor.dtype]
    codes = np.rint(values.astype(np.float64) / tensor.quant.scales[0]) + tensor.quant.zero_points[0]
    result: Array = np.clip(np.nan_to_num(codes, nan=low), low, high).astype(tensor.dtype)
    return result


def is_dequantised(op: Op, tensors: dict[str, Tensor]) -> bool:
    """Whether a float tensor holds dequantised integers (one product, defined to the bit)."""
    return op.type == "DequantizeLinear" and tensors[op.inputs[0]].dtype not in ("exact", "float32")
