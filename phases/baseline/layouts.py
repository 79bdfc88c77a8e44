"""Where every element of a packed array has to stand, written out per transform, apart from `manifest.layout`.

Why: packing and unpacking share one table, so that a swapped block axis undoes itself on the way back. The kernels
read the packed array by these places.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from manifest.layout import pack, unpack
from manifest.model import Layout

Array = NDArray[Any]
Place = tuple[Any, ...]

MOST: Final = 1 << 16
"""Elements whose place is looked up."""


def _grouped(index: Place, block: Place, shape: Place) -> Place:
    o, i, h, w = index
    groups, bo, bi = block
    size = shape[0] // groups
    inner = o % size
    return o // size, inner // bo, i // bi, h, w, i % bi, inner % bo


PLACES: Final[Mapping[str, Callable[[Place, Place, Place], Place]]] = {
    "identity": lambda index, block, shape: index,
    # (O, I, H, W) -> [O/bo][I/bi][H][W][bi][bo]
    "conv_blocks": lambda x, b, shape: (x[0] // b[0], x[1] // b[1], x[2], x[3], x[1] % b[1], x[0] % b[0]),
    "grouped_conv_blocks": _grouped,
    # (C, 1, H, W) -> [C/b][1][H][W][b]
    "depthwise_blocks": lambda x, b, shape: (x[0] // b[0], x[1], x[2], x[3], x[0] % b[0]),
    # (K, N) -> [K/s][N/t][s][t]
    "dense_kn_blocks": lambda x, b, shape: (x[0] // b[0], x[1] // b[1], x[0] % b[0], x[1] % b[1]),
    # (N, K) -> [K/s][N/t][s][t]
    "dense_nk_blocks": lambda x, b, shape: (x[1] // b[1], x[0] // b[0], x[1] % b[1], x[0] % b[0]),
    # (N, C, H, W) -> [N][H][C/b][W][b]
    "row_blocks": lambda x, b, shape: (x[0], x[2], x[1] // b[0], x[3], x[1] % b[0]),
}


def returns(layout: Layout, stored: Array) -> bool:
    """Whether packing and unpacking gives an array back."""
    packed = pack(layout.packed, stored, layout.block)
    return bool(np.array_equal(unpack(layout.packed, packed, layout.block, stored.shape), stored))


def in_place(layout: Layout, stored: Array) -> bool:
    """Whether the elements of a packed array stand where the transform's definition says; False for an unknown one."""
    place = PLACES.get(layout.packed)
    if place is None:
        return False
    flat = np.arange(stored.size)
    if stored.size > MOST:
        flat = np.random.default_rng(0).choice(stored.size, MOST, replace=False)
    index = np.unravel_index(flat, stored.shape) if stored.ndim else ()
    packed = pack(layout.packed, stored, layout.block)
    try:
        found = packed[place(index, layout.block, stored.shape)]
    except IndexError:  # the packed array has other axes than the definition
        return False
    return bool(np.array_equal(found, stored[index]))
