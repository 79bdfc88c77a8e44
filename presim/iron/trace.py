"""Tracing a core function: it is called once, every acquire, release, kernel call and store becomes a node.

`range_` gives a symbolic counter and records its body once; Python's own `range` unrolls.
"""

import contextlib
import contextvars
import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from presim.design import Side
from presim.iron.descriptors import ArrayType
from presim.iron.errors import UnsupportedError, WrongCallError, WrongValueError
from presim.iron.expr import INDEX, Scalar, Tree, cast, tree_of

ENDLESS: Final = 1 << 62
"""Trips of a loop that a design file writes as `range_(sys.maxsize)`."""


@dataclass(frozen=True, slots=True)
class Memory:
    """Memory that a core reads or writes: the `index`-th object held of a fifo, or a buffer.

    Attributes:
        kind: `fifo` or `buffer`.
        name: of it.
        side: of a fifo.
        index: of a fifo, 0 = oldest held.
        type: shape and dtype.
    """

    kind: str
    name: str
    side: Side
    index: int
    type: ArrayType


@dataclass(frozen=True, slots=True)
class AcquireNode:
    """Hold `count` objects."""

    fifo: str
    side: Side
    count: int


@dataclass(frozen=True, slots=True)
class ReleaseNode:
    """Give `count` objects back."""

    fifo: str
    side: Side
    count: int


@dataclass(frozen=True, slots=True)
class WaitNode:
    """Wait until the host sets a barrier to `value`."""

    barrier: str
    value: int


@dataclass(frozen=True, slots=True)
class UnsetNode:
    """Take `value` off a barrier."""

    barrier: str
    value: int


@dataclass(slots=True)
class IfNode:
    """Run `then` where the condition holds, else `other`."""

    condition: Tree
    then: "list[Node]"
    other: "list[Node]"


@dataclass(frozen=True, slots=True)
class LoadNode:
    """Read an element into a temp."""

    temp: int
    memory: Memory
    index: tuple[Tree, ...]


@dataclass(frozen=True, slots=True)
class StoreNode:
    """Write an element."""

    memory: Memory
    index: tuple[Tree, ...]
    value: Tree


@dataclass(frozen=True, slots=True)
class CallNode:
    """Call a kernel; an argument is a `Memory`, a number or a `Scalar`, in the order of its C parameters."""

    kernel: Any
    arguments: tuple[Any, ...]


@dataclass(slots=True)
class LoopNode:
    """Repeat `body`; the counter runs from 0 to `times` - 1."""

    counter: str
    times: int
    body: "list[Node]"


Node = AcquireNode | ReleaseNode | WaitNode | UnsetNode | LoadNode | StoreNode | CallNode | LoopNode | IfNode
Key = tuple[str, Side]


@dataclass(slots=True)
class _Frame:
    """A loop that is being traced: releases at its start, and fifos whose outer objects it uses."""

    start: dict[Key, int]
    outer: dict[Key, str] = field(default_factory=dict)


class Tracer:
    """Records what one core function does.

    Attributes:
        worker: name, for messages.
        body: nodes so far.
        constants: values of buffers that the host writes before the core reads them, by name.
        kernels: kernels called, by symbol.
        waited: barriers waited for.
    """

    def __init__(self, worker: str, constants: dict[str, np.ndarray[Any, Any]]) -> None:
        self.worker = worker
        self.constants = constants
        self.body: list[Node] = []
        self._bodies = [self.body]
        self._frames: list[_Frame] = []
        self._released: dict[Key, int] = {}
        self._counters = 0
        self._temps = 0

    @property
    def depth(self) -> int:
        """How many loops are open."""
        return len(self._frames)

    def add(self, node: Node) -> None:
        """Record a node."""
        self._bodies[-1].append(node)

    def released(self, key: Key) -> int:
        """Objects given back so far."""
        return self._released.get(key, 0)

    def release(self, key: Key, count: int) -> None:
        """Count objects that are given back."""
        self._released[key] = self.released(key) + count

    def use(self, key: Key, depth: int, what: str) -> None:
        """Remember the use of an object that was acquired outside the loops in which it is used."""
        for frame in self._frames[depth:]:
            frame.outer.setdefault(key, what)

    def load(self, memory: Memory, index: tuple[Tree, ...]) -> Scalar:
        """Read an element."""
        self._temps += 1
        self.add(LoadNode(self._temps, memory, index))
        return Scalar(("temp", self._temps), memory.type.element)

    def loop(self, start: int, stop: int, step: int) -> Iterator[Any]:
        """Trace the body of a loop once."""
        times = ENDLESS if stop >= sys.maxsize else max(0, math.ceil((stop - start) / step))
        name = f"i{self._counters}"
        self._counters += 1
        node = LoopNode(name, times, [])
        self.add(node)
        self._bodies.append(node.body)
        self._frames.append(_Frame(dict(self._released)))
        counter = Scalar(("counter", name), INDEX)
        yield counter * step + start if (start, step) != (0, 1) else counter
        self._bodies.pop()
        self._leave(self._frames.pop(), times)

    @contextlib.contextmanager
    def branch(self, body: "list[Node]") -> Iterator[None]:
        """Record into `body`, which must not change what is held."""
        before = dict(self._released)
        self._bodies.append(body)
        yield
        self._bodies.pop()
        if self._released != before or any(isinstance(n, AcquireNode | WaitNode | UnsetNode) for n in body):
            msg = "an if_ whose condition is known only when the core runs, with an acquire or release inside"
            raise UnsupportedError(msg)

    @contextlib.contextmanager
    def dropped(self) -> Iterator[None]:
        """Trace a part that never runs and forget it."""
        before = dict(self._released)
        self._bodies.append([])
        yield
        self._bodies.pop()
        self._released = before

    def _leave(self, frame: _Frame, times: int) -> None:
        for key, count in list(self._released.items()):
            once = count - frame.start.get(key, 0)
            if once and key in frame.outer:
                msg = (
                    f"{frame.outer[key]} was acquired outside a range_ loop that uses it and releases objects of the"
                    " same fifo: which object the core means changes with every trip"
                )
                raise UnsupportedError(msg)
            self._released[key] = count + once * (times - 1)


CURRENT: Final[contextvars.ContextVar[Tracer | None]] = contextvars.ContextVar("tracer", default=None)
SEQUENCE: Final[contextvars.ContextVar[Any]] = contextvars.ContextVar("sequence", default=None)


def tracer(what: str) -> Tracer:
    """The tracer of the core function that runs.

    Raises:
        WrongCallError: none does; `what` names the call.
    """
    found = CURRENT.get()
    if found is None:
        msg = f"{what} outside a core function"
        raise WrongCallError(msg)
    return found


def static_int(value: Any, what: str) -> int:
    """A number that is known while the design is built."""
    if isinstance(value, Scalar):
        tree = value.tree
        if tree[0] == "const":
            return int(tree[1])
        msg = f"{what} depends on a value that is known only when the core runs; the simulator needs it beforehand"
        raise UnsupportedError(msg)
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        msg = f"{what}: expected an int, got {value!r}"
        raise WrongCallError(msg)
    return int(value)


def loop(*bounds: Any) -> Iterator[Any]:
    """What `range_` gives: a symbolic counter in a core, ints elsewhere (a runtime sequence is unrolled)."""
    if not 1 <= len(bounds) <= 3:
        msg = f"range_ takes 1 to 3 bounds, got {len(bounds)}"
        raise WrongCallError(msg)
    numbers = [static_int(b, "a bound of range_") for b in bounds]
    start, stop = (0, numbers[0]) if len(numbers) == 1 else (numbers[0], numbers[1])
    step = numbers[2] if len(numbers) == 3 else 1
    if step < 1:
        msg = f"range_: expected a step of 1 or more, got {step}"
        raise WrongValueError(msg)
    current = CURRENT.get()
    if current is not None:
        yield from current.loop(start, stop, step)
        return
    if stop - start > 1 << 20:
        msg = f"range_ of {stop - start} trips outside a core function, which would be unrolled"
        raise UnsupportedError(msg)
    yield from range(start, stop, step)


class Element:
    """Base of what a core can index: an object of a fifo or a buffer."""

    __slots__ = ()

    def memory(self) -> Memory:
        """Which memory it is now."""
        raise NotImplementedError

    def __getitem__(self, index: Any) -> Any:
        memory = self.memory()
        return tracer("reading an element").load(memory, indices(memory, index))

    def __setitem__(self, index: Any, value: Any) -> None:
        memory = self.memory()
        tree, dtype = tree_of(value)
        if dtype not in {None, INDEX, memory.type.element} or (memory.type.bits and not dtype and tree[1:] != (0,)):
            msg = f"a value of {dtype or 'a number'} stored in {memory.name!r}, which holds {memory.type.element}"
            raise UnsupportedError(msg)
        if dtype == INDEX:
            tree = tree_of(cast(memory.type.dtype, value))[0]
        tracer("writing an element").add(StoreNode(memory, indices(memory, index), tree))


def indices(memory: Memory, index: Any) -> tuple[Tree, ...]:
    """Trees of the indices of one element.

    Raises:
        UnsupportedError: a slice, or not one index per dimension.
    """
    found = index if isinstance(index, tuple) else (index,)
    if any(isinstance(i, slice) or i is None or i is Ellipsis for i in found):
        msg = f"a slice of {memory.name!r}: the stand-in follows single elements"
        raise UnsupportedError(msg)
    if len(found) != len(memory.type.shape):
        msg = f"{memory.name!r} of shape {memory.type.shape} needs {len(memory.type.shape)} indices, got {len(found)}"
        raise UnsupportedError(msg)
    trees = tuple(tree_of(i)[0] for i in found)
    for tree, size in zip(trees, memory.type.shape, strict=True):
        if tree[0] == "const" and not 0 <= tree[1] < size:
            msg = f"index {tree[1]} of {memory.name!r}: expected 0 to {size - 1}"
            raise WrongValueError(msg)
    return trees
