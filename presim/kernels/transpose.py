"""`transpose`, `reshape`, `flatten`: a whole tensor in, the same elements in another order out.

Arguments: all input objects; requant (2, 1 or one per place of `axis`); all output objects. Attributes: the output's;
`x_shape`, `y_shape`, `perm` (() = the order stays), `axis` of the output along which multipliers differ (-1 = they do
not), `x_zero_point`; `bundled` (1: all objects of the input come as one, and those of the output leave as one; absent
= 0).
"""

from typing import Any

import numpy as np

from presim.blocks import from_objects, object_count, object_shape, to_objects
from presim.kernel_context import KernelContext, number, numbers
from presim.kernels.finish import centred, expect, finished, split, takes_requant


def run(context: KernelContext, *arguments: Any) -> None:
    """Move a whole tensor."""
    rounds = takes_requant(context)
    source, shape, perm = (numbers(context, n) for n in ("x_shape", "y_shape", "perm"))
    bundled = context.attributes.get("bundled") == 1
    inputs, buffers, outputs = split(arguments, int(rounds), 1 if bundled else object_count(shape))
    expect("input objects", len(inputs), 1 if bundled else object_count(source))
    objects = inputs[0].reshape(object_count(source), *object_shape(source)) if bundled else np.stack(inputs)
    values = centred(context, from_objects(objects, source))
    moved = (values.transpose(perm) if perm else values).reshape(shape)
    axis = number(context, "axis")
    extents = tuple(-1 if i == axis else 1 for i in range(len(shape)))
    pairs = [p.reshape(extents if axis >= 0 else ()) for p in buffers[0]] if rounds else [None, None]
    blocks = to_objects(finished(context, moved, *pairs))
    for out, block in zip(outputs, [blocks] if bundled else blocks, strict=True):
        out[...] = block.reshape(out.shape)
