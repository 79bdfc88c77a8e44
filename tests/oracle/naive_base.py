"""What the parts of the slow second meaning share: numbers, operands, rounding."""

import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manifest.model import QRANGE, Manifest, Op, Quantization, Requantization

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


class Base:
    """Values of one feed while it runs; see `tests.oracle.naive`."""

    def __init__(self, manifest: Manifest, arrays: Mapping[str, Array], *, fma_add: bool = True) -> None:
        self.manifest = manifest
        self.tensors = manifest.by_name()
        self.arrays = arrays
        self.fma_add = fma_add
        self.values: dict[str, Array] = {}
        self.target = False

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
