"""What Conv, Gemm and MatMul share: integer weights, the bias, the scale of the accumulator."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from manifest.model import Op
from oracle.gemm import Product
from oracle.requantize import repeat
from oracle.value import Array, Exact, Scope, as_carrier, carrier, centred_bound, refuse


@dataclass(frozen=True, slots=True, kw_only=True)
class Contraction:
    """A prepared sum of products over constant weights.

    Attributes:
        product: the matrix product, weights shaped by the op.
        exact: form of acc * promote + addend.
        multiplier: float32 multipliers of onnxruntime's kernel.
        promote: factor per channel (left shift of the accumulator by a bias of finer scale), None if 1.
        addend: integers added per channel, None if there is no bias.
        point: zero point of x.
    """

    product: Product
    exact: Exact
    multiplier: Array | None
    promote: Array | None
    addend: Array | None
    point: int

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the accumulator with bias."""
        return self.exact.dtype

    def bias(self, acc: Array, shape: tuple[int, ...]) -> Array:
        """`acc` with the bias added (in place where the dtype allows); per-channel numbers take `shape`."""
        if self.promote is None and self.addend is None:
            return acc
        acc = as_carrier(acc, self.dtype)
        if self.promote is not None:
            acc = np.multiply(acc, self.promote.reshape(shape), out=acc)
        if self.addend is not None:
            acc = np.add(acc, self.addend.reshape(shape), out=acc)
        return acc


def weights_of(op: Op, scope: Scope, channel_axis: int) -> tuple[Array, list[float]]:
    """Integer weights with their zero points subtracted, and the float32 scales (1 or one per channel).

    Args:
        op: Conv, Gemm or MatMul.
        scope: where the constants are.
        channel_axis: axis of the output channels in the stored array.

    Returns:
        (int64 array in the stored shape, scales).
    """
    name = op.inputs[1]
    stored = scope.constant(name)
    if stored is None:
        raise refuse(op, f"weight {name!r} is not constant", expected="a constant")
    quant = scope.quant(name)
    axis = channel_axis % max(stored.ndim, 1)
    if len(quant.scales) > 1 and quant.axis != axis:
        got = f"axis {quant.axis}"
        raise refuse(op, f"weight {name!r} has scales along another axis", expected=f"axis {axis}", got=got)
    shape = tuple(-1 if i == axis and len(quant.zero_points) > 1 else 1 for i in range(stored.ndim))
    return stored.astype(np.int64) - np.array(quant.zero_points, np.int64).reshape(shape), list(quant.scales)


def prepare(
    op: Op, scope: Scope, weights: Array, scales: list[float], *, channels: int, axis: int, alpha: float = 1.0
) -> Contraction:
    """Weights as (…, N, K) and everything behind the product.

    Args:
        op: inputs (x, w, bias or "").
        scope: constants and tensors.
        weights: int64 (…, N, K), zero points subtracted; the leading axes and N enumerate the channels in order.
        scales: float32 weight scales.
        channels: number of output channels.
        axis: channel axis of the output.
        alpha: Gemm's factor.
    """
    name = op.inputs[0]
    scale, point = scope.point(op, name)
    product = Product(weights, centred_bound(scope.tensors[name]))
    units = [scale * Fraction(w) * Fraction(alpha) for w in scales]
    if any(u <= 0 for u in units):
        raise refuse(op, "alpha is not positive", expected="alpha > 0", got=str(alpha))
    promote, addend, offsets, scaled = _bias(op, scope, units, channels)
    bounds = repeat(product.bounds, channels) if channels % len(product.bounds) == 0 else [product.bound] * channels
    factors = promote if promote is not None else [1] * channels
    addends = addend if addend is not None else [0] * channels
    bound = max(max(b, 1) * abs(f) + abs(a) for b, f, a in zip(bounds, factors, addends, strict=True))
    dtype = carrier(bound)
    exact = Exact(
        scales=tuple(scaled),
        bound=bound,
        axis=axis if len(scaled) > 1 else None,
        offsets=tuple(offsets),
        nominal=tuple(units),
        kernel_scales=_kernel_scales(op, scope, scales, alpha),
    )
    return Contraction(
        product=product,
        exact=exact,
        multiplier=_multiplier(op, scope, scales, alpha),
        promote=None if promote is None else np.array(promote, dtype=dtype),
        addend=None if addend is None else np.array(addend, dtype=dtype),
        point=point,
    )


def _kernel_scales(op: Op, scope: Scope, scales: list[float], alpha: float) -> tuple[float, ...]:
    """f32(f32(alpha * sx) * sw) of a QOperator node: what its accumulator is multiplied with where it gives floats."""
    if op.origin != "qoperator":
        return ()
    scaled = np.float32(alpha) * np.float32(scope.quant(op.inputs[0]).scales[0])
    return tuple(float(s) for s in scaled * np.array(scales, np.float32))


def _multiplier(op: Op, scope: Scope, scales: list[float], alpha: float) -> Array | None:
    """f32(f32(f32(alpha * sx) * sw) / sy), as onnxruntime's integer kernels compute it."""
    out = scope.tensors[op.outputs[0]].quant
    if out is None or len(out.scales) != 1:
        return None
    f32 = np.float32
    scaled = f32(alpha) * f32(scope.quant(op.inputs[0]).scales[0])
    with np.errstate(over="ignore", under="ignore"):
        return np.asarray(scaled * np.array(scales, f32) / f32(out.scales[0]), dtype=f32)


_Parts = tuple[list[int] | None, list[int] | None, list[Fraction], list[Fraction]]


def _bias(op: Op, scope: Scope, units: list[Fraction], channels: int) -> _Parts:
    """(promotion, addend, offsets, scales per channel) of the bias as `op.bias` and the arithmetic say."""
    none = [Fraction(0)]
    name = op.inputs[2] if len(op.inputs) > 2 else ""
    if not name:
        return None, None, none * len(units), units
    stored = scope.constant(name)
    if stored is None or op.bias is None:
        raise refuse(op, f"bias {name!r} is not a constant with a described kind")
    if op.bias.kind == "rescaled":
        return _rescaled(op, scope, units, channels)
    codes = _vector(op, stored, channels)
    quant = scope.tensors[name].quant
    points = repeat(quant.zero_points, channels) if quant else [0] * channels
    codes = [c - z for c, z in zip(codes, points, strict=True)]
    if op.bias.kind == "accumulator":
        return None, codes, none * len(units), units
    shifts = repeat(op.bias.shifts, channels)
    addend = [c << max(s, 0) for c, s in zip(codes, shifts, strict=True)]
    if min(shifts) >= 0:
        return None, addend, none * len(units), units
    promote = [1 << max(-s, 0) for s in shifts]
    if len(units) == 1 and len(set(promote)) == 1:
        return promote, addend, none, [units[0] / promote[0]]
    wide = [u / p for u, p in zip(repeat(units, channels), promote, strict=True)]
    return promote, addend, none * channels, wide


def _rescaled(op: Op, scope: Scope, units: list[Fraction], channels: int) -> _Parts:
    """A bias of any scale: an exact rational offset; in `target` the int32 integers of the manifest."""
    bias = op.bias
    if bias is not None and scope.arithmetic == "target" and bias.target_array is not None:
        addend = _vector(op, scope.arrays[bias.target_array], channels)
        return None, addend, [Fraction(0)] * len(units), units
    values = real_bias(op, scope, channels)
    if len(set(values)) == 1 and len(units) == 1:
        return None, None, values[:1], units
    return None, None, values, repeat(units, channels)


def real_bias(op: Op, scope: Scope, channels: int) -> list[Fraction]:
    """Exact real value of the bias per channel, times Gemm's beta."""
    name = op.inputs[2]
    stored = scope.constant(name)
    quant = scope.tensors[name].quant
    beta = Fraction(float(op.attributes.get("beta", 1.0)))  # type: ignore[arg-type]
    items = _vector(op, stored, channels) if stored is not None else []
    if quant is None:
        return [beta * Fraction(v) for v in items]
    points, scales = repeat(quant.zero_points, channels), repeat(quant.scales, channels)
    return [beta * (v - z) * Fraction(s) for v, z, s in zip(items, points, scales, strict=True)]


def _vector(op: Op, stored: Array, channels: int) -> list[Any]:
    """A bias as one Python number per channel; one element is spread over all of them."""
    items = stored.reshape(-1).tolist()
    if len(items) == 1:
        items = items * channels
    if len(items) != channels:
        raise refuse(
            op, "bias does not vary along the channels alone", expected=f"{channels} elements", got=str(stored.shape)
        )
    return items
