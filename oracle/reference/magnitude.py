"""How large the terms are that onnxruntime's float arithmetic sums for one output element.

A sum of float32 products is wrong by a share of the sum of the *absolute* terms, not of the result: where large terms
cancel, the result is small and its error is not.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from manifest.model import Op, Tensor
from oracle.reference.sample import Sample

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Magnitude:
    """Sum of |terms| in output codes, and how many terms there are."""

    terms: Fraction
    count: int


def magnitudes(sample: Sample) -> list[Magnitude]:
    """One `Magnitude` per element of a sample; |value| and one term where the op sums nothing that can cancel."""
    ops = sample.run.ops()
    op = next((o for o in ops if o.type in _SUMS), None)
    tensors = sample.run.manifest.by_name()
    plain = [Magnitude(terms=abs(v or Fraction(0)), count=1) for v in sample.values]
    if op is None or sample.tensor.quant is None or tensors[op.outputs[0]].shape != sample.tensor.shape:
        return plain
    real = _SUMS[op.type](_Operands(sample, op, tensors))
    if real is None:
        return plain
    totals, count = real
    scale = Fraction(sample.tensor.quant.scales[0])
    return [Magnitude(terms=Fraction(float(t)) / scale, count=count) for t in totals]


class _Operands:
    """Real absolute values of the operands of one op."""

    def __init__(self, sample: Sample, op: Op, tensors: Mapping[str, Tensor]) -> None:
        self.op = op
        self.indices = sample.indices
        self._sample = sample
        self._tensors = tensors

    def absolute(self, position: int) -> Array | None:
        """|real value| of an operand in float64, with a leading feed axis (length 1 for constants)."""
        name = self.op.inputs[position] if position < len(self.op.inputs) else ""
        if not name:
            return None
        tensor = self._tensors[name]
        if tensor.array is not None:
            values = self._sample.run.arrays[tensor.array][np.newaxis]
        elif name in self._sample.run.tensors:
            values = self._sample.run.tensors[name]
        else:
            return None
        if tensor.quant is None:
            return np.abs(values.astype(np.float64))
        return np.abs((values.astype(np.float64) - _spread(tensor, "zero_points")) * _spread(tensor, "scales"))


def _spread(tensor: Tensor, what: str) -> Array:
    """Scales or zero points in a form that broadcasts against (F, *shape)."""
    values = np.asarray(getattr(tensor.quant, what), np.float64)
    if len(values) == 1 or tensor.quant is None or tensor.quant.axis is None:
        return values[0]  # type: ignore[no-any-return]
    form = [1] * (len(tensor.shape) + 1)
    form[tensor.quant.axis + 1] = len(values)
    return values.reshape(form)


_Terms = tuple[list[float], int]


def _conv(o: _Operands) -> _Terms | None:
    x, w = o.absolute(0), o.absolute(1)
    if x is None or w is None:
        return None
    pads, strides, dilations = (_ints(o.op, key) for key in ("pads", "strides", "dilations"))
    groups = int(str(o.op.attributes["group"]))
    half = len(pads) // 2
    x = np.pad(x, ((0, 0), (0, 0), (0, 0), *zip(pads[:half], pads[half:], strict=True)))
    bias = o.absolute(2)
    kernel = w.shape[3:]
    per_group, inside = w.shape[1] // groups, w.shape[2]
    totals = []
    for feed, image, channel, *place in o.indices:
        first = int(channel) // per_group * inside
        window = tuple(
            slice(int(p) * s, int(p) * s + (k - 1) * d + 1, d)
            for p, s, d, k in zip(place, strides, dilations, kernel, strict=True)
        )
        total = float((x[(feed, image, slice(first, first + inside), *window)] * w[0, channel]).sum())
        totals.append(total + (0.0 if bias is None else float(bias[0, channel])))
    return totals, inside * int(np.prod(kernel)) + 1


def _gemm(o: _Operands) -> _Terms | None:
    x, w = o.absolute(0), o.absolute(1)
    if x is None or w is None:
        return None
    x = x.swapaxes(1, 2) if o.op.attributes.get("transA") else x
    w = w.swapaxes(1, 2) if o.op.attributes.get("transB") else w
    bias = o.absolute(2)
    totals = []
    for feed, row, column in o.indices:
        total = abs(float(o.op.attributes.get("alpha", 1.0))) * float(x[feed, row] @ w[_feed(w, feed), :, column])  # type: ignore[arg-type]
        if bias is not None:
            wide = np.broadcast_to(bias[0], (x.shape[1], w.shape[2]))
            total += float(wide[row, column])
        totals.append(total)
    return totals, x.shape[2] + 1


def _matmul(o: _Operands) -> _Terms | None:
    x, w = o.absolute(0), o.absolute(1)
    if x is None or w is None or x.ndim < 3 or w.ndim < 3:
        return None
    bias = o.absolute(2)
    totals = []
    for feed, *batch, row, column in o.indices:
        left = x[(feed, *_clipped(batch, x.shape[1:-2]), row)]
        right = w[(_feed(w, feed), *_clipped(batch, w.shape[1:-2]), slice(None), column)]
        total = float(left @ right)
        if bias is not None:
            total += float(bias.reshape(-1)[column if bias.size > 1 else 0])
        totals.append(total)
    return totals, x.shape[-1] + 1


def _add(o: _Operands) -> _Terms | None:
    a, b = o.absolute(0), o.absolute(1)
    if a is None or b is None:
        return None
    rank = o.indices.shape[1]
    totals = []
    for index in o.indices:
        place = tuple(int(i) for i in index)
        totals.append(sum(_at(side, place, rank) for side in (a, b)))
    return totals, 2


def _at(values: Array, place: tuple[int, ...], rank: int) -> float:
    """The element of an operand that broadcasting brings to a place."""
    feed, rest = place[0], place[1 + rank - values.ndim :]
    return float(values[(_feed(values, feed), *_clipped(rest, values.shape[1:]))])


def _feed(values: Array, feed: int) -> int:
    return 0 if values.shape[0] == 1 else int(feed)


def _clipped(place: Any, shape: tuple[int, ...]) -> tuple[int, ...]:
    aligned = tuple(place)[len(tuple(place)) - len(shape) :]
    return tuple(0 if size == 1 else int(i) for i, size in zip(aligned, shape, strict=True))


def _ints(op: Op, key: str) -> tuple[int, ...]:
    values: Any = op.attributes[key]
    return tuple(int(v) for v in values)


_SUMS: Final[Mapping[str, Callable[[_Operands], _Terms | None]]] = {
    "Conv": _conv,
    "Gemm": _gemm,
    "MatMul": _matmul,
    "Add": _add,
}
