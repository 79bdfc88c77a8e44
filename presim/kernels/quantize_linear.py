"""`requantize`: integers of one scale to codes of another, object by object; `lut`: the same through a table.

`requantize`: arguments an object, requant (2, 1, C or W), the output object. Attributes: the output's; `x_zero_point`;
`along` (`channel` or `width` where multipliers differ, else ""); `minimum`, `maximum`: bounds in units of the integers
in front of the rounding (1 or one per channel, () = none). `relu` and `clip` are the same.

`lut`: arguments an object, the table (one entry per input code, lowest code first), the output object. Attributes: the
output's; `lowest` (lowest input code).
"""

from typing import Any

import numpy as np

from presim.blocks import channels_of, put_channels
from presim.kernel_context import KernelContext, number, numbers
from presim.kernels.finish import Array, along, centred, expect, finished, split, takes_requant


def run(context: KernelContext, *arguments: Any) -> None:
    """Requantize one object."""
    rounds = takes_requant(context)
    inputs, buffers, outputs = split(arguments, int(rounds))
    expect("input objects", len(inputs), 1)
    count = number(context, "out_channels")
    values = centred(context, channels_of(inputs[0])[:count])
    minimum, maximum = (np.array(numbers(context, n), np.int64)[:, np.newaxis] for n in ("minimum", "maximum"))
    if minimum.size:
        values = np.maximum(values, minimum)
    if maximum.size:
        values = np.minimum(values, maximum)
    codes = finished(context, values, *along(context, buffers[0] if rounds else None))
    put_channels(outputs[0], codes, total=count)


def table(context: KernelContext, x: Array, entries: Array, out: Array) -> None:
    """Look up one object."""
    count = number(context, "out_channels")
    codes = entries[channels_of(x)[:count].astype(np.int64) - number(context, "lowest")]
    bounded = np.clip(codes.astype(np.int64), number(context, "qmin"), number(context, "qmax"))
    put_channels(out, bounded.astype(out.dtype), total=count)
