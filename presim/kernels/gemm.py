"""`gemm`, `gemm_rows`, `gemm_finish`: vectors times a constant matrix.

`gemm`: one output vector. Arguments: x (K,); `cascade_in` (N,); weights (K, N); bias (N,); requant (2, 1 or N); output
vector, or `cascade_out`. Scalars: `out_offset` (first element of the part that these weights are for, default 0).
Attributes: the output's; `in_first`, `in_count` (k that is summed over), `x_first` (k at the begin of x);
`x_zero_point`, `w_zero_points` (1 or N); `acc_bits`, `acc_shift`, `has_bias`, `cascade_in`, `cascade_out`.

`gemm_rows`: sums over one row of a flattened image. Arguments: row (C/8, W, 8), weights (H, W * C, N) with the channel
fastest, acc (N,). Scalars: `row`; 0 clears the accumulators first. Attributes: `in_channels`, `out_channels`,
`x_zero_point`, `w_zero_points`, `acc_bits`.

`gemm_finish`: what is left after the last row. Arguments: acc, bias, requant, output vector. Attributes: the output's;
`acc_bits`, `acc_shift`, `has_bias`.
"""

from typing import Any

import numpy as np

from presim.blocks import channels_of
from presim.kernel_context import KernelContext, number, numbers
from presim.kernels.finish import I64, Array, expect, finish_channels, product, split, takes_requant, wrapped


def run(context: KernelContext, *arguments: Any) -> None:
    """Compute one output vector, or one piece of it."""
    has_bias, goes_on = number(context, "has_bias"), number(context, "cascade_out")
    rounds = takes_requant(context) and not goes_on
    inputs, buffers, outputs = split(arguments, 1 + has_bias + rounds)
    before = inputs.pop() if number(context, "cascade_in") else None
    expect("input vectors", len(inputs), 1)
    offset = context.scalars.get("out_offset", 0)
    count = min(buffers[0].shape[1], number(context, "out_channels") - offset)
    first = number(context, "in_first") - number(context, "x_first")
    acc = _sums(context, inputs[0][first : first + number(context, "in_count")], buffers[0][:, :count], offset)
    bits = number(context, "acc_bits")
    if before is not None:
        acc = acc + before[offset : offset + count].astype(np.int64)
    if goes_on:
        outputs[0].put(wrapped(acc, bits).astype(f"int{bits}"))
        return
    bias = buffers[1] if has_bias else None
    requant = buffers[-1] if rounds else None
    finish_channels(context, acc[:, np.newaxis], outputs[0], bias=bias, requant=requant, offset=offset)


def _sums(context: KernelContext, x: Array, weights: Array, offset: int = 0) -> I64:
    """Sums of products (N,) of x (K,) and weights (K, N)."""
    points = np.array(numbers(context, "w_zero_points"), np.int64)
    points = points if len(points) == 1 else points[offset : offset + weights.shape[1]]
    expect("k of the weights", len(weights), len(x))
    values = x.astype(np.int64) - number(context, "x_zero_point")
    return product(values, weights.astype(np.int64) - points, terms=len(x))


def rows(context: KernelContext, row: Array, weights: Array, acc: Array) -> None:
    """Add what one row contributes to the accumulators."""
    at = context.scalars["row"]
    flat = channels_of(row)[: number(context, "in_channels")].T.reshape(-1)
    sums = _sums(context, flat, weights[at])
    before = acc.astype(np.int64) if at else np.int64(0)
    acc[...] = wrapped(np.asarray(sums + before), number(context, "acc_bits"))


def finish(context: KernelContext, *arguments: Any) -> None:
    """Bias, rounding and output of the accumulators."""
    has_bias, rounds = number(context, "has_bias"), takes_requant(context)
    inputs, buffers, outputs = split(arguments, 1 + has_bias + rounds)
    expect("inputs", len(inputs), 0)
    acc = buffers[0].astype(np.int64)[:, np.newaxis]
    bias, requant = buffers[1] if has_bias else None, buffers[-1] if rounds else None
    finish_channels(context, acc, outputs[0], bias=bias, requant=requant)
