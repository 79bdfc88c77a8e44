"""`add`: the sum of two objects, rounded once.

Arguments: objects of the activations, first operand first (extents of 1 are broadcast along W, channels of 1 along the
channels); the constant operand (1 or objects, *object shape); requant (3,): both multipliers and the shift; the output
object. Scalars: `row`: number of the object, where the constant has one for each.

Attributes: the output's; `a_zero_point`, `b_zero_point`, `a_channels`, `b_channels`; `constant` (position of the
constant operand, -1 = none); `factors` (multipliers of a sum that is not rounded, else ()).
"""

from typing import Any

import numpy as np

from presim.blocks import channels_of, put_channels
from presim.kernel_context import KernelContext, number, numbers
from presim.kernels.finish import LIMIT, Array, expect, finished, magnitude, split, takes_requant


def run(context: KernelContext, *arguments: Any) -> None:
    """Add one pair of objects."""
    constant, rounds = number(context, "constant"), takes_requant(context)
    inputs, buffers, outputs = split(arguments, (constant >= 0) + rounds)
    if constant >= 0:
        inputs.insert(constant, constant_object(context, buffers[0]))
    expect("operands", len(inputs), 2)
    factors, shift = _factors(context, buffers[-1] if rounds else None)
    total = _weighted_sum([_operand(context, x, n) for x, n in zip(inputs, "ab", strict=True)], factors)
    codes = finished(context, total, None, shift)
    count = number(context, "out_channels")
    put_channels(outputs[0], np.broadcast_to(codes, _extents(outputs[0], count)), total=count)


def constant_object(context: KernelContext, objects: Array) -> Array:
    """The object of a constant operand for this call."""
    found: Array = objects[0 if len(objects) == 1 else context.scalars["row"]]
    return found


def _factors(context: KernelContext, requant: Array | None) -> tuple[tuple[int, ...], Array | None]:
    if requant is None:
        return numbers(context, "factors"), None
    return (int(requant[0]), int(requant[1])), requant[2:]


def _operand(context: KernelContext, x: Array, name: str) -> Array:
    """(channels, W) of an operand minus its zero point, one channel where it has one."""
    count = min(number(context, "out_channels"), number(context, f"{name}_channels"))
    return channels_of(x)[:count].astype(np.int64) - number(context, f"{name}_zero_point")


def _weighted_sum(operands: list[Array], factors: tuple[int, ...]) -> Array:
    if sum(magnitude(v) * abs(k) for v, k in zip(operands, factors, strict=True)) > LIMIT:
        operands = [v.astype(object) for v in operands]
    return np.asarray(operands[0] * factors[0] + operands[1] * factors[1])


def _extents(out: Array, count: int) -> tuple[int, int]:
    return count, out.shape[1] if out.ndim == 3 else 1
