"""Gemm: alpha * A' @ B' + beta * C with B and C constant; also QGemm and FusedGemm."""

import numpy as np

from manifest.model import Op
from oracle.contraction import Contraction, weights_of
from oracle.contraction import prepare as contract
from oracle.ops.conv import centre
from oracle.value import Array, Finish, Plan, Scope, Values, refuse


def prepare(op: Op, scope: Scope) -> Plan:
    """Inputs (a, b, bias or ""); attributes transA, transB, alpha, beta."""
    flip = bool(op.attributes.get("transB", 0))
    weights, scales = weights_of(op, scope, 0 if flip else 1)
    matrix = weights if flip else weights.T
    alpha = op.attributes.get("alpha", 1.0)
    if not isinstance(alpha, int | float):
        raise refuse(op, "alpha is not a number")
    sums = contract(op, scope, matrix, scales, channels=matrix.shape[0], axis=1, alpha=float(alpha))
    return matrix_plan(op, scope, sums, row_axis=1 if op.attributes.get("transA", 0) else 0)


def matrix_plan(op: Op, scope: Scope, sums: Contraction, *, row_axis: int) -> Plan:
    """Rows of an activation times constant columns.

    Args:
        op: input 0 is (…, M, K), or (K, M) with `row_axis` 1.
        scope: scratch memory.
        sums: weights as (N, K).
        row_axis: 0 where K is the last axis of the input, 1 where it is the first.

    Returns:
        A plan that hands over blocks (N, M * F) and gives (…, M, N, F).
    """
    name = op.inputs[0]

    def run(values: Values, finish: Finish) -> Array:
        x = values[name]
        x = x if row_axis else np.moveaxis(x, -2, 0)
        rows = x.shape[1:]
        columns = scope.workspace.take("columns", x.shape, sums.product.dtype)
        centre(x, sums.point, columns)
        flat = columns.reshape(x.shape[0], -1)
        acc = scope.workspace.take("acc", (sums.product.channels, flat.shape[1]), sums.product.carrier)
        sums.product(flat, acc)
        out = np.empty(acc.shape, finish.dtype)
        finish(sums.bias(acc, (-1, 1)), out)
        return np.moveaxis(out.reshape(out.shape[0], *rows), 0, -2)

    return Plan(run=run, exact=sums.exact, rank=2, axis=0, multiplier=sums.multiplier)
