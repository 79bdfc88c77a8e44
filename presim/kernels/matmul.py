"""`matmul`: a product of whole operands, of two activations or with a constant of any rank.

Arguments: all objects of each activation, first operand first; the constant operand as it is stored; bias (N,);
requant (2, 1 or N); all output objects.

Attributes: the output's; `a_shape`, `b_shape`, `y_shape`; `transpose_a`, `transpose_b` (the last two axes);
`constant` (position of the constant operand, -1 = none); `a_zero_points`, `b_zero_points` (1 or one per place of the
last axis, of the first axis with `transpose_b`); `acc_bits`, `acc_shift`, `has_bias`; `bundled` (1: all objects of
an activation come as one, and those of the output leave as one; absent = 0).
"""

from typing import Any

import numpy as np

from presim.blocks import from_objects, object_count, object_shape, to_objects
from presim.kernel_context import KernelContext, number, numbers
from presim.kernels.finish import I64, Array, biased, expect, finished, product, split, takes_requant


def run(context: KernelContext, *arguments: Any) -> None:
    """Compute the whole product."""
    constant, has_bias, rounds = number(context, "constant"), number(context, "has_bias"), takes_requant(context)
    shape = numbers(context, "y_shape")
    bundled = context.attributes.get("bundled") == 1
    outs = 1 if bundled else object_count(shape)
    inputs, buffers, outputs = split(arguments, (constant >= 0) + has_bias + rounds, outs)
    operands = []
    for position, name in enumerate("ab"):
        if position == constant:
            raw = buffers[0]
        else:
            extents = numbers(context, f"{name}_shape")
            count = object_count(extents)
            taken = 1 if bundled else count
            raw = from_objects(np.stack(inputs[:taken]).reshape(count, *object_shape(extents)), extents)
            inputs = inputs[taken:]
        operands.append(_operand(context, raw, name))
    expect("objects beside those of the operands", len(inputs), 0)
    acc = product(*operands, terms=operands[0].shape[-1])
    channels = (-1,) if shape else ()
    acc = biased(context, acc, buffers[(constant >= 0)] if has_bias else None, slice(None), channels)
    requant = buffers[-1] if rounds else None
    codes = finished(context, acc, *((requant[0], requant[1]) if requant is not None else (None, None)))
    blocks = to_objects(codes.reshape(shape))
    for out, block in zip(outputs, [blocks] if bundled else blocks, strict=True):
        out[...] = block.reshape(out.shape)


def _operand(context: KernelContext, raw: Array, name: str) -> I64:
    """Codes minus zero points, transposed where asked for."""
    points = np.array(numbers(context, f"{name}_zero_points"), np.int64)
    transposes = bool(number(context, f"transpose_{name}"))
    values = raw.astype(np.int64).swapaxes(-1, -2) if transposes else raw.astype(np.int64)
    return np.asarray(values - points, np.int64)
