"""Add: exact sum of two scaled integers; QLinearAdd's float32 formula with and without fused multiply-add."""

from fractions import Fraction

import numpy as np

from manifest.model import Op
from oracle.fixedpoint import fma32
from oracle.operand import Term, align, common_unit, operand
from oracle.pairwise import coded, exact_plan, float_plan
from oracle.value import Array, Exact, Plan, Scope


def prepare(op: Op, scope: Scope) -> Plan:
    """Inputs (a, b), either may be constant; ONNX broadcasting."""
    requant = op.requant
    if requant is not None and scope.arithmetic == "reference" and requant.reference == "scale_f32":
        return _float32(op, scope)
    sides = (operand(op, scope, op.inputs[0]), operand(op, scope, op.inputs[1]))
    if requant is None or scope.arithmetic != "target" or requant.target == "identity":
        unit, terms = align(sides)
        counted = common_unit([n for s in sides for n in s.exact.nominal]) or unit
        return _sum(op, scope, terms, Exact(scales=(unit,), bound=_bound(terms), nominal=(counted,)), None)
    factors = requant.multipliers * (1 if len(requant.multipliers) == 2 else 2)
    unit, terms = align(sides, weights=factors)
    return _sum(op, scope, terms, Exact(scales=(unit,), bound=_bound(terms), nominal=(Fraction(1),)), (1,))


def _bound(terms: tuple[Term, ...]) -> int:
    return sum(t.bound for t in terms)


def _sum(op: Op, scope: Scope, terms: tuple[Term, ...], exact: Exact, multipliers: tuple[int, ...] | None) -> Plan:
    """The sum of both terms. What it counts in (`exact.nominal`) is the common unit of what its inputs count in."""
    dtype = exact.dtype

    def combine(blocks: list[Array]) -> Array:
        return np.asarray(terms[0].load(blocks[0], dtype) + terms[1].load(blocks[1], dtype), dtype=dtype)

    sides = [t.operand for t in terms]
    flat = all(t.axis is None and t.operand.points.ndim == 0 for t in terms)
    return exact_plan(op, scope, sides, exact, combine, flat=flat, multipliers=multipliers)


def _float32(op: Op, scope: Scope) -> Plan:
    """QLinearAdd of onnxruntime: everything float32, the zero point inside the rounding."""
    f32 = np.float32
    sides = [coded(op, scope, name) for name in op.inputs[:2]]
    flip = _is_swapped(sides[0].shape, sides[1].shape)
    first, second = sides[::-1] if flip else sides
    out = scope.quant(op.outputs[0])
    za, zb, zc = f32(first.point), f32(second.point), f32(out.zero_points[0])
    ra, rb = f32(f32(first.scale) / f32(out.scales[0])), f32(f32(second.scale) / f32(out.scales[0]))

    def fused(a: Array, b: Array) -> Array:
        start = f32(zc - fma32(ra, za, f32(rb * zb)))
        return fma32(a, ra, fma32(b, rb, start))

    def plain(a: Array, b: Array) -> Array:
        start = f32(zc - f32(f32(ra * za) + f32(rb * zb)))
        return np.asarray((start + a * ra) + b * rb, dtype=f32)

    formula = fused if scope.fma else plain

    def ordered(blocks: list[Array]) -> Array:
        return formula(*(blocks[::-1] if flip else blocks))

    return float_plan(op, scope, sides, ordered)


def _is_swapped(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    """Whether the kernel takes the second input as the first.

    It does where the first one is constant along the innermost axis on which either varies, or both have one element
    (seen in onnxruntime 1.32 on inputs on which the order decides the rounding).
    """
    rank = max(len(a), len(b))
    pairs = zip((1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b, strict=True)
    varying = [pair for pair in pairs if pair != (1, 1)]
    return not varying or varying[-1][0] == 1
