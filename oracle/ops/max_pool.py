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
    """Largest element of each window of (N, C, H, W, F); every window holds data.

    Rows first: they lie apart in memory, so their maxima run over long contiguous pieces.
    """
    image = x.transpose(2, 1, 3, 0, 4)
    lowest = _lowest(x.dtype)
    tall = np.full((rows.out, *image.shape[1:]), lowest, dtype=x.dtype)
    for tap in range(rows.kernel):
        windows, places = rows.valid(tap)
        target = tall[windows]
        np.maximum(target, image[places], out=target)
    if cols.kernel == cols.stride == 1 and cols.begin == 0 and cols.out == cols.size:
        return tall.transpose(3, 1, 0, 2, 4)
    out = np.full((*tall.shape[:2], cols.out, *tall.shape[3:]), lowest, dtype=x.dtype)
    for tap in range(cols.kernel):
        windows, places = cols.valid(tap)
        target = out[:, :, windows]
        np.maximum(target, tall[:, :, places], out=target)
    return out.transpose(3, 1, 0, 2, 4)


def _lowest(dtype: np.dtype[Any]) -> Any:
    """Below or at every value of the dtype; exact integers held in floats take -inf."""
    if dtype.kind in "iu":
        return np.iinfo(dtype).min
    return -np.inf
