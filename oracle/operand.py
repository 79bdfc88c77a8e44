"""Inputs of elementwise ops as exact integers on a common unit, and the walk over blocks."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from manifest.model import Op
from oracle.value import Array, Exact, Scope, Values, centred_bound, refuse

_BLOCK = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Operand:
    """One input: where it comes from and which integers it stands for.

    Attributes:
        name: tensor.
        shape: logical shape.
        exact: form of (raw - points).
        points: zero points shaped to broadcast against (*shape, F), or scalar.
        constant: integers of a constant, shape (*shape, 1), already centred; None for an activation.
    """

    name: str
    shape: tuple[int, ...]
    exact: Exact
    points: Array
    constant: Array | None = None

    def raw(self, values: Values, rank: int) -> Array:
        """The array as it is, with leading axes of size 1 up to `rank` logical axes (plus the feed axis)."""
        array = self.constant if self.constant is not None else values[self.name]
        return array.reshape((1,) * (rank - len(self.shape)) + array.shape) if rank > len(self.shape) else array

    def centred(self, raw: Array, dtype: np.dtype[Any]) -> Array:
        """A fresh array of the exact integers in `dtype`."""
        points = self.points.reshape(self.points.shape[-raw.ndim :]) if self.points.ndim else self.points
        return centred(raw, points, dtype)


def centred(raw: Array, points: Array, dtype: np.dtype[Any]) -> Array:
    """A fresh array of `raw` - `points` (int64, broadcastable) in `dtype`, which holds the result exactly."""
    if dtype.kind == "O":
        raw = raw.astype(np.int64).astype(object) if raw.dtype.kind != "O" else raw
        return np.asarray(raw - points.astype(object), dtype=object)
    if points.ndim == 0 and not points:
        return raw.astype(dtype)
    return np.asarray(np.subtract(raw, points.astype(dtype), dtype=dtype, casting="unsafe"))


def operand(op: Op, scope: Scope, name: str) -> Operand:
    """The input `name` of `op` as exact integers."""
    tensor = scope.tensors[name]
    constant = scope.constant(name)
    zero = np.zeros((), np.int64)
    if tensor.dtype == "exact":
        return Operand(name=name, shape=tensor.shape, exact=scope.exact[name], points=zero)
    if tensor.quant is None:
        if constant is None:
            raise refuse(op, f"input {name!r} is float32", expected="a quantised tensor or a constant")
        integers, unit = dyadic(op, constant)
        bound = max((abs(int(i)) for i in integers.reshape(-1).tolist()), default=0)
        exact = Exact(scales=(unit,), bound=bound)
        return Operand(name=name, shape=tensor.shape, exact=exact, points=zero, constant=integers[..., None])
    quant = tensor.quant
    axis = quant.axis if len(quant.scales) > 1 else None
    scales = tuple(Fraction(s) for s in quant.scales)
    points = _shaped(quant.zero_points, quant.axis, len(tensor.shape))
    if constant is None:
        exact = Exact(scales=scales, bound=centred_bound(tensor), axis=axis)
        return Operand(name=name, shape=tensor.shape, exact=exact, points=points)
    centred = constant.astype(np.int64)[..., None] - points
    exact = Exact(scales=scales, bound=int(np.abs(centred).max(initial=0)), axis=axis)
    return Operand(name=name, shape=tensor.shape, exact=exact, points=zero, constant=centred)


def _shaped(points: Sequence[int], axis: int | None, rank: int) -> Array:
    if len(points) == 1:
        return np.array(points[0], np.int64)
    return np.array(points, np.int64).reshape(tuple(-1 if i == axis else 1 for i in range(rank + 1)))


def dyadic(op: Op, constant: Array) -> tuple[Array, Fraction]:
    """A float32 constant as integers times one positive power of two (one element: +-1 or 0 times its magnitude).

    Returns:
        (int64 or object array of the same shape, unit).
    """
    numbers = constant.reshape(-1).tolist()
    if not all(math.isfinite(v) for v in numbers):
        raise refuse(op, "has a constant that is NaN or infinite")
    fractions = [Fraction(v) for v in numbers]
    unit = common_unit(fractions) or Fraction(1)
    integers = np.array([int(f / unit) for f in fractions], dtype=object).reshape(constant.shape)
    if max((abs(i) for i in integers.reshape(-1)), default=0) < 1 << 62:
        return integers.astype(np.int64), unit
    return integers, unit


def common_unit(values: Sequence[Fraction]) -> Fraction | None:
    """The largest positive rational of which all `values` are integer multiples; None if all are zero."""
    unit = Fraction(0)
    for value in set(values):
        numerator = math.gcd(unit.numerator * value.denominator, abs(value.numerator) * unit.denominator)
        unit = Fraction(numerator, unit.denominator * value.denominator)
    return unit or None


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """integers * factor + addend, on a unit shared with other terms.

    Attributes:
        operand: the input.
        factors: per channel or one.
        addends: per channel or one.
        axis: channel axis of the operand's logical shape.
    """

    operand: Operand
    factors: tuple[int, ...]
    addends: tuple[int, ...]
    axis: int | None

    @property
    def bound(self) -> int:
        """Largest magnitude of the term."""
        reach = self.operand.exact.bound
        return max(max(reach, 1) * abs(f) + abs(a) for f, a in zip(self.factors, self.addends, strict=True))

    def load(self, raw: Array, dtype: np.dtype[Any]) -> Array:
        """A fresh array of the term in `dtype`."""
        values = self.operand.centred(raw, dtype)
        if any(f != 1 for f in self.factors):
            values *= self._along(self.factors, dtype, raw.ndim)
        if any(self.addends):
            values += self._along(self.addends, dtype, raw.ndim)
        return values

    def _along(self, numbers: tuple[int, ...], dtype: np.dtype[Any], ndim: int) -> Array:
        array: Array = np.array(numbers, dtype=dtype)
        if self.axis is None:
            return array.reshape(())
        axis = ndim - 1 - len(self.operand.shape) + self.axis
        return array.reshape(tuple(-1 if i == axis else 1 for i in range(ndim)))


def align(
    operands: Sequence[Operand], extra: Sequence[Fraction] = (), *, weights: Sequence[int] | None = None
) -> tuple[Fraction, tuple[Term, ...]]:
    """The largest unit on which all inputs (and the numbers `extra`) are integers, and the inputs on it.

    With `weights` it is not the real values that are brought together but weight * value / nominal, the integers that
    the manifest's multipliers make.
    """
    rows = []
    for i, o in enumerate(operands):
        factors = [Fraction(1)] * len(o.exact.scales) if weights is None else [weights[i] / n for n in o.exact.nominal]
        scales = [s * f for s, f in zip(o.exact.scales, factors, strict=True)]
        rows.append((o, scales, [a * f for a, f in zip(o.exact.offsets, factors, strict=True)]))
    unit = common_unit([v for _, scales, addends in rows for v in (*scales, *addends)] + list(extra)) or Fraction(1)
    terms = tuple(
        Term(
            operand=o,
            factors=tuple(int(s / unit) for s in scales),
            addends=tuple(int(a / unit) for a in addends),
            axis=o.exact.axis,
        )
        for o, scales, addends in rows
    )
    return unit, terms


Step = Callable[[list[Array], Array], None]


def walk(
    arrays: Sequence[Array], shape: tuple[int, ...], dtype: Any, step: Step, *, flat: bool, axis: int | None = None
) -> Array:
    """Apply `step(blocks, out_block)` in cache-sized blocks over arrays that broadcast to `shape`.

    Args:
        arrays: inputs of one rank, the feed axis last.
        shape: output shape with the feed axis.
        dtype: of the output.
        step: fills one block of the output.
        flat: blocks may be flattened: done where all arrays lie alike in memory.
        axis: channel axis of what `step` does; blocks hold it whole.
    """
    leader = next((a for a in arrays if a.shape == shape), None)
    order = _memory_order(leader) if leader is not None else tuple(range(len(shape)))
    memory = np.empty(tuple(shape[i] for i in order), dtype)
    if flat and all(a.shape == shape and a.transpose(order).flags.c_contiguous for a in arrays):
        views, target = [a.transpose(order).reshape(-1) for a in arrays], memory.reshape(-1)
        for start in range(0, target.size, _BLOCK):
            part = slice(start, start + _BLOCK)
            step([v[part] for v in views], target[part])
        return memory.transpose(np.argsort(order))
    out = memory.transpose(np.argsort(order))
    along = next((i for i in order if shape[i] > 1 and i != axis), None)
    if along is None:
        step(list(arrays), out)
        return out
    rows = max(1, _BLOCK * shape[along] // out.size) if out.size else 1
    for start in range(0, shape[along], rows):
        part_of = (slice(None),) * along + (slice(start, start + rows),)
        step([a[part_of] if a.shape[along] > 1 else a for a in arrays], out[part_of])
    return out


def _memory_order(array: Array) -> tuple[int, ...]:
    """Axes by falling stride: transposing by it gives a C-contiguous array where the memory is dense."""
    return tuple(sorted(range(array.ndim), key=lambda i: (-array.strides[i], i)))
