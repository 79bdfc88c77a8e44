"""A second, slow meaning of the manifest: Python integers, fractions, single float32 operations, element by element.

Written from the definitions (ONNX operator texts, onnxruntime's formulas, docstrings of `manifest.model`), it shares no
code with the oracle.
"""

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from manifest.model import QRANGE, Op
from tests.oracle.naive_base import Array, Index, as_object, at, each, f32, float32_of, fma
from tests.oracle.naive_pools import Pools
from tests.oracle.naive_products import Products


class Naive(Products, Pools):
    """Runs a manifest feed by feed."""

    def run(self, inputs: Mapping[str, Array], arithmetic: str = "reference") -> dict[str, Array]:
        """(F, *shape) of every tensor that an op makes: integers, float32, or fractions of exact tensors."""
        feeds = len(next(iter(inputs.values())))
        runs = [self.one({k: v[i] for k, v in inputs.items()}, arithmetic) for i in range(feeds)]
        return {name: np.stack([r[name] for r in runs]) for name in runs[0]}

    def one(self, inputs: Mapping[str, Array], arithmetic: str) -> dict[str, Array]:
        self.values = dict(inputs)
        self.target = arithmetic == "target"
        made = {}
        for op in self.manifest.ops:
            result = getattr(self, op.type.lower())(op)
            tensor = self.tensors[op.outputs[0]]
            assert result.shape == tensor.shape, (op.type, result.shape, tensor.shape)
            kind = object if tensor.dtype == "exact" else np.dtype(tensor.dtype)
            self.values[tensor.name] = made[tensor.name] = result.astype(kind)
        return made

    def add(self, op: Op) -> Array:
        names = op.inputs[:2]
        a, b = (np.broadcast_to(v, self.tensors[op.outputs[0]].shape) for v in map(self.real, names))
        units = [self.unit_of(n, 0) for n in names]

        def target(i: Index) -> Any:
            assert op.requant is not None
            m = op.requant.multipliers
            return (m[0] * a[i] / units[0] + m[-1] * b[i] / units[1]) * Fraction(2) ** -op.requant.shifts[0]

        def kernel(i: Index) -> np.float32:
            qc = self.quant(op.outputs[0])
            sides = [(f32(self.broadcast(n, a.shape)[i]), self.quant(n), self.raw(n).shape) for n in names]
            if self.swapped(sides[0][2], sides[1][2]):
                sides.reverse()
            (va, qa, _), (vb, qb, _) = sides
            ra, rb = f32(f32(qa.scales[0]) / f32(qc.scales[0])), f32(f32(qb.scales[0]) / f32(qc.scales[0]))
            za, zb, zc = f32(qa.zero_points[0]), f32(qb.zero_points[0]), f32(qc.zero_points[0])
            if not self.fma_add:
                fixed = f32(zc - f32(f32(ra * za) + f32(rb * zb)))
                return f32(f32(fixed + f32(va * ra)) + f32(vb * rb))
            fixed = f32(zc - fma(ra, za, f32(rb * zb)))
            return fma(va, ra, fma(vb, rb, fixed))

        return self.finish(op, a + b, target=target, kernel=kernel)

    @staticmethod
    def swapped(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
        """The kernel walks over the second input where the first stands still on the innermost axis that moves."""
        rank = max(len(a), len(b))
        for axis in range(1, rank + 1):
            na = a[-axis] if axis <= len(a) else 1
            nb = b[-axis] if axis <= len(b) else 1
            if (na, nb) != (1, 1):
                return na == 1
        return True

    def broadcast(self, name: str, shape: tuple[int, ...]) -> Array:
        return np.broadcast_to(self.raw(name), shape)

    def mul(self, op: Op) -> Array:
        a, b = self.real(op.inputs[0]), self.real(op.inputs[1])
        real = np.asarray(a * b, dtype=object)
        if self.tensors[op.outputs[0]].dtype == "exact":
            return real
        units = self.unit_of(op.inputs[0], 0) * self.unit_of(op.inputs[1], 0)
        product = np.asarray(real / units, dtype=object)
        sa, sb, sc = (f32(self.quant(n).scales[0]) for n in (*op.inputs[:2], op.outputs[0]))
        zc = f32(self.quant(op.outputs[0]).zero_points[0])

        def kernel(i: Index) -> np.float32:
            return f32(f32(f32(int(product[i])) * f32(f32(sa * sb) / sc)) + zc)

        return self.finish(op, real, target=lambda i: product[i] * self.step(op.requant, 0), kernel=kernel)

    def relu(self, op: Op) -> Array:
        return self.passed(op, self.real(op.inputs[0]), lambda v: np.maximum(v, as_object(0)))

    def clip(self, op: Op) -> Array:
        if "qmin" in op.attributes:
            return np.minimum(np.maximum(self.raw(op.inputs[0]), op.attributes["qmin"]), op.attributes["qmax"])
        low, high = float(op.attributes["minimum"]), float(op.attributes["maximum"])  # type: ignore[arg-type]

        def clamp(v: Array) -> Array:
            v = v if math.isinf(low) else np.maximum(v, as_object(low))
            return v if math.isinf(high) else np.minimum(v, as_object(high))

        folded = self.target and op.requant is not None
        return self.passed(op, self.real(op.inputs[0]), (lambda v: v) if folded else clamp)

    def reshape(self, op: Op) -> Array:
        shape = self.tensors[op.outputs[0]].shape
        return self.passed(op, self.real(op.inputs[0]), lambda v: v.reshape(shape))

    flatten = reshape

    def transpose(self, op: Op) -> Array:
        perm: Any = op.attributes["perm"]
        return self.passed(op, self.real(op.inputs[0]), lambda v: v.transpose(perm))

    def reinterpret(self, op: Op) -> Array:
        return self.raw(op.inputs[0])

    def concat(self, op: Op) -> Array:
        tensor, parts = self.tensors[op.outputs[0]], []
        q = self.quant(tensor.name)
        for index, name in enumerate(op.inputs):
            source, raw = self.tensors[name], self.raw(name)
            if (source.quant, source.dtype) == (tensor.quant, tensor.dtype):
                parts.append(raw.astype(object))
                continue
            requant = op.requant
            assert requant is not None
            out = np.empty(raw.shape, object)
            for i in each(raw.shape):
                number = int(raw[i]) - self.quant(name).zero_points[0]
                if self.target:
                    k = min(index, len(requant.multipliers) - 1)
                    value: Any = number * requant.multipliers[k] * Fraction(2) ** -requant.shifts[k]
                elif requant.reference == "scale_f32":
                    value = float(f32(f32(number) * f32(self.quant(name).scales[0])) / f32(q.scales[0]))
                else:
                    value = number * Fraction(self.quant(name).scales[0]) / Fraction(q.scales[0])
                out[i] = min(max(round(value) + q.zero_points[0], requant.qmin), requant.qmax)
            parts.append(out)
        return np.concatenate(parts, axis=int(op.attributes["axis"]))  # type: ignore[arg-type]

    def quantizelinear(self, op: Op) -> Array:
        source = self.tensors[op.inputs[0]]
        if source.dtype != "float32":
            return self.passed(op, self.real(source.name), lambda v: v)
        x, tensor = self.raw(source.name), self.tensors[op.outputs[0]]
        q, (low, high) = self.quant(tensor.name), QRANGE[tensor.dtype]
        out = np.empty(x.shape, object)
        for i in each(x.shape):
            v = float(f32(x[i]) / f32(at(q.scales, q.axis, i)))
            z = at(q.zero_points, q.axis, i)
            if math.isnan(v) or v == -math.inf:
                out[i] = low
            else:
                out[i] = high if v == math.inf else min(max(round(v) + z, low), high)
        return out

    def dequantizelinear(self, op: Op) -> Array:
        source = self.tensors[op.inputs[0]]
        if source.dtype == "exact":
            return np.array([float32_of(v) for v in self.raw(source.name).ravel()], f32).reshape(source.shape)
        q, raw = self.quant(source.name), self.raw(source.name)
        out = np.empty(raw.shape, f32)
        for i in each(raw.shape):
            number = f32(int(raw[i]) - at(q.zero_points, q.axis, i))
            out[i] = f32(number * f32(at(q.scales, q.axis, i)))
        return out
