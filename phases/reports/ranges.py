"""Ranges of activations: what a scale can hold against what the data showed; for the page and the notebook."""

from dataclasses import dataclass

from manifest.model import QRANGE, Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeRow:
    """One quantised activation.

    Attributes:
        name: its ONNX name.
        dtype: type of its codes.
        shape: in words.
        scale: in words, with its exponent where it is 2^k.
        zero_point: in words.
        holds: real values that the codes can hold, in words.
        seen: real values on the given data, in words.
        left: where the data begins, percent of what the codes hold, 0..100.
        right: where it ends.
        used: share of the range, in words; "" where nothing was measured.
    """

    name: str
    dtype: str
    shape: str
    scale: str
    zero_point: str
    holds: str
    seen: str
    left: float
    right: float
    used: str


def range_row(tensor: Tensor) -> RangeRow | None:
    """The row of a quantised activation with one scale, None for every other tensor."""
    quant = tensor.quant
    if tensor.array is not None or quant is None or len(quant.scales) != 1 or tensor.dtype not in QRANGE:
        return None
    scale, zero_point = quant.scales[0], quant.zero_points[0]
    low, high = ((code - zero_point) * scale for code in QRANGE[tensor.dtype])
    seen = tensor.observed
    left, right = (0.0, 0.0) if seen is None else (_place(x, low, high) for x in (seen.minimum, seen.maximum))
    exponent = f" = 2^{quant.exponents[0]}" if quant.exponents else ""
    return RangeRow(
        name=tensor.name,
        dtype=tensor.dtype,
        shape=" x ".join(map(str, tensor.shape)) or "one value",
        scale=f"{scale:.6g}{exponent}",
        zero_point=str(zero_point),
        holds=f"{low:.6g} .. {high:.6g}",
        seen="not measured" if seen is None else f"{seen.minimum:.6g} .. {seen.maximum:.6g}",
        left=round(left, 2),
        right=round(right, 2),
        used="" if seen is None else f"{right - left:.1f} %",
    )


def _place(value: float, low: float, high: float) -> float:
    """Where a value lies between `low` and `high`, 0 to 100, clipped."""
    return 100.0 * min(1.0, max(0.0, (value - low) / (high - low)))
