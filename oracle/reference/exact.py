"""Exact values of single elements by rational arithmetic, straight from the definition of each op.

Why a second evaluator beside the oracle's: it judges the oracle. It shares no code with it, takes one element at a
time, and so can also say what an element would be if one thing were different. Beside the value it gives the sum of
the absolute terms, which is what the error of a float32 sum is a share of: where large terms cancel, the result is
small and its error is not.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import isfinite, prod
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from manifest.model import Op, Tensor

Array = npt.NDArray[Any]
Index = tuple[int, ...]

ZERO: Final = Fraction(0)


class NotExactError(Exception):
    """The element has no exact value: not a number, infinite, or an op without a definition here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """A real value, the sum of the absolute terms that make it, and how many there are."""

    value: Fraction
    size: Fraction
    count: int = 1

    def times(self, factor: Fraction) -> "Term":
        """Scaled by a constant."""
        return Term(value=self.value * factor, size=self.size * abs(factor), count=self.count)

    def plus(self, other: "Term") -> "Term":
        """The sum of both."""
        return Term(value=self.value + other.value, size=self.size + other.size, count=self.count + other.count)


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluator:
    """Evaluates elements of the tensors that some ops make.

    Attributes:
        ops: the ops, in any order.
        tensors: by name.
        arrays: constants by key.
        inputs: given activations by name, (F, *shape).
    """

    ops: Sequence[Op]
    tensors: Mapping[str, Tensor]
    arrays: Mapping[str, Array]
    inputs: Mapping[str, Array]

    def term(self, name: str, index: Index) -> Term:
        """Real value of one element.

        Args:
            name: a tensor that is given, constant or made by the ops.
            index: feed first, then the element.

        Raises:
            NotExactError: there is no exact value.
        """
        stored = self.stored(name)
        if stored is None:
            op = next((o for o in self.ops if name in o.outputs), None)
            if op is None or op.type not in _OPS:
                raise NotExactError
            return _OPS[op.type](self, op, index)
        raw = stored[_feed(stored, index[0])][index[1:]]
        tensor = self.tensors[name]
        if tensor.quant is None:
            if not isfinite(float(raw)):
                raise NotExactError
            value = Fraction(raw.item())
        else:
            channel = 0 if tensor.quant.axis is None else index[1 + tensor.quant.axis]
            value = Fraction(int(raw) - self.point(name, channel)) * self.scale(name, channel)
        return Term(value=value, size=abs(value))

    def in_codes(self, name: str, index: Index) -> Term:
        """An element that the ops make, in units of its tensor's scale, before rounding, zero point and clamp."""
        op = next(o for o in self.ops if name in o.outputs)
        if op.type not in _OPS:
            raise NotExactError
        quant = self.tensors[name].quant
        channel = 0 if quant is None or quant.axis is None else index[1 + quant.axis]
        scale = self.scale(name, channel) if quant is not None else Fraction(1)
        return _OPS[op.type](self, op, index).times(1 / scale)

    def stored(self, name: str) -> Array | None:
        """Values that are given: an activation, or a constant with a feed axis of length 1; None where ops make it."""
        key = self.tensors[name].array
        if key is not None:
            return self.arrays[key][np.newaxis]
        return self.inputs.get(name)

    def shape(self, name: str) -> tuple[int, ...]:
        """Shape without the feed axis."""
        return self.tensors[name].shape

    def scale(self, name: str, channel: int = 0) -> Fraction:
        """Scale of a channel (the only one where there is one)."""
        quant = self.tensors[name].quant
        if quant is None:
            raise NotExactError
        return Fraction(quant.scales[channel if len(quant.scales) > 1 else 0])

    def point(self, name: str, channel: int = 0) -> int:
        """Zero point of a channel."""
        quant = self.tensors[name].quant
        return 0 if quant is None else quant.zero_points[channel if len(quant.zero_points) > 1 else 0]

    def given(self, name: str) -> Array:
        """Codes of a tensor that is given.

        Raises:
            NotExactError: ops make the tensor, or it has no quantization.
        """
        stored = self.stored(name)
        if stored is None or self.tensors[name].quant is None:
            raise NotExactError
        return stored


def _feed(stored: Array, feed: int) -> int:
    return 0 if stored.shape[0] == 1 else feed


def _centred(codes: Array, point: int) -> Array:
    """Codes less a zero point, int64."""
    result: Array = codes.astype(np.int64) - point
    return result


def _dot(left: Array, right: Array, unit: Fraction) -> Term:
    """Sum of products of two int64 arrays of one shape, times a unit."""
    terms = (left * right).reshape(-1)
    return Term(value=int(terms.sum()) * unit, size=int(np.abs(terms).sum()) * abs(unit), count=max(terms.size, 1))


def _ints(op: Op, key: str) -> tuple[int, ...]:
    values: Any = op.attributes[key]
    return tuple(int(v) for v in values)


def _number(op: Op, key: str, default: float) -> Fraction:
    value: Any = op.attributes.get(key, default)
    return Fraction(float(value))


def _biased(e: Evaluator, op: Op, total: Term, place: Index, unit: Fraction) -> Term:
    """With the bias, if there is one.

    Args:
        e: the evaluator.
        op: a Conv, Gemm or MatMul.
        total: the sum of products.
        place: the element of the bias.
        unit: real value of one step of the accumulator, which is also that of a bias of kind `accumulator`.
    """
    name = op.inputs[2] if len(op.inputs) > 2 else ""
    if not name:
        return total
    if op.bias is not None and op.bias.kind == "accumulator":
        channel = place[-1] if place else 0
        value = (int(e.given(name)[(0, *place)]) - e.point(name, channel)) * unit
        return total.plus(Term(value=value, size=abs(value)))
    return total.plus(e.term(name, (0, *place)).times(_number(op, "beta", 1.0)))


def _aligned(shape: tuple[int, ...], index: Index) -> Index:
    """The place that broadcasting reads for an index into the result."""
    tail = index[len(index) - len(shape) :]
    return tuple(0 if size == 1 else i for size, i in zip(shape, tail, strict=True))


def _taps(op: Op, kernel: Sequence[int], place: Index, sizes: Sequence[int]) -> list[list[tuple[int, int]]]:
    """Per spatial axis: (kernel position, input position) of the taps that lie on data."""
    strides, pads, dilations = _ints(op, "strides"), _ints(op, "pads"), _ints(op, "dilations")
    axes = []
    for i, (size, taps) in enumerate(zip(sizes, kernel, strict=True)):
        start = place[i] * strides[i] - pads[i]
        where = [(k, start + k * dilations[i]) for k in range(taps)]
        axes.append([(k, p) for k, p in where if 0 <= p < size])
    return axes


def _conv(e: Evaluator, op: Op, index: Index) -> Term:
    x, w = op.inputs[0], op.inputs[1]
    feed, image, channel, *place = index
    values, weights = e.given(x), e.given(w)[0]
    inside = weights.shape[1]
    group = int(_number(op, "group", 1))
    first = channel // (weights.shape[0] // group) * inside
    axes = _taps(op, weights.shape[2:], tuple(place), e.shape(x)[2:])
    kernel = np.ix_(range(inside), *([k for k, _ in axis] for axis in axes))
    window = np.ix_(range(first, first + inside), *([p for _, p in axis] for axis in axes))
    unit = e.scale(x) * e.scale(w, channel)
    left = _centred(values[_feed(values, feed), image][window], e.point(x))
    total = _dot(left, _centred(weights[channel][kernel], e.point(w, channel)), unit)
    return _biased(e, op, total, (channel,), unit)


def _gemm(e: Evaluator, op: Op, index: Index) -> Term:
    a, b = op.inputs[0], op.inputs[1]
    feed, row, column = index
    left, right = e.given(a), e.given(b)
    line = left[_feed(left, feed)]
    line = line[:, row] if op.attributes.get("transA") else line[row]
    weights = right[_feed(right, feed)]
    weights = weights[column] if op.attributes.get("transB") else weights[:, column]
    unit = e.scale(a) * e.scale(b, column) * _number(op, "alpha", 1.0)
    total = _dot(_centred(line, e.point(a)), _centred(weights, e.point(b, column)), unit)
    bias = op.inputs[2] if len(op.inputs) > 2 else ""
    return _biased(e, op, total, _aligned(e.shape(bias), (row, column)) if bias else (), unit)


def _matmul(e: Evaluator, op: Op, index: Index) -> Term:
    a, b = op.inputs[0], op.inputs[1]
    left, right = e.given(a), e.given(b)
    vector = (len(e.shape(a)) == 1, len(e.shape(b)) == 1)
    left = left[:, None, :] if vector[0] else left
    right = right[:, :, None] if vector[1] else right
    feed, *rest = index
    column = 0 if vector[1] else rest.pop()
    row = 0 if vector[0] else rest.pop()
    batch = tuple(rest)
    line: Array = left[_feed(left, feed)][_aligned(left.shape[1:-2], batch)][row]
    weights: Array = right[_feed(right, feed)][_aligned(right.shape[1:-2], batch)][:, column]
    unit = e.scale(a) * e.scale(b, column)
    total = _dot(_centred(line, e.point(a)), _centred(weights, e.point(b, column)), unit)
    bias = op.inputs[2] if len(op.inputs) > 2 else ""
    return _biased(e, op, total, _aligned(e.shape(bias), index[1:]) if bias else (), unit)


def _add(e: Evaluator, op: Op, index: Index) -> Term:
    a, b = (e.term(name, (index[0], *_aligned(e.shape(name), index[1:]))) for name in op.inputs[:2])
    return a.plus(b)


def _mul(e: Evaluator, op: Op, index: Index) -> Term:
    a, b = (e.term(name, (index[0], *_aligned(e.shape(name), index[1:]))) for name in op.inputs[:2])
    return Term(value=a.value * b.value, size=a.size * b.size, count=a.count * b.count)


def _same(e: Evaluator, op: Op, index: Index) -> Term:
    return e.term(op.inputs[0], index)


def _relu(e: Evaluator, op: Op, index: Index) -> Term:
    term = e.term(op.inputs[0], index)
    return Term(value=max(term.value, ZERO), size=term.size, count=term.count)


def _clip(e: Evaluator, op: Op, index: Index) -> Term:
    term = e.term(op.inputs[0], index)
    value = term.value
    if "minimum" in op.attributes:
        value = max(value, _number(op, "minimum", 0.0))
    if "maximum" in op.attributes:
        value = min(value, _number(op, "maximum", 0.0))
    return Term(value=value, size=term.size, count=term.count)


def _window(e: Evaluator, op: Op, index: Index) -> list[Term]:
    """The elements of a pooling window that lie on data."""
    axes = _taps(op, _ints(op, "kernel_shape"), index[3:], e.shape(op.inputs[0])[2:])
    places = product(*([p for _, p in axis] for axis in axes))
    return [e.term(op.inputs[0], (*index[:3], *place)) for place in places]


def _max_pool(e: Evaluator, op: Op, index: Index) -> Term:
    terms = _window(e, op, index)
    if not terms:
        raise NotExactError
    return max(terms, key=lambda term: term.value)


def _average(terms: Sequence[Term], count: int, factor: Fraction) -> Term:
    total = Term(value=ZERO, size=ZERO, count=0)
    for term in terms:
        total = total.plus(term)
    return total.times(factor / count)


def _average_pool(e: Evaluator, op: Op, index: Index) -> Term:
    terms = _window(e, op, index)
    count = len(terms)
    if op.attributes.get("count_include_pad"):
        sizes, pads = e.shape(op.inputs[0])[2:], _ints(op, "pads")
        strides, dilations, kernel = _ints(op, "strides"), _ints(op, "dilations"), _ints(op, "kernel_shape")
        count = 1
        for i, size in enumerate(sizes):
            start = index[3 + i] * strides[i] - pads[i]
            end = size + pads[len(sizes) + i]
            count *= sum(start + k * dilations[i] < end for k in range(kernel[i]))
    if not count:
        raise NotExactError
    return _average(terms, count, _number(op, "factor", 1.0))


def _global_average_pool(e: Evaluator, op: Op, index: Index) -> Term:
    sizes = e.shape(op.inputs[0])[2:]
    terms = [e.term(op.inputs[0], (*index[:3], *place)) for place in np.ndindex(*sizes)]
    return _average(terms, prod(sizes), _number(op, "factor", 1.0))


def _reshape(e: Evaluator, op: Op, index: Index) -> Term:
    flat = int(np.ravel_multi_index(index[1:], e.shape(op.outputs[0]))) if index[1:] else 0
    place = np.unravel_index(flat, e.shape(op.inputs[0])) if e.shape(op.inputs[0]) else ()
    return e.term(op.inputs[0], (index[0], *(int(i) for i in place)))


def _transpose(e: Evaluator, op: Op, index: Index) -> Term:
    place = [0] * (len(index) - 1)
    for to, source in enumerate(_ints(op, "perm")):
        place[source] = index[1 + to]
    return e.term(op.inputs[0], (index[0], *place))


def _concat(e: Evaluator, op: Op, index: Index) -> Term:
    axis = int(_number(op, "axis", 0)) % (len(index) - 1) + 1
    at = index[axis]
    for name in op.inputs:
        size = e.shape(name)[axis - 1]
        if at < size:
            return e.term(name, (*index[:axis], at, *index[axis + 1 :]))
        at -= size
    raise NotExactError


def _reinterpret(e: Evaluator, op: Op, index: Index) -> Term:
    stored = e.stored(op.inputs[0])
    if stored is None:
        raise NotExactError
    name = op.outputs[0]
    quant = e.tensors[name].quant
    channel = 0 if quant is None or quant.axis is None else index[1 + quant.axis]
    code = int(stored[_feed(stored, index[0])][index[1:]])
    value = (code - e.point(name, channel)) * e.scale(name, channel)
    return Term(value=value, size=abs(value))


_OPS: Final[Mapping[str, Callable[[Evaluator, Op, Index], Term]]] = {
    "Conv": _conv,
    "Gemm": _gemm,
    "MatMul": _matmul,
    "Add": _add,
    "Mul": _mul,
    "Relu": _relu,
    "Clip": _clip,
    "MaxPool": _max_pool,
    "AveragePool": _average_pool,
    "GlobalAveragePool": _global_average_pool,
    "Flatten": _reshape,
    "Reshape": _reshape,
    "Transpose": _transpose,
    "Concat": _concat,
    "Reinterpret": _reinterpret,
    "QuantizeLinear": _same,
    "DequantizeLinear": _same,
}
