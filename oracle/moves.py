"""Ops that move or select elements without computing new ones: layout ops, MaxPool, Relu, and their requantization.

Such an op runs on whatever its input is stored as. Codes in and codes of the same quantization out pass unchanged;
codes of another quantization are requantized behind the move; exact tensors stay exact.
"""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np

from manifest.model import QRANGE, Op, Tensor
from oracle.operand import Operand, align, operand
from oracle.pairwise import exact_plan
from oracle.value import Array, Exact, Plan, Scope, Values, spread

Move = Callable[[Array], Array]


def is_identity(op: Op, scope: Scope) -> bool:
    """Whether output codes are input codes."""
    if scope.arithmetic == "exact" or scope.tensors[op.outputs[0]].dtype in ("exact", "float32"):
        return False
    if op.requant is None:
        return True
    return (op.requant.target if scope.arithmetic == "target" else op.requant.reference) == "identity"


def clamped(op: Op, tensor: Tensor, codes: Array) -> Array:
    """Codes within the requantization's qmin..qmax (a fused Relu or Clip)."""
    low, high = QRANGE[tensor.dtype]
    if op.requant is None or (op.requant.qmin <= low and op.requant.qmax >= high):
        return codes
    return np.clip(codes, np.array(op.requant.qmin, codes.dtype), np.array(op.requant.qmax, codes.dtype))


def plan_move(op: Op, scope: Scope, move: Move, axis_of: Callable[[int], int | None]) -> Plan:
    """Plan of `move` on input 0.

    Args:
        op: its first input is moved.
        scope: forms of the tensors.
        move: on an array with the feed axis last; must treat every element alike, whatever its dtype.
        axis_of: where a channel axis of the input ends up; None where it is mixed with others.
    """
    name = op.inputs[0]
    tensor = scope.tensors[name]
    if tensor.dtype in ("float32", "int64"):
        return Plan(run=lambda values, _: move(values[name]))
    if is_identity(op, scope):
        return Plan(run=lambda values, _: clamped(op, tensor, move(values[name])))
    source = operand(op, scope, name)
    axis = None if source.exact.axis is None else axis_of(source.exact.axis)
    if source.exact.axis is not None and axis is None:
        unit, (term,) = align([source])
        form = Exact(scales=(unit,), bound=term.bound, nominal=_one(source.exact.nominal))
        return _behind(op, scope, lambda values: move(term.load(values[name], form.dtype)), _unscaled(op, scope, form))
    rank = len(scope.tensors[op.outputs[0]].shape)
    moved = Operand(
        name=name,
        shape=scope.tensors[op.outputs[0]].shape,
        exact=replace(source.exact, axis=axis),
        points=spread(source.points.reshape(-1), axis, rank, np.int64),
    )
    return _behind(op, scope, lambda values: move(values[name]), moved)


def _unscaled(op: Op, scope: Scope, form: Exact) -> Operand:
    shape = scope.tensors[op.outputs[0]].shape
    return Operand(name="", shape=shape, exact=form, points=np.zeros((), np.int64))


def _behind(op: Op, scope: Scope, moved: Callable[[Values], Array], operand_: Operand) -> Plan:
    """Requantize (or keep exact) what has been moved."""
    exact = operand_.exact
    flat = exact.axis is None and operand_.points.ndim == 0

    def combine(blocks: list[Array]) -> Array:
        return operand_.centred(blocks[0], exact.dtype)

    plan = exact_plan(op, scope, [operand_], exact, combine, flat=flat)
    return replace(plan, run=lambda values, finish: plan.run({operand_.name: moved(values)}, finish))


def _one(nominal: tuple[Fraction, ...]) -> tuple[Fraction, ...]:
    """One nominal unit where all channels share it; the manifest cannot state a multiplier otherwise."""
    return nominal[:1] if len(set(nominal)) == 1 else ()
