"""`average_pool`: one row of averages; windows are divided by the number of elements that they hold.

Arguments: rows of the window top to bottom (C/8, W, 8); requant (2, counts): a multiplier and shift per number of
elements; the output row. Scalars: `pad_top`, `pad_bottom` as in `conv`. Attributes: the output's; `kernel`, `strides`,
`dilations`, `pads_lr`, `pads` (top, left, bottom, right), `in_width`, `count_include_pad`, `counts` (ascending),
`x_zero_point`, `acc_bits`. Where the result is not rounded, a sum over n elements leaves as sum * (least common
multiple / n). One count stands for every window.
"""

import math
from typing import Any

import numpy as np

from presim.blocks import put_channels
from presim.kernel_context import KernelContext, number, numbers, text
from presim.kernels.finish import I64, finished, split, takes_requant, wrapped
from presim.kernels.window import covered, pads_of, windows


def run(context: KernelContext, *arguments: Any) -> None:
    """Compute one output row."""
    rounds = takes_requant(context)
    rows, buffers, outputs = split(arguments, int(rounds))
    out, count = outputs[0], number(context, "out_channels")
    zero_point = number(context, "x_zero_point")
    view = windows(context, rows, out.shape[1], channels=slice(0, count), zero_point=zero_point)
    sums = wrapped(view.sum(axis=(0, 2)), number(context, "acc_bits"))
    which = _count_of(context, out.shape[1])
    if rounds:
        codes = finished(context, sums, buffers[0][0][which], buffers[0][1][which])
    else:
        counts = np.array(numbers(context, "counts"), np.int64)
        weights = math.lcm(*numbers(context, "counts")) // counts
        codes = finished(context, sums * (weights[which] if text(context, "finish") == "exact" else 1))
    put_channels(out, codes, total=count)


def _count_of(context: KernelContext, out_width: int) -> I64:
    """Index into `counts` for each window of the row."""
    (height, taps), (down, right) = numbers(context, "kernel"), numbers(context, "dilations")
    _, left, pad_bottom, pad_right = numbers(context, "pads")
    padded = bool(number(context, "count_include_pad"))
    counts = np.array(numbers(context, "counts"))
    if len(counts) == 1:
        return np.zeros(out_width, np.int64)
    top, bottom = pads_of(context)
    extent = (height - 1) * down + 1
    low, high = (0, extent - bottom + min(bottom, pad_bottom)) if padded else (top, extent - bottom)
    rows = covered(0, height, down, low, high)
    step, width = numbers(context, "strides")[1], number(context, "in_width")
    low, high = (-left, width + pad_right) if padded else (0, width)
    columns = [covered(at * step - left, taps, right, low, high) for at in range(out_width)]
    index = np.searchsorted(counts, np.array(columns) * rows)
    if (counts[np.minimum(index, len(counts) - 1)] != np.array(columns) * rows).any():
        msg = f"windows of {sorted({rows * c for c in columns})} elements, expected {counts.tolist()}"
        raise ValueError(msg)
    return index.astype(np.int64)
