"""How far accumulators get: the sum for inputs that follow the signs of the weights, straight from the definition.

Why beside the proved bound: the bound comes from the importer's own figures, and nothing else would notice one that is
too small. A bound that holds is never below what an input reaches.
"""

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from manifest.model import QRANGE, Manifest, Op, Tensor

Array = npt.NDArray[Any]
Range = tuple[int, int]

_PASSING: Final = frozenset({"Reshape", "Flatten", "Transpose", "MaxPool", "Relu", "Clip", "Reinterpret", "Identity"})
_AVERAGES: Final = frozenset({"AveragePool", "GlobalAveragePool"})


def reached(manifest: Manifest, arrays: Mapping[str, Array]) -> dict[str, int]:
    """Largest |accumulator| that made-up inputs give, by op that has a bound and whose sums are known here.

    Args:
        manifest: of the model.
        arrays: its constants.
    """
    look = _Look(manifest, arrays)
    found = ((op.name, look.reach(op)) for op in manifest.ops if op.accumulator is not None)
    return {name: value for name, value in found if value is not None}


def code_ranges(manifest: Manifest, arrays: Mapping[str, Array]) -> dict[str, Range]:
    """Lowest and highest code that each integer tensor can hold, behind fused activations and clamps.

    Args:
        manifest: of the model.
        arrays: its constants.
    """
    look = _Look(manifest, arrays)
    return {t.name: look.range(t.name) for t in manifest.tensors if t.quant is not None}


class _Look:
    """Ranges of codes along the graph, and the sums that they make."""

    def __init__(self, manifest: Manifest, arrays: Mapping[str, Array]) -> None:
        self._tensors = manifest.by_name()
        self._arrays = arrays
        self._ranges: dict[str, Range] = {}
        for op in manifest.ops:
            self._ranges[op.outputs[0]] = self._range_behind(op)

    def reach(self, op: Op) -> int | None:
        """Largest |accumulator| of an op; None where it is no sum of codes."""
        if any(n and self._tensors[n].quant is None and self._tensors[n].array is None for n in op.inputs):
            return None
        if op.type in ("Conv", "Gemm", "MatMul"):
            return self._product(op)
        if op.type == "Add" and op.requant is not None:
            return self._sum(op)
        if op.type == "Mul":
            return self._largest(op.inputs[0]) * self._largest(op.inputs[1])
        if op.type in _AVERAGES:
            return self._fullest(op) * self._largest(op.inputs[0])
        return None

    def _fullest(self, op: Op) -> int:
        """Elements of the image in the window that holds most of them (padding adds nothing to a sum).

        Why no product of the taps: a window may hang over the border wherever it stands.
        """
        image, windows = (self._tensors[name].shape[2:] for name in (op.inputs[0], op.outputs[0]))
        rank = len(image)
        kernel: Any = op.attributes.get("kernel_shape", image)
        pads: Any = op.attributes.get("pads", (0,) * (2 * rank))
        strides: Any = op.attributes.get("strides", (1,) * rank)
        dilations: Any = op.attributes.get("dilations", (1,) * rank)
        most = []
        for i, taps in enumerate(kernel):
            starts = strides[i] * np.arange(windows[i])[:, np.newaxis] - pads[i]
            places = starts + dilations[i] * np.arange(taps)
            most.append(int(((places >= 0) & (places < image[i])).sum(axis=1).max()))
        return prod(most)

    def range(self, name: str) -> Range:
        """Lowest and highest code of a tensor."""
        tensor = self._tensors[name]
        if tensor.array is not None:
            codes = self._arrays[tensor.array]
            return int(codes.min(initial=0)), int(codes.max(initial=0))
        return self._ranges.get(name, QRANGE.get(tensor.dtype, (0, 0)))

    def _range_behind(self, op: Op) -> Range:
        low, high = QRANGE.get(self._tensors[op.outputs[0]].dtype, (0, 0))
        if op.requant is not None:
            low, high = op.requant.qmin, op.requant.qmax
        if op.type in _PASSING and op.requant is not None and op.requant.reference == "identity":
            first, last = self.range(op.inputs[0])
            return min(max(first, low), high), min(max(last, low), high)
        return low, high

    def _centred(self, name: str) -> Range:
        """Lowest and highest code less the zero point (of an activation, or of a constant with one)."""
        low, high = self.range(name)
        point = _points(self._tensors[name])[0]
        return low - point, high - point

    def _largest(self, name: str) -> int:
        return max(abs(v) for v in self._centred(name))

    def _sum(self, op: Op) -> int | None:
        requant = op.requant
        if requant is None or len(requant.multipliers) != len(op.inputs):
            return None
        total = sum(m * self._largest(n) for m, n in zip(requant.multipliers, op.inputs, strict=True))
        point = _points(self._tensors[op.outputs[0]])[0] if requant.zero_point_inside else 0
        return total + (abs(point) << max(requant.shifts[0], 0))

    def _product(self, op: Op) -> int:
        x, w = op.inputs[:2]
        left = self._tensors[x].array is not None
        if left or self._tensors[w].array is not None:
            constant, other = (x, w) if left else (w, x)
            return self._signed(op, self._rows(op, constant, left=left), self._centred(other))
        return self._tensors[x].shape[-1] * self._largest(x) * self._largest(w)

    def _signed(self, op: Op, rows: Array, limits: Range) -> int:
        """Largest |sum| of a row with every input at the end that helps, bias included."""
        low, high = limits
        most = np.maximum(rows * low, rows * high).sum(axis=1).tolist()
        least = np.minimum(rows * low, rows * high).sum(axis=1).tolist()
        bias, promotion = self._bias(op)
        sums = [
            max(abs((end << promotion[i % len(promotion)]) + bias[i % len(bias)]) for end in ends)
            for i, ends in enumerate(zip(most, least, strict=True))
        ]
        return max(sums, default=0)

    def _rows(self, op: Op, name: str, *, left: bool) -> Array:
        """Weights less zero points, int64, one row per output channel (of each matrix of a batch)."""
        tensor = self._tensors[name]
        codes = self._arrays[str(tensor.array)].astype(np.int64)
        points = np.asarray(_points(tensor), np.int64)
        if tensor.quant is not None and len(points) > 1:
            points = points.reshape([-1 if i == tensor.quant.axis else 1 for i in range(codes.ndim)])
        codes = codes - points
        if op.type == "Conv":
            return codes.reshape(codes.shape[0], -1)
        inner_last = left or codes.ndim == 1 or (op.type == "Gemm" and bool(op.attributes.get("transB")))
        turned = codes if inner_last else codes.swapaxes(-1, -2)
        return turned.reshape(-1, turned.shape[-1])

    def _bias(self, op: Op) -> tuple[Sequence[int], Sequence[int]]:
        """Integers that are added to the accumulator, and how far it is shifted left first; one or one per channel."""
        name = op.inputs[2] if len(op.inputs) > 2 else ""
        if not name or op.bias is None:
            return (0,), (0,)
        key = op.bias.target_array if op.bias.kind == "rescaled" else self._tensors[name].array
        if key is None:
            return (0,), (0,)
        codes = self._arrays[key].reshape(-1).tolist()
        shifts = op.bias.shifts or (0,)
        added = [c << max(shifts[i % len(shifts)], 0) for i, c in enumerate(codes)]
        return added, [max(-s, 0) for s in shifts]


def _points(tensor: Tensor) -> tuple[int, ...]:
    return tensor.quant.zero_points if tensor.quant is not None else (0,)
