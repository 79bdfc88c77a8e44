"""A run of a design on counts alone: does it finish, and which pool is in the way where it does not.

Why apart from `presim.simulate`: here pools grow while it runs. A design that stops is given one more object where a
path waits for another, and goes on from there; what it has at the end is what it needs. Order and speed do not matter:
programs do not depend on data, so that what can finish finishes in every order.

A fifo between two workers counts as one pool, as if they shared a memory: with a DMA between them it has more room.
"""

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from presim.design import Acquire, Design, Fifo, Loop, Release, Side, Step, Worker
from presim.pools import Pool, StreamEnd, Wiring, wire
from presim.steps import elements_of, side_of

Port = tuple[str, Side]
"""(fifo, end)."""


class StuckError(Exception):
    """No deeper pool lets the design run."""


@dataclass(slots=True)
class _Lane:
    """Objects of a pool, or of a segment of it."""

    pool: Pool
    free: int
    full: int = 0
    endless: bool = False
    fillers: "list[_Actor]" = field(default_factory=list)
    drainers: "list[_Actor]" = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Block:
    """What an actor waits for: objects of a lane (`full`) or room in it."""

    lane: _Lane
    full: bool


class _Actor:
    """Runs until it is blocked."""

    def __init__(self) -> None:
        self.blocks: list[_Block] = []

    def run(self) -> bool:
        """Whether anything happened."""
        raise NotImplementedError


class _Work(_Actor):
    """A worker, one inference long."""

    def __init__(self, worker: Worker, ports: Mapping[Port, _Lane], fifos: Mapping[str, Fifo]) -> None:
        super().__init__()
        self.worker = worker.name
        self.ports = ports
        self.fifos = fifos
        self.steps = _flat(worker.program)
        self.held = dict.fromkeys(ports, 0)
        self.now: Acquire | Release | None = next(self.steps, None)

    def run(self) -> bool:
        """See `_Actor.run`."""
        moved = False
        self.blocks = []
        while self.now is not None:
            step = self.now
            key = step.fifo, side_of(self.fifos[step.fifo], self.worker, step.side)
            lane = self.ports[key]
            producing = key[1] == "produce"
            if isinstance(step, Acquire):
                wanted = step.count - self.held[key]
                if wanted > (lane.free if producing else lane.full) and not (lane.endless and not producing):
                    self.blocks = [_Block(lane, not producing)]
                    return moved
                self.take(lane, max(0, wanted), producing=producing)
                self.held[key] += max(0, wanted)
            else:
                self.held[key] -= step.count
                if producing:
                    lane.full += step.count
                else:
                    lane.free += step.count
            moved = True
            self.now = next(self.steps, None)
        return moved

    def take(self, lane: _Lane, count: int, *, producing: bool) -> None:
        if producing:
            lane.free -= count
        elif not lane.endless:
            lane.full -= count


@dataclass(slots=True)
class _Side:
    """One end of a stream: lanes walked in turn, each `sizes[i]` elements; none = the host."""

    lanes: list[_Lane]
    sizes: list[int]
    at: int = 0
    left: int = 0


class _Dma(_Actor):
    """Moves objects from a pool, or the host, to pools, or the host."""

    def __init__(self, source: _Side, targets: list[_Side], budget: int | None) -> None:
        super().__init__()
        self.source = source
        self.targets = targets
        self.budget = budget
        self.moved = 0

    def run(self) -> bool:
        progressed = False
        while self.budget is None or self.moved < self.budget:
            self.blocks = [b for b in (self.open_source(), *map(self.open_target, self.targets)) if b is not None]
            if self.blocks:
                return progressed
            self.move()
            progressed = True
        self.blocks = []
        return progressed

    def open_source(self) -> _Block | None:
        side = self.source
        if side.left:
            return None
        lane = side.lanes[side.at] if side.lanes else None
        if lane is not None and not lane.endless:
            if lane.full < 1:
                return _Block(lane, full=True)
            lane.full -= 1
        side.left = side.sizes[side.at]
        return None

    def open_target(self, side: _Side) -> _Block | None:
        if side.left:
            return None
        if side.lanes:
            lane = side.lanes[side.at]
            if lane.free < 1:
                return _Block(lane, full=False)
            lane.free -= 1
        side.left = side.sizes[side.at]
        return None

    def move(self) -> None:
        size = min(side.left for side in (self.source, *self.targets))
        self.moved += size
        for side in (self.source, *self.targets):
            side.left -= size
            if side.left == 0:
                if side.lanes and side is self.source:
                    side.lanes[side.at].free += not side.lanes[side.at].endless
                elif side.lanes:
                    side.lanes[side.at].full += 1
                side.at = (side.at + 1) % len(side.sizes)


class Run:
    """One inference of a design."""

    def __init__(self, design: Design) -> None:
        self.design = design
        self.wiring: Wiring = wire(design)
        self.fifos = {f.name: f for f in design.fifos}
        self.lanes: dict[str, list[_Lane]] = {}
        self.actors: list[_Actor] = []
        self.drains: list[_Dma] = []
        self.shared = {
            f.name
            for f in design.fifos
            if f.producer.kind == "worker"
            and [c.kind for c in f.consumers] == ["worker"]
            and not (f.via_dma or f.consumer_shape)
        }
        for name, pool in self.wiring.pools.items():
            depth = pool.declared if pool.fifo in self.shared else pool.depth
            count = len(pool.segments)
            self.lanes[name] = [_Lane(pool, depth, endless=pool.static) for _ in range(count)]
        for worker in design.workers:
            self.add_worker(worker)
        for index in range(len(self.wiring.streams)):
            self.add_stream(index)

    def add_worker(self, worker: Worker) -> None:
        """The actor of a worker."""
        ports: dict[Port, _Lane] = {}
        for (name, fifo, side), pool in self.wiring.ports.items():
            if name != worker.name:
                continue
            ports[fifo, side] = self.lanes[self.consumed(fifo) if fifo in self.shared else pool][0]
        actor = _Work(worker, ports, self.fifos)
        for (_, end), lane in ports.items():
            (lane.fillers if end == "produce" else lane.drainers).append(actor)
        self.actors.append(actor)

    def consumed(self, fifo: str) -> str:
        """The one pool of a fifo between two workers, or inside one."""
        name = f"{fifo}:consume:{self.fifos[fifo].consumers[0].actor}"
        return name if name in self.lanes else f"{fifo}:shared"

    def add_stream(self, index: int) -> None:
        """The DMAs of a stream."""
        stream = self.wiring.streams[index]
        if stream.fifo in self.shared:
            return
        moves = {t.fifo: t.objects for t in self.design.sequence}
        source, targets = self.side(stream.source), [self.side(end) for end in stream.targets]
        budget = None
        if not source.lanes or not all(t.lanes for t in targets):
            budget = moves.get(stream.fifo, 0) * elements_of(self.piece(stream.fifo))
        dma = _Dma(source, targets, budget)
        for lane in source.lanes:
            lane.drainers.append(dma)
        for target in targets:
            for lane in target.lanes:
                lane.fillers.append(dma)
        self.actors.append(dma)
        if not all(t.lanes for t in targets):
            self.drains.append(dma)

    def piece(self, fifo: str) -> tuple[int, ...]:
        """Shape of the objects that a transfer of the host counts."""
        found = self.fifos[fifo]
        return found.shape if found.producer.kind == "shim" else found.consumer_shape or found.shape

    def side(self, end: StreamEnd) -> _Side:
        """One end of a stream."""
        if not end.pool:
            return _Side([], [end.elements])
        segments = self.wiring.pools[end.pool].segments
        return _Side(
            [self.lanes[end.pool][i] for i in end.segments],
            [segments[i].elements for i in end.segments],
        )

    def finish(self) -> dict[str, int]:
        """Run to the end; returns the depths of pools that had to grow, by name.

        Raises:
            StuckError: no deeper pool helps.
        """
        grown: dict[str, int] = {}
        while True:
            while any([actor.run() for actor in self.actors]):
                pass
            if all(d.budget is not None and d.moved >= d.budget for d in self.drains):
                return grown
            pool = self.in_the_way()
            for lane in self.lanes[pool.name]:
                lane.free += 1
            grown[pool.name] = grown.get(pool.name, pool.declared if pool.fifo in self.shared else pool.depth) + 1

    def in_the_way(self) -> Pool:
        """The full pool that the outputs wait for: the first on the way from them to what feeds them.

        On that way everything lacks objects until the point where paths part; what is full there holds up the others.
        """
        todo: deque[_Actor] = deque(d for d in self.drains if d.budget is None or d.moved < d.budget)
        seen = set(map(id, todo))
        while todo:
            for block in todo.popleft().blocks:
                if not block.full and block.lane.pool.kind != "produce" and not block.lane.endless:
                    return block.lane.pool
                for actor in block.lane.fillers if block.full else block.lane.drainers:
                    if id(actor) not in seen:
                        seen.add(id(actor))
                        todo.append(actor)
        waiting = next((b.lane.pool for d in self.drains for b in d.blocks), None)
        raise StuckError("nothing is full" if waiting is None else f"fifo {waiting.fifo!r} gets no object")


def _flat(program: tuple[Step, ...]) -> Iterator[Acquire | Release]:
    for step in program:
        if isinstance(step, Loop):
            for _ in range(step.times):
                yield from _flat(step.body)
        elif isinstance(step, Acquire | Release):
            yield step
