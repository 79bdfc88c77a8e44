"""DMAs: one actor per stream, the sender and its receivers together.

Why one actor for all ends: a beat moves only when every branch of a broadcast accepts it, so none of the ends can be
ahead of the others. The sender gives its object back when all of it is through.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from presim.simulate.engine import Actor, Need
from presim.simulate.lane import ENDLESS, Lane

Order = NDArray[np.int64]


class Part:
    """What one descriptor moves: a whole object of a lane, in an order of its own.

    Attributes:
        lane: segment of a pool, or the host.
        elements: that it moves.
        opens: it takes a lock first; not where an object is sent again.
        closes: it gives the lock back.
        order: index into the object for each element on the stream; None = as it is.
    """

    __slots__ = ("closes", "elements", "lane", "opens", "order")

    def __init__(
        self, lane: Lane, elements: int, *, opens: bool = True, closes: bool = True, order: Order | None = None
    ) -> None:
        self.lane = lane
        self.elements = elements
        self.opens = opens
        self.closes = closes
        self.order = order


class Cursor:
    """Where an end of a stream is: a part of its cycle, and elements of it that are through."""

    __slots__ = ("at", "cycle", "moved", "part")

    def __init__(self, cycle: Sequence[Part]) -> None:
        self.cycle = tuple(cycle)
        self.at = 0
        self.part = self.cycle[0]
        self.moved = 0

    def opening(self) -> bool:
        """Whether the next element needs a lock first."""
        return self.moved == 0 and self.part.opens

    def rest(self) -> int:
        """Elements of the part that are not through."""
        return self.part.elements - self.moved

    def advance(self, elements: int) -> Part | None:
        """Move on; returns the part if that was all of it and its lock goes back."""
        part = self.part
        self.moved += elements
        if self.moved < part.elements:
            return None
        self.moved = 0
        self.at = (self.at + 1) % len(self.cycle)
        self.part = self.cycle[self.at]
        return part if part.closes else None


class StreamActor(Actor):
    """A stream of any cut: objects of the ends may differ in size, be segments, or be sent several times.

    Attributes:
        fifo: name.
        source: sending end.
        targets: receiving ends.
        left: objects that the sender still sends before its chain ends.
    """

    __slots__ = ("fifo", "left", "source", "targets")

    def __init__(
        self, fifo: str, source: Sequence[Part], targets: Sequence[Sequence[Part]], *, limit: int | None, log: int
    ) -> None:
        super().__init__(f"DMA of {fifo}", log)
        self.fifo = fifo
        self.source = Cursor(source)
        self.targets = tuple(Cursor(target) for target in targets)
        self.left = ENDLESS if limit is None else limit

    def run(self, budget: int) -> int:
        """Move pieces until an end has to wait."""
        while budget:
            if self.done or not self._ready():
                return budget
            self._open()
            self._move(min(self.source.rest(), *(target.rest() for target in self.targets)))
            budget -= 1
        return 0

    def _ready(self) -> bool:
        source = self.source
        if source.opening() and source.part.lane.tokens() < 1:
            source.part.lane.drain_waiter = self
            return False
        for target in self.targets:
            if target.opening() and target.part.lane.room() < 1:
                target.part.lane.fill_waiter = self
                return False
        return True

    def _open(self) -> None:
        if self.source.opening():
            self.source.part.lane.take(1)
            self.operations += 1
        for target in self.targets:
            if target.opening():
                lane = target.part.lane
                lane.claim(1)
                lane.mark(lane.claimed - 1, written=True)
                self.operations += 1

    def _move(self, elements: int) -> None:
        source = self.source
        lane = source.part.lane
        number = lane.freed
        self.log.append(("send", self.fifo, number))
        for target in self.targets:
            _copy(source, target, number, elements)
        for target in self.targets:
            filled = target.advance(elements)
            if filled is not None:
                self.operations += 1
                filled.lane.publish(1)
        through = source.advance(elements)
        if through is not None:
            self.operations += 1
            through.lane.free(1)
            if source.at == 0:
                self._count()

    def _count(self) -> None:
        self.left -= 1
        if self.left == 0:
            self.done = True

    def needs(self) -> list[Need]:
        """What the ends wait for."""
        if self.done:
            return []
        found = []
        if self.source.opening() and self.source.part.lane.tokens() < 1:
            found.append(Need(self.source.part.lane, "full", "send", "", 0, 1, 1))
        full = [t.part.lane for t in self.targets if t.opening() and t.part.lane.room() < 1]
        return found + [Need(lane, "free", "receive", "", 0, 1, 1) for lane in full]

    def idle_reason(self) -> str:
        """Why it sends no more."""
        return "its chain has made all its passes (iter_count)" if self.done else ""


class Arbiter:
    """A port of a stream switch that packet flows share: one at a time, from its first word to its last."""

    __slots__ = ("lane", "owner", "waiters")

    def __init__(self, name: str) -> None:
        self.lane = Lane(f"arbiter {name}", f"arbiter {name}", 1)
        self.owner: StreamActor | None = None
        self.waiters: list[StreamActor] = []


class PacketStream(StreamActor):
    """A stream that shares an arbiter: it takes it as soon as it has something to send, and waits for room with it."""

    __slots__ = ("arbiter",)

    arbiter: Arbiter

    def run(self, budget: int) -> int:
        """Move pieces until an end, or another flow, is in the way."""
        arbiter = self.arbiter
        while budget and not self.done:
            if arbiter.owner is not self:
                lane = self.source.part.lane
                if self.source.opening() and lane.tokens() < 1:
                    lane.drain_waiter = self
                    return budget
                if arbiter.owner is not None:
                    arbiter.waiters.append(self)
                    return budget
                arbiter.owner = self
            if not self._ready():
                return budget
            self._open()
            self._move(min(self.source.rest(), *(target.rest() for target in self.targets)))
            if self.source.opening():
                arbiter.owner = None
                waiters, arbiter.waiters = arbiter.waiters, []
                for waiter in waiters:
                    waiter.wake()
            budget -= 1
        return budget

    def needs(self) -> list[Need]:
        """What the ends wait for, or the flow that has the arbiter."""
        arbiter = self.arbiter
        if self.done or arbiter.owner in {None, self}:
            return super().needs()
        if self.source.opening() and self.source.part.lane.tokens() < 1:
            return super().needs()
        arbiter.lane.drainer = arbiter.owner
        return [Need(arbiter.lane, "free", "arbitrate", "", 0, 1, 0)]


class DirectStream(StreamActor):
    """The plain case, done fast: whole objects, each sent once, equal at all ends."""

    __slots__ = ()

    def run(self, budget: int) -> int:
        """Move objects until an end has to wait."""
        source = self.source.part.lane
        targets = [target.part for target in self.targets]
        while budget and not self.done:
            if source.published == source.taken:
                source.drain_waiter = self
                return budget
            for part in targets:
                lane = part.lane
                if lane.depth - lane.claimed + lane.freed < 1:
                    lane.fill_waiter = self
                    return budget
            number = source.taken
            self.log.append(("send", self.fifo, number))
            source.take(1)
            for part in targets:
                self._deliver(part, number)
            source.free(1)
            self.operations += 2 + 2 * len(targets)
            self._count()
            budget -= 1
        return budget

    def _deliver(self, part: Part, number: int) -> None:
        lane = part.lane
        sent = self.source.part
        mine = lane.claimed
        lane.claimed = mine + 1
        if lane.written:
            lane.written[mine % lane.ring] = sent.lane.is_written(number)
        if lane.flat:
            values = sent.lane.flat[number % sent.lane.ring]
            if sent.order is not None:
                values = values[sent.order]
            if part.order is None:
                lane.flat[mine % lane.ring][...] = values
            else:
                lane.flat[mine % lane.ring][part.order] = values
        lane.publish(1)


def _copy(source: Cursor, target: Cursor, number: int, elements: int) -> None:
    """Copy the next elements of an object, and whether they were written."""
    sent, got = source.part, target.part
    mine = got.lane.published
    if not sent.lane.is_written(number):
        got.lane.mark(mine, written=False)
    if not sent.lane.flat or not got.lane.flat:
        return
    values = sent.lane.flat[number % sent.lane.ring]
    got.lane.flat[mine % got.lane.ring][_selection(target, elements)] = values[_selection(source, elements)]


def _selection(cursor: Cursor, elements: int) -> slice | Order:
    order = cursor.part.order
    span = slice(cursor.moved, cursor.moved + elements)
    return span if order is None else order[span]


def stream_actor(
    fifo: str,
    source: Sequence[Part],
    targets: Sequence[Sequence[Part]],
    *,
    limit: int | None,
    log: int,
    arbiter: Arbiter | None = None,
) -> StreamActor:
    """The actor for a stream: the fast one where objects go through whole and on a circuit of their own.

    Args:
        fifo: name.
        source: parts that the sender walks, over and over.
        targets: the same for every receiver.
        limit: objects until the sender's chain ends; None = never.
        log: events that are kept.
        arbiter: that it shares with other flows.
    """
    if arbiter is not None:
        packets = PacketStream(fifo, source, targets, limit=limit, log=log)
        packets.arbiter = arbiter
        return packets
    whole = len(source) == 1 and all(len(t) == 1 and t[0].elements == source[0].elements for t in targets)
    kind = DirectStream if whole and source[0].opens and source[0].closes else StreamActor
    return kind(fifo, source, targets, limit=limit, log=log)


def order_of(dims: Sequence[tuple[int, int]], elements: int) -> Order | None:
    """Index of each element on the stream: nested loops of (size, stride), outer to inner; None = as it is.

    Args:
        dims: (size, stride) in elements; () = contiguous.
        elements: of the object.
    """
    if not dims:
        return None
    index = np.zeros(1, np.int64)
    for size, stride in dims:
        index = (index[:, None] + np.arange(size, dtype=np.int64) * stride).ravel()
    return None if index.size == elements and bool((index == np.arange(elements)).all()) else index
