"""Type descriptors of IRON: `np.ndarray[(n,), np.dtype[np.int8]]` and scalar types."""

import typing
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from presim.iron.errors import UnsupportedError, WrongCallError

CARRIED: Final[Mapping[str, str]] = MappingProxyType({"bfloat16": "uint16"})
"""Types whose bits are carried as they are, and in what."""


@dataclass(frozen=True, slots=True)
class ArrayType:
    """Objects, buffers and kernel arguments.

    Attributes:
        shape: of the object.
        dtype: numpy's name of what is stored.
        bits: type whose bits are stored where the simulator has no arithmetic for it, else "".
    """

    shape: tuple[int, ...]
    dtype: str
    bits: str = ""

    @property
    def element(self) -> str:
        """Name of the type in arithmetic."""
        return self.bits or self.dtype

    @property
    def elements(self) -> int:
        """Number of elements."""
        return int(np.prod(self.shape, dtype=np.int64))

    def __str__(self) -> str:
        return f"{'x'.join(map(str, self.shape))} {self.element}"


def array_type(value: object, what: str) -> ArrayType:
    """The array type of a descriptor; `what` names it in the refusal."""
    args = typing.get_args(value)
    if typing.get_origin(value) is not np.ndarray or len(args) != 2:
        msg = f"{what}: expected a type such as np.ndarray[(16,), np.dtype[np.int32]], got {value!r}"
        raise WrongCallError(msg)
    shape = args[0] if isinstance(args[0], tuple) else (args[0],)
    if not all(isinstance(n, int | np.integer) and n > 0 for n in shape):
        msg = f"{what}: expected a shape of positive ints, got {shape!r}"
        raise WrongCallError(msg)
    sizes = tuple(int(n) for n in shape)
    dtype = _dtype(typing.get_args(args[1])[0], what)
    if dtype.name in CARRIED:
        return ArrayType(sizes, CARRIED[dtype.name], str(dtype.name))
    return ArrayType(sizes, dtype_name(dtype, what))


def is_array_type(value: object) -> bool:
    """Whether a value is an array descriptor."""
    return typing.get_origin(value) is np.ndarray


def is_scalar_type(value: object) -> bool:
    """Whether a value is a scalar type such as `np.int32`."""
    if typing.get_origin(value) is np.dtype:
        return True
    return isinstance(value, np.dtype) or (isinstance(value, type) and issubclass(value, np.generic))


def dtype_name(value: Any, what: str) -> str:
    """Numpy's name of a dtype, of numbers that the simulator has."""
    found = _dtype(value, what)
    if found.kind not in "iufb":
        msg = f"{what}: elements of {found.name}, which the simulator has no arithmetic for"
        raise UnsupportedError(msg)
    return str(found.name)


def _dtype(value: Any, what: str) -> np.dtype[Any]:
    try:
        found: np.dtype[Any] = np.dtype(typing.get_args(value)[0] if typing.get_origin(value) is np.dtype else value)
    except TypeError:
        msg = f"{what}: expected a numpy type, got {value!r}"
        raise WrongCallError(msg) from None
    return found
