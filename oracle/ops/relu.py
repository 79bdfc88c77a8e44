"""Relu: max(code, zero point) on codes; max(value, 0) on exact tensors and in front of a requantization."""

from fractions import Fraction

from manifest.model import Op
from oracle.ops.clip import plan_clip
from oracle.value import Plan, Scope


def prepare(op: Op, scope: Scope) -> Plan:
    """Inputs (x,)."""
    return plan_clip(op, scope, Fraction(0), None)
