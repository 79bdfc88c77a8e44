"""`concat`: objects side by side, each brought to the output's scale.

Arguments: objects of the activations in the order of the operands; the constant operands (1 or objects, *object
shape); requant (2, operands); the output object. Scalars: `row` as in `add`. Attributes: the output's; `along`
(`channel` or `width`), `channels` and `zero_points` of each operand, `constants` (1 = a constant), `factors`
(multipliers of values that are not rounded, else ()).
"""

from typing import Any

import numpy as np

from presim.blocks import channels_of, put_channels
from presim.kernel_context import KernelContext, number, numbers, text
from presim.kernels.add import constant_object
from presim.kernels.finish import Array, expect, finished, split, takes_requant


def run(context: KernelContext, *arguments: Any) -> None:
    """Join one object of each operand."""
    constants, rounds = numbers(context, "constants"), takes_requant(context)
    inputs, buffers, outputs = split(arguments, sum(constants) + rounds)
    expect("input objects", len(inputs), len(constants) - sum(constants))
    requant = buffers.pop() if rounds else None
    parts = []
    for index, is_constant in enumerate(constants):
        x = constant_object(context, buffers.pop(0)) if is_constant else inputs.pop(0)
        parts.append(_operand(context, x, index, requant))
    codes = np.concatenate(parts, axis=1 if text(context, "along") == "width" else 0)
    put_channels(outputs[0], codes, total=number(context, "out_channels"))


def _operand(context: KernelContext, x: Array, index: int, requant: Array | None) -> Array:
    values = channels_of(x)[: numbers(context, "channels")[index]].astype(np.int64)
    kind = text(context, "finish")
    if kind != "clamp":
        values = values - numbers(context, "zero_points")[index]
    if kind == "exact":
        values = values * numbers(context, "factors")[index]
    if requant is None:
        return finished(context, values)
    return finished(context, values, requant[0, index : index + 1], requant[1, index : index + 1])
