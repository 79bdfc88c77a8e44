"""Transpose: attribute `perm`."""

from manifest.model import Op
from oracle.moves import plan_move
from oracle.value import Plan, Scope, refuse


def prepare(op: Op, scope: Scope) -> Plan:
    """Inputs (x,)."""
    rank = len(scope.tensors[op.inputs[0]].shape)
    perm = op.attributes.get("perm", tuple(range(rank))[::-1])
    if not isinstance(perm, tuple) or sorted(perm) != list(range(rank)):
        raise refuse(op, "perm is no permutation", expected=f"axes 0..{rank - 1}", got=str(perm))
    order = tuple(int(p) for p in perm)
    return plan_move(op, scope, lambda x: x.transpose(*order, rank), order.index)
