"""`range_` and names of types."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from presim.iron.api import row
from presim.iron.errors import UnsupportedError, WrongValueError
from presim.iron.trace import loop

TYPES: Final[Mapping[str, Any]] = MappingProxyType(
    {
        "i8": np.int8,
        "i16": np.int16,
        "i32": np.int32,
        "i64": np.int64,
        "u8": np.uint8,
        "u16": np.uint16,
        "u32": np.uint32,
        "f32": np.float32,
    }
)


@row("aie.iron.controlflow.range_")
def range_(*args: Any, iter_args: Any = None, insert_yield: bool = True) -> Iterator[Any]:
    """A loop of the hardware: its body is traced once."""
    if iter_args is not None or not insert_yield:
        msg = "range_ with iter_args: the simulator has no values that a loop carries"
        raise UnsupportedError(msg)
    return loop(*args)


@row("aie.iron.str_to_dtype")
def str_to_dtype(dtype_str: str) -> Any:
    """Numpy's type of a short name such as `i16`."""
    if dtype_str not in TYPES:
        msg = f"str_to_dtype: expected one of {', '.join(TYPES)}, got {dtype_str!r}"
        raise WrongValueError(msg)
    return TYPES[dtype_str]


@row("aie.iron.dtype_to_str")
def dtype_to_str(dtype: Any) -> str:
    """Short name of a type."""
    for name, found in TYPES.items():
        if found is dtype:
            return name
    msg = f"dtype_to_str: expected one of {', '.join(TYPES)}, got {dtype!r}"
    raise WrongValueError(msg)
