"""Conv, Gemm and MatMul of the slow second meaning."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from manifest.model import Op, Tensor
from tests.oracle.naive_base import Array, Base, Index, at, each, f32, wrapped


class Products(Base):
    """Sums of products, bias, accumulator."""

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
