"""MatMul: also QLinearMatMul and MatMulIntegerToFloat; a constant matrix on the right, or two activations."""

import numpy as np

from manifest.model import Op
from oracle.contraction import prepare as contract
from oracle.contraction import weights_of
from oracle.gemm import exact_matmul
from oracle.operand import Operand, operand
from oracle.ops.gemm import matrix_plan
from oracle.value import Array, Exact, Finish, Plan, Scope, Values, as_carrier, refuse


def prepare(op: Op, scope: Scope) -> Plan:
    """Inputs (a, b, bias or "")."""
    stored = scope.constant(op.inputs[1])
    rank = len(scope.tensors[op.inputs[0]].shape)
    if stored is not None and stored.ndim == 2 and rank >= 2 and scope.constant(op.inputs[0]) is None:
        weights, scales = weights_of(op, scope, 1)
        axis = len(scope.tensors[op.outputs[0]].shape) - 1
        sums = contract(op, scope, weights.T, scales, channels=weights.shape[1], axis=axis)
        return matrix_plan(op, scope, sums, row_axis=0)
    return _general(op, scope)


def _general(op: Op, scope: Scope) -> Plan:
    """Batched, vector and activation x activation products; one scale per operand, no bias."""
    if len(op.inputs) > 2 and op.inputs[2]:
        raise refuse(op, "has a bias but no constant matrix of two axes")
    left, right = operand(op, scope, op.inputs[0]), operand(op, scope, op.inputs[1])
    if any(len(o.exact.scales) > 1 or any(o.exact.offsets) for o in (left, right)):
        raise refuse(op, "has per-channel scales on a product of this shape", expected="one scale per operand")
    bound = max(left.exact.bound, 1) * max(right.exact.bound, 1) * left.shape[-1]
    exact = Exact(scales=(left.exact.scales[0] * right.exact.scales[0],), bound=bound)

    def run(values: Values, finish: Finish) -> Array:
        a, b = _feeds_first(left, values), _feeds_first(right, values)
        product = exact_matmul(*_padded(a, b, len(left.shape), len(right.shape)), bound)
        product = _unpadded(product, len(left.shape), len(right.shape))
        acc = as_carrier(product, exact.dtype)
        out = np.empty(acc.shape, finish.dtype)
        finish(acc, out)
        return np.moveaxis(out, 0, -1)

    return Plan(run=run, exact=exact, rank=len(scope.tensors[op.outputs[0]].shape) + 1, multiplier=_scale(op, scope))


def _feeds_first(side: Operand, values: Values) -> Array:
    raw = side.raw(values, len(side.shape))
    return np.moveaxis(side.centred(raw, np.dtype(np.float64 if side.exact.bound <= 1 << 53 else np.int64)), -1, 0)


def _padded(a: Array, b: Array, rank_a: int, rank_b: int) -> tuple[Array, Array]:
    """Vectors as matrices, batch axes of equal number behind the feed axis."""
    a = a[:, None, :] if rank_a == 1 else a
    b = b[:, :, None] if rank_b == 1 else b
    rank = max(a.ndim, b.ndim)
    return tuple(x.reshape(x.shape[0], *(1,) * (rank - x.ndim), *x.shape[1:]) for x in (a, b))  # type: ignore[return-value]


def _unpadded(product: Array, rank_a: int, rank_b: int) -> Array:
    product = product[..., 0] if rank_b == 1 else product
    if rank_a == 1:
        product = np.squeeze(product, axis=-1 if rank_b == 1 else -2)
    return product


def _scale(op: Op, scope: Scope) -> Array | None:
    """f32(f32(sa * sb) / sy)."""
    out = scope.tensors[op.outputs[0]].quant
    if out is None:
        return None
    f32 = np.float32
    a, b = scope.quant(op.inputs[0]).scales[0], scope.quant(op.inputs[1]).scales[0]
    return np.array([f32(f32(a) * f32(b)) / f32(out.scales[0])], dtype=f32)
