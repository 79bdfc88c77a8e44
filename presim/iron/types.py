"""Type descriptors of IRON: `np.ndarray[(n,), np.dtype[np.int8]]` and scalar types."""

import typing
from dataclasses import dataclass
from typing import Any

import numpy as np

from presim.iron.errors import UnsupportedError, WrongCallError


@dataclass(frozen=True, slots=True)
class ArrayType:
    """Shape and dtype (numpy's name) of objects, buffers and kernel arguments."""

    shape: tuple[int, ...]
    dtype: str

    @property
    def elements(self) -> int:
        """Number of elements."""
        return int(np.prod(self.shape, dtype=np.int64))

    def __str__(self) -> str:
        return f"{'x'.join(map(str, self.shape))} {self.dtype}"


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
    return ArrayType(tuple(int(n) for n in shape), dtype_name(typing.get_args(args[1])[0], what))


def is_array_type(value: object) -> bool:
    """Whether a value is an array descriptor."""
    return typing.get_origin(value) is np.ndarray


def is_scalar_type(value: object) -> bool:
    """Whether a value is a scalar type such as `np.int32`."""
    return isinstance(value, np.dtype) or (isinstance(value, type) and issubclass(value, np.generic))


def dtype_name(value: Any, what: str) -> str:
    """Numpy's name of a dtype, of numbers that the simulator has."""
    try:
        found = np.dtype(value)
    except TypeError:
        msg = f"{what}: expected a numpy type, got {value!r}"
        raise WrongCallError(msg) from None
    if found.kind not in "iufb":
        msg = f"{what}: elements of {found.name}, which the simulator has no arithmetic for"
        raise UnsupportedError(msg)
    return str(found.name)
