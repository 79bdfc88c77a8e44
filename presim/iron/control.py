"""Control flow of `aie`: `range_`, `if_`, `else_`, and names of types."""

import contextlib
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from presim.iron.api import row
from presim.iron.errors import UnsupportedError, WrongValueError
from presim.iron.expr import Scalar
from presim.iron.trace import CURRENT, IfNode, loop

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


class Branch:
    """What `if_` gives, for `else_`.

    Attributes:
        taken: whether the condition holds; None = known only when the core runs.
        node: of such a condition.
    """

    def __init__(self, taken: bool | None, node: IfNode | None) -> None:
        self.taken = taken
        self.node = node


@row("aie.helpers.dialects.scf.if_")
@contextlib.contextmanager
def if_(cond: Any, hasElse: bool = True, insert_yield: bool = True) -> Iterator[Branch]:  # noqa: N803 (IRON's name)
    """A condition of the hardware; one that is known beforehand leaves the branch that is taken."""
    del hasElse
    if not insert_yield:
        msg = "if_ with insert_yield=False: the simulator has no values that a branch gives"
        raise UnsupportedError(msg)
    current = CURRENT.get()
    if current is None:
        msg = "if_ outside a core function"
        raise UnsupportedError(msg)
    if not isinstance(cond, Scalar):
        with contextlib.nullcontext() if cond else current.dropped():
            yield Branch(bool(cond), None)
        return
    node = IfNode(cond.tree, [], [])
    current.add(node)
    with current.branch(node.then):
        yield Branch(None, node)


@row("aie.helpers.dialects.scf.else_")
@contextlib.contextmanager
def else_(if_op: Any, insert_yield: bool = True) -> Iterator[None]:
    """The other branch of an `if_`."""
    del insert_yield
    current = CURRENT.get()
    if current is None or not isinstance(if_op, Branch):
        msg = "else_: expected what if_ gave, in a core function"
        raise WrongValueError(msg)
    if if_op.node is not None:
        with current.branch(if_op.node.other):
            yield
        return
    with current.dropped() if if_op.taken else contextlib.nullcontext():
        yield


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
