"""Concat: each input brought to the output's quantization, then put side by side; attribute `axis`."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from manifest.model import Op, Requantization, Tensor
from oracle.moves import clamped
from oracle.operand import align, operand
from oracle.pairwise import coded, exact_plan, float_plan
from oracle.requantize import finish_for
from oracle.value import Array, Exact, Finish, Plan, Scope, Values, refuse

Part = Callable[[Values], Array]


def prepare(op: Op, scope: Scope) -> Plan:
    """Inputs (x, ...), activations or constants, of any quantizations."""
    axis = op.attributes.get("axis", 0)
    if not isinstance(axis, int):
        raise refuse(op, "axis is not an integer")
    place = axis % len(scope.tensors[op.outputs[0]].shape)
    if scope.arithmetic == "exact" or scope.tensors[op.outputs[0]].dtype == "exact":
        return _exact(op, scope, place)
    parts = [_part(op, scope, i) for i in range(len(op.inputs))]
    return Plan(run=lambda values, _: _join([part(values) for part in parts], place))


def _join(arrays: list[Array], place: int) -> Array:
    feeds = max(a.shape[-1] for a in arrays)
    return np.concatenate([np.broadcast_to(a, (*a.shape[:-1], feeds)) for a in arrays], axis=place)


def _part(op: Op, scope: Scope, index: int) -> Part:
    """One input as output codes."""
    name, tensor = op.inputs[index], scope.tensors[op.outputs[0]]
    source, requant = scope.tensors[name], op.requant
    constant = scope.constant(name)
    if source.dtype in ("float32", "int64"):
        return lambda values: values[name] if constant is None else constant[..., None]
    if _same(source, tensor):
        return lambda values: clamped(op, tensor, values[name] if constant is None else constant[..., None])
    if requant is None:
        raise refuse(op, f"input {name!r} has another quantization and there is no requantization")
    alone = replace(op, inputs=(name,), requant=_of_input(requant, index))
    if scope.arithmetic == "reference" and requant.reference == "scale_f32":
        plan = _float32(alone, scope)
    else:
        side = operand(alone, scope, name)
        plan = exact_plan(
            alone, scope, [side], side.exact, lambda blocks: side.centred(blocks[0], side.exact.dtype), flat=True
        )
        if side.exact.axis is not None:
            raise refuse(op, f"input {name!r} is quantised per channel", expected="one scale")
    finish = finish_for(alone, scope, plan)
    return lambda values: plan.run(values, finish)


def _same(source: Tensor, tensor: Tensor) -> bool:
    return source.quant == tensor.quant and source.dtype == tensor.dtype


def _of_input(requant: Requantization, index: int) -> Requantization:
    """The multiplier and shift of one input."""
    if len(requant.multipliers) == 1:
        return requant
    return replace(requant, multipliers=(requant.multipliers[index],), shifts=(requant.shifts[index],))


def _float32(op: Op, scope: Scope) -> Plan:
    """QLinearConcat: dequantise and quantise in float32, the zero point behind the rounding."""
    f32 = np.float32
    side, out = coded(op, scope, op.inputs[0]), scope.quant(op.outputs[0])

    def formula(blocks: list[Array]) -> Array:
        real = (blocks[0] - f32(side.point)) * f32(side.scale)
        return np.asarray(np.rint(real / f32(out.scales[0])) + f32(out.zero_points[0]))

    return float_plan(op, scope, [side], formula)


def _exact(op: Op, scope: Scope, place: int) -> Plan:
    """Side by side on one common unit."""
    sides = [operand(op, scope, name) for name in op.inputs]
    unit, terms = align(sides)
    exact = Exact(scales=(unit,), bound=max(t.bound for t in terms))
    rank = len(scope.tensors[op.outputs[0]].shape)

    def run(values: Values, finish: Finish) -> Array:
        acc = _join([t.load(t.operand.raw(values, rank), exact.dtype) for t in terms], place)
        out = np.empty(acc.shape, finish.dtype)
        finish(acc, out)
        return out

    return Plan(run=run, exact=exact, rank=rank + 1)
