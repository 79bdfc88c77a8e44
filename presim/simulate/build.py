"""A design into a world of actors and lanes."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from presim.design import Buffer, Call, Design, Fifo, Side
from presim.design import Worker as WorkerRow
from presim.pools import Pool, Stream, StreamEnd, Wiring
from presim.simulate.data import SimData, SimOptions, Watch
from presim.simulate.engine import Actor, Goal
from presim.simulate.host import Channel, Host, HostMemory, reach
from presim.simulate.invoke import CascadeLane
from presim.simulate.kernel import TileModes
from presim.simulate.lane import ENDLESS, Lane, poison_of
from presim.simulate.program import Compiler
from presim.simulate.stream import Arbiter, Part, StreamActor, order_of, stream_actor
from presim.simulate.worker import Port, Worker
from presim.steps import elements_of, side_of, steps_of

Array = NDArray[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What a trial changes: depth or objects at the start, by pool; circuits in place of shared arbiters."""

    depths: Mapping[str, int] = field(default_factory=dict)
    initials: Mapping[str, int] = field(default_factory=dict)
    circuits: bool = False


@dataclass(slots=True, kw_only=True)
class World:
    """Everything that a run needs; mutable, one per run."""

    host: Host
    goal: Goal
    workers: tuple[Worker, ...]
    streams: tuple[StreamActor, ...]
    lanes: Mapping[str, tuple[Lane, ...]]
    channels: Mapping[str, Channel]
    memory: HostMemory | None
    watches: tuple[Watch, ...]
    outputs: Mapping[str, tuple[int, str]]
    compared: dict[str, int] = field(default_factory=dict)

    @property
    def actors(self) -> tuple[Actor, ...]:
        """In the order in which they start."""
        return (self.host, *self.workers, *self.streams)


class WorldBuilder:
    """Builds the world of a design once.

    Args:
        design: of sound structure.
        wiring: its pools and streams.
        data: None = objects without values.
        options: see there.
        changes: of a trial.
        track: remember which objects were written.
    """

    def __init__(
        self,
        design: Design,
        wiring: Wiring,
        data: SimData | None,
        options: SimOptions,
        changes: Changes | None = None,
        *,
        track: bool = True,
    ) -> None:
        self.design = design
        self.wiring = wiring
        self.data = data
        self.options = options
        self.changes = changes or Changes()
        self.track = track
        self.fifos = {f.name: f for f in design.fifos}
        self.lanes: dict[str, tuple[Lane, ...]] = {}
        self.channels: dict[str, Channel] = {}
        self.buffers: dict[str, Any] = {}
        self.arbiters: dict[str, Arbiter] = {}
        self.opaque = {w.name: not any(isinstance(s, Call) for s in steps_of(w.program)) for w in design.workers}

    def build(self) -> World:
        """The world, ready to run."""
        for pool in self.wiring.pools.values():
            self.lanes[pool.name] = self._lanes_of(pool)
        for buffer in self.design.buffers:
            self.buffers[buffer.name] = self._buffer(buffer)
        streams = tuple(self._stream(stream) for stream in self.wiring.streams)
        workers = self._workers()
        goal = Goal()
        host = Host(self.design.sequence, self.channels, goal, self.options.log_events)
        for channel in self.channels.values():
            if channel.fills:
                channel.lane.filler = host
            else:
                channel.lane.drainer = host
        memory = self._memory()
        return World(
            host=host,
            goal=goal,
            workers=workers,
            streams=streams,
            lanes=self.lanes,
            channels=self.channels,
            memory=memory,
            watches=self._watches(),
            outputs=self._output_sizes(),
        )

    def _lanes_of(self, pool: Pool) -> tuple[Lane, ...]:
        depth = self.changes.depths.get(pool.name, pool.depth)
        initial = self.changes.initials.get(pool.name, pool.init_objects)
        ring = max(depth, 1)
        if pool.static:
            ring = max(initial, 1)
        elif not self.track:
            ring = 1
        made = tuple(
            Lane(s.fifo, pool.name, depth, ring=ring, initial=0 if pool.static else initial) for s in pool.segments
        )
        if self.data is not None:
            self._fill(pool, made, ring, initial)
        for lane in made:
            if self.track and not pool.static:
                lane.track()
            if pool.static:
                passes = self.fifos[pool.fifo].iter_count
                lane.published = lane.claimed = ENDLESS if passes is None else passes * initial
                lane.keep = lane.constant = True
        return made

    def _fill(self, pool: Pool, lanes: Sequence[Lane], ring: int, initial: int) -> None:
        """Memory of a pool: poison, but for the objects of the start."""
        objects = np.full((ring, pool.elements), poison_of(pool.dtype), pool.dtype)
        if pool.init_array is not None and self.data is not None:
            values = self.data.arrays[pool.init_array].reshape(-1, pool.elements)
            objects[:initial] = values[:initial]
        elif initial:
            objects[:initial] = 0
        for lane, segment in zip(lanes, pool.segments, strict=True):
            lane.poison = poison_of(pool.dtype)
            lane.flat = [o[segment.offset : segment.offset + segment.elements] for o in objects]
            if pool.kind != "link":
                lane.views = [o.reshape(pool.shape) for o in objects]
                for view in lane.views:
                    view.flags.writeable = False

    def _buffer(self, buffer: Buffer) -> Array | None:
        if self.data is None:
            return None
        if buffer.array is None:
            return np.full(buffer.shape, poison_of(buffer.dtype), buffer.dtype)
        return self.data.arrays[buffer.array].astype(buffer.dtype).reshape(buffer.shape)

    def _stream(self, stream: Stream) -> StreamActor:
        fifo = self.fifos[stream.fifo]
        source = self._parts(fifo, stream.source, sends=True)
        once = source
        if stream.repeat_count > 1:
            source = []
            for turn in range(stream.repeat_count):
                first, last = turn == 0, turn == stream.repeat_count - 1
                source += [Part(p.lane, p.elements, opens=first, closes=last, order=p.order) for p in once]
        targets = [self._parts(fifo, end, sends=False) for end in stream.targets]
        actor = stream_actor(
            fifo.name,
            source,
            targets,
            limit=self._limit(fifo, stream),
            log=self.options.log_events,
            arbiter=self._arbiter(fifo),
        )
        for part in once:
            part.lane.drainer = actor
        for target in targets:
            for part in target:
                part.lane.filler = actor
        return actor

    def _arbiter(self, fifo: Fifo) -> Arbiter | None:
        if not fifo.arbiter or self.changes.circuits:
            return None
        return self.arbiters.setdefault(fifo.arbiter, Arbiter(fifo.arbiter))

    def _limit(self, fifo: Fifo, stream: Stream) -> int | None:
        if fifo.iter_count is None:
            return None
        pool = self.wiring.pools.get(stream.source.pool)
        depth = fifo.depth if pool is None else pool.init_objects if pool.static else pool.depth
        return depth * fifo.iter_count

    def _parts(self, fifo: Fifo, end: StreamEnd, *, sends: bool) -> list[Part]:
        if not end.pool:
            return [
                Part(self._channel(fifo, end, fills=sends).lane, end.elements, order=order_of(end.dims, end.elements))
            ]
        lanes = self.lanes[end.pool]
        segments = self.wiring.pools[end.pool].segments
        order = order_of(end.dims, end.elements) if len(end.segments) == 1 else None
        return [Part(lanes[i], segments[i].elements, order=order) for i in end.segments]

    def _channel(self, fifo: Fifo, end: StreamEnd, *, fills: bool) -> Channel:
        channel = Channel(fifo.name, fills=fills, elements=end.elements)
        if self.data is not None:
            channel.lane.flat = [np.full(end.elements, poison_of(fifo.dtype), fifo.dtype)]
            channel.lane.keep = True
        if self.track and not fills:
            channel.lane.track()
        self.channels[fifo.name] = channel
        return channel

    def _workers(self) -> tuple[Worker, ...]:
        cascades = {
            (c.source, c.target): CascadeLane(f"{c.source} > {c.target}", c.depth, c.words)
            for c in self.design.cascades
        }
        modes: dict[object, TileModes] = {}
        made = []
        for row in self.design.workers:
            worker = Worker(row.name, while_true=row.while_true, log_events=self.options.log_events)
            ports: dict[tuple[str, Side], Port] = {}
            reads = next((lane for (_, target), lane in cascades.items() if target == row.name), None)
            writes = next((lane for (source, _), lane in cascades.items() if source == row.name), None)
            if reads is not None:
                reads.drainer = worker
            if writes is not None:
                writes.filler = worker
            Compiler(
                worker,
                port=lambda name, side, row=row, ports=ports, worker=worker: self._port(  # type: ignore[misc]
                    row, worker, ports, name, side
                ),
                buffers=self.buffers,
                cascades=(reads, writes),
                kernels={k.name: k for k in self.design.kernels},
                functions={} if self.data is None else self.data.kernels,
                modes=modes.setdefault(row.tile or row.name, TileModes()),
            ).compile(row.program)
            worker.ports = tuple(ports.values())
            worker.scratch = self._scratch(row)
            made.append(worker)
        return tuple(made)

    def _port(self, row: WorkerRow, worker: Worker, ports: dict[tuple[str, Side], Port], name: str, side: Side) -> Port:
        key = (name, side_of(self.fifos[name], row.name, side))
        if key not in ports:
            fills = key[1] == "produce"
            lane = self.lanes[self.wiring.ports[row.name, name, key[1]]][0]
            if fills:
                lane.filler = worker
            else:
                lane.drainer = worker
            ports[key] = Port(name, lane, fills=fills, opaque=self.opaque[row.name])
        return ports[key]

    def _scratch(self, row: WorkerRow) -> list[tuple[Array, Any]]:
        if self.data is None:
            return []
        users = _buffer_users(self.design)
        return [
            (self.buffers[b.name], poison_of(b.dtype))
            for b in self.design.buffers
            if b.array is None and not b.keep and users.get(b.name) == {row.name}
        ]

    def _memory(self) -> HostMemory | None:
        if self.data is None:
            for channel in self.channels.values():
                if channel.fills:
                    channel.lane.after_free = channel.progress
                else:
                    channel.lane.after_publish = _checked(channel)
            return None
        memory = HostMemory(self.data.inputs, self.data.arrays)
        for channel in self.channels.values():
            if channel.fills:
                channel.lane.before_take = _loader(memory, channel)
                channel.lane.after_free = channel.progress
            else:
                channel.lane.after_publish = _storer(memory, channel)
        return memory

    def _output_sizes(self) -> dict[str, tuple[int, str]]:
        sizes: dict[str, tuple[int, str]] = {}
        for transfer in self.design.sequence:
            if transfer.direction == "drain":
                fifo = self.fifos[transfer.fifo]
                count = reach(transfer, elements_of(fifo.consumer_shape or fifo.shape))
                sizes[transfer.tensor] = (max(count, sizes.get(transfer.tensor, (0, ""))[0]), fifo.dtype)
        return sizes

    def _watches(self) -> tuple[Watch, ...]:
        if self.data is None:
            return ()
        wanted = {name for expected in self.data.fifos for name in expected}
        made: dict[str, Watch] = {}
        for fifo in self.design.fifos:
            for actor, lane, shape in self._seams(fifo):
                for name in (fifo.name, f"{fifo.name}@{actor}"):
                    if name not in made and (name == fifo.name or name in wanted):
                        made[name] = self._watch(name, fifo, lane, shape)
        return tuple(made.values())

    def _watch(self, name: str, fifo: Fifo, lane: Lane, shape: tuple[int, ...]) -> Watch:
        expected = [e[name] for e in self.data.fifos if name in e] if self.data is not None else []
        watch = Watch(
            name,
            fifo.producer.actor,
            lane,
            shape,
            expected,
            capture=fifo.name == name and name in self.options.capture,
            digest=self.options.schedules > 0,
        )
        if not watch.expected and watch.kept is None and not watch.digests:
            return watch
        others = lane.after_publish

        def look(number: int) -> None:
            watch.look(number)
            if others is not None:
                others(number)

        lane.after_publish = look
        return watch

    def _seams(self, fifo: Fifo) -> list[tuple[str, Lane, tuple[int, ...]]]:
        """(actor, lane, shape of an object) of the places where objects of a fifo can be looked at, the best first."""
        pools = self.wiring.pools
        shared = f"{fifo.name}:shared"
        if shared in pools:
            return [(fifo.producer.actor, self.lanes[shared][0], fifo.shape)]
        stream = next(s for s in self.wiring.streams if s.fifo == fifo.name)
        shape = fifo.consumer_shape or fifo.shape
        seams = []
        for end in stream.targets:
            lane = self._whole(fifo, end, math.prod(shape))
            if lane is not None:
                seams.append((end.actor, lane, shape))
        if stream.source.pool and pools[stream.source.pool].kind == "produce" and not pools[stream.source.pool].static:
            plain = not fifo.consumer_shape and not any(e.dims for e in (stream.source, *stream.targets))
            producer = (fifo.producer.actor, self.lanes[stream.source.pool][0], fifo.shape)
            seams.insert(0 if plain else len(seams), producer)
        return seams

    def _whole(self, fifo: Fifo, end: StreamEnd, elements: int) -> Lane | None:
        """The lane where whole objects of a fifo arrive at an end, if there is one."""
        if not end.pool:
            return self.channels[fifo.name].lane if end.elements == elements else None
        segments = self.wiring.pools[end.pool].segments
        if len(end.segments) != 1 or segments[end.segments[0]].elements != elements:
            return None
        return self.lanes[end.pool][end.segments[0]]


def _buffer_users(design: Design) -> dict[str, set[str]]:
    users: dict[str, set[str]] = {}
    for worker in design.workers:
        for step in steps_of(worker.program):
            if isinstance(step, Call):
                for argument in step.arguments:
                    if argument.kind == "buffer":
                        users.setdefault(argument.name, set()).add(worker.name)
    return users


def _loader(memory: HostMemory, channel: Channel) -> Any:
    return lambda number: memory.load(channel, number)


def _storer(memory: HostMemory, channel: Channel) -> Any:
    def store(number: int) -> None:
        memory.store(channel, number)
        channel.progress(number)

    return store


def _checked(channel: Channel) -> Any:
    def check(number: int) -> None:
        channel.require_written(number)
        channel.progress(number)

    return check
