"""Whether a lowered design file is the planned design again: the emitter's text held against what it was made from."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from bringup.emit.model import SCALARS
from bringup.emit.names import planned_names
from bringup.emit.wiring import literal_depths
from bringup.kernels.model import symbol_of
from presim.design import Acquire, Call, Design, Endpoint, Fifo, Loop, Step, Transfer, Worker
from presim.pools import wire
from presim.steps import elements_of, side_of, variable_of


def differences(planned: Design, lowered: Design, arch: str = "aie2") -> tuple[str, ...]:
    """What a lowered design file has that the planned design has not, one line each.

    Shapes of packed constants, rows outside the image and names of memory and shim ends are no differences; nor is
    where something is that the planned design has not placed.

    Args:
        planned: as it was given to the emitter.
        lowered: as the design file came out, under the names of the file.
        arch: of the device.
    """
    expected, _ = literal_depths(planned, arch)
    return tuple(_Comparison(expected, planned_names(lowered), arch).lines())


class _Comparison:
    def __init__(self, planned: Design, lowered: Design, arch: str) -> None:
        self.planned = planned
        self.lowered = lowered
        self.arch = arch

    def lines(self) -> Iterator[str]:
        yield from self.pair("worker", {w.name: w for w in self.planned.workers}, self.workers())
        for worker in self.planned.workers:
            if worker.name in self.workers():
                yield from self.worker(worker, self.workers()[worker.name])
        fifos = {f.name: f for f in self.lowered.fifos}
        yield from self.pair("fifo", {f.name: f for f in self.planned.fifos}, fifos)
        for fifo in self.planned.fifos:
            if fifo.name in fifos:
                other = _like(fifo, fifos[fifo.name])
                yield from self.values(f"fifo {fifo.name!r}", _fifo(fifo), _fifo(other))
        if not self.pairs_differ():
            yield from self.pools()
        placed = all(link.tile is not None for link in self.planned.links)
        yield from self.values("links", _links(self.planned, tiles=placed), _links(self.lowered, tiles=placed))
        yield from self.values("cascades", _cascades(self.planned), _cascades(self.lowered))
        yield from self.values("sequence", _sequence(self.planned), _sequence(self.lowered))
        yield from self.values("buffers", _buffers(self.planned), _buffers(self.lowered))

    def workers(self) -> dict[str, Worker]:
        return {w.name: w for w in self.lowered.workers}

    def pairs_differ(self) -> bool:
        return {f.name for f in self.planned.fifos} != {f.name for f in self.lowered.fifos} or {
            w.name for w in self.planned.workers
        } != {w.name for w in self.lowered.workers}

    def pair(self, what: str, planned: Mapping[str, Any], lowered: Mapping[str, Any]) -> Iterator[str]:
        for name in sorted(planned.keys() ^ lowered.keys()):
            yield f"{what} {name!r}: {'missing' if name in planned else 'not planned'}"

    def values(self, what: str, planned: Any, lowered: Any) -> Iterator[str]:
        if planned != lowered:
            yield f"{what}: planned {planned}, lowered {lowered}"

    def worker(self, planned: Worker, lowered: Worker) -> Iterator[str]:
        yield from self.values(
            f"worker {planned.name!r}",
            (planned.tile, planned.while_true, planned.stack_bytes),
            (lowered.tile if planned.tile else None, lowered.while_true, lowered.stack_bytes),
        )
        types = {k.name: k.type for k in self.planned.kernels}
        fifos = {f.name: f for f in (*self.lowered.fifos, *self.planned.fifos)}
        expected = [_step(s, planned.name, fifos, types, ()) for s in planned.program]
        got = [_step(s, planned.name, fifos, None, ()) for s in lowered.program]
        for number, (want, have) in enumerate(zip(expected, got, strict=False)):
            if want != have:
                yield f"worker {planned.name!r}, step {number}: planned {want}, lowered {have}"
                return
        if len(expected) != len(got):
            yield f"worker {planned.name!r}: planned {len(expected)} steps, lowered {len(got)}"

    def pools(self) -> Iterator[str]:
        lowered = {(p.fifo, p.kind, _actor(p.actor, p.kind)): p for p in wire(self.lowered, self.arch).pools.values()}
        for pool in wire(self.planned, self.arch).pools.values():
            key = (pool.fifo, pool.kind, _actor(pool.actor, pool.kind))
            other = lowered.get(key)
            tile = other.tile if other is not None and pool.tile is not None else None
            have = None if other is None else (tile, other.depth, other.allocated, len(other.segments))
            want = (pool.tile, pool.depth, pool.allocated, len(pool.segments))
            yield from self.values(f"pool {pool.name!r}", want, have)


def _actor(actor: str, kind: str) -> str:
    return actor if kind == "consume" else ""


def _step(
    step: Step, worker: str, fifos: Mapping[str, Fifo], types: Mapping[str, str] | None, counters: tuple[str, ...]
) -> Any:
    """A step with counters by their depth; `types`: of the planned kernels, None = it is a lowered step."""
    if isinstance(step, Loop):
        inner = (*counters, step.counter)
        return "loop", step.times, tuple(_step(s, worker, fifos, types, inner) for s in step.body)
    if isinstance(step, Call):
        return _call(step, types, counters)
    side = side_of(fifos[step.fifo], worker, step.side) or step.side
    return ("acquire" if isinstance(step, Acquire) else "release"), step.fifo, step.count, side


def _call(call: Call, types: Mapping[str, str] | None, counters: tuple[str, ...]) -> Any:
    names = frozenset(a.name for a in call.arguments if a.kind in {"fifo", "buffer"})
    if types is None:
        return "call", call.kernel, names, tuple(_scalar(v, counters) for _, v in call.scalars)
    given = dict(call.scalars)
    scalars = tuple(_scalar(given.get(name, 0), counters) for name in SCALARS.get(types[call.kernel], ()))
    return "call", symbol_of(call.kernel), names, scalars


def _scalar(value: int | str, counters: tuple[str, ...]) -> Any:
    if isinstance(value, int):
        return value
    found = variable_of(value)
    if found is None or found[0] not in counters:
        return value
    depth = len(counters) - 1 - counters[::-1].index(found[0])
    return depth, found[1], found[2]


def _fifo(fifo: Fifo) -> Any:
    shape = () if fifo.init_array is not None else fifo.shape
    ends = tuple(_end(e) for e in (fifo.producer, *fifo.consumers))
    flags = fifo.via_dma, fifo.repeat_count, fifo.iter_count, fifo.init_array is not None
    return shape, fifo.dtype, ends, flags, fifo.consumer_shape


def _like(planned: Fifo, lowered: Fifo) -> Fifo:
    """A lowered fifo without the places that the planned one does not say."""
    if len(planned.consumers) != len(lowered.consumers):
        return lowered
    ends = [
        end if wanted.tile is not None else replace(end, tile=None)
        for wanted, end in zip(
            (planned.producer, *planned.consumers), (lowered.producer, *lowered.consumers), strict=True
        )
    ]
    return replace(lowered, producer=ends[0], consumers=tuple(ends[1:]))


def _end(end: Endpoint) -> Any:
    return end.kind, end.actor if end.kind == "worker" else "", end.tile, end.dims


def _links(design: Design, *, tiles: bool) -> Any:
    return sorted((k.kind, k.sources, k.targets, k.offsets, str(k.tile) if tiles else "") for k in design.links)


def _cascades(design: Design) -> Any:
    return sorted((c.source, c.target) for c in design.cascades)


def _buffers(design: Design) -> Any:
    return sorted(b.name for b in design.buffers)


def _sequence(design: Design) -> Any:
    fifos = {f.name: f for f in design.fifos}
    groups: dict[str, int] = {}
    found = []
    for t in design.sequence:
        group = groups.setdefault(t.group, len(groups))
        found.append((t.fifo, t.direction, t.tensor, t.objects, _pattern(t, fifos[t.fifo]), t.wait, group))
    return found


def _pattern(transfer: Transfer, fifo: Fifo) -> Any:
    """(offset, (size, stride) of what steps); a contiguous run is one size."""
    shape = fifo.shape if transfer.direction == "fill" else fifo.consumer_shape or fifo.shape
    if not transfer.sizes:
        return transfer.offset, ((transfer.objects * elements_of(shape), 1),)
    steps = tuple((n, s) for n, s in zip(transfer.sizes, transfer.strides, strict=True) if n != 1)
    return transfer.offset, steps
