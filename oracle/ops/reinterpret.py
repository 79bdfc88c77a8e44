"""Reinterpret: the same codes under another scale and zero point."""

from manifest.model import Op
from oracle.value import Plan, Scope


def prepare(op: Op, scope: Scope) -> Plan:
    """Inputs (x,); the output has the input's dtype."""
    del scope
    name = op.inputs[0]
    return Plan(run=lambda values, _: values[name])
