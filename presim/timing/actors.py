"""Workers and DMAs with a clock each; `run` goes on until something that is waited for has no time yet."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from presim.design import Acquire, Call, Fifo, Loop, Release, Step, Worker
from presim.steps import side_of
from presim.timing.lanes import TimedLane
from presim.timing.model import ActorTime

Spans = list[tuple[float, str, float, str]]
"""(begin, actor, end, what) of everything that was done."""


@dataclass(slots=True)
class Clock:
    """Time of an actor and what it went on."""

    actor: str
    spans: Spans
    now: float = 0.0
    busy: float = 0.0
    locks: float = 0.0
    stalls: dict[str, float] = field(default_factory=dict)

    def wait(self, until: float, fifo: str) -> None:
        """Stand still until a time that may have passed already."""
        if until > self.now:
            self.stalls[fifo] = self.stalls.get(fifo, 0.0) + until - self.now
            self.now = until

    def lock(self, cycles: float) -> None:
        """A lock that does not wait."""
        self.locks += cycles
        self.now += cycles

    def work(self, cycles: float, what: str) -> None:
        """Compute or move."""
        self.spans.append((self.now, self.actor, self.now + cycles, what))
        self.busy += cycles
        self.now += cycles

    def summary(
        self, kind: Literal["worker", "on_chip", "shim"], place: str, *, moved_bytes: int = 0, macs: int = 0
    ) -> ActorTime:
        """The totals."""
        worst = max(self.stalls, key=lambda name: self.stalls[name], default="")
        return ActorTime(
            actor=self.actor,
            kind=kind,
            place=place,
            busy=self.busy,
            locks=self.locks,
            stall=sum(self.stalls.values()),
            stalled_on=worst,
            moved_bytes=moved_bytes,
            macs=macs,
        )


def unrolled(program: Sequence[Step]) -> Iterator[Acquire | Release | Call]:
    """The steps of one pass in the order of execution."""
    for step in program:
        if isinstance(step, Loop):
            for _ in range(step.times):
                yield from unrolled(step.body)
        else:
            yield step


class TimedWorker:
    """A program on a core.

    Args:
        worker: the program.
        fifos: by name.
        ports: (fifo, side) -> lanes of its pool.
        clock: its time.
        passes: inferences.
        lock_cycles: per acquire and release.
        cycles_of: cycles of a call.
        cascades: lane of the cascade that it reads, and of the one that it writes; None = none.
    """

    def __init__(
        self,
        worker: Worker,
        fifos: Mapping[str, Fifo],
        ports: Mapping[tuple[str, str], TimedLane],
        *,
        clock: Clock,
        passes: int,
        lock_cycles: float,
        cycles_of: Callable[[Call], float],
        cascades: tuple[TimedLane | None, TimedLane | None],
    ) -> None:
        self.worker = worker
        self.fifos = fifos
        self.ports = ports
        self.clock = clock
        self.lock_cycles = lock_cycles
        self.cycles_of = cycles_of
        self.reads, self.writes = cascades
        self.held: dict[tuple[str, str], int] = {}
        self.macs = 0
        self.sides: dict[tuple[str, str], tuple[str, str]] = {}
        self.costs: dict[int, tuple[Call, float]] = {}
        self.steps = self._steps(passes if worker.while_true else 1)
        self.step: Acquire | Release | Call | None = next(self.steps, None)

    def _steps(self, passes: int) -> Iterator[Acquire | Release | Call]:
        for _ in range(passes):
            yield from unrolled(self.worker.program)

    def run(self) -> bool:
        """Go on as far as possible; True = it did something."""
        moved = False
        while self.step is not None and self._do(self.step):
            moved = True
            self.step = next(self.steps, None)
        return moved

    def _port(self, step: Acquire | Release) -> tuple[str, str]:
        named = step.fifo, step.side
        if named not in self.sides:
            self.sides[named] = step.fifo, side_of(self.fifos[step.fifo], self.worker.name, step.side)
        return self.sides[named]

    def _do(self, step: Acquire | Release | Call) -> bool:
        if isinstance(step, Acquire):
            return self._acquire(step)
        if isinstance(step, Release):
            self._release(step)
            return True
        return self._call(step)

    def _acquire(self, step: Acquire) -> bool:
        key = self._port(step)
        lane, need = self.ports[key], step.count - self.held.get(key, 0)
        if need > 0:
            ready = lane.room_at(need) if key[1] == "produce" else lane.full_at(need)
            if ready is None:
                return False
            self.clock.wait(ready, step.fifo)
            if key[1] == "produce":
                lane.claimed += need
            else:
                lane.taken += need
            self.held[key] = step.count
        self.clock.lock(self.lock_cycles)
        return True

    def _release(self, step: Release) -> None:
        key = self._port(step)
        self.clock.lock(self.lock_cycles)
        lane = self.ports[key]
        times = lane.full if key[1] == "produce" else lane.free
        times.extend([self.clock.now] * step.count)
        self.held[key] = self.held.get(key, 0) - step.count

    def _call(self, step: Call) -> bool:
        kinds = {argument.kind for argument in step.arguments} if self.reads or self.writes else ()
        if "cascade_in" in kinds and self.reads is not None:
            ready = self.reads.full_at()
            if ready is None:
                return False
            self.clock.wait(ready, self.reads.fifo)
        if "cascade_out" in kinds and self.writes is not None:
            ready = self.writes.room_at()
            if ready is None:
                return False
            self.clock.wait(ready, self.writes.fifo)
        if id(step) not in self.costs:
            self.costs[id(step)] = step, self.cycles_of(step)
        self.clock.work(self.costs[id(step)][1], step.kernel)
        self.macs += step.macs
        if "cascade_in" in kinds and self.reads is not None:
            self.reads.taken += 1
            self.reads.free.append(self.clock.now)
        if "cascade_out" in kinds and self.writes is not None:
            self.writes.claimed += 1
            self.writes.full.append(self.clock.now)
        return True


class End:
    """One end of a stream: the parts that its descriptors move, one after the other."""

    __slots__ = ("at", "lanes", "moved", "repeat", "sizes")

    def __init__(self, lanes: Sequence[TimedLane], sizes: Sequence[int], repeat: int = 1) -> None:
        self.lanes = tuple(lane for lane in lanes for _ in range(repeat))
        self.sizes = tuple(size for size in sizes for _ in range(repeat))
        self.repeat = repeat
        self.at = 0
        self.moved = 0

    @property
    def lane(self) -> TimedLane:
        """The lane of the part that is moved."""
        return self.lanes[self.at]

    @property
    def opens(self) -> bool:
        """Whether the next element needs a lock first; an object that is sent again does not."""
        return self.moved == 0 and self.at % self.repeat == 0

    def rest(self) -> int:
        """Elements of the part that are not through."""
        return self.sizes[self.at] - self.moved

    def advance(self, elements: int) -> TimedLane | None:
        """Move on; the lane whose object is through, None = it is not."""
        self.moved += elements
        if self.moved < self.sizes[self.at]:
            return None
        lane, closes = self.lane, self.at % self.repeat == self.repeat - 1
        self.moved = 0
        self.at = (self.at + 1) % len(self.lanes)
        return lane if closes else None


class TimedStream:
    """A DMA that sends and those that receive, in step.

    Args:
        clock: its time.
        source: sending end.
        targets: receiving ends.
        element_bytes: bytes of an element.
        bytes_per_cycle: of the slowest channel.
        descriptor_cycles: per object.
        latency_cycles: from the sender to the receivers.
    """

    def __init__(
        self,
        clock: Clock,
        source: End,
        targets: Sequence[End],
        *,
        element_bytes: int,
        bytes_per_cycle: float,
        descriptor_cycles: float,
        latency_cycles: float,
    ) -> None:
        self.clock = clock
        self.source = source
        self.targets = tuple(targets)
        self.element_bytes = element_bytes
        self.bytes_per_cycle = bytes_per_cycle
        self.descriptor_cycles = descriptor_cycles
        self.latency_cycles = latency_cycles
        self.moved_bytes = 0

    def run(self) -> bool:
        """Go on as far as possible; True = it did something."""
        moved = False
        while self._move():
            moved = True
        return moved

    def _rooms(self) -> list[float] | None:
        """When every target has room; None = one has no time yet."""
        rooms = []
        for target in self.targets:
            room = target.lane.room_at() if target.opens else 0.0
            if room is None:
                return None
            rooms.append(room)
        return rooms

    def _move(self) -> bool:
        opens = self.source.opens
        ready = self.source.lane.full_at() if opens else 0.0
        if ready is None:
            return False
        rooms = self._rooms()
        if rooms is None:
            return False
        self.clock.wait(ready, self.source.lane.fifo)
        for target, room in zip(self.targets, rooms, strict=True):
            self.clock.wait(room, target.lane.fifo)
        cycles = self.descriptor_cycles if opens else 0.0
        if opens:
            self.source.lane.taken += 1
        for target in self.targets:
            if target.opens:
                target.lane.claimed += 1
        elements = min(self.source.rest(), *(target.rest() for target in self.targets))
        size = elements * self.element_bytes
        self.moved_bytes += size
        self.clock.work(cycles + size / self.bytes_per_cycle, self.source.lane.fifo)
        through = self.source.advance(elements)
        if through is not None:
            through.free.append(self.clock.now)
        for target in self.targets:
            filled = target.advance(elements)
            if filled is not None:
                filled.full.append(self.clock.now + self.latency_cycles)
        return True
