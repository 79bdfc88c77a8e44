"""How a tensor is cut into the objects that flow through fifos, by shape alone.

Rank 4 (N, C, H, W): N * H rows of shape (C/8, W, 8), lanes beyond C are padding. Any other rank: one vector per place
of the leading axes, of the last axis rounded up to 8. Padding holds 0 and no kernel reads it.
"""

import math
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Shape = tuple[int, ...]

LANES: Final = 8
"""Channels that stay together in a row, and what vectors are rounded up to."""


def blocks_of(channels: int) -> int:
    """Channel blocks of 8 that hold so many channels."""
    return -(-channels // LANES)


def object_shape(shape: Shape) -> Shape:
    """Shape of one object of a tensor of `shape`."""
    if len(shape) == 4:
        return blocks_of(shape[1]), shape[3], LANES
    return (blocks_of(shape[-1] if shape else 1) * LANES,)


def object_count(shape: Shape) -> int:
    """Objects of a tensor of `shape`."""
    return shape[0] * shape[2] if len(shape) == 4 else math.prod(shape[:-1])


def to_objects(array: Array) -> Array:
    """(objects, *object shape) of an array, padding 0, dtype kept; inverse of `from_objects`."""
    shape = array.shape
    if len(shape) == 4:
        n, c, h, w = shape
        lanes = np.zeros((n * h, blocks_of(c) * LANES, w), array.dtype)
        lanes[:, :c] = array.transpose(0, 2, 1, 3).reshape(n * h, c, w)
        return np.ascontiguousarray(lanes.reshape(n * h, blocks_of(c), LANES, w).swapaxes(2, 3))
    size = shape[-1] if shape else 1
    vectors = np.zeros((object_count(shape), *object_shape(shape)), array.dtype)
    vectors[:, :size] = array.reshape(-1, size)
    return vectors


def from_objects(objects: Array, shape: Shape) -> Array:
    """The array of `shape` from its objects (objects, *object shape); padding is left out.

    Raises:
        ValueError: number or shape of the objects are not those of `shape`.
    """
    expected = (object_count(shape), *object_shape(shape))
    if objects.shape != expected:
        msg = f"objects of a tensor of shape {shape}: expected {expected}, got {objects.shape}"
        raise ValueError(msg)
    if len(shape) == 4:
        n, c, h, w = shape
        lanes = objects.swapaxes(2, 3).reshape(n * h, -1, w)[:, :c]
        return np.ascontiguousarray(lanes.reshape(n, h, c, w).transpose(0, 2, 1, 3))
    return objects[:, : shape[-1] if shape else 1].reshape(shape)


def channels_of(row: Array) -> Array:
    """(channels with padding, W) of a row object (C/8, W, 8), or (elements, 1) of a vector object."""
    if row.ndim == 1:
        return row[:, np.newaxis]
    return row.swapaxes(1, 2).reshape(row.shape[0] * row.shape[2], row.shape[1])


def put_channels(out: Array, values: Array, *, first: int = 0, total: int) -> None:
    """Write channels into a row or vector object; the padding is zeroed with the last of them.

    Args:
        out: (C/8, W, 8) or (elements,), written in place.
        values: (channels, W), W = 1 for a vector; within the range of `out`'s dtype.
        first: channel of `out` that `values` begins with.
        total: channels of `out` that are no padding.
    """
    count = len(values)
    ends = first + count >= total
    if out.ndim == 1:
        out[first : first + count] = values[:, 0]
        if ends:
            out[total:] = 0
        return
    if first == 0 and ends:
        lanes = np.zeros((out.shape[0] * LANES, out.shape[1]), out.dtype)
        lanes[:count] = values
        out[...] = lanes.reshape(out.shape[0], LANES, out.shape[1]).swapaxes(1, 2)
        return
    channel = np.arange(first, first + count)
    out[channel // LANES, :, channel % LANES] = values
    if ends:
        padding = np.arange(total, out.shape[0] * LANES)
        out[padding // LANES, :, padding % LANES] = 0
