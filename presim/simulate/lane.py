"""A lane: the ring of objects of one segment of a pool, with one filler and one drainer.

Why four counters: claimed, published, taken and freed objects say everything that the two semaphore locks of the
hardware say, and give every object a number and every buffer one holder. `published - taken` is the value of the
consumers' lock, `depth - (claimed - freed)` that of the producers'.
"""

from collections.abc import Callable
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

ENDLESS: Final = 1 << 60
"""Depth and object count of what never runs out."""

_POISON: Final = {
    "int8": -91,
    "uint8": 0xA5,
    "int16": -21331,
    "uint16": 0xACAD,
    "int32": -559038737,
    "uint32": 0xDEADBEEF,
    "int64": -2401053089206453570,
    "uint64": 0xDEADBEEFDEADBEEF,
}


class Waiter(Protocol):
    """What waits on a lane."""

    def wake(self) -> None:
        """Put it among those that may go on."""


def poison_of(dtype: Any) -> Any:
    """What fresh memory of a type holds: a value of its own for each integer type, NaN for floats, else 0."""
    kind = np.dtype(dtype)
    if kind.kind in "iu":
        return kind.type(_POISON[kind.name])
    return kind.type(np.nan) if kind.kind == "f" else kind.type(0)


class Lane:
    """Objects of one segment.

    Attributes:
        fifo: whose objects.
        pool: name of the pool.
        depth: objects that fit.
        ring: buffers that take turns; `number % ring` is the buffer of an object.
        claimed, published, taken, freed: objects so far; the filler holds [published, claimed), the drainer
            [freed, taken).
        filler, drainer: the actors.
        flat: one-dimensional arrays, one per buffer; none = simulated without data.
        views: the same in the shape of the object, as kernels get them; writable only while a worker holds them.
        written: per buffer, whether somebody wrote the object since it was claimed; none = not tracked.
        keep: objects stay as they are when freed.
        constant: full from the start, never filled again.
        before_take: called with an object's number before it is read.
        after_publish: called with an object's number when it becomes visible.
        after_free: called with an object's number when it was read.
    """

    __slots__ = (
        "after_free",
        "after_publish",
        "before_take",
        "claimed",
        "constant",
        "depth",
        "drain_waiter",
        "drainer",
        "fifo",
        "fill_waiter",
        "filler",
        "flat",
        "freed",
        "initial",
        "keep",
        "poison",
        "pool",
        "published",
        "ring",
        "taken",
        "views",
        "written",
    )

    def __init__(self, fifo: str, pool: str, depth: int, *, ring: int | None = None, initial: int = 0) -> None:
        self.fifo = fifo
        self.pool = pool
        self.depth = depth
        self.ring = depth if ring is None else ring
        self.initial = initial
        self.claimed = self.published = initial
        self.taken = self.freed = 0
        self.filler: Any = None
        self.drainer: Any = None
        self.fill_waiter: Waiter | None = None
        self.drain_waiter: Waiter | None = None
        self.flat: list[Array] = []
        self.views: list[Array] = []
        self.written = bytearray()
        self.poison: Any = 0
        self.keep = False
        self.constant = False
        self.before_take: Callable[[int], None] | None = None
        self.after_publish: Callable[[int], None] | None = None
        self.after_free: Callable[[int], None] | None = None

    def track(self) -> None:
        """Remember which objects were written; those of the start were."""
        self.written = bytearray(self.ring)
        for number in range(min(self.initial, self.ring)):
            self.written[number] = 1

    def claim(self, count: int) -> None:
        """The filler takes `count` empty objects; there have to be as many."""
        number = self.claimed
        self.claimed = number + count
        if self.written:
            for k in (number,) if count == 1 else range(number, number + count):
                self.written[k % self.ring] = 0

    def publish(self, count: int) -> None:
        """The filler hands over its oldest `count` objects."""
        hook = self.after_publish
        if hook is not None:
            for number in range(self.published, self.published + count):
                hook(number)
        self.published += count
        waiter = self.drain_waiter
        if waiter is not None:
            self.drain_waiter = None
            waiter.wake()

    def take(self, count: int) -> None:
        """The drainer takes `count` full objects; there have to be as many."""
        hook = self.before_take
        if hook is not None:
            for number in range(self.taken, self.taken + count):
                hook(number)
        self.taken += count

    def free(self, count: int) -> None:
        """The drainer gives back its oldest `count` objects: their buffers hold nothing that may be relied on."""
        number = self.freed
        self.freed = number + count
        if self.flat and not self.keep:
            for k in (number,) if count == 1 else range(number, number + count):
                self.flat[k % self.ring].fill(self.poison)
        hook = self.after_free
        if hook is not None:
            for k in range(number, number + count):
                hook(k)
        waiter = self.fill_waiter
        if waiter is not None:
            self.fill_waiter = None
            waiter.wake()

    def room(self) -> int:
        """Empty objects that nobody claimed."""
        return self.depth - self.claimed + self.freed

    def tokens(self) -> int:
        """Full objects that nobody took."""
        return self.published - self.taken

    def is_written(self, number: int) -> bool:
        """Whether somebody wrote the object; what is not tracked was."""
        return not self.written or bool(self.written[number % self.ring])

    def mark(self, number: int, written: bool) -> None:
        """Say whether the object was written."""
        if self.written:
            self.written[number % self.ring] = written
