"""Plain Python of a core body as a kernel: elements read, computed and written, loops of those, calls in between.

A program is a list of statements, all of it JSON:

    ["load", temp, parameter, [index, ...]]          element into a temp
    ["store", parameter, [index, ...], value]
    ["loop", counter, times, [statement, ...]]
    ["if", condition, [statement, ...], [statement, ...]]
    ["call", symbol, [["memory", parameter] | ["number", value], ...]]

Values are the trees of `presim.iron.expr`. Integers wrap at their width, as `arith` does.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Function = Callable[..., None]
WIDEST: Final = 4
"""Bytes of the widest integers whose products fit the int64 of a whole loop at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedKernel:
    """A kernel made of the statements of a core body.

    Attributes:
        symbol: name of its row in the design.
        parameters: (dtype, shape, written) of each argument.
        counters: loop counters outside that it gets as scalars, in the order of the call's.
        statements: what it does.
    """

    symbol: str
    parameters: tuple[tuple[str, tuple[int, ...], bool], ...]
    counters: tuple[str, ...]
    statements: tuple[Any, ...]

    @property
    def calls(self) -> tuple[str, ...]:
        """Symbols of the kernels that it calls."""
        return tuple(sorted(_calls(self.statements)))


def _calls(statements: Sequence[Any]) -> set[str]:
    found = {s[1] for s in statements if s[0] == "call"}
    for statement in statements:
        for part in {"loop": statement[3:], "if": statement[2:]}.get(statement[0], ()):
            found |= _calls(part)
    return found


def function_of(kernel: TracedKernel, functions: Mapping[str, Function]) -> Function:
    """The kernel as the simulator calls it.

    Args:
        kernel: what to run.
        functions: kernels that it calls, by symbol.
    """

    def run(context: Any, *arrays: Array) -> None:
        counters = {name: context.scalars[f"s{i}"] for i, name in enumerate(kernel.counters)}
        _Run(context, arrays, functions, counters).block(kernel.statements)

    return run


class _Scope:
    """What a called kernel sees in place of the context of the traced one."""

    def __init__(self, context: Any, kernel: str, scalars: Mapping[str, Any]) -> None:
        self.worker = context.worker
        self.kernel = kernel
        self.attributes: Mapping[str, Any] = {}
        self.scalars = scalars
        self.modes = context.modes
        self.rounding = context.rounding
        self.saturation = context.saturation


class _Run:
    def __init__(
        self, context: Any, arrays: Sequence[Array], functions: Mapping[str, Function], counters: Mapping[str, Any]
    ) -> None:
        self.context = context
        self.arrays = arrays
        self.functions = functions
        self.counters = dict(counters)
        self.temps: dict[int, Any] = {}

    def block(self, statements: Sequence[Any]) -> None:
        for statement in statements:
            kind = statement[0]
            if kind == "load":
                self.temps[statement[1]] = self.arrays[statement[2]][self.at(statement[3])]
            elif kind == "store":
                self.arrays[statement[1]][self.at(statement[2])] = self.value(statement[3])
            elif kind == "call":
                self.call(statement)
            elif kind == "if":
                self.block(statement[2] if self.value(statement[1]) else statement[3])
            else:
                self.loop(statement)

    def loop(self, statement: Any) -> None:
        _, counter, times, body = statement
        if times and _independent(counter, body, [a.dtype for a in self.arrays]):
            self.counters[counter] = np.arange(times)
            self.block(body)
            return
        for trip in range(times):
            self.counters[counter] = trip
            self.block(body)

    def at(self, index: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(self.value(i) for i in index)

    def call(self, statement: Any) -> None:
        _, symbol, arguments = statement
        memories = [self.arrays[a[1]] for a in arguments if a[0] == "memory"]
        numbers = [self.value(a[1]) for a in arguments if a[0] == "number"]
        scalars = {f"s{i}": n.item() if isinstance(n, np.generic) else n for i, n in enumerate(numbers)}
        self.functions[symbol](_Scope(self.context, symbol, scalars), *memories)

    def value(self, tree: Any) -> Any:
        kind = tree[0]
        if kind == "const":
            return tree[1]
        if kind == "counter":
            return self.counters[tree[1]]
        if kind == "temp":
            return self.temps[tree[1]]
        if kind == "cast":
            return _typed(self.value(tree[2]), tree[1])
        return _operation(tree[1], tree[2], self.value(tree[3]), self.value(tree[4]))


def _operation(name: str, dtype: str, a: Any, b: Any) -> Any:
    """One operation; `dtype` of the operands."""
    kind = np.dtype(dtype).kind if dtype else "i"
    a, b = _wide(a, kind), _wide(b, kind)
    if kind == "f":
        a, b = _typed(a, dtype), _typed(b, dtype)
    with np.errstate(all="ignore"):
        found = OPERATIONS[name](a, b)
    if name in COMPARISONS:
        return found
    return _typed(found, dtype) if dtype else found


def _wide(value: Any, kind: str) -> Any:
    """An integer as a Python int, or as int64 where it is a whole loop's."""
    if kind == "f":
        return value
    return value.astype(np.int64) if isinstance(value, np.ndarray) else int(value)


def _typed(value: Any, dtype: str) -> Any:
    """A value in a type, integers wrapped."""
    if isinstance(value, np.ndarray):
        return value.astype(dtype)
    found = np.dtype(dtype)
    if found.kind == "f":
        return found.type(value)
    if found.kind == "b":
        return found.type(bool(value))
    bits = 8 * found.itemsize
    wrapped = int(value) & ((1 << bits) - 1)
    if found.kind == "i" and wrapped >> (bits - 1):
        wrapped -= 1 << bits
    return found.type(wrapped)


COMPARISONS: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
}
OPERATIONS: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    **COMPARISONS,
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "floordiv": lambda a, b: a // b,
    "div": lambda a, b: a / b,
    "mod": lambda a, b: a % b,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "shl": lambda a, b: a << b,
    "shr": lambda a, b: a >> b,
}


def _independent(counter: str, body: Sequence[Any], dtypes: Sequence[np.dtype[Any]]) -> bool:
    """Whether the trips of a loop can be computed at once: loads, then stores each to places of its own.

    What is stored may be loaded too where both are the same place of the same trip.
    """
    if any(s[0] not in {"load", "store"} for s in body) or any(d.kind in "iu" and d.itemsize > WIDEST for d in dtypes):
        return False
    stores = [s for s in body if s[0] == "store"]
    if len({s[1] for s in stores}) != len(stores):
        return False
    places = {s[1]: s[2] for s in stores}
    if not all(_moves(place, counter) for place in places.values()):
        return False
    loads = [(n, s) for n, s in enumerate(body) if s[0] == "load" and s[2] in places]
    at = {s[1]: n for n, s in enumerate(body) if s[0] == "store"}
    return all(_same(s[3], places[s[2]]) and n < at[s[2]] for n, s in loads)


def _same(a: Any, b: Any) -> bool:
    return repr(a).replace("(", "[").replace(")", "]") == repr(b).replace("(", "[").replace(")", "]")


def _moves(place: Sequence[Any], counter: str) -> bool:
    """Whether one of the indices is the counter itself, or it plus or times a constant."""
    for index in place:
        parts = [index]
        if index[0] == "op" and index[1] in {"add", "mul"}:
            parts = [p for p in index[3:] if p[0] != "const"]
            if any(p[0] == "const" and p[1] == 0 for p in index[3:]) and index[1] == "mul":
                return False
        if len(parts) == 1 and parts[0][0] == "op" and parts[0][1] == "mul" and parts[0][4][0] == "const":
            parts = [parts[0][3]]
        if len(parts) == 1 and list(parts[0]) == ["counter", counter]:
            return True
    return False
