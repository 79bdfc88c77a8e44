"""MaxPool: on codes or exact tensors (padding is the lowest); attributes kernel_shape, strides, pads, dilations."""

from typing import Any

import numpy as np

from manifest.model import Op
from oracle.moves import plan_move
from oracle.value import Array, Plan, Scope, refuse
from oracle.window import Axis, axes_of


def prepare(op: Op, scope: Scope) -> Plan:
    """Inputs (x,) of shape (N, C, H, W) or (N, C, W)."""
    kernel = op.attributes.get("kernel_shape", ())
    if not isinstance(kernel, tuple):
        raise refuse(op, "has no kernel_shape")
    sizes = scope.tensors[op.inputs[0]].shape[2:]
    rows, cols = axes_of(op, sizes, [int(k) for k in kernel])
    if 0 in rows.counts(include_pad=False) or 0 in cols.counts(include_pad=False):
        raise refuse(op, "has a window that holds only padding", expected="data in every window")
    flat = len(sizes) == 1

    def move(x: Array) -> Array:
        pooled = maximum(x[:, :, None] if flat else x, rows, cols)
        return pooled[:, :, 0] if flat else pooled

    return plan_move(op, scope, move, lambda axis: axis if axis < 2 else None)


def maximum(x: Array, rows: Axis, cols: Axis) -> Array:
    """Largest element of each window of (N, C, H, W, F); every window holds data."""
    image = x.transpose(2, 3, 1, 0, 4) if x.strides[3] > x.strides[1] else x.transpose(2, 1, 3, 0, 4)
    swapped = x.strides[3] > x.strides[1]
    across = 1 if swapped else 2
    shape = list(image.shape)
    shape[0], shape[across] = rows.out, cols.out
    out = np.full(shape, _lowest(x.dtype), dtype=x.dtype)
    place: list[Any] = [slice(None)] * 5
    source: list[Any] = [slice(None)] * 5
    for i in range(rows.kernel):
        place[0], source[0] = rows.valid(i)
        for j in range(cols.kernel):
            place[across], source[across] = cols.valid(j)
            target = out[tuple(place)]
            np.maximum(target, image[tuple(source)], out=target)
    back = (3, 2, 0, 1, 4) if swapped else (3, 1, 0, 2, 4)
    return out.transpose(*back)


def _lowest(dtype: np.dtype[Any]) -> Any:
    """Below or at every value of the dtype; exact integers held in floats take -inf."""
    if dtype.kind in "iu":
        return np.iinfo(dtype).min
    return -np.inf
