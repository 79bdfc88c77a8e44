"""Proved bounds of accumulators, from the actual weights, in exact integers."""

from collections.abc import Sequence

import numpy as np

from manifest.model import Accumulator, Quantization
from manifest.onnx_import.graph import Array
from manifest.onnx_import.quant import broadcast


def largest_input(code_range: tuple[int, int], zero_point: int) -> int:
    """Largest |code - zero point| over a range of codes."""
    low, high = code_range
    return max(abs(low - zero_point), abs(high - zero_point))


def channel_l1(weights: Array, quant: Quantization, channel_axis: int | None) -> tuple[int, ...]:
    """Sum over k of |w_k - zero point| for each output channel.

    Args:
        weights: integer codes, any shape; int64 sums are exact for fewer than 2**46 weights of 16 bits.
        quant: zero points of the weights.
        channel_axis: axis of the output channels; None: one channel.
    """
    zero = broadcast(quant, weights.ndim)[1]
    size = np.abs(weights.astype(np.int64) - zero)
    if channel_axis is None:
        return (int(size.sum()),)
    axes = tuple(i for i in range(weights.ndim) if i != channel_axis)
    return tuple(int(v) for v in size.sum(axis=axes))


def bound_of(input_max: int, l1: Sequence[int], bias: Sequence[int], *, promotion: Sequence[int] = (0,)) -> int:
    """Largest |sum of products + bias| over the output channels.

    Args:
        input_max: largest |input code - zero point|.
        l1: per channel, from `channel_l1`; with leading batch axes already reduced to their largest.
        bias: per channel or length 1, in the unit of the promoted accumulator.
        promotion: per channel or length 1: bits by which the accumulator is shifted left before the bias.
    """
    return max(
        ((input_max * total) << promotion[i % len(promotion)]) + abs(bias[i % len(bias)]) for i, total in enumerate(l1)
    )


def accumulator(bound: int) -> Accumulator:
    """32 bits where the bound fits an int32, else 64."""
    return Accumulator(bits=32 if bound < 1 << 31 else 64, bound=bound)
