"""DequantizeLinear: f32(f32(code - zero point) * scale); an exact tensor becomes the float32 nearest to its value."""

from fractions import Fraction

import numpy as np

from manifest.model import Op
from oracle.fixedpoint import to_float32
from oracle.value import Array, Exact, Finish, Plan, Scope, Values, spread

_MARGIN = 2.0**-50


def prepare(op: Op, scope: Scope) -> Plan:
    """Inputs (x,); the output is float32."""
    name = op.inputs[0]
    tensor = scope.tensors[name]
    rank = len(tensor.shape)
    if tensor.dtype == "exact":
        form = scope.exact[name]
        if form.kernel_scales:
            scales = spread(form.kernel_scales, form.axis, rank, np.float32)
            return Plan(run=lambda values, _: values[name].astype(np.float32) * scales)
        return Plan(run=lambda values, _: nearest(values[name], form))
    quant = scope.quant(name)
    wide = np.int64 if tensor.dtype in ("int32", "int64") else np.float32
    scale = spread(quant.scales, quant.axis, rank, np.float32)
    point = spread(quant.zero_points, quant.axis, rank, wide)

    def run(values: Values, finish: Finish) -> Array:
        del finish
        centred = np.subtract(values[name], point, dtype=wide)
        with np.errstate(over="ignore"):
            return np.asarray(centred.astype(np.float32, copy=False) * scale)

    return Plan(run=run)


def nearest(values: Array, form: Exact) -> Array:
    """The float32 nearest to integer * scale + offset for every element, ties to even.

    Args:
        values: exact integers, feed axis last.
        form: their scales and offsets.
    """
    rank = values.ndim - 1
    scales = spread([float(s) for s in form.scales], form.axis, rank, np.float64)
    offsets = spread([float(o) for o in form.offsets], form.axis, rank, np.float64)
    product = values.astype(np.float64) * scales
    total = product + offsets
    margin = (np.abs(product) + np.abs(offsets)) * _MARGIN
    with np.errstate(over="ignore"):
        low, high = (total - margin).astype(np.float32), (total + margin).astype(np.float32)
    where = np.nonzero(low != high)
    channels = where[form.axis] if form.axis is not None else np.zeros(len(where[0]), np.intp)
    picked = zip(values[where].tolist(), channels.tolist(), strict=True)
    high[where] = [to_float32(Fraction(int(v)) * form.scales[c] + form.offsets[c]) for v, c in picked]
    return high
