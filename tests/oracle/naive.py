"""A second, slow meaning of the manifest: Python integers, fractions, single float32 operations, element by element.

Written from the definitions (ONNX operator texts, onnxruntime's formulas, docstrings of `manifest.model`), it shares no
code with the oracle.
"""

import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manifest.model import QRANGE, Manifest, Op, Quantization, Requantization, Tensor

Array = NDArray[Any]
f32 = np.float32
Index = tuple[int, ...]


def float32_of(value: Fraction) -> np.float32:
    """The nearest float32: of the neighbours of a guess the closest one, on a tie the one with an even mantissa."""
    guess = f32(float(value))
    around = [guess, np.nextafter(guess, f32(-np.inf)), np.nextafter(guess, f32(np.inf))]
    finite = [c for c in around if np.isfinite(c)]
    return min(finite, key=lambda c: (abs(Fraction(float(c)) - value), int(np.asarray(c).view(np.int32)) & 1))


def fma(a: Any, b: Any, c: Any) -> np.float32:
    return float32_of(Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c)))


def rounded(value: Fraction, mode: str) -> int:
    """Each AIE rounding mode, from its sentence in the manual."""
    low, high = math.floor(value), math.ceil(value)
    nearest = low if value - low < high - value else high
    tie = low != high and value - low == high - value
    directed: dict[str, int] = {
        "floor": low,
        "ceil": high,
        "sym_floor": math.trunc(value),
        "sym_ceil": high if value > 0 else low,
    }
    if mode in directed:
        return directed[mode]
    if not tie:
        return nearest
    even, odd = (low, high) if low % 2 == 0 else (high, low)
    ties = {
        "pos_inf": high,
        "neg_inf": low,
        "sym_inf": high if value > 0 else low,
        "sym_zero": low if value > 0 else high,
        "conv_even": even,
        "conv_odd": odd,
    }
    return ties[mode]


def wrapped(value: int, bits: int) -> int:
    size = 1 << bits
    return (value + size // 2) % size - size // 2


def at(values: Any, quant_axis: int | None, index: Index) -> Any:
    """The number of the channel that an element belongs to."""
    return values[0] if len(values) == 1 else values[index[quant_axis or 0]]


def each(shape: tuple[int, ...]) -> Iterator[Index]:
    return itertools.product(*(range(n) for n in shape))


def as_object(number: float) -> Array:
    return np.array(Fraction(number), dtype=object)


class Naive:
    """Runs a manifest feed by feed."""

    def __init__(self, manifest: Manifest, arrays: Mapping[str, Array], *, fma_add: bool = True) -> None:
        self.manifest = manifest
        self.tensors = manifest.by_name()
        self.arrays = arrays
        self.fma_add = fma_add

    def run(self, inputs: Mapping[str, Array], arithmetic: str = "reference") -> dict[str, Array]:
        """(F, *shape) of every tensor that an op makes: integers, float32, or fractions of exact tensors."""
        feeds = len(next(iter(inputs.values())))
        runs = [self.one({k: v[i] for k, v in inputs.items()}, arithmetic) for i in range(feeds)]
        return {name: np.stack([r[name] for r in runs]) for name in runs[0]}

    def one(self, inputs: Mapping[str, Array], arithmetic: str) -> dict[str, Array]:
        self.values: dict[str, Array] = dict(inputs)
        self.target = arithmetic == "target"
        made = {}
        for op in self.manifest.ops:
            result = getattr(self, op.type.lower())(op)
            tensor = self.tensors[op.outputs[0]]
            assert result.shape == tensor.shape, (op.type, result.shape, tensor.shape)
            kind = object if tensor.dtype == "exact" else np.dtype(tensor.dtype)
            self.values[tensor.name] = made[tensor.name] = result.astype(kind)
        return made

    # -- operands ---------------------------------------------------------------------------------------------------

    def raw(self, name: str) -> Array:
        key = self.tensors[name].array
        return self.values[name] if key is None else self.arrays[key]

    def ints(self, name: str) -> Array:
        """code - zero point, Python integers."""
        quant, raw = self.quant(name), self.raw(name)
        out = np.empty(raw.shape, object)
        for i in each(raw.shape):
            out[i] = int(raw[i]) - at(quant.zero_points, quant.axis, i)
        return out

    def real(self, name: str) -> Array:
        """Exact real values."""
        tensor, raw = self.tensors[name], self.raw(name)
        if tensor.dtype == "exact":
            return raw
        out = np.empty(raw.shape, object)
        for i in each(raw.shape):
            if tensor.quant is None:
                out[i] = Fraction(float(raw[i]))
            else:
                q = tensor.quant
                out[i] = (int(raw[i]) - at(q.zero_points, q.axis, i)) * Fraction(at(q.scales, q.axis, i))
        return out

    def quant(self, name: str) -> Quantization:
        quant = self.tensors[name].quant
        assert quant is not None
        return quant

    # -- rounding ---------------------------------------------------------------------------------------------------

    def finish(
        self,
        op: Op,
        real: Array,
        *,
        target: Callable[[Index], Any],
        kernel: Callable[[Index], np.float32] | None = None,
    ) -> Array:
        """Codes from exact real values (`reference`), from `target` values in output codes, or a kernel's float."""
        tensor = self.tensors[op.outputs[0]]
        if tensor.dtype == "exact":
            return real
        requant = op.requant
        assert requant is not None
        quant = self.quant(tensor.name)
        out = np.empty(real.shape, object)
        for i in each(real.shape):
            z = at(quant.zero_points, quant.axis, i)
            if self.target and requant.target != "identity":
                code = self.place(target(i), z, requant.rounding, requant.zero_point_inside)
                if requant.saturation == "none":
                    low, high = QRANGE[tensor.dtype]
                    code = (code - low) % (high - low + 1) + low
            elif requant.reference == "scale_f32" and kernel is not None:
                out[i] = self.kernel_code(requant, kernel(i), z)
                continue
            else:
                value = real[i] / Fraction(at(quant.scales, quant.axis, i))
                code = self.place(value, z, "conv_even", requant.zero_point_inside)
            out[i] = min(max(code, requant.qmin), requant.qmax)
        return out

    @staticmethod
    def place(value: Fraction, z: int, mode: str, inside: bool) -> int:
        return rounded(value + z, mode) if inside else rounded(value, mode) + z

    @staticmethod
    def kernel_code(requant: Requantization, value: np.float32, z: int) -> int:
        if requant.zero_point_inside:
            return round(float(min(max(value, f32(requant.qmin)), f32(requant.qmax))))
        return round(float(min(max(value, f32(requant.qmin - z)), f32(requant.qmax - z)))) + z

    @staticmethod
    def step(requant: Requantization | None, channel: int) -> Any:
        """multiplier / 2**shift of a channel."""
        assert requant is not None
        m = at(requant.multipliers, 0, (channel,))
        return m * Fraction(2) ** -at(requant.shifts, 0, (channel,))

    # -- sums of products -------------------------------------------------------------------------------------------

    def conv(self, op: Op) -> Array:
        x, w = self.ints(op.inputs[0]), self.ints(op.inputs[1])
        shape = self.tensors[op.outputs[0]].shape
        attributes: Any = op.attributes
        strides, dilations, pads = (attributes[k] for k in ("strides", "dilations", "pads"))
        cout = w.shape[0] // int(attributes["group"])

        def product(i: Index) -> int:
            n, c, r, s = i
            first = c // cout * w.shape[1]
            total = 0
            for k, a, b in each(w.shape[1:]):
                p = r * strides[0] - pads[0] + a * dilations[0]
                q = s * strides[1] - pads[1] + b * dilations[1]
                if 0 <= p < x.shape[2] and 0 <= q < x.shape[3]:
                    total += x[n, first + k, p, q] * w[c, k, a, b]
            return total

        return self.contraction(op, shape, product, lambda i: i[1])

    def gemm(self, op: Op) -> Array:
        a, b = self.ints(op.inputs[0]), self.ints(op.inputs[1])
        a = a.T if op.attributes["transA"] else a
        b = b.T if op.attributes["transB"] else b
        return self.contraction(
            op,
            (a.shape[0], b.shape[1]),
            lambda i: sum(a[i[0], k] * b[k, i[1]] for k in range(a.shape[1])),
            lambda i: i[1],
        )

    def matmul(self, op: Op) -> Array:
        a, b = self.ints(op.inputs[0]), self.ints(op.inputs[1])
        product = np.asarray(np.matmul(a, b), dtype=object)
        return self.contraction(op, product.shape, lambda i: product[i], lambda i: i[-1] if i else 0)

    def contraction(
        self, op: Op, shape: tuple[int, ...], product: Callable[[Index], int], channel: Callable[[Index], int]
    ) -> Array:
        """Product, bias, rounding; the accumulator wraps at its width in `target`, at 32 bits in a kernel."""
        sx, sw = self.quant(op.inputs[0]).scales[0], self.quant(op.inputs[1]).scales
        alpha = float(op.attributes.get("alpha", 1.0))  # type: ignore[arg-type]
        real, sums = np.empty(shape, object), np.empty(shape, object)
        for i in each(shape):
            c = channel(i)
            unit = Fraction(alpha) * Fraction(sx) * Fraction(at(sw, 0, (c,)))
            sums[i] = product(i)
            real[i] = sums[i] * unit + self.bias(op, c, unit)

        def target(i: Index) -> Any:
            assert op.accumulator is not None
            c = channel(i)
            acc, finer = self.with_bias(op, c, sums[i])
            return wrapped(acc, op.accumulator.bits) * self.step(op.requant, c) / 2**finer

        def kernel(i: Index) -> np.float32:
            c = channel(i)
            acc = wrapped(self.with_bias(op, c, sums[i])[0], 32)
            sy = self.quant(op.outputs[0]).scales[0]
            m = f32(f32(f32(alpha) * f32(sx)) * f32(at(sw, 0, (c,)))) / f32(sy)
            return f32(f32(acc) * m)

        return self.finish(op, real, target=target, kernel=kernel)

    def stored_bias(self, op: Op, c: int) -> tuple[Any, Tensor]:
        tensor = self.tensors[op.inputs[2]]
        return at(self.raw(tensor.name).reshape(-1), 0, (c,)), tensor

    def bias(self, op: Op, c: int, unit: Fraction) -> Any:
        """Exact real value."""
        if op.bias is None:
            return Fraction(0)
        code, tensor = self.stored_bias(op, c)
        if tensor.quant is None:
            return Fraction(float(code))
        number = int(code) - at(tensor.quant.zero_points, 0, (c,))
        if op.bias.kind == "accumulator":
            return number * unit
        if op.bias.kind == "shifted":
            return number * unit * Fraction(2) ** at(op.bias.shifts, 0, (c,))
        return number * Fraction(at(tensor.quant.scales, 0, (c,)))

    def with_bias(self, op: Op, c: int, total: int) -> tuple[int, int]:
        """(accumulator with bias, bits by which it is finer than the product)."""
        if op.bias is None:
            return total, 0
        if op.bias.kind == "rescaled":
            assert op.bias.target_array is not None
            return total + int(self.arrays[op.bias.target_array][c]), 0
        code, _ = self.stored_bias(op, c)
        shift = at(op.bias.shifts, 0, (c,)) if op.bias.kind == "shifted" else 0
        if shift < 0:
            return (total << -shift) + int(code), -shift
        return total + (int(code) << shift), 0

    # -- elementwise ------------------------------------------------------------------------------------------------

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

    def passed(self, op: Op, values: Array, move: Callable[[Array], Array]) -> Array:
        """Requantize, or keep, what an op has moved or clamped; `values` are the real ones."""
        moved = move(values)
        tensor = self.tensors[op.outputs[0]]
        if op.requant is None and tensor.dtype != "exact":
            q = self.quant(tensor.name)
            out = np.empty(moved.shape, object)
            for i in each(moved.shape):
                out[i] = moved[i] / Fraction(at(q.scales, q.axis, i)) + at(q.zero_points, q.axis, i)
                assert out[i].denominator == 1
                out[i] = int(out[i])
            return out
        source = self.tensors[op.inputs[0]]

        def target(i: Index) -> Any:
            channel = 0 if op.requant is None or len(op.requant.multipliers) == 1 else i[1]
            unit = self.unit_of(source.name, channel)
            return moved[i] / unit * self.step(op.requant, channel)

        return self.finish(op, moved, target=target)

    def unit_of(self, name: str, channel: int) -> Any:
        """What the manifest counts in: the scale, behind an exact tensor that of its products."""
        tensor = self.tensors[name]
        if tensor.quant is not None:
            return Fraction(at(tensor.quant.scales, 0, (channel,)))
        if tensor.array is not None:
            return Fraction(1)
        op = next(o for o in self.manifest.ops if name in o.outputs)
        if op.type in ("Conv", "Gemm", "MatMul"):
            sx, sw = self.quant(op.inputs[0]).scales[0], self.quant(op.inputs[1]).scales
            return Fraction(sx) * Fraction(at(sw, 0, (channel,)))
        if op.type == "GlobalAveragePool":
            elements = math.prod(self.tensors[op.inputs[0]].shape[2:])
            return self.unit_of(op.inputs[0], channel) * Fraction(op.attributes["factor"]) / elements  # type: ignore[arg-type]
        return self.unit_of(op.inputs[0], channel)

    def relu(self, op: Op) -> Array:
        return self.passed(op, self.real(op.inputs[0]), lambda v: np.maximum(v, as_object(0)))

    def clip(self, op: Op) -> Array:
        if "qmin" in op.attributes:
            return np.minimum(np.maximum(self.raw(op.inputs[0]), op.attributes["qmin"]), op.attributes["qmax"])
        low, high = float(op.attributes["minimum"]), float(op.attributes["maximum"])  # type: ignore[arg-type]

        def clamp(v: Array) -> Array:
            v = v if math.isinf(low) else np.maximum(v, as_object(low))
            return v if math.isinf(high) else np.minimum(v, as_object(high))

        return self.passed(op, self.real(op.inputs[0]), clamp)

    # -- movement ---------------------------------------------------------------------------------------------------

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

    # -- quantization -----------------------------------------------------------------------------------------------

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
