"""`global_average_pool` and `global_average_pool_finish`: sums over an image row by row, then the average.

`global_average_pool`: arguments row (C/8, W, 8), acc (C/8, 8). Scalars: `row`; 0 clears the sums first. Attributes:
`out_channels`, `x_zero_point`, `acc_bits`.

`global_average_pool_finish`: arguments acc, requant (2, 1 or C), the output: a row (C/8, 1, 8) or, where a Flatten
follows, the vector of the same elements. Attributes: the output's; `along`.
"""

from typing import Any

import numpy as np

from presim.blocks import channels_of, put_channels
from presim.kernel_context import KernelContext, number
from presim.kernels.finish import Array, along, expect, finished, split, takes_requant, wrapped


def run(context: KernelContext, row: Array, acc: Array) -> None:
    """Add one row to the sums."""
    count = number(context, "out_channels")
    values = channels_of(row)[:count].astype(np.int64) - number(context, "x_zero_point")
    lanes = np.zeros(acc.size, np.int64)
    lanes[:count] = values.sum(axis=1)
    before = acc.astype(np.int64) if context.scalars["row"] else np.int64(0)
    acc[...] = wrapped(np.asarray(lanes.reshape(acc.shape) + before), number(context, "acc_bits"))


def finish(context: KernelContext, *arguments: Any) -> None:
    """Round the sums."""
    rounds = takes_requant(context)
    inputs, buffers, outputs = split(arguments, 1 + rounds)
    expect("inputs", len(inputs), 0)
    count = number(context, "out_channels")
    sums = buffers[0].astype(np.int64).reshape(-1, 1)[:count]
    codes = finished(context, sums, *along(context, buffers[1] if rounds else None))
    put_channels(outputs[0], codes, total=count)
