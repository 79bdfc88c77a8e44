"""Values inside a core function while it is traced: loop counters, elements of memory, arithmetic on them.

A value is a tree of tuples:

    ("const", number) | ("counter", name) | ("temp", number) | ("op", name, dtype, a, b) | ("cast", dtype, a)

`dtype` is numpy's name, "" for an index (Python int, no wrap). A `temp` is an element that was read from memory at
that point of the program.
"""

from typing import Any, Final

import numpy as np

from presim.iron.descriptors import CARRIED, dtype_name
from presim.iron.errors import UnsupportedError

Tree = tuple[Any, ...]
INDEX: Final = ""


class Scalar:
    """A number that is known only when the core runs.

    Attributes:
        tree: how it comes about.
        dtype: numpy's name, "" for an index.
    """

    __slots__ = ("dtype", "tree")

    def __init__(self, tree: Tree, dtype: str) -> None:
        self.tree = tree
        self.dtype = dtype

    def __bool__(self) -> bool:
        msg = "a value that is known only when the core runs decides a Python `if`, `while`, `and` or `or`"
        raise UnsupportedError(msg)

    def __index__(self) -> int:
        msg = "a value that is known only when the core runs is used where Python needs an int"
        raise UnsupportedError(msg)

    __int__ = __index__

    def __iter__(self) -> Any:
        msg = "a value that is known only when the core runs is no sequence"
        raise UnsupportedError(msg)

    def __add__(self, other: Any) -> "Scalar":
        return binary("add", self, other)

    def __radd__(self, other: Any) -> "Scalar":
        return binary("add", other, self)

    def __sub__(self, other: Any) -> "Scalar":
        return binary("sub", self, other)

    def __rsub__(self, other: Any) -> "Scalar":
        return binary("sub", other, self)

    def __mul__(self, other: Any) -> "Scalar":
        return binary("mul", self, other)

    def __rmul__(self, other: Any) -> "Scalar":
        return binary("mul", other, self)

    def __floordiv__(self, other: Any) -> "Scalar":
        return binary("floordiv", self, other)

    def __rfloordiv__(self, other: Any) -> "Scalar":
        return binary("floordiv", other, self)

    def __truediv__(self, other: Any) -> "Scalar":
        return binary("div", self, other)

    def __rtruediv__(self, other: Any) -> "Scalar":
        return binary("div", other, self)

    def __mod__(self, other: Any) -> "Scalar":
        return binary("mod", self, other)

    def __rmod__(self, other: Any) -> "Scalar":
        return binary("mod", other, self)

    def __and__(self, other: Any) -> "Scalar":
        return binary("and", self, other)

    def __or__(self, other: Any) -> "Scalar":
        return binary("or", self, other)

    def __xor__(self, other: Any) -> "Scalar":
        return binary("xor", self, other)

    def __lshift__(self, other: Any) -> "Scalar":
        return binary("shl", self, other)

    def __rshift__(self, other: Any) -> "Scalar":
        return binary("shr", self, other)

    def __neg__(self) -> "Scalar":
        return binary("sub", 0, self)

    def __lt__(self, other: Any) -> "Scalar":
        return binary("lt", self, other)

    def __le__(self, other: Any) -> "Scalar":
        return binary("le", self, other)

    def __gt__(self, other: Any) -> "Scalar":
        return binary("gt", self, other)

    def __ge__(self, other: Any) -> "Scalar":
        return binary("ge", self, other)

    def __eq__(self, other: object) -> Any:
        return binary("eq", self, other)

    def __ne__(self, other: object) -> Any:
        return binary("ne", self, other)

    __hash__ = object.__hash__


def tree_of(value: Any) -> tuple[Tree, str | None]:
    """(tree, dtype) of a value; dtype None for a Python number, which takes the other side's."""
    if isinstance(value, Scalar):
        return value.tree, value.dtype
    if isinstance(value, np.generic):
        return ("const", value.item()), dtype_name(value.dtype, "a constant")
    if isinstance(value, bool | int | float):
        return ("const", value), None
    msg = f"a {type(value).__name__} in arithmetic of a core, expected a number or an element of memory"
    raise UnsupportedError(msg)


def binary(name: str, a: Any, b: Any) -> Scalar:
    """An operation on two values; a Python number takes the type of the other side, an index that of memory."""
    (left, left_type), (right, right_type) = tree_of(a), tree_of(b)
    kinds = {t for t in (left_type, right_type) if t}
    if len(kinds) > 1:
        msg = f"{name} of {left_type} and {right_type}: MLIR has no arithmetic on two types"
        raise UnsupportedError(msg)
    dtype = kinds.pop() if kinds else INDEX
    if dtype in CARRIED:
        msg = f"arithmetic on {dtype} in a core body; the simulator carries its bits and leaves arithmetic to kernels"
        raise UnsupportedError(msg)
    if name in {"lt", "le", "gt", "ge", "eq", "ne"}:
        return Scalar(("op", name, dtype, left, right), "bool")
    return Scalar(folded(("op", name, dtype, left, right)), dtype)


def folded(tree: Tree) -> Tree:
    """An affine tree of one counter in the one form `counter * factor + offset`."""
    found = affine(tree) if tree[2] == INDEX else None
    if found is None:
        return tree
    counter, factor, offset = found
    if not counter or not factor:
        return ("const", offset)
    part: Tree = ("counter", counter)
    if factor != 1:
        part = ("op", "mul", INDEX, part, ("const", factor))
    return ("op", "add", INDEX, part, ("const", offset)) if offset else part


def affine(tree: Tree) -> tuple[str, int, int] | None:
    """(counter, factor, offset) of an index, counter "" for a constant; None where it is not of that form."""
    if tree[0] == "const":
        return ("", 0, int(tree[1])) if isinstance(tree[1], int) else None
    if tree[0] == "counter":
        return (tree[1], 1, 0)
    if tree[0] != "op" or tree[2] != INDEX:
        return None
    left, right = affine(tree[3]), affine(tree[4])
    if left is None or right is None:
        return None
    return _combined(tree[1], left, right)


def _combined(name: str, a: tuple[str, int, int], b: tuple[str, int, int]) -> tuple[str, int, int] | None:
    if name == "mul":
        if a[0] and b[0]:
            return None
        counted, plain = (a, b) if a[0] else (b, a)
        return (counted[0], counted[1] * plain[2], counted[2] * plain[2])
    if name not in {"add", "sub"} or (a[0] and b[0] and a[0] != b[0]):
        return None
    sign = 1 if name == "add" else -1
    return (a[0] or b[0], a[1] + sign * b[1], a[2] + sign * b[2])


def scalar_text(value: Any) -> int | str | None:
    """A kernel scalar as the design has it: an int, or `@counter*factor+offset`; None where it is neither."""
    if isinstance(value, bool | int | np.integer):
        return int(value)
    if not isinstance(value, Scalar):
        return None
    tree = value.tree
    while tree[0] == "cast" and np.dtype(tree[1]).kind in "iu":
        tree = tree[2]
    found = affine(tree)
    if found is None:
        return None
    counter, factor, offset = found
    if not counter or not factor:
        return offset
    return f"@{counter}" + (f"*{factor}" if factor != 1 else "") + (f"{offset:+d}" if offset else "")


def cast(dtype: str, value: Any) -> Any:
    """A value in another type."""
    tree, _ = tree_of(value)
    if tree[0] == "const":
        return np.dtype(dtype).type(tree[1])
    return Scalar(("cast", dtype, tree), dtype)


def temps_of(tree: Tree) -> set[int]:
    """Numbers of the temps that a tree uses."""
    if tree[0] == "temp":
        return {tree[1]}
    return {n for part in tree if isinstance(part, tuple) for n in temps_of(part)}


def counters_of(tree: Tree) -> set[str]:
    """Names of the counters that a tree uses."""
    if tree[0] == "counter":
        return {tree[1]}
    return {n for part in tree if isinstance(part, tuple) for n in counters_of(part)}
