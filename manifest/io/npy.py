"""One array in numpy's `.npy` format: a strict header parser and a header writer with fixed bytes.

Why own: the parser has to compare shape x item size with the size of the member before anything is allocated and has no
pickle in it; the writer's bytes must not depend on the numpy version.
"""

import ast
import math
import re
import struct
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

MAGIC: Final = b"\x93NUMPY"
MAX_HEADER_BYTES: Final = 65535
_DESCR: Final = re.compile(r"[<>|=]?[biufcSU]\d{1,10}")
_MAX_RANK: Final = 32


class NpyError(ValueError):
    """The member is not an array that can be read; the text is the reason in a few words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NpyHeader:
    """What an `.npy` header declares; `bytes_after` is shape x item size."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    fortran_order: bool
    bytes_after: int


def header_length(start: bytes) -> tuple[int, int]:
    """(offset, length) of the header text, from the first 12 bytes of a member.

    Raises:
        NpyError: no `.npy` magic, an unknown version or a header above 65,535 bytes.
    """
    if start[:6] != MAGIC or len(start) < 10:
        msg = "it is not an .npy array"
        raise NpyError(msg)
    if start[6] not in (1, 2, 3) or (start[6] > 1 and len(start) < 12):
        msg = f"unknown .npy version {start[6]}"
        raise NpyError(msg)
    offset, form = (10, "<H") if start[6] == 1 else (12, "<I")
    length: int = struct.unpack_from(form, start, 8)[0]
    if length > MAX_HEADER_BYTES:
        msg = f"its header claims {length} bytes"
        raise NpyError(msg)
    return offset, length


def parse_header(text: bytes) -> NpyHeader:
    """The header from its text (a Python dict literal with `descr`, `fortran_order`, `shape`).

    Raises:
        NpyError: anything else; an object, structured or void type; a shape whose size does not fit 63 bits.
    """
    try:
        fields = ast.literal_eval(text.decode("utf-8"))
    except (ValueError, SyntaxError, RecursionError, MemoryError) as error:
        msg = "its header is no plain dictionary"
        raise NpyError(msg) from error
    if not isinstance(fields, dict) or fields.keys() != {"descr", "fortran_order", "shape"}:
        msg = "its header has not exactly descr, fortran_order and shape"
        raise NpyError(msg)
    dtype, shape, fortran = _dtype(fields["descr"]), fields["shape"], fields["fortran_order"]
    sizes_ok = isinstance(shape, tuple) and len(shape) <= _MAX_RANK and all(type(d) is int and d >= 0 for d in shape)
    if not sizes_ok or not isinstance(fortran, bool):
        msg = "its header has no valid shape or order"
        raise NpyError(msg)
    if math.prod(max(d, 1) for d in shape) * dtype.itemsize >= 2**63:
        msg = f"its header claims the shape {shape}"
        raise NpyError(msg)
    return NpyHeader(dtype=dtype, shape=shape, fortran_order=fortran, bytes_after=math.prod(shape) * dtype.itemsize)


def _dtype(descr: object) -> np.dtype[Any]:
    if isinstance(descr, str) and descr.lstrip("<>|=").startswith("O"):
        msg = "it holds Python objects (pickle), which are never loaded"
        raise NpyError(msg)
    if not isinstance(descr, str) or not _DESCR.fullmatch(descr):
        msg = f"its type {str(descr)[:60]!r} is no plain number, bool or text type"
        raise NpyError(msg)
    try:
        dtype = np.dtype(descr)
    except (TypeError, ValueError, OverflowError) as error:
        msg = f"unknown type {descr!r}"
        raise NpyError(msg) from error
    if dtype.itemsize == 0:
        msg = f"its type {descr!r} has no size"
        raise NpyError(msg)
    return dtype


def check_size(header: NpyHeader, size: int) -> None:
    """Compare the declared size with the `size` bytes that follow the header.

    Raises:
        NpyError: they differ.
    """
    if header.bytes_after != size:
        msg = f"shape {header.shape} of {header.dtype} needs {header.bytes_after} bytes, it has {size}"
        raise NpyError(msg)


def to_array(header: NpyHeader, data: bytearray) -> NDArray[Any]:
    """The array, C order, native byte order, writable, over `data` where possible (`bytes_after` bytes)."""
    flat = np.frombuffer(data, dtype=header.dtype)
    if header.fortran_order:
        array = flat.reshape(header.shape[::-1]).transpose().copy(order="C")
    else:
        array = flat.reshape(header.shape)
    return array if header.dtype.isnative else array.astype(header.dtype.newbyteorder("="))


def storable(array: NDArray[Any]) -> NDArray[Any]:
    """`array` in C order and little-endian, as it is written.

    Raises:
        NpyError: an object, structured or void array, or an empty text type.
    """
    if array.dtype.hasobject:
        msg = "it holds Python objects (pickle), which are never written"
        raise NpyError(msg)
    if array.dtype.kind not in "biufcSU" or array.dtype.itemsize == 0:
        msg = f"its type {str(array.dtype)[:60]!r} is no plain number, bool or text type"
        raise NpyError(msg)
    if array.ndim > _MAX_RANK:
        msg = f"it has {array.ndim} axes, at most {_MAX_RANK} are carried"
        raise NpyError(msg)
    return np.asarray(array, dtype=array.dtype.newbyteorder("<"), order="C")


def header_bytes(array: NDArray[Any]) -> bytes:
    """Magic, version 1.0 and header of an array from `storable`, padded to a multiple of 64 bytes."""
    text = f"{{'descr': {array.dtype.str!r}, 'fortran_order': False, 'shape': {array.shape!r}, }}"
    padding = -(10 + len(text) + 1) % 64
    body = text.encode("ascii") + b" " * padding + b"\n"
    return MAGIC + b"\x01\x00" + struct.pack("<H", len(body)) + body
