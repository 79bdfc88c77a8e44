"""What a core holds: objects of fifos, and views of several."""

from collections.abc import Iterator
from typing import Any

from presim.design import Side
from presim.iron.descriptors import ArrayType
from presim.iron.errors import WrongValueError
from presim.iron.trace import Element, Memory, static_int, tracer


class Held(Element):
    """An object that a core holds; `number` counts the objects of its end from the start of the program."""

    __slots__ = ("depth", "fifo", "number", "side", "type")

    def __init__(self, fifo: str, side: Side, type_: ArrayType, number: int, depth: int) -> None:
        self.fifo = fifo
        self.side: Side = side
        self.type = type_
        self.number = number
        self.depth = depth

    @property
    def shape(self) -> tuple[int, ...]:
        """Its shape."""
        return self.type.shape

    def memory(self) -> Memory:
        """Which of the objects held it is now.

        Raises:
            WrongValueError: it was given back.
        """
        key = (self.fifo, self.side)
        current = tracer(f"using an object of fifo {self.fifo!r}")
        index = self.number - current.released(key)
        if index < 0:
            msg = f"worker {current.worker!r} uses an object of fifo {self.fifo!r} after its release"
            raise WrongValueError(msg)
        current.use(key, self.depth, f"an object of fifo {self.fifo!r}")
        return Memory("fifo", self.fifo, self.side, index, self.type)


class View:
    """Several objects held, oldest first."""

    def __init__(self, held: list[Held]) -> None:
        self._held = held

    def __getitem__(self, index: Any) -> Held:
        at = static_int(index, "which of the objects held is meant")
        if not 0 <= at < len(self._held):
            msg = f"object {at} of {len(self._held)} that were acquired"
            raise WrongValueError(msg)
        return self._held[at]

    def __len__(self) -> int:
        return len(self._held)

    def __iter__(self) -> Iterator[Held]:
        return iter(self._held)
