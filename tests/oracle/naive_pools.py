"""Pools of the slow second meaning."""

import math
from fractions import Fraction
from typing import Any

import numpy as np

from manifest.model import Op
from tests.oracle.naive_base import Array, Base, Index, each, f32


class Pools(Base):
    """Windows."""

    def maxpool(self, op: Op) -> Array:
        x = self.real(op.inputs[0])
        shape = self.tensors[op.outputs[0]].shape

        def pool(v: Array) -> Array:
            out = np.empty(shape, object)
            for i in each(shape):
                out[i] = max(v[(i[0], i[1], *p)] for p in self.window(op, i, v.shape[2:]))
            return out

        return self.passed(op, x, pool)

    def window(self, op: Op, i: Index, sizes: tuple[int, ...], *, padded: bool = False) -> list[Index]:
        """Positions of a window on data; with `padded` also those on the padding."""
        attributes: Any = op.attributes
        strides, pads, kernel = attributes["strides"], attributes["pads"], attributes["kernel_shape"]
        dilations = attributes.get("dilations", (1, 1))
        places = []
        for taps in each(kernel):
            p = tuple(i[2 + d] * strides[d] - pads[d] + taps[d] * dilations[d] for d in range(2))
            ends = [(-pads[d], sizes[d] + pads[2 + d]) if padded else (0, sizes[d]) for d in range(2)]
            if all(low <= v < high for v, (low, high) in zip(p, ends, strict=True)):
                places.append(p)
        return places

    def averagepool(self, op: Op) -> Array:
        x, sizes = self.real(op.inputs[0]), self.tensors[op.inputs[0]].shape[2:]
        ints, shape = self.ints(op.inputs[0]), self.tensors[op.outputs[0]].shape
        include = bool(op.attributes.get("count_include_pad", 0))
        factor = Fraction(op.attributes.get("factor", 1.0))  # type: ignore[arg-type]
        counts = {i: len(self.window(op, i, sizes, padded=include)) for i in each(shape)}
        if include and op.origin == "qoperator":
            kernel_shape: Any = op.attributes["kernel_shape"]
            counts = dict.fromkeys(counts, math.prod(kernel_shape))
        ascending = sorted(set(counts.values()))
        out = np.empty(shape, object)
        for i in each(shape):
            out[i] = sum((x[(i[0], i[1], *p)] for p in self.window(op, i, sizes)), Fraction(0)) * factor / counts[i]

        def target(i: Index) -> Any:
            total = sum(ints[(i[0], i[1], *p)] for p in self.window(op, i, sizes))
            return total * self.step(op.requant, ascending.index(counts[i]))

        def kernel(i: Index) -> np.float32:
            qx, qy = self.quant(op.inputs[0]), self.quant(op.outputs[0])
            if op.attributes["kernel_shape"] == sizes and not any(op.attributes["pads"]):  # type: ignore[arg-type]
                return f32(self.global_kernel(op, ints, i) + f32(qy.zero_points[0]))
            total = f32(0)
            for p in self.window(op, i, sizes):
                total = f32(total + f32(f32(ints[(i[0], i[1], *p)]) * f32(qx.scales[0])))
            mean = f32(total / f32(counts[i]))
            return f32(f32(mean / f32(qy.scales[0])) + f32(qy.zero_points[0]))

        return self.finish(op, out, target=target, kernel=kernel)

    def global_kernel(self, op: Op, ints: Array, i: Index) -> np.float32:
        sx, sy = f32(self.quant(op.inputs[0]).scales[0]), f32(self.quant(op.outputs[0]).scales[0])
        m = f32(sx / f32(sy * f32(ints[i[0], i[1]].size)))
        return f32(f32(int(ints[i[0], i[1]].sum())) * m)

    def globalaveragepool(self, op: Op) -> Array:
        x, shape = self.real(op.inputs[0]), self.tensors[op.outputs[0]].shape
        factor = Fraction(op.attributes.get("factor", 1.0))  # type: ignore[arg-type]
        out = np.empty(shape, object)
        for i in each(shape):
            out[i] = sum(x[i[0], i[1]].ravel(), Fraction(0)) * factor / x[i[0], i[1]].size
        exact = self.tensors[op.inputs[0]].dtype == "exact"
        ints = None if exact else self.ints(op.inputs[0])

        def target(i: Index) -> Any:
            channel = 0 if op.requant is None or len(op.requant.multipliers) == 1 else i[1]
            if ints is None:
                return (
                    out[i]
                    / self.unit_of(op.inputs[0], channel)
                    * x[0, 0].size
                    / factor
                    * self.step(op.requant, channel)
                )
            return int(ints[i[0], i[1]].sum()) * self.step(op.requant, channel)

        def kernel(i: Index) -> np.float32:
            assert ints is not None
            return self.global_kernel(op, ints, i)

        return self.finish(op, out, target=target, kernel=kernel)
