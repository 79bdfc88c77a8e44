"""QuantizeLinear: of float32 by a true division, of codes and exact tensors as an exact requantization."""

import numpy as np

from manifest.model import QRANGE, Op
from oracle.moves import plan_move
from oracle.operand import walk
from oracle.value import Array, Finish, Plan, Scope, Values, spread


def prepare(op: Op, scope: Scope) -> Plan:
    """Inputs (x,)."""
    name = op.inputs[0]
    if scope.tensors[name].dtype != "float32":
        return plan_move(op, scope, lambda x: x, lambda axis: axis)
    return _of_float(op, scope)


def _of_float(op: Op, scope: Scope) -> Plan:
    """clip(rint(f32(x / scale)) + zero point): NaN and -inf give the lowest code, inf the highest."""
    name, tensor = op.inputs[0], scope.tensors[op.outputs[0]]
    quant = scope.quant(op.outputs[0])
    low, high = (op.requant.qmin, op.requant.qmax) if op.requant is not None else QRANGE[tensor.dtype]
    f32 = np.float32
    rank = len(tensor.shape)
    scale, point = (spread(v, quant.axis, rank, f32) for v in (quant.scales, quant.zero_points))
    bottom, top = np.asarray(f32(low) - point), np.asarray(f32(high) - point)
    dtype = np.dtype(tensor.dtype)

    def step(blocks: list[Array], out: Array) -> None:
        with np.errstate(over="ignore"):
            scaled = np.divide(blocks[0], scale, dtype=f32)
        np.fmax(scaled, bottom, out=scaled)
        np.minimum(scaled, top, out=scaled)
        np.rint(scaled, out=scaled)
        np.add(scaled, point, out=scaled)
        np.copyto(out, scaled, casting="unsafe")

    def run(values: Values, finish: Finish) -> Array:
        del finish
        x = values[name]
        return walk([x], x.shape, dtype, step, flat=scale.ndim == 0 and point.ndim == 0)

    return Plan(run=run)
