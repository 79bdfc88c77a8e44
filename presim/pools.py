"""What the object fifos of a design become on the array: pools of objects, streams between them, ports of workers.

Why apart from simulator and checks: both, the budgets and the emitters have to agree on which memory holds what and
how deep it is. The rules are those of the page ObjectFifoLowering and of `AIEObjectFifoSplit.cpp` of mlir-aie: every
endpoint has a pool of its own unless both ends share a memory; the fifos of a link share one pool in the memory tile;
a shim end has none, the host's tasks stand in for it.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal

from presim.adjacency import beside, shared_tile
from presim.design import Acquire, Design, Endpoint, Fifo, Link, Side, Tile, TileKind
from presim.steps import elements_of, side_of, steps_of

PoolKind = Literal["produce", "consume", "shared", "link"]
PortKey = tuple[str, str, Side]
"""(worker, fifo, "produce" or "consume")."""

_TILE_KINDS: Final[Mapping[str, TileKind]] = MappingProxyType({"worker": "core", "mem": "mem", "shim": "shim"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A part of every object of a pool that has a lock pair of its own; `offset` and `elements` in elements."""

    fifo: str
    offset: int
    elements: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """Objects that take turns in one memory.

    Attributes:
        name: unique, `<fifo>:<kind>` and the actor of a consumer; also of a link, where its fifo owns another one.
        fifo: whose objects it holds; of a link, the fifo that carries whole objects.
        kind: side of the fifo; `shared` by producer and consumer, `link` in a memory tile.
        actor: of the endpoint; of the producer for `shared`.
        tile: whose memory; None = not placed.
        tile_kind: core or mem.
        shape: of an object.
        dtype: numpy's name.
        declared: depth that the design asks for.
        allocated: depth that the compiler gives: for a core, the largest acquire plus one.
        segments: parts with locks of their own; one that spans the object unless a split or join meets here.
        largest_acquire: of a core on this pool, 0 = no core touches it.
        static: full from the start and never filled again, read over and over.
        init_objects: objects that are there at the start.
        init_array: their values.
    """

    name: str
    fifo: str
    kind: PoolKind
    actor: str
    tile: Tile | None
    tile_kind: TileKind
    shape: tuple[int, ...]
    dtype: str
    declared: int
    allocated: int
    segments: tuple[Segment, ...]
    largest_acquire: int = 0
    static: bool = False
    init_objects: int = 0
    init_array: str | None = None

    @property
    def depth(self) -> int:
        """Depth on which liveness is judged: the smaller of declared and allocated."""
        return min(self.declared, self.allocated)

    @property
    def elements(self) -> int:
        """Elements of one object."""
        return math.prod(self.shape)


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamEnd:
    """A DMA at one end of a stream.

    Attributes:
        actor: of the endpoint.
        tile: where its DMA is.
        tile_kind: likewise.
        pool: whose objects it moves, "" = host memory.
        segments: indices into the pool's segments, walked for each object in turn.
        elements: of one object at this end.
        dims: order in which they are gathered or scattered.
    """

    actor: str
    tile: Tile | None
    tile_kind: TileKind
    pool: str
    segments: tuple[int, ...]
    elements: int
    dims: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """One DMA that sends and those that receive: a fifo that needs DMAs."""

    fifo: str
    source: StreamEnd
    targets: tuple[StreamEnd, ...]
    repeat_count: int
    iter_count: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wiring:
    """All pools by name, all streams, and the pool that each worker's port works on."""

    pools: Mapping[str, Pool]
    streams: tuple[Stream, ...]
    ports: Mapping[PortKey, str]


def may_share(fifo: Fifo) -> bool:
    """Whether producer and consumer can work on one pool without a DMA, if they are side by side."""
    if fifo.via_dma or fifo.repeat_count != 1 or len(fifo.consumers) != 1 or fifo.consumer_shape:
        return False
    producer, consumer = fifo.producer, fifo.consumers[0]
    return producer.kind == consumer.kind == "worker" and not producer.dims and not consumer.dims


def shares_memory(fifo: Fifo) -> bool:
    """Whether producer and consumer work on one pool without a DMA: self-loops and cores side by side.

    What is not placed yet is taken to need a DMA.
    """
    if not may_share(fifo):
        return False
    producer, consumer = fifo.producer, fifo.consumers[0]
    if producer.actor == consumer.actor:
        return True
    return producer.tile is not None and consumer.tile is not None and beside(producer.tile, consumer.tile)


def is_literal(fifo: Fifo) -> bool:
    """Whether the depths are taken as they are: said so, or different ones, which IRON emits as a list."""
    declared = {fifo.depth if e.depth is None else e.depth for e in (fifo.producer, *fifo.consumers)}
    return fifo.literal or len(declared) > 1


class _Builder:
    """Collects pools, streams and ports of one design."""

    def __init__(self, design: Design, arch: str) -> None:
        self.design = design
        self.arch = arch
        self.fifos = {f.name: f for f in design.fifos}
        self.pools: dict[str, Pool] = {}
        self.ports: dict[PortKey, str] = {}
        self.link_source: dict[tuple[str, int], StreamEnd] = {}
        self.link_target: dict[str, StreamEnd] = {}
        self.acquires = {
            (worker.name, step.fifo, side_of(self.fifos[step.fifo], worker.name, step.side)): 0
            for worker in design.workers
            for step in steps_of(worker.program)
            if isinstance(step, Acquire)
        }
        for worker in design.workers:
            for step in steps_of(worker.program):
                if isinstance(step, Acquire):
                    key = (worker.name, step.fifo, side_of(self.fifos[step.fifo], worker.name, step.side))
                    self.acquires[key] = max(self.acquires[key], step.count)

    def largest(self, worker: str, fifo: str, side: Side) -> int:
        return self.acquires.get((worker, fifo, side), 0)

    def build(self) -> Wiring:
        for link in self.design.links:
            self.add_link(link)
        streams = tuple(s for fifo in self.design.fifos if (s := self.add_fifo(fifo)) is not None)
        return Wiring(pools=MappingProxyType(self.pools), streams=streams, ports=MappingProxyType(self.ports))

    def add_link(self, link: Link) -> None:
        sources, targets = [self.fifos[n] for n in link.sources], [self.fifos[n] for n in link.targets]
        owner, side = self.link_owner(link, sources, targets)
        if side is None:
            endpoint, shape = owner.producer, owner.shape
        else:
            endpoint, shape = owner.consumers[side], owner.consumer_shape or owner.shape
        declared = owner.depth if endpoint.depth is None else endpoint.depth
        parts = targets if link.kind == "split" else sources
        if link.kind == "forward":
            segments: tuple[Segment, ...] = (Segment(fifo=owner.name, offset=0, elements=elements_of(shape)),)
        else:
            segments = tuple(
                Segment(fifo=part.name, offset=offset, elements=elements_of(_link_shape(part, link)))
                for part, offset in zip(parts, link.offsets, strict=True)
            )
        holds = owner if side is None else None
        name = f"{owner.name}:link"
        pool = Pool(
            name=f"{name}:{endpoint.actor}" if name in self.pools else name,
            fifo=owner.name,
            kind="link",
            actor=endpoint.actor,
            tile=link.tile or endpoint.tile,
            tile_kind="mem",
            shape=shape,
            dtype=owner.dtype,
            declared=declared,
            allocated=declared,
            segments=segments,
            init_objects=_initial(holds, declared),
            init_array=holds.init_array if holds else None,
        )
        self.pools[pool.name] = pool
        every = tuple(range(len(segments)))
        for index, source in enumerate(sources):
            mine = (index,) if link.kind == "join" else every
            position = self.link_consumer(source, link)
            self.link_source[source.name, position] = _pool_end(pool, source.consumers[position], mine)
        for index, target in enumerate(targets):
            self.link_target[target.name] = _pool_end(
                pool, target.producer, (index,) if link.kind == "split" else every
            )

    def link_name(self, fifo: str, actor: str) -> str:
        """`<fifo>:link`, and the memory tile where a broadcast ends in several."""
        name = f"{fifo}:link"
        if name in self.pools:
            name = f"{name}:{actor}"
        return name

    def link_owner(self, link: Link, sources: list[Fifo], targets: list[Fifo]) -> tuple[Fifo, int | None]:
        """The fifo whose objects the pool holds, and the index of its consumer; None = its producer side."""
        if link.kind == "join":
            return targets[0], None
        source, target = sources[0], targets[0]
        larger = elements_of(target.shape) > elements_of(source.consumer_shape or source.shape)
        if link.kind == "forward" and (larger or target.init_array is not None):
            return target, None
        return source, self.link_consumer(source, link)

    def link_consumer(self, fifo: Fifo, link: Link) -> int:
        """Index of the consumer through which `fifo` reaches the link's tile."""
        found = [i for i, c in enumerate(fifo.consumers) if c.kind == "mem"]
        fits = [i for i in found if link.tile is not None and fifo.consumers[i].tile == link.tile] or found
        free = [i for i in fits if (fifo.name, i) not in self.link_source] or fits
        return free[0]

    def add_fifo(self, fifo: Fifo) -> Stream | None:
        if shares_memory(fifo):
            self.add_shared(fifo)
            return None
        source = self.source_end(fifo)
        targets = tuple(self.target_end(fifo, index) for index in range(len(fifo.consumers)))
        return Stream(
            fifo=fifo.name,
            source=source,
            targets=targets,
            repeat_count=fifo.repeat_count,
            iter_count=fifo.iter_count,
        )

    def add_shared(self, fifo: Fifo) -> None:
        producer, consumer = fifo.producer, fifo.consumers[0]
        declared = fifo.depth if producer.depth is None else producer.depth
        pool = self.endpoint_pool(fifo, producer, "shared", declared)
        self.ports[producer.actor, fifo.name, "produce"] = pool.name
        self.ports[consumer.actor, fifo.name, "consume"] = pool.name

    def source_end(self, fifo: Fifo) -> StreamEnd:
        if fifo.name in self.link_target:
            return self.link_target[fifo.name]
        end = fifo.producer
        if end.kind == "shim":
            return _host_end(end, elements_of(fifo.shape))
        declared = fifo.depth if end.depth is None else end.depth
        pool = self.endpoint_pool(fifo, end, "produce", declared)
        if end.kind == "worker":
            self.ports[end.actor, fifo.name, "produce"] = pool.name
        return _pool_end(pool, end, (0,))

    def target_end(self, fifo: Fifo, index: int) -> StreamEnd:
        if (fifo.name, index) in self.link_source:
            return self.link_source[fifo.name, index]
        end = fifo.consumers[index]
        if end.kind == "shim":
            return _host_end(end, elements_of(fifo.consumer_shape or fifo.shape))
        declared = fifo.depth if end.depth is None else end.depth
        pool = self.endpoint_pool(fifo, end, "consume", declared)
        if end.kind == "worker":
            self.ports[end.actor, fifo.name, "consume"] = pool.name
        return _pool_end(pool, end, (0,))

    def endpoint_pool(self, fifo: Fifo, end: Endpoint, kind: PoolKind, declared: int) -> Pool:
        shape = (fifo.consumer_shape or fifo.shape) if kind == "consume" else fifo.shape
        side: Side = "consume" if kind == "consume" else "produce"
        largest = self.largest(end.actor, fifo.name, side)
        holds = fifo if kind != "consume" else None
        tile = end.tile
        if kind == "shared":
            largest = max(largest, self.largest(fifo.consumers[0].actor, fifo.name, "consume"))
            tile = shared_tile(end.tile, fifo.consumers[0].tile, self.arch)
        as_declared = kind == "shared" or is_literal(fifo) or (holds is not None and _has_init(holds))
        pool = Pool(
            name=f"{fifo.name}:{kind}" + (f":{end.actor}" if kind == "consume" else ""),
            fifo=fifo.name,
            kind=kind,
            actor=end.actor,
            tile=tile,
            tile_kind=_TILE_KINDS[end.kind],
            shape=shape,
            dtype=fifo.dtype,
            declared=declared,
            allocated=declared if as_declared else allocated_depth(declared, largest),
            segments=(Segment(fifo=fifo.name, offset=0, elements=elements_of(shape)),),
            largest_acquire=largest,
            static=end.kind == "mem" and holds is not None and _has_init(holds),
            init_objects=_initial(holds, declared),
            init_array=holds.init_array if holds else None,
        )
        self.pools[pool.name] = pool
        return pool


def allocated_depth(declared: int, largest_acquire: int) -> int:
    """Depth that the compiler gives a pool with an integer depth.

    Args:
        declared: depth of the fifo, >= 1.
        largest_acquire: of the core on its tile, 0 = no core touches it.
    """
    if largest_acquire == 0:
        return declared
    if largest_acquire == 1 and declared == 1:
        return 1
    return largest_acquire + 1


def _has_init(fifo: Fifo) -> bool:
    return fifo.init_array is not None or fifo.init_objects > 0


def _initial(fifo: Fifo | None, declared: int) -> int:
    """Objects at the start: as said, or all of them where only values are given."""
    if fifo is None:
        return 0
    return fifo.init_objects or (declared if fifo.init_array is not None else 0)


def _link_shape(part: Fifo, link: Link) -> tuple[int, ...]:
    return part.shape if link.kind == "split" else part.consumer_shape or part.shape


def _pool_end(pool: Pool, end: Endpoint, segments: tuple[int, ...]) -> StreamEnd:
    return StreamEnd(
        actor=end.actor,
        tile=pool.tile if pool.kind == "link" else end.tile,
        tile_kind=pool.tile_kind,
        pool=pool.name,
        segments=segments,
        elements=sum(pool.segments[i].elements for i in segments),
        dims=end.dims,
    )


def _host_end(end: Endpoint, elements: int) -> StreamEnd:
    return StreamEnd(
        actor=end.actor, tile=end.tile, tile_kind="shim", pool="", segments=(0,), elements=elements, dims=end.dims
    )


def wire(design: Design, arch: str = "aie2") -> Wiring:
    """Pools, streams and ports of a design whose structure is sound (`presim.static.structure`).

    Args:
        design: names in it are unique and known, offsets are inside their objects.
        arch: of the device, for the tile of a shared pool.
    """
    return _Builder(design, arch).build()
