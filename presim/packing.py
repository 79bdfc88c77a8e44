"""Between arrays of the manifest and what flows through a design: objects of fifos, contents of buffers."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manifest.model import Manifest, Tensor
from presim import blocks
from presim.design import Design
from presim.kernels.buffers import constant_of
from presim.kernels.units import Forms

Array = NDArray[Any]


def object_shape(tensor: Tensor) -> tuple[int, ...]:
    """Shape of one object: a row (C/8, W, 8) of a rank-4 tensor, else a vector of the last axis rounded up to 8."""
    return blocks.object_shape(tensor.shape)


def object_count(tensor: Tensor) -> int:
    """Objects of one inference: N * H rows, or one vector per place of the leading axes."""
    return blocks.object_count(tensor.shape)


def object_dtype(manifest: Manifest | Forms, tensor: str) -> str:
    """Storage of the elements: the tensor's, int32 or int64 of an accumulator that leaves unrounded.

    Raises:
        RefusedError: an accumulator that no kernel makes.
        ValueError: a float tensor, which never is on the array.
    """
    forms = manifest if isinstance(manifest, Forms) else Forms(manifest)
    return forms.of(tensor).dtype


def to_objects(tensor: Tensor, array: Array) -> Array:
    """(objects, *object_shape) of a tensor, padding 0.

    Args:
        tensor: integer or exact.
        array: (*shape) in storage dtype; integers of an exact tensor keep theirs.

    Raises:
        ValueError: shape or dtype are not the tensor's.
    """
    fits = array.dtype.kind in "iu" if tensor.dtype == "exact" else array.dtype.name == tensor.dtype
    if array.shape != tensor.shape or not fits:
        msg = f"tensor {tensor.name!r}: expected {tensor.dtype} {tensor.shape}, got {array.dtype} {array.shape}"
        raise ValueError(msg)
    return blocks.to_objects(array)


def from_objects(tensor: Tensor, objects: Array) -> Array:
    """(*shape) of a tensor from its objects; padding is left out, the dtype kept.

    Args:
        tensor: integer or exact.
        objects: (objects, *object_shape), or the same elements in one dimension, as the host gets them.

    Raises:
        ValueError: number or shape of the objects are not the tensor's.
    """
    if objects.ndim == 1 and objects.size == object_count(tensor) * int(np.prod(object_shape(tensor))):
        objects = objects.reshape(object_count(tensor), *object_shape(tensor))
    return blocks.from_objects(objects, tensor.shape)


def pack_constants(
    design: Design, manifest: Manifest | Forms, arrays: Mapping[str, NDArray[Any]]
) -> dict[str, NDArray[Any]]:
    """Contents of all buffers and of all fifos with initial values, by their key (`presim.kernels.buffers`).

    Args:
        design: keys are `Buffer.array` and `Fifo.init_array`.
        manifest: the manifest that the design was planned from.
        arrays: constants by their key in the manifest.

    Returns:
        buffers in the shape and dtype that the design says; streams (objects, *object shape).

    Raises:
        ValueError: a buffer's shape or dtype is not that of its contents.
    """
    forms = manifest if isinstance(manifest, Forms) else Forms(manifest)
    packed: dict[str, Array] = {}
    for buffer in design.buffers:
        if buffer.array is not None:
            _add(packed, buffer.array, forms, arrays)
            _check(f"buffer {buffer.name!r}", packed[buffer.array], buffer.shape, buffer.dtype)
    for fifo in design.fifos:
        if fifo.init_array is not None:
            _add(packed, fifo.init_array, forms, arrays)
            whole = packed[fifo.init_array]
            if whole.shape == fifo.shape:
                packed[fifo.init_array] = whole = whole[np.newaxis]
            _check(f"fifo {fifo.name!r}", whole, (len(whole), *fifo.shape), fifo.dtype)
    return packed


def _add(packed: dict[str, Array], key: str, forms: Forms, arrays: Mapping[str, Array]) -> None:
    if key not in packed:
        packed[key] = constant_of(key, forms, arrays)


def _check(what: str, array: Array, shape: tuple[int, ...], dtype: str) -> None:
    if array.shape != shape or array.dtype.name != dtype:
        msg = f"{what}: expected {dtype} {shape}, its contents are {array.dtype} {array.shape}"
        raise ValueError(msg)
