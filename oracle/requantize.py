"""From exact integers to output codes: the cheapest route that is provably exact, chosen while an op is prepared.

Why several routes: requantization touches every element and is the hot spot. Where the ratio is 2**-k and the
accumulator fits, a float32 product is exact and `rint` is half-even: a few passes over memory. Other ratios take
float64 with a proved margin, other rounding modes integer shifts.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from manifest.model import QRANGE, Op, Quantization, Requantization
from oracle import fixedpoint
from oracle.rational import AffineRounder, exact_bits
from oracle.value import Array, Exact, Finish, Plan, Scope, as_carrier, refuse

_BLOCK = 1 << 16
"""Elements per step: the passes over one block stay in cache."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """What codes are written.

    Attributes:
        dtype: storage dtype's name.
        points: zero points, 1 or one per channel.
        qmin: lowest code.
        qmax: highest code.
        rank: rank of the blocks.
        axis: channel axis of the blocks.
        wrap_bits: width that the accumulator wraps at first, 0 where it is proved not to.
    """

    dtype: str
    points: tuple[int, ...]
    qmin: int
    qmax: int
    rank: int = 0
    axis: int | None = None
    wrap_bits: int = 0


class Keep:
    """Stores the exact integers as they are."""

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self.dtype = dtype

    def __call__(self, acc: Array, out: Array) -> None:
        """Copy."""
        np.copyto(out, as_carrier(acc, self.dtype), casting="unsafe")


class _Blocked:
    """Walks over the leading axis in cache-sized steps; per-channel numbers of axis 0 are cut along."""

    def __init__(self, output: Output, channels: int) -> None:
        self.dtype: np.dtype[Any] = np.dtype(output.dtype)
        self._rank = output.rank
        self._axis = output.axis if channels > 1 else None
        self._wrap_bits = output.wrap_bits

    def _shaped(self, values: Sequence[Any], dtype: Any) -> Array:
        """Numbers to broadcast along the channels; one scalar where all are equal (a ufunc is then much faster)."""
        array: Array = np.array(values, dtype=dtype)
        if self._axis is None or bool(np.all(array == array[0])):
            return array[:1].reshape(())
        return array.reshape(tuple(-1 if i == self._axis else 1 for i in range(self._rank)))

    def __call__(self, acc: Array, out: Array) -> None:
        """Finish `acc` into `out`."""
        if self._wrap_bits:
            integers = acc if acc.dtype == object else as_carrier(acc, np.dtype(np.int64))
            acc = fixedpoint.wrap(integers, self._wrap_bits)
        if acc.size <= _BLOCK or acc.ndim == 0:
            self._step(acc, out, slice(None))
            return
        rows = max(1, _BLOCK * acc.shape[0] // acc.size)
        for start in range(0, acc.shape[0], rows):
            part = slice(start, start + rows)
            self._step(acc[part], out[part], part if self._axis == 0 else slice(None))

    def _step(self, acc: Array, out: Array, part: slice) -> None:
        raise NotImplementedError


def _cut(values: Array, part: slice) -> Array:
    return values[part] if values.ndim else values


class FloatFinish(_Blocked):
    """clip(rint(acc * m + o)) + z in one binary float precision.

    Exact where every product and sum fits the mantissa (2**k ratios); with float32 multipliers and the int32 wrap it
    is also, operation by operation, what onnxruntime's integer kernels do.
    """

    def __init__(
        self, output: Output, multiplier: Sequence[Any] | Array, offset: Sequence[Any] | None, precision: Any
    ) -> None:
        count = max(len(multiplier), len(output.points))
        super().__init__(output, count)
        self.precision = np.dtype(precision)
        self._multiplier = self._shaped(repeat(multiplier, count), precision)
        self._unit = bool(np.all(self._multiplier == 1))
        self._offset = None if offset is None else self._shaped(repeat(offset, count), precision)
        point = self._shaped(repeat(output.points, count), np.int64)
        self._point = point.astype(precision) if np.any(point) else None
        self._low = np.asarray(output.qmin - point, dtype=precision)
        self._high = np.asarray(output.qmax - point, dtype=precision)

    def _step(self, acc: Array, out: Array, part: slice) -> None:
        acc = acc.astype(self.precision, copy=False)
        if not self._unit:
            np.multiply(acc, _cut(self._multiplier, part), out=acc)
        if self._offset is not None:
            np.add(acc, _cut(self._offset, part), out=acc)
        np.clip(acc, _cut(self._low, part), _cut(self._high, part), out=acc)
        np.rint(acc, out=acc)
        if self._point is not None:
            np.add(acc, _cut(self._point, part), out=acc)
        np.copyto(out, acc, casting="unsafe")


class RationalFinish(_Blocked):
    """The exact rational value, rounded half-even once; any ratio and offset."""

    def __init__(self, output: Output, ratios: Sequence[Fraction], offsets: Sequence[Fraction], bound: int) -> None:
        super().__init__(output, len(ratios))
        self._ratios, self._offsets, self._bound = ratios, offsets, bound
        self._rounders = {(None, None): self._rounder(slice(None))}
        self._point = self._shaped(repeat(output.points, len(ratios)), np.float64)
        self._low, self._high = output.qmin - self._point, output.qmax - self._point

    def _rounder(self, part: slice) -> AffineRounder:
        ratios, offsets = self._ratios[part], self._offsets[part]
        return AffineRounder(ratios, offsets, bound=self._bound, rank=self._rank, axis=self._axis)

    def _step(self, acc: Array, out: Array, part: slice) -> None:
        key = (part.start, part.stop)
        if key not in self._rounders:
            self._rounders[key] = self._rounder(part)
        codes = self._rounders[key](acc)
        np.clip(codes, _cut(self._low, part), _cut(self._high, part), out=codes)
        np.add(codes, _cut(self._point, part), out=codes)
        np.copyto(out, codes, casting="unsafe")


class ShiftFinish(_Blocked):
    """clamp(srs(acc * multiplier + inside, shift) + z) on integers, in any AIE rounding and saturation mode."""

    def __init__(self, output: Output, requant: Requantization, bound: int) -> None:
        count = max(len(requant.multipliers), len(requant.shifts), len(output.points))
        super().__init__(output, count)
        self._requant = requant
        self._range = QRANGE[output.dtype]
        multipliers, shifts = repeat(requant.multipliers, count), repeat(requant.shifts, count)
        points = repeat(output.points, count)
        inside = [requant.zero_point_inside and s >= 0 for s in shifts]
        addends = [z << s if i else 0 for z, s, i in zip(points, shifts, inside, strict=True)]
        reach = max(
            (bound * abs(m) + abs(a)) << max(0, -s) for m, a, s in zip(multipliers, addends, shifts, strict=True)
        )
        self._kind: np.dtype[Any] = np.dtype(np.int64 if reach <= 1 << 62 else object)
        self._multiplier = self._shaped(multipliers, self._kind)
        self._addend = self._shaped(addends, self._kind)
        self._shift = self._shaped(shifts, np.int64)
        self._point = self._shaped([0 if i else z for z, i in zip(points, inside, strict=True)], np.int64)

    def _step(self, acc: Array, out: Array, part: slice) -> None:
        scaled = as_carrier(acc, self._kind) * _cut(self._multiplier, part) + _cut(self._addend, part)
        codes: Array = fixedpoint.srs(scaled, _cut(self._shift, part), self._requant.rounding) + _cut(self._point, part)
        if self._requant.saturation == "none":
            low, high = self._range
            codes = fixedpoint.wrap(codes, (high - low).bit_length(), signed=low < 0)
        np.copyto(out, np.clip(codes, self._requant.qmin, self._requant.qmax), casting="unsafe")


def repeat(values: Any, count: int) -> list[Any]:
    """One number for every channel, or the numbers themselves."""
    items = list(values)
    return items * count if len(items) == 1 else items


def finish_for(op: Op, scope: Scope, plan: Plan) -> Finish:
    """The way from `plan`'s exact integers to the op's output, as `scope.arithmetic` says."""
    tensor = scope.tensors[op.outputs[0]]
    form = plan.exact
    if form is None or tensor.dtype == "exact" or scope.arithmetic == "exact":
        return Keep(form.dtype if form else np.dtype(np.float32))
    requant, quant = op.requant, tensor.quant
    if requant is None or quant is None:
        raise refuse(op, "has an integer output but no requantization", expected="scale and requantization")
    output = Output(
        dtype=tensor.dtype,
        points=quant.zero_points,
        qmin=requant.qmin,
        qmax=requant.qmax,
        rank=plan.rank,
        axis=plan.axis,
    )
    if scope.arithmetic == "target" and requant.target in ("srs", "multiplier_shift"):
        return _target(op, requant, output, plan, form)
    return _reference(requant, quant, output, plan, form)


def _reference(requant: Requantization, quant: Quantization, output: Output, plan: Plan, form: Exact) -> Finish:
    if requant.reference == "scale_f32" and plan.multiplier is not None:
        output = replace(output, wrap_bits=32 if form.bound >= 1 << 31 else 0)
        return FloatFinish(output, plan.multiplier, None, np.float32)
    count = max(len(form.scales), len(quant.scales))
    scales = [Fraction(s) for s in repeat(quant.scales, count)]
    ratios = [s / y for s, y in zip(repeat(form.scales, count), scales, strict=True)]
    offsets = [o / y for o, y in zip(repeat(form.offsets, count), scales, strict=True)]
    return affine(output, ratios, offsets, inside=requant.zero_point_inside, bound=form.bound)


def _target(op: Op, requant: Requantization, output: Output, plan: Plan, form: Exact) -> Finish:
    """The manifest's multiplier and shift, which apply to value / nominal."""
    bits = op.accumulator.bits if op.accumulator else 0
    bound = form.bound
    if bits and bound >= 1 << (bits - 1):
        bound = 1 << (bits - 1)
        output = replace(output, wrap_bits=bits)
    if plan.multipliers is not None:
        requant = replace(requant, multipliers=plan.multipliers)
    count = max(len(requant.multipliers), len(requant.shifts), len(form.scales))
    steps = [s / n for s, n in zip(repeat(form.scales, count), repeat(form.nominal, count), strict=True)]
    shifts = repeat(requant.shifts, count)
    multipliers = repeat(requant.multipliers, count)
    if requant.rounding != "conv_even" or requant.saturation == "none":
        finer = [fixedpoint.exponent_of(float(s)) for s in steps]
        if any(f is None for f in finer) or any(form.offsets):
            raise refuse(
                op, f"rounding {requant.rounding} needs an integer accumulator", expected="a bias of 2**k scale"
            )
        moved = tuple(s - (f or 0) for s, f in zip(shifts, finer, strict=True))
        return ShiftFinish(output, replace(requant, multipliers=tuple(multipliers), shifts=moved), bound)
    factors = [m * Fraction(2) ** -s for m, s in zip(multipliers, shifts, strict=True)]
    ratios = [f * s for f, s in zip(factors, steps, strict=True)]
    pairs = zip(repeat(form.offsets, count), repeat(form.nominal, count), factors, strict=True)
    return affine(output, ratios, [o / n * f for o, n, f in pairs], inside=requant.zero_point_inside, bound=bound)


def affine(
    output: Output, ratios: Sequence[Fraction], offsets: Sequence[Fraction], *, inside: bool, bound: int
) -> Finish:
    """Rounds acc * ratio + offset half-even: in float32, float64 or with the rational, whichever is exact and fastest.

    Args:
        output: what is written.
        ratios: exact value of one accumulator step in output codes, 1 or one per channel.
        offsets: as many.
        inside: the zero point is added before the rounding.
        bound: largest |acc|.
    """
    count = max(len(ratios), len(output.points))
    ratios, offsets, points = repeat(ratios, count), repeat(offsets, count), repeat(output.points, count)
    if inside:
        offsets = [o + z for o, z in zip(offsets, points, strict=True)]
        points = [0] * count
    output = replace(output, points=tuple(points))
    bits = exact_bits(ratios, offsets, bound)
    if bits is None or bits > 53:
        return RationalFinish(output, ratios, offsets, bound)
    precision = np.float32 if bits <= 24 else np.float64
    return FloatFinish(
        output, [float(r) for r in ratios], [float(o) for o in offsets] if any(offsets) else None, precision
    )
