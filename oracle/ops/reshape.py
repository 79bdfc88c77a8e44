"""Reshape (also Squeeze and Unsqueeze): attribute `shape`, resolved."""

from manifest.model import Op
from oracle.moves import plan_move
from oracle.value import Plan, Scope


def prepare(op: Op, scope: Scope) -> Plan:
    """Inputs (x,); the output tensor's shape counts."""
    shape = scope.tensors[op.outputs[0]].shape
    before = scope.tensors[op.inputs[0]].shape

    def axis_of(axis: int) -> int | None:
        """The axis with as many elements in front of it and the same size, if there is one."""
        front = _size(before[:axis])
        for i, n in enumerate(shape):
            if _size(shape[:i]) == front and n == before[axis]:
                return i
        return None

    return plan_move(op, scope, lambda x: x.reshape(*shape, x.shape[-1]), axis_of)


def _size(shape: tuple[int, ...]) -> int:
    size = 1
    for n in shape:
        size *= n
    return size
