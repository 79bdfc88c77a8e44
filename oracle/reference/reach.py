"""How far accumulators get: the sum for inputs that follow the signs of the weights, straight from the definition.

Why beside the proved bound: the bound comes from the importer's own figures, and nothing else would notice one that is
too small. What an input reaches is never beyond a bound that holds.
"""

from collections.abc import Mapping
from fractions import Fraction
from math import ceil, prod
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from manifest.model import QRANGE, Manifest, Op, Tensor

Array = npt.NDArray[Any]
Range = tuple[int, int]

_PASSING: Final = frozenset({"Reshape", "Flatten", "Transpose", "MaxPool", "Relu", "Clip", "Identity", "Reinterpret"})


def reached(manifest: Manifest, arrays: Mapping[str, Array]) -> dict[str, int]:
    """Largest |accumulator| that an input makes, by op that has a proved bound.

    Args:
        manifest: of the model.
        arrays: its constants.
    """
    look = _Look(manifest, arrays)
    return {op.name: look.reach(op) for op in manifest.ops if op.accumulator is not None}


class _Look:
    """Ranges of codes along the graph, and the sums that they make."""

    def __init__(self, manifest: Manifest, arrays: Mapping[str, Array]) -> None:
        self._tensors = manifest.by_name()
        self._arrays = arrays
        self._ranges: dict[str, Range] = {}
        for op in manifest.ops:
            self._ranges[op.outputs[0]] = self._range_behind(op)

    def _range(self, name: str) -> Range:
        """Lowest and highest code of a tensor."""
        tensor = self._tensors[name]
        if tensor.array is not None:
            codes = self._arrays[tensor.array]
            return int(codes.min(initial=0)), int(codes.max(initial=0))
        return self._ranges.get(name, QRANGE.get(tensor.dtype, (0, 0)))

    def _range_behind(self, op: Op) -> Range:
        low, high = QRANGE.get(self._tensors[op.outputs[0]].dtype, (0, 0))
        if op.requant is not None:
            low, high = max(low, op.requant.qmin), min(high, op.requant.qmax)
        if op.type not in _PASSING or op.requant is None or op.requant.reference != "identity":
            return low, high
        first, last = self._range(op.inputs[0])
        return min(max(first, low), high), min(max(last, low), high)

    def _centred(self, name: str) -> Range:
        """Lowest and highest code less the zero point."""
        low, high = self._range(name)
        points = _points(self._tensors[name])
        return low - max(points), high - min(points)

    def _largest(self, name: str) -> int:
        return max(abs(v) for v in self._centred(name))

    def reach(self, op: Op) -> int:
        """Largest |accumulator| of an op."""
        if op.type in ("Conv", "Gemm", "MatMul"):
            return self._product(op)
        if op.type == "Add" and op.requant is not None:
            pairs = zip(op.requant.multipliers, op.inputs, strict=True)
            inside = _points(self._tensors[op.outputs[0]])[0] << op.requant.shifts[0]
            return sum(m * self._largest(n) for m, n in pairs) + (abs(inside) if op.requant.zero_point_inside else 0)
        kernel: Any = op.attributes.get("kernel_shape", self._tensors[op.inputs[0]].shape[2:])
        return prod(kernel) * self._largest(op.inputs[0]) if "Average" in op.type else self._largest(op.inputs[0])

    def _product(self, op: Op) -> int:
        x, w = op.inputs[:2]
        if self._tensors[w].array is None or self._tensors[x].array is not None:
            constant, other = (x, w) if self._tensors[x].array is not None else (w, x)
            depth = self._tensors[x].shape[-1]
            if self._tensors[constant].array is None:
                return depth * self._largest(x) * self._largest(w)
            return self._signed(self._channels(op, constant, left=True), self._centred(other), [Fraction(0)])
        return self._signed(self._channels(op, w), self._centred(x), self._bias(op))

    def _signed(self, weights: Array, limits: Range, bias: list[Fraction]) -> int:
        """Largest |sum| over the channels (the rows) with every input at the end that helps."""
        low, high = limits
        most = np.maximum(weights * low, weights * high).sum(axis=1).tolist()
        least = np.minimum(weights * low, weights * high).sum(axis=1).tolist()
        added = bias * len(most) if len(bias) == 1 else bias
        return max(
            max(abs(ceil(top + b)), abs(ceil(-bottom - b))) for top, bottom, b in zip(most, least, added, strict=True)
        )

    def _channels(self, op: Op, name: str, *, left: bool = False) -> Array:
        """Weights less zero points, int64, one row per output channel (and matrix of a batch)."""
        tensor = self._tensors[name]
        codes = self._arrays[str(tensor.array)].astype(np.int64)
        points = np.asarray(_points(tensor), np.int64)
        if len(points) > 1 and tensor.quant is not None and tensor.quant.axis is not None:
            points = points.reshape([-1 if i == tensor.quant.axis else 1 for i in range(codes.ndim)])
        codes = codes - points
        rows_last = op.type != "Conv" and not (op.type == "Gemm" and op.attributes.get("transB")) and not left
        if rows_last and codes.ndim > 1:
            codes = np.moveaxis(codes, -1, 0).reshape(codes.shape[-1], -1, codes.shape[-2]).swapaxes(1, 2).swapaxes(1, 2)
            return codes.reshape(-1, codes.shape[-1])
        if left or codes.ndim == 1:
            return codes.reshape(-1, codes.shape[-1])
        return codes.reshape(codes.shape[0], -1)

    def _bias(self, op: Op) -> list[Fraction]:
        return [Fraction(0)]


def _points(tensor: Tensor) -> tuple[int, ...]:
    return tensor.quant.zero_points if tensor.quant is not None else (0,)
