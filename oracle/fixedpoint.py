"""Fixed-point arithmetic of the AI Engine and of onnxruntime, written from the definitions.

Shift-round-saturate follows UG1603/UG1079 "Rounding and Saturation Modes" and UG1583 "Mode Settings" (the AIE-ML modes
`sym_floor` and `sym_ceil`); the float32 formulas follow onnxruntime's CPU kernels. All of it is held against
`fractions.Fraction` and onnxruntime in tests/oracle/test_fixedpoint.py.

Encodings of the modes differ between AIE and AIE-ML: modes are therefore names here, never numbers.
"""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from oracle.rational import AffineRounder

Array = NDArray[Any]
I64 = NDArray[np.int64]
F32 = NDArray[np.float32]

Rounding = Literal[
    "floor", "ceil", "pos_inf", "neg_inf", "sym_inf", "sym_zero", "conv_even", "conv_odd", "sym_floor", "sym_ceil"
]
Saturation = Literal["none", "saturate", "symmetric"]

ROUNDINGS: Final[tuple[Rounding, ...]] = (
    "floor",
    "ceil",
    "pos_inf",
    "neg_inf",
    "sym_inf",
    "sym_zero",
    "conv_even",
    "conv_odd",
    "sym_floor",
    "sym_ceil",
)
SATURATIONS: Final[tuple[Saturation, ...]] = ("none", "saturate", "symmetric")

_LIMIT = 1 << 62


def _check_range(values: Array, what: str) -> None:
    if values.dtype != object and values.size and (int(values.max()) > _LIMIT or int(values.min()) < -_LIMIT):
        msg = f"{what}: expected values within +-2**62, got {int(values.min())}..{int(values.max())}"
        raise ValueError(msg)


def _round_up(rounding: str, quotient: Array, rest: Array, full: Array, negative: Array) -> Array:
    """Whether the floor `quotient` has to be raised by one; `rest` of `full` = 2**shift was dropped."""
    twice = rest * 2
    above, tie = twice > full, twice == full
    rules: dict[str, Callable[[], Array]] = {
        "floor": lambda: np.zeros(rest.shape, bool),
        "ceil": lambda: rest > 0,
        "sym_floor": lambda: (rest > 0) & negative,
        "sym_ceil": lambda: (rest > 0) & ~negative,
        "pos_inf": lambda: above | tie,
        "neg_inf": lambda: above,
        "sym_inf": lambda: above | (tie & ~negative),
        "sym_zero": lambda: above | (tie & negative),
        "conv_even": lambda: above | (tie & (quotient % 2 == 1)),
        "conv_odd": lambda: above | (tie & (quotient % 2 == 0)),
    }
    up: Array = np.asarray(rules[rounding](), dtype=bool)
    return up


def srs(acc: ArrayLike, shift: ArrayLike, rounding: str = "conv_even") -> I64:
    """Divide by 2**shift with the given rounding; no saturation.

    Args:
        acc: int64, any shape, within +-2**62.
        shift: int or an array broadcastable to `acc`, -62..126 (a 31-bit multiplier of a tiny ratio asks for more than
            62). Negative shifts multiply by 2**-shift.
        rounding: one of `ROUNDINGS`. `sym_floor` drops towards zero, `sym_ceil` away from zero.

    Returns:
        int64 of the broadcast shape.

    Raises:
        ValueError: unknown mode, a shift or value out of range, or a left shift that leaves +-2**62.
    """
    if rounding not in ROUNDINGS:
        msg = f"rounding: expected one of {', '.join(ROUNDINGS)}, got {rounding!r}"
        raise ValueError(msg)
    values = np.asarray(acc)
    if values.dtype != object:
        values = values.astype(np.int64)
    shifts = np.asarray(shift)
    if shifts.dtype != object:
        shifts = shifts.astype(np.int64)
    if shifts.size and (int(shifts.max()) > 126 or int(shifts.min()) < -62):
        msg = f"shift: expected -62..126, got {int(shifts.min())}..{int(shifts.max())}"
        raise ValueError(msg)
    _check_range(values, "acc")
    if shifts.size and int(shifts.max()) > 62 and values.dtype != object:
        return srs(values.astype(object), shifts.astype(object), rounding).astype(np.int64)
    right, left = np.maximum(shifts, 0), np.maximum(-shifts, 0)
    if np.any(left):
        if values.dtype != object and np.any(np.abs(values) > (_LIMIT >> left)):
            msg = "left shift leaves +-2**62"
            raise ValueError(msg)
        values = values << left
    quotient = values >> right
    one = np.ones((), values.dtype) if values.dtype != object else 1
    full = one << right
    rest = values - (quotient << right)
    return np.asarray(quotient + _round_up(rounding, quotient, rest, full, values < 0).astype(np.int64))


def integer_range(bits: int, *, signed: bool = True, symmetric: bool = False) -> tuple[int, int]:
    """Lowest and highest value of a `bits`-bit integer; symmetric leaves out the lowest signed value."""
    if not 1 <= bits <= 64:
        msg = f"bits: expected 1..64, got {bits}"
        raise ValueError(msg)
    if not signed:
        return 0, (1 << bits) - 1
    return -(1 << (bits - 1)) + int(symmetric), (1 << (bits - 1)) - 1


def wrap(values: ArrayLike, bits: int, *, signed: bool = True) -> I64:
    """Keep the low `bits` bits (1..63), as an accumulator that overflows does.

    Args:
        values: int64 or Python ints of any size.
        bits: width of the result.
        signed: two's complement result.
    """
    low, _ = integer_range(bits, signed=signed)
    array = np.asarray(values)
    if array.dtype != object and bits >= 63:
        array = array.astype(object)
    size = 1 << bits
    result = (array - low) % size + low if array.dtype == object else _wrap64(array.astype(np.int64), bits, signed)
    return np.asarray(result).astype(np.int64)


def _wrap64(values: I64, bits: int, signed: bool) -> I64:
    kept = np.bitwise_and(values, np.int64((1 << bits) - 1))
    half = np.int64(1 << (bits - 1))
    return np.asarray((kept ^ half) - half if signed else kept, dtype=np.int64)


def saturate_cast(values: ArrayLike, bits: int, *, signed: bool = True, saturation: str = "saturate") -> I64:
    """Bring integers into a `bits`-bit integer's range.

    Args:
        values: int64, any shape.
        bits: 1..32, width of the destination.
        signed: sign of the destination (unsigned saturates below 0).
        saturation: `none` keeps the low bits (wraps), `saturate` clamps to the whole range, `symmetric` leaves out
            the lowest signed value ([-127, 127] for 8 bits).

    Returns:
        int64 within the range.
    """
    if saturation not in SATURATIONS:
        msg = f"saturation: expected one of {', '.join(SATURATIONS)}, got {saturation!r}"
        raise ValueError(msg)
    if saturation == "none":
        return wrap(values, bits, signed=signed)
    low, high = integer_range(bits, signed=signed, symmetric=saturation == "symmetric")
    clipped: Array = np.clip(np.asarray(values), low, high)
    return clipped.astype(np.int64)


def shift_round_saturate(
    acc: ArrayLike,
    shift: ArrayLike,
    bits: int,
    *,
    signed: bool = True,
    rounding: str = "conv_even",
    saturation: str = "saturate",
) -> I64:
    """SRS of the AI Engine: shift with rounding, then bring into the destination's range.

    Args:
        acc: int64, any shape, within +-2**62.
        shift: -62..62, int or broadcastable; negative shifts left.
        bits: 1..32, width of the destination.
        signed: sign of the destination.
        rounding: one of `ROUNDINGS`.
        saturation: one of `SATURATIONS`.

    Returns:
        int64 within the destination's range.
    """
    return saturate_cast(srs(acc, shift, rounding), bits, signed=signed, saturation=saturation)


def exponent_of(scale: float) -> int | None:
    """The k with scale == 2**k exactly, else None (also for zero, negatives, inf and NaN)."""
    if not (math.isfinite(scale) and scale > 0):
        return None
    mantissa, exponent = math.frexp(scale)
    return exponent - 1 if mantissa == 0.5 else None


def _floor_log2(value: Fraction) -> int:
    exponent = value.numerator.bit_length() - value.denominator.bit_length()
    return exponent if value >= Fraction(2) ** exponent else exponent - 1


def multiplier_shift_of(ratio: Fraction, bits: int = 31) -> tuple[int, int]:
    """The nearest m * 2**-shift with m in [2**(bits-1), 2**bits), ties to even.

    Args:
        ratio: positive.
        bits: width of the multiplier, 1..62.

    Returns:
        (m, shift); shift may be negative.
    """
    if ratio <= 0:
        msg = f"ratio: expected a positive number, got {ratio}"
        raise ValueError(msg)
    shift = bits - 1 - _floor_log2(ratio)
    multiplier = round(ratio * Fraction(2) ** shift)
    if multiplier == 1 << bits:
        return multiplier >> 1, shift - 1
    return multiplier, shift


def along(values: ArrayLike, axis: int | None, rank: int, dtype: Any) -> Array:
    """Per-channel numbers shaped to broadcast along `axis` of an array of `rank` dimensions."""
    array = np.asarray(values, dtype=dtype)
    if axis is None:
        return array.reshape((1,) * rank) if rank else array.reshape(())
    return array.reshape(tuple(-1 if i == axis else 1 for i in range(rank)))


def requant_rational(
    acc: ArrayLike,
    ratio: Fraction | Sequence[Fraction],
    *,
    qmin: int,
    qmax: int,
    zero_point: int | Sequence[int] = 0,
    offset: Fraction | Sequence[Fraction] = Fraction(0),
    axis: int | None = None,
    zero_point_inside: bool = False,
) -> I64:
    """clamp(round_half_even(acc * ratio + offset) + zero_point), exact for every input.

    Args:
        acc: integers, any shape; int64, or Python ints of any size in an object array.
        ratio: one, or one per channel along `axis`.
        qmin: lowest code.
        qmax: highest code.
        zero_point: one, or one per channel.
        offset: added before the rounding, in units of the output code.
        axis: channel axis, None where `ratio` is one number.
        zero_point_inside: add the zero point before the rounding (differs on ties where it is odd).

    Returns:
        int64 codes.
    """
    values = np.asarray(acc)
    count = 1 if axis is None else values.shape[axis]
    ratios, offsets = _per_channel(ratio, count), _per_channel(offset, count)
    points = [int(z) for z in _per_channel(zero_point, count)]
    if zero_point_inside:
        offsets = [o + z for o, z in zip(offsets, points, strict=True)]
        points = [0] * count
    bound = max((abs(int(values.max())), abs(int(values.min())))) if values.size else 0
    rounded = AffineRounder(ratios, offsets, bound=bound, rank=values.ndim, axis=axis)(values)
    z = along(points, axis, values.ndim, np.int64)
    return np.clip(rounded, qmin - z, qmax - z).astype(np.int64) + z


def _per_channel(value: Any, count: int) -> list[Fraction]:
    items = list(value) if isinstance(value, Sequence | np.ndarray) else [value]
    items = items * count if len(items) == 1 else items
    if len(items) != count:
        msg = f"per-channel numbers: expected {count}, got {len(items)}"
        raise ValueError(msg)
    return [Fraction(v) for v in items]


def requant_scale_f32(
    acc: ArrayLike,
    multiplier: ArrayLike,
    *,
    qmin: int,
    qmax: int,
    zero_point: int = 0,
    axis: int | None = None,
) -> I64:
    """The output of onnxruntime's QLinearConv/QLinearMatMul/QGemm: clip(rint(f32(int32(acc)) * m) + zero_point).

    Args:
        acc: int64; wrapped to int32 first, then rounded to float32, as the kernel does.
        multiplier: float32, f32(f32(x_scale * w_scale) / y_scale); one, or one per channel along `axis`.
        qmin: lowest code.
        qmax: highest code.
        zero_point: added after the rounding.
        axis: channel axis.
    """
    values = wrap(acc, 32).astype(np.int32).astype(np.float32)
    scaled = values * along(multiplier, axis, values.ndim, np.float32)
    clipped = np.clip(scaled, np.float32(qmin - zero_point), np.float32(qmax - zero_point))
    return np.rint(clipped).astype(np.int64) + zero_point


def quantize_linear(
    x: ArrayLike,
    scale: ArrayLike,
    zero_point: ArrayLike,
    *,
    qmin: int,
    qmax: int,
    axis: int | None = None,
) -> I64:
    """ONNX QuantizeLinear: clip(rint(f32(x / scale)) + zero_point) with a true float32 division.

    NaN gives `qmin`, +inf `qmax`, -inf `qmin`; the zero point is added after the rounding.

    Args:
        x: float32, any shape.
        scale: float32, one or one per channel along `axis`.
        zero_point: integers, as many as `scale`.
        qmin: lowest code.
        qmax: highest code.
        axis: channel axis.
    """
    values = np.asarray(x, dtype=np.float32)
    z = along(np.atleast_1d(zero_point), axis, values.ndim, np.int64)
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = values / along(np.atleast_1d(scale), axis, values.ndim, np.float32)
    scaled = np.where(np.isnan(scaled), -np.inf, scaled)
    codes = np.rint(np.clip(scaled.astype(np.float64), qmin - z, qmax - z)).astype(np.int64) + z
    return codes.reshape(values.shape)


def dequantize_linear(q: ArrayLike, scale: ArrayLike, zero_point: ArrayLike, *, axis: int | None = None) -> F32:
    """ONNX DequantizeLinear: f32(f32(q - zero_point) * scale), each operation rounded to float32.

    Args:
        q: integers, any shape; an int32 code rounds to float32 first, as onnxruntime does.
        scale: float32, one or one per channel along `axis`.
        zero_point: integers, as many as `scale`.
        axis: channel axis.
    """
    values = np.asarray(q, dtype=np.int64)
    centred = values - along(np.atleast_1d(zero_point), axis, values.ndim, np.int64)
    with np.errstate(over="ignore"):
        result = centred.astype(np.float32) * along(np.atleast_1d(scale), axis, values.ndim, np.float32)
    return result.reshape(values.shape)


def fma32(a: ArrayLike, b: ArrayLike, c: ArrayLike) -> F32:
    """float32 fused multiply-add a * b + c, rounded once.

    The product of two float32 is exact in float64; the sum is rounded to odd there, so that the second rounding to
    float32 equals a single one (53 >= 2 * 24 + 2 bits).
    """
    with np.errstate(over="ignore", invalid="ignore"):
        product = np.asarray(a, np.float32).astype(np.float64) * np.asarray(b, np.float32).astype(np.float64)
        addend = np.asarray(c, np.float32).astype(np.float64)
        total = np.asarray(product + addend)
        back = total - product
        error = (product - (total - back)) + (addend - back)
        inexact = np.isfinite(total) & (error != 0)
        bits = total.view(np.int64) if total.ndim else np.atleast_1d(total).view(np.int64)[0]
        step = np.where((error > 0) == (total > 0), 1, -1)
        odd = np.asarray(np.where(inexact & (bits & 1 == 0), bits + step, bits), dtype=np.int64)
        return odd.view(np.float64).astype(np.float32)


def to_float32(value: Fraction) -> np.float32:
    """The float32 nearest to an exact rational, ties to even, rounded once (overflow gives inf)."""
    if value == 0:
        return np.float32(0)
    exponent = _floor_log2(abs(value))
    if exponent > 127:
        return np.float32(math.copysign(math.inf, value))
    quantum = Fraction(2) ** max(exponent - 23, -149)
    with np.errstate(over="ignore"):
        return np.float32(float(round(value / quantum) * quantum))
