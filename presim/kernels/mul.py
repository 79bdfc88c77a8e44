"""`mul`: an object times a constant, rounded once.

Arguments: the object of the activation; the constant operand (1 or objects, *object shape); requant (2, 1); the output
object. Scalars: `row` as in `add`. Attributes: the output's; `x_zero_point`, `c_zero_point`, `x_channels`,
`c_channels`, `along`.
"""

from typing import Any

import numpy as np

from presim.blocks import channels_of, put_channels
from presim.kernel_context import KernelContext, number
from presim.kernels.add import constant_object
from presim.kernels.finish import along, expect, finished, split, takes_requant


def run(context: KernelContext, *arguments: Any) -> None:
    """Multiply one object."""
    rounds = takes_requant(context)
    inputs, buffers, outputs = split(arguments, 1 + rounds)
    expect("input objects", len(inputs), 1)
    out, count = outputs[0], number(context, "out_channels")
    x = channels_of(inputs[0])[: min(count, number(context, "x_channels"))].astype(np.int64)
    lanes = channels_of(constant_object(context, buffers[0]))
    factor = lanes[: number(context, "c_channels")].astype(np.int64) - number(context, "c_zero_point")
    values = (x - number(context, "x_zero_point")) * factor
    codes = finished(context, values, *along(context, buffers[-1] if rounds else None))
    width = out.shape[1] if out.ndim == 3 else 1
    put_channels(out, np.broadcast_to(codes, (count, width)), total=count)
