"""From accumulators to what leaves a kernel: shift-round-saturate in the mode of the tile, zero point, clamp.

Why the tile's mode and not the manifest's: rounding and saturation are sticky state of a core. A kernel that forgot to
set them computes with whatever the tile is in, and that has to show.
"""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from oracle.fixedpoint import saturate_cast, srs, wrap
from presim.blocks import put_channels
from presim.kernel_context import KernelContext, number, numbers, text

Array = NDArray[Any]
I64 = NDArray[np.int64]

LIMIT: Final = 1 << 62
MOST_SHIFT: Final = 62


def takes_requant(context: KernelContext) -> bool:
    """Whether the kernel has a requant buffer."""
    return text(context, "finish") == "round"


def centred(context: KernelContext, values: Array, zero_point: str = "x_zero_point") -> I64:
    """Codes minus their zero point; codes as they are where they only pass through (`clamp`)."""
    wide = values.astype(np.int64)
    return wide if text(context, "finish") == "clamp" else wide - number(context, zero_point)


def wrapped(values: I64, bits: int) -> I64:
    """The low bits of an accumulator (int64 arithmetic wraps at 64 by itself)."""
    return wrap(values, bits) if bits < 63 else values


def finished(
    context: KernelContext, values: Array, multipliers: Array | None = None, shifts: Array | None = None
) -> Array:
    """Values in the output's dtype.

    Args:
        context: attributes `finish`, `out_dtype`, `y_zero_point`, `qmin`, `qmax`, `zero_point_inside`.
        values: int64 (Python ints where they are larger): accumulators, or codes where `finish` is `clamp`.
        multipliers: integers that broadcast to `values`; None = 1.
        shifts: right shifts, negative = left; None = 0.
    """
    kind = text(context, "finish")
    if kind == "round":
        values = _codes(context, values, multipliers, shifts)
    if kind != "exact":
        values = np.clip(values, number(context, "qmin"), number(context, "qmax"))
    return values.astype(text(context, "out_dtype"))


def _codes(context: KernelContext, values: Array, multipliers: Array | None, shifts: Array | None) -> I64:
    zero_point = number(context, "y_zero_point")
    inside = zero_point if number(context, "zero_point_inside") else 0
    ones = np.ones(1, np.int64)
    factors = ones if multipliers is None else multipliers.astype(np.int64)
    moves = ones * 0 if shifts is None else shifts.astype(np.int64)
    codes = scaled(values, factors, moves, context.rounding, inside) + (zero_point - inside)
    dtype = np.dtype(text(context, "out_dtype"))
    return saturate_cast(codes, dtype.itemsize * 8, signed=dtype.kind == "i", saturation=context.saturation)


def scaled(values: Array, multipliers: I64, shifts: I64, rounding: str, inside: int = 0) -> Array:
    """srs(values * multipliers + (inside << shifts), shifts), exact whatever the size.

    Args:
        values: int64 or Python ints.
        multipliers: broadcast to `values`.
        shifts: broadcast to `values`; negative = left.
        rounding: a mode of `oracle.fixedpoint`.
        inside: zero point that goes in before the rounding.

    Returns:
        int64, or Python ints in an object array where some number is beyond 2**62.
    """
    right, left = int(shifts.max(initial=0)), max(0, -int(shifts.min(initial=0)))
    size = magnitude(values) * magnitude(multipliers) << left
    if values.dtype != object and right <= MOST_SHIFT and size + (abs(inside) << right) <= LIMIT:
        amount = np.maximum(shifts, 0)
        product = values * multipliers << np.maximum(-shifts, 0) if left else values * multipliers
        return srs(product + (inside << amount) if inside else product, amount, rounding)
    return _scaled_large(values, multipliers, shifts, rounding, inside)


def _scaled_large(values: Array, multipliers: I64, shifts: I64, rounding: str, inside: int) -> Array:
    """As `scaled`, on Python ints; a bit below 2**-62 of the result only says that there is a rest."""
    right, left = (np.maximum(s, 0).astype(object) for s in (shifts, -shifts))
    product = (values.astype(object) * multipliers.astype(object) << left) + (inside << right)
    beyond = np.maximum(shifts - MOST_SHIFT, 0)
    rest = product - ((product >> beyond.astype(object)) << beyond.astype(object))
    kept = (product >> beyond.astype(object)) | (rest != 0).astype(object)
    return srs(np.asarray(kept, object), np.clip(shifts, 0, MOST_SHIFT), rounding)


def magnitude(values: Array) -> int:
    """Largest absolute value, 0 of none."""
    return max(int(values.max()), -int(values.min())) if values.size else 0


def product(left: Array, right: Array, *, terms: int) -> I64:
    """Left @ right of integers, exact modulo 2**64.

    Why float64: numpy has no fast integer product, and sums below 2**53 are exact in float64.

    Args:
        left: int64, any shape that numpy.matmul takes.
        right: likewise.
        terms: products in one sum.
    """
    if terms * magnitude(left) * magnitude(right) < 1 << 53:
        return np.asarray(np.matmul(left.astype(np.float64), right.astype(np.float64))).astype(np.int64)
    return np.asarray(np.matmul(left, right), np.int64)


def biased(context: KernelContext, acc: I64, bias: Array | None, channels: slice, shape: tuple[int, ...]) -> I64:
    """Promote the accumulator, add the bias, wrap.

    Args:
        context: attributes `acc_bits`, `acc_shift`.
        acc: sums of products.
        bias: of all channels of the part.
        channels: which of them these are.
        shape: that makes a vector over the channels broadcast to `acc`.
    """
    bits = number(context, "acc_bits")
    shifts = numbers(context, "acc_shift")
    if any(shifts):
        moves = np.array(shifts, np.int64)
        acc = acc << (moves if len(shifts) == 1 else moves[channels].reshape(shape))
    if bias is not None:
        acc = acc + bias[channels].astype(np.int64).reshape(shape)
    return wrapped(acc, bits)


def along_channels(requant: Array | None, channels: slice) -> tuple[Array | None, Array | None]:
    """Multipliers and shifts as columns for values of shape (channels, W)."""
    if requant is None:
        return None, None
    pairs = requant if requant.shape[1] == 1 else requant[:, channels]
    return pairs[0][:, np.newaxis], pairs[1][:, np.newaxis]


def along(context: KernelContext, requant: Array | None) -> tuple[Array | None, Array | None]:
    """Multipliers and shifts for values of shape (channels, W), along what the attribute `along` says."""
    if requant is None:
        return None, None
    if text(context, "along") == "width":
        return requant[0], requant[1]
    return along_channels(requant, slice(None))


def split(arguments: Sequence[Any], buffers: int, outputs: int = 1) -> tuple[list[Any], list[Any], list[Any]]:
    """Inputs, buffers and outputs of a call.

    Raises:
        ValueError: there are fewer arguments than buffers and outputs.
    """
    tail = len(arguments) - outputs
    if tail < buffers:
        msg = f"expected at least {buffers + outputs} arguments, got {len(arguments)}"
        raise ValueError(msg)
    return list(arguments[: tail - buffers]), list(arguments[tail - buffers : tail]), list(arguments[tail:])


def expect(name: str, got: int, expected: int) -> None:
    """Refuse a wrong number of something."""
    if got != expected:
        msg = f"{name}: expected {expected}, got {got}"
        raise ValueError(msg)


def finish_channels(
    context: KernelContext, acc: I64, out: Array, *, bias: Array | None, requant: Array | None, offset: int = 0
) -> None:
    """Bias, rounding and output of accumulators (channels, W) of a product.

    Args:
        context: attributes of the output and of the accumulator.
        acc: sums of products of the channels from `offset` on.
        out: row or vector object.
        bias: of all channels of the part, or None.
        requant: likewise.
        offset: first of the channels in the part.
    """
    channels = slice(offset, offset + len(acc))
    acc = biased(context, acc, bias, channels, (-1, 1))
    codes = finished(context, acc, *along_channels(requant, channels))
    put_channels(out, codes, first=offset, total=number(context, "out_channels"))
