"""Objects with times: when each became full, when its buffer became free again."""

from typing import Final

HOST_DEPTH: Final = 1 << 60


class TimedLane:
    """Objects of one segment of a pool.

    Attributes:
        fifo: whose objects.
        depth: objects that fit.
        full: time at which object n became full.
        free: time at which the buffer of object n became free again.
        claimed: objects that the filler began.
        taken: objects that the drainer began.
    """

    __slots__ = ("claimed", "depth", "fifo", "free", "full", "taken")

    def __init__(self, fifo: str, depth: int, initial: int = 0) -> None:
        self.fifo = fifo
        self.depth = depth
        self.full: list[float] = [0.0] * initial
        self.free: list[float] = []
        self.claimed = initial
        self.taken = 0

    def room_at(self, count: int = 1) -> float | None:
        """Time from which `count` more objects have room; None = not known yet."""
        last = self.claimed + count - 1 - self.depth
        if last < 0:
            return 0.0
        return self.free[last] if last < len(self.free) else None

    def full_at(self, count: int = 1) -> float | None:
        """Time from which `count` more objects are full; None = not known yet."""
        last = self.taken + count - 1
        return self.full[last] if last < len(self.full) else None


class HostSource(TimedLane):
    """Memory where everything is there from the start: the host's, or weights that a memory tile sends again."""

    __slots__ = ("objects",)

    def __init__(self, fifo: str, objects: int) -> None:
        super().__init__(fifo, HOST_DEPTH)
        self.objects = objects

    def full_at(self, count: int = 1) -> float | None:
        """0 until all objects were sent."""
        return 0.0 if self.taken + count <= self.objects else None


class HostSink(TimedLane):
    """External memory that takes what comes; `full` are the times of arrival."""

    __slots__ = ()

    def __init__(self, fifo: str) -> None:
        super().__init__(fifo, HOST_DEPTH)
