"""Sliding windows over the held rows of an image."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from presim.blocks import channels_of
from presim.kernel_context import KernelContext, numbers

Array = NDArray[Any]


def windows(
    context: KernelContext,
    rows: Sequence[Array],
    out_width: int,
    *,
    channels: slice,
    zero_point: int,
    fill: int = 0,
) -> Array:
    """Taps of every window of one output row.

    Args:
        context: attributes `kernel`, `strides`, `dilations`, `pads_lr`; scalars `pad_top`, `pad_bottom`: rows of the
            window (dilation counts in) that lie outside the image.
        rows: row objects (C/8, W, 8) of the other rows of the window, top to bottom, none left out.
        out_width: windows.
        channels: lanes that are read.
        zero_point: taken off every code.
        fill: what lies outside the image, after that.

    Returns:
        int64, (KH, channels, KW, out_width), read-only.

    Raises:
        ValueError: the number of rows is not that of the window.
    """
    height, width = numbers(context, "kernel")
    down, right = numbers(context, "dilations")
    step = numbers(context, "strides")[1]
    left = numbers(context, "pads_lr")[0]
    top, bottom = pads_of(context)
    extent = (height - 1) * down + 1
    if len(rows) != max(0, extent - top - bottom):
        msg = f"window of {extent} rows, {top} above and {bottom} below the image: got {len(rows)} rows"
        raise ValueError(msg)
    size = rows[0].shape[1] if rows else 0
    padded = max((out_width - 1) * step + (width - 1) * right + 1, left + size)
    count = channels.stop - channels.start
    taps = np.full((height, count, padded), fill, np.int64)
    for tap in range(height):
        at = tap * down - top
        if 0 <= at < len(rows):
            taps[tap, :, left : left + size] = channels_of(rows[at])[channels]
            taps[tap, :, left : left + size] -= zero_point
    a, b, c = taps.strides
    return as_strided(taps, (height, count, width, out_width), (a, b, c * right, c * step), writeable=False)


def pads_of(context: KernelContext) -> tuple[int, int]:
    """Rows of the window above and below the image."""
    return context.scalars.get("pad_top", 0), context.scalars.get("pad_bottom", 0)


def covered(first: int, taps: int, dilation: int, low: int, high: int) -> int:
    """How many taps of a window that begins at `first` lie in [low, high)."""
    return sum(low <= first + tap * dilation < high for tap in range(taps))
