"""`transpose`, `reshape`, `flatten`: a whole tensor in, the same elements in another order out.

Arguments: all input objects; requant (2, 1 or one per place of `axis`); all output objects. Attributes: the output's;
`x_shape`, `y_shape`, `perm` (() = the order stays), `axis` of the output along which multipliers differ (-1 = they do
not), `x_zero_point`.
"""

from typing import Any

import numpy as np

from presim.blocks import from_objects, object_count, to_objects
from presim.kernel_context import KernelContext, number, numbers
from presim.kernels.finish import centred, expect, finished, split, takes_requant


def run(context: KernelContext, *arguments: Any) -> None:
    """Move a whole tensor."""
    rounds = takes_requant(context)
    source, shape, perm = (numbers(context, n) for n in ("x_shape", "y_shape", "perm"))
    inputs, buffers, outputs = split(arguments, int(rounds), object_count(shape))
    expect("input objects", len(inputs), object_count(source))
    values = centred(context, from_objects(np.stack(inputs), source))
    moved = (values.transpose(perm) if perm else values).reshape(shape)
    axis = number(context, "axis")
    extents = tuple(-1 if i == axis else 1 for i in range(len(shape)))
    pairs = [p.reshape(extents if axis >= 0 else ()) for p in buffers[0]] if rounds else [None, None]
    for out, block in zip(outputs, to_objects(finished(context, moved, *pairs)), strict=True):
        out[...] = block
