"""What the manifest tells a kernel (multiplier, shift, rounding) held against exact ratios of the scales.

Why on made-up accumulators: a multiplier that is off by one, or a shift that rounds half up, changes a code only at or
near a tie, and real data may meet none. Three computations have to agree around ties and at the ends of the range: the
shift primitive that all simulators and kernels share, the oracle's target, and exact rationals.
"""

from collections.abc import Iterator, Mapping
from fractions import Fraction
from math import prod
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from manifest.model import Manifest, Op
from oracle.evidence import KernelEvidence, KernelFault
from oracle.operand import operand
from oracle.reference.kernel_steps import Steps, Told, accumulators, steps_of
from oracle.reference.reach import code_ranges
from oracle.registry import prepare
from oracle.requantize import finish_for, repeat
from oracle.value import Plan, Scope, as_carrier

Array = npt.NDArray[Any]

MAX_SUMS: Final = 1 << 20
_TOLD: Final = frozenset({"srs", "multiplier_shift"})
_PER_INPUT: Final = frozenset({"Add", "Concat"})
_LEAST_MULTIPLIER: Final = 1 << 30
"""A multiplier that is not exact has 31 bits, or it wastes precision."""
_LARGEST: Final = (1 << 62) - 1


def kernel_numbers(manifest: Manifest, arrays: Mapping[str, Array], *, seed: int = 0) -> KernelEvidence:
    """Check every op that is rescaled.

    Args:
        manifest: of the model.
        arrays: its constants.
        seed: of the accumulators that are drawn.
    """
    check = _Check(manifest, arrays)
    faults: list[KernelFault] = []
    ops = 0
    for number, op in enumerate(manifest.ops):
        told = check.told(op)
        if told is None:
            continue
        ops += 1
        found = next(check.faults(told, np.random.default_rng([seed, number])), "")
        if found:
            faults.append(KernelFault(tensor=told.tensor, op=op.name, op_type=op.type, what=found))
    return KernelEvidence(ops=ops, accumulators=check.tried, faults=tuple(faults))


class _Check:
    """Scopes of both arithmetics, filled in graph order; counts the accumulators tried."""

    def __init__(self, manifest: Manifest, arrays: Mapping[str, Array]) -> None:
        self._tensors = manifest.by_name()
        self._ranges = code_ranges(manifest, arrays)
        self._reference = Scope(tensors=self._tensors, arrays=arrays, arithmetic="reference")
        self._target = Scope(tensors=self._tensors, arrays=arrays, arithmetic="target")
        self.tried = 0

    def told(self, op: Op) -> Told | None:
        """What there is to check about an op; None where its kernel is told nothing. Call it for all ops in order."""
        tensor = self._tensors[op.outputs[0]]
        reference, target = prepare(op, self._reference), prepare(op, self._target)
        if tensor.dtype == "exact" and reference.exact is not None and target.exact is not None:
            self._reference.exact[tensor.name] = reference.exact
            self._target.exact[tensor.name] = target.exact
        if op.requant is None or tensor.quant is None or op.requant.target not in _TOLD:
            return None
        return Told(op=op, quant=tensor.quant, requant=op.requant, reference=reference, target=target)

    def faults(self, told: Told, rng: np.random.Generator) -> Iterator[str]:
        """Everything that is wrong, in words."""
        if not (told.requant.proof and told.requant.target == "multiplier_shift"):
            yield from self._ratio_faults(told)
        form = told.target.exact
        steps = None if form is None or told.op.type == "Concat" else steps_of(told, form)
        if form is None or steps is None:
            return
        bits = told.op.accumulator.bits if told.op.accumulator is not None else 64
        acc = accumulators(steps, min(form.bound, (1 << (bits - 1)) - 1, _LARGEST), rng)
        self.tried += acc.size
        exact, shifted = steps.exact(acc), steps.shifted(acc)
        yield from _differing(steps, acc, exact, shifted, "the shift primitive `srs` gives")
        target = _finished(told, told.target, acc, self._target)
        yield from _differing(steps, acc, exact, target, "the oracle's target gives")
        yield from self._proof_faults(told, steps)

    def _ratio_faults(self, told: Told) -> Iterator[str]:
        """Multipliers that are not the nearest to the ratio of the scales."""
        candidates, requant = self._ratios(told), told.requant
        if not candidates:
            return
        count = max(len(requant.multipliers), len(requant.shifts), len(candidates))
        pairs = zip(repeat(requant.multipliers, count), repeat(requant.shifts, count), strict=True)
        for i, (multiplier, shift) in enumerate(pairs):
            scaled = [r * Fraction(2) ** shift for r in candidates[i % len(candidates)]]
            if not any(_is_nearest(told, multiplier, s) for s in scaled):
                yield (
                    f"multiplier {multiplier} at shift {shift} (number {i}) is not what the scales say, "
                    f"{float(scaled[0]):.17g}"
                )

    def _ratios(self, told: Told) -> list[list[Fraction]]:
        """Per multiplier what it may stand for: the exact ratio, for QOperator nodes also onnxruntime's float32 one."""
        op, scale, f32 = told.op, Fraction(told.quant.scales[0]), np.float32
        if op.type in _PER_INPUT:
            units = [operand(op, self._target, name).exact.nominal[0] for name in op.inputs]
        else:
            units = list(told.target.exact.nominal) if told.target.exact is not None else []
        found = [[unit / scale] for unit in units]
        if op.origin != "qoperator":
            return found
        kernel = told.reference.multiplier
        for i, ratios in enumerate(found):
            given = f32(float(units[i])) / f32(float(scale)) if kernel is None else kernel.reshape(-1)[i % kernel.size]
            ratios.append(Fraction(float(given)))
        return found

    def _proof_faults(self, told: Told, steps: Steps) -> Iterator[str]:
        """Sums on which a multiplier that is stated as proved does not give the reference's code."""
        sums = self._sums(told)
        if sums is None or told.reference.exact is None:
            return
        reference = _finished(told, told.reference, sums, self._reference)
        beside = _around_steps(reference[0])
        sums, reference = sums[:, beside], reference[:, beside]
        self.tried += sums.size
        words = "multiplier and shift, stated as proved equal to the reference on every sum, give"
        yield from _differing(steps, sums, reference, steps.exact(sums), words)

    def _sums(self, told: Told) -> Array | None:
        """(1, S): every possible sum of a proved average or unary op whose windows have one number of elements."""
        op, form = told.op, told.target.exact
        source = self._tensors[op.inputs[0]]
        quant = source.quant
        if not told.requant.proof or len(op.inputs) != 1 or form is None or quant is None or len(quant.scales) > 1:
            return None
        shape: Any = op.attributes.get("kernel_shape", source.shape[2:])
        averages = "Average" in op.type
        elements = int(prod(shape)) if averages else 1
        factor = Fraction(float(str(op.attributes.get("factor", 1.0))))
        if form.nominal[0] != Fraction(quant.scales[0]) * factor / elements:
            return None  # windows of several sizes: their sums are weighed
        low, high = (code - quant.zero_points[0] for code in self._ranges[source.name])
        if averages:  # padding adds 0
            low, high = min(low * elements, 0), max(high * elements, 0)
        return np.arange(low, high + 1)[np.newaxis] if high - low < MAX_SUMS else None


def _around_steps(codes: Array) -> Array:
    """Both ends and both sides of every change: a rising function that has these codes there has them everywhere."""
    changes = np.flatnonzero(codes[1:] != codes[:-1])
    return np.unique(np.concatenate([[0, codes.size - 1], changes, changes + 1]).astype(np.intp))


def _is_nearest(told: Told, multiplier: int, scaled: Fraction) -> bool:
    """Whether a multiplier is the exact one, or for `multiplier_shift` the nearest that 31 bits can say."""
    if scaled == multiplier or told.requant.target == "srs":
        return scaled == multiplier
    return abs(scaled - multiplier) <= Fraction(1, 2) and max(told.requant.multipliers) >= _LEAST_MULTIPLIER


def _finished(told: Told, plan: Plan, acc: Array, scope: Scope) -> Array:
    """Codes that the oracle gives for accumulators (C, S)."""
    finish = finish_for(told.op, scope, plan)
    dtype = plan.exact.dtype if plan.exact is not None else np.dtype(np.int64)
    shape = [1] * max(plan.rank, 2)
    shape[-1] = acc.shape[1]
    if plan.axis is not None:
        shape[plan.axis] = acc.shape[0]
    out = np.empty(shape, finish.dtype)
    finish(as_carrier(acc.astype(np.int64), dtype).reshape(shape), out)
    return out.reshape(acc.shape).astype(np.int64)


def _differing(steps: Steps, acc: Array, expected: Array, got: Array, who: str) -> Iterator[str]:
    """The first accumulator on which two codes differ, in words."""
    places = np.argwhere(expected != got)
    if not len(places):
        return
    channel, sample = (int(i) for i in places[0])
    value = steps.value(int(acc[channel, sample]), channel)
    tie = " (tie)" if (value - Fraction(1, 2)).denominator == 1 else ""
    yield (
        f"{who} another code on {len(places)} of {acc.size} accumulators, first {acc[channel, sample]} of channel "
        f"{channel}: expected {expected[channel, sample]}, got {got[channel, sample]}, exact value "
        f"{float(value):.9g}{tie}"
    )
