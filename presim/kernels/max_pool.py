"""`max_pool`: one row of a maximum over windows; what lies outside the image never wins.

Arguments: rows of the window top to bottom (C/8, W, 8); requant (2, 1 or C); the output row. Scalars: `pad_top`,
`pad_bottom` as in `conv`. Attributes: the output's; `kernel`, `strides`, `dilations`, `pads_lr`, `x_zero_point`,
`along` (`channel` where multipliers differ by channel, else "").
"""

from typing import Any

import numpy as np

from presim.blocks import put_channels
from presim.kernel_context import KernelContext, number, text
from presim.kernels.finish import along, finished, split, takes_requant
from presim.kernels.window import windows


def run(context: KernelContext, *arguments: Any) -> None:
    """Compute one output row."""
    rounds = takes_requant(context)
    rows, buffers, outputs = split(arguments, int(rounds))
    out, count = outputs[0], number(context, "out_channels")
    zero_point = 0 if text(context, "finish") == "clamp" else number(context, "x_zero_point")
    lowest = int(np.iinfo(np.int64).min)
    view = windows(context, rows, out.shape[1], channels=slice(0, count), zero_point=zero_point, fill=lowest)
    largest = view.max(axis=(0, 2))
    if (largest == lowest).any():
        msg = "a window lies outside the image"
        raise ValueError(msg)
    codes = finished(context, largest, *along(context, buffers[0] if rounds else None))
    put_channels(out, codes, total=count)
