"""How constants and activations are laid out for the kernels, apart from quantization.

A transform is data: the axis letters of the stored array, which of them are cut into blocks, and the order of outer
(upper case) and inner (lower case) axes of the packed array. Packing fills the last blocks up with zeros; unpacking
needs the logical shape and takes them off again, so that both are exact inverses.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from manifest.device import Device, MmulShapes
from manifest.model import Layout, Op, Tensor

ROW_BLOCK: Final = 8
"""Channels that stay together in a row of activations: `[H][C/8][W][8]`."""

Shape = tuple[int, ...]
Choice = tuple[str, str, Shape]
"""(logical axis letters, transform, block sizes)."""

IDENTITY: Final = "identity"


@dataclass(frozen=True, slots=True, kw_only=True)
class Transform:
    """One way to pack.

    Attributes:
        axes: letters of the logical axes, after `grouped` has split the first.
        order: packed axes; a lower-case letter is the inner part of a blocked axis. Empty = as it is.
        grouped: the first axis is split into (groups, rest) and the first block size is the number of groups.
    """

    axes: str
    order: str
    grouped: bool = False

    @property
    def blocked(self) -> str:
        """Letters of the axes that are cut into blocks, in the order of the block sizes."""
        return "".join(a for a in self.axes if a.lower() in self.order)


TRANSFORMS: Final[Mapping[str, Transform]] = {
    IDENTITY: Transform(axes="", order=""),
    # [O/bo][I/bi][KH][KW][bi][bo], block (bo, bi)
    "conv_blocks": Transform(axes="OIHW", order="OIHWio"),
    # one of the above per group, block (groups, bo, bi)
    "grouped_conv_blocks": Transform(axes="GOIHW", order="GOIHWio", grouped=True),
    # [C/b][1][KH][KW][b], block (b,)
    "depthwise_blocks": Transform(axes="OIHW", order="OIHWo"),
    # [K/s][N/t][s][t], block (s, t) of a stored (K, N)
    "dense_kn_blocks": Transform(axes="KN", order="KNkn"),
    # the same from a stored (N, K), block (t, s)
    "dense_nk_blocks": Transform(axes="NK", order="KNkn"),
    # row streaming [N][H][C/b][W][b], block (b,)
    "row_blocks": Transform(axes="NCHW", order="NHCWc"),
}


def packed_shape(name: str, shape: Shape, block: Shape) -> Shape:
    """Shape of the packed array of a logical `shape`.

    Raises:
        ValueError: unknown transform, or shape and block do not fit it.
    """
    transform = _transform(name)
    if not transform.order:
        return tuple(shape)
    sizes = _sizes(transform, shape, block)
    return tuple(sizes[letter] for letter in transform.order)


def pack(name: str, array: NDArray[Any], block: Shape) -> NDArray[Any]:
    """Pack `array` (any dtype) with transform `name`; the last blocks are filled up with zeros.

    Raises:
        ValueError: unknown transform, or shape and block do not fit it.
    """
    transform = _transform(name)
    if not transform.order:
        return array.copy()
    sizes = _sizes(transform, array.shape, block)
    split = _split_groups(transform, array, block)
    target = [math.prod(sizes[s] for s in _parts(transform, letter)) for letter in transform.axes]
    padded = np.pad(split, [(0, t - n) for t, n in zip(target, split.shape, strict=True)])
    letters = [part for letter in transform.axes for part in _parts(transform, letter)]
    unfolded = padded.reshape([sizes[part] for part in letters])
    return np.ascontiguousarray(unfolded.transpose([letters.index(part) for part in transform.order]))


def unpack(name: str, array: NDArray[Any], block: Shape, shape: Shape) -> NDArray[Any]:
    """The logical array of `shape` from a packed one; exact inverse of `pack`.

    Raises:
        ValueError: unknown transform, or the packed shape is not the one that `pack` gives.
    """
    transform = _transform(name)
    expected = packed_shape(name, shape, block)
    if array.shape != expected:
        msg = f"layout {name}: expected a packed shape {expected}, got {array.shape}"
        raise ValueError(msg)
    if not transform.order:
        return array.copy()
    letters = [part for letter in transform.axes for part in _parts(transform, letter)]
    unfolded = array.transpose([transform.order.index(part) for part in letters])
    sizes = _sizes(transform, shape, block)
    folded = unfolded.reshape([math.prod(sizes[s] for s in _parts(transform, letter)) for letter in transform.axes])
    logical = _logical(transform, shape, block)
    return folded[tuple(slice(n) for n in logical)].reshape(shape).copy()


def padding(name: str, shape: Shape, block: Shape) -> int:
    """Zeros that packing adds, in elements."""
    return math.prod(packed_shape(name, shape, block)) - math.prod(shape)


def choose_weight(
    op_type: str, shape: Shape, pair: str, mmul: Mapping[str, MmulShapes], *, group: int = 1, trans_b: bool = False
) -> Choice:
    """Layout of the weight of a Conv, Gemm or MatMul for the device's first block shape.

    Args:
        op_type: type of the op that reads it.
        shape: OIHW, (K, N), or (N, K) with `trans_b`.
        pair: `<activation>x<weight>` as in `Device.mmul` (`int8xint8`).
        mmul: block shapes of the device.
        group: groups of a Conv.
        trans_b: the Gemm's weight is stored as (N, K).

    Returns:
        (axis letters, transform, block); `identity` where the device's shapes are unknown or nothing fits.
    """
    shapes = mmul[pair].value if pair in mmul else None
    step = None if shapes is None else shapes[0][1:]
    if op_type == "Conv" and len(shape) == 4:
        return _conv_weight(shape, step, group)
    if op_type in ("Gemm", "MatMul") and len(shape) == 2:
        return _dense_weight(step, trans_b=trans_b)
    return "", IDENTITY, ()


def _conv_weight(shape: Shape, step: tuple[int, int] | None, group: int) -> Choice:
    if group > 1 and shape[1] == 1 and shape[0] == group:
        return "OIHW", "depthwise_blocks", (ROW_BLOCK,)
    if step is None:
        return "OIHW", IDENTITY, ()
    s, t = step
    return ("OIHW", "grouped_conv_blocks", (group, t, s)) if group > 1 else ("OIHW", "conv_blocks", (t, s))


def _dense_weight(step: tuple[int, int] | None, *, trans_b: bool) -> Choice:
    letters = "NK" if trans_b else "KN"
    if step is None:
        return letters, IDENTITY, ()
    s, t = step
    return (letters, "dense_nk_blocks", (t, s)) if trans_b else (letters, "dense_kn_blocks", (s, t))


def choose_activation(shape: Shape) -> Choice:
    """Layout of a quantised activation: rows of channel blocks for NCHW, else as it is."""
    if len(shape) == 4:
        return "NCHW", "row_blocks", (ROW_BLOCK,)
    return "", IDENTITY, ()


def default_layouts(tensors: Iterable[Tensor], ops: Iterable[Op], device: Device) -> tuple[Layout, ...]:
    """Layouts of all constant weights and quantised activations, sorted by tensor name.

    Args:
        tensors: all tensors of the model.
        ops: all ops; the first that reads a weight decides its layout.
        device: whose block shapes are used.
    """
    by_name = {t.name: t for t in tensors}
    chosen: dict[str, Choice] = {}
    for op in ops:
        name = _weight_of(op)
        if name in by_name and by_name[name].array is not None and name not in chosen:
            chosen[name] = _choose_for(op, by_name, device)
    for tensor in by_name.values():
        if tensor.array is None and tensor.quant is not None:
            chosen.setdefault(tensor.name, choose_activation(tensor.shape))
    return tuple(
        Layout(tensor=name, logical=logical, packed=packed, block=block)
        for name, (logical, packed, block) in sorted(chosen.items())
    )


def kernel_pair(activation: str, weight: str) -> str:
    """Key of `Device.mmul` for two dtypes; signedness does not choose the shape."""
    return f"{activation.removeprefix('u')}x{weight.removeprefix('u')}"


def _weight_of(op: Op) -> str:
    return op.inputs[1] if op.type in ("Conv", "Gemm", "MatMul") and len(op.inputs) > 1 else ""


def _choose_for(op: Op, by_name: Mapping[str, Tensor], device: Device) -> Choice:
    weight = by_name[_weight_of(op)]
    pair = kernel_pair(by_name[op.inputs[0]].dtype, weight.dtype)
    group, trans_b = op.attributes.get("group", 1), op.attributes.get("transB", 0)
    shapes = device.mmul
    return choose_weight(op.type, weight.shape, pair, shapes, group=_int(group), trans_b=bool(trans_b))


def _int(value: object) -> int:
    if not isinstance(value, int):
        msg = f"expected an int attribute, got {value!r}"
        raise TypeError(msg)
    return value


def _transform(name: str) -> Transform:
    if name not in TRANSFORMS:
        msg = f"layout: expected one of {', '.join(TRANSFORMS)}, got {name!r}"
        raise ValueError(msg)
    return TRANSFORMS[name]


def _parts(transform: Transform, letter: str) -> str:
    return letter + letter.lower() if letter in transform.blocked else letter


def _logical(transform: Transform, shape: Shape, block: Shape) -> Shape:
    return (block[0], shape[0] // block[0], *shape[1:]) if transform.grouped else tuple(shape)


def _split_groups(transform: Transform, array: NDArray[Any], block: Shape) -> NDArray[Any]:
    return array.reshape(_logical(transform, array.shape, block))


def _sizes(transform: Transform, shape: Shape, block: Shape) -> dict[str, int]:
    """Extent of every packed axis by letter; upper case of a blocked axis is the number of blocks."""
    cuts = block[1:] if transform.grouped else block
    rank = len(transform.axes) - transform.grouped
    fits = len(shape) == rank and len(cuts) == len(transform.blocked) and all(b >= 1 for b in block)
    if not fits or (transform.grouped and shape[0] % block[0]):
        msg = f"layout of axes {transform.axes}: shape {tuple(shape)} and block {tuple(block)} do not fit"
        raise ValueError(msg)
    by_axis = dict(zip(transform.blocked, cuts, strict=True))
    sizes: dict[str, int] = {}
    for letter, n in zip(transform.axes, _logical(transform, shape, block), strict=True):
        if letter in by_axis:
            sizes[letter.lower()] = by_axis[letter]
            sizes[letter] = -(-n // by_axis[letter])
        else:
            sizes[letter] = n
    return sizes
