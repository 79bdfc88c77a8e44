"""Mul: exact product of two scaled integers, usually by a constant; QLinearMul's float32 formula."""

from fractions import Fraction

import numpy as np

from manifest.model import Op
from oracle.operand import Operand, Term, align, operand
from oracle.pairwise import coded, exact_plan, float_plan
from oracle.value import Array, Exact, Plan, Scope


def prepare(op: Op, scope: Scope) -> Plan:
    """Inputs (a, b), either may be constant; ONNX broadcasting."""
    requant = op.requant
    if requant is not None and scope.arithmetic == "reference" and requant.reference == "scale_f32":
        return _float32(op, scope)
    sides = (operand(op, scope, op.inputs[0]), operand(op, scope, op.inputs[1]))
    rank = len(scope.tensors[op.outputs[0]].shape)
    per_channel = next((s for s in sides if s.exact.axis is not None and not any(s.exact.offsets)), None)
    forms = [_form(s, keep=s is per_channel) for s in sides]
    (a, b), terms = [f for f, _ in forms], [t for _, t in forms]
    axis = None if per_channel is None else (per_channel.exact.axis or 0) + rank - len(per_channel.shape)
    exact = Exact(
        scales=_products(a.scales, b.scales),
        bound=max(terms[0].bound, 1) * max(terms[1].bound, 1),
        axis=axis,
        nominal=_products(a.nominal, b.nominal),
    )

    def combine(blocks: list[Array]) -> Array:
        return np.asarray(terms[0].load(blocks[0], exact.dtype) * terms[1].load(blocks[1], exact.dtype))

    flat = axis is None and all(t.axis is None and t.operand.points.ndim == 0 for t in terms)
    return exact_plan(op, scope, sides, exact, combine, flat=flat)


def _products(a: tuple[Fraction, ...], b: tuple[Fraction, ...]) -> tuple[Fraction, ...]:
    return tuple(x * y for x in a for y in b)


def _form(side: Operand, *, keep: bool) -> tuple[Exact, Term]:
    """One factor: with its scales as they are, or on one common unit where it has offsets or too many scales."""
    form = side.exact
    if keep or (form.axis is None and not any(form.offsets)):
        ones = (1,) * len(form.scales)
        return form, Term(operand=side, factors=ones, addends=(0,) * len(ones), axis=form.axis)
    unit, (term,) = align([side])
    nominal = form.nominal[:1] if len(set(form.nominal)) == 1 else ()
    return Exact(scales=(unit,), bound=term.bound, nominal=nominal), term


def _float32(op: Op, scope: Scope) -> Plan:
    """QLinearMul: r = f32(f32(sa * sb) / sc); rint(f32(f32(p * r) + zc)) with p = (a - za) * (b - zb)."""
    f32 = np.float32
    sides = [coded(op, scope, name) for name in op.inputs[:2]]
    out = scope.quant(op.outputs[0])
    ratio = f32(f32(f32(sides[0].scale) * f32(sides[1].scale)) / f32(out.scales[0]))
    za, zb, zc = f32(sides[0].point), f32(sides[1].point), f32(out.zero_points[0])

    def formula(blocks: list[Array]) -> Array:
        product = (blocks[0] - za) * (blocks[1] - zb)
        return np.asarray(product * ratio + zc, dtype=f32)

    return float_plan(op, scope, sides, formula)
