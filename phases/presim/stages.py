"""Pieces of a design: the workers of some stages, fed and drained by the host where the rest was.

Units are what can be cut: stages of the manifest that share no worker with another. A worker that computes several
stages binds them into one unit.
"""

import math
from collections.abc import Mapping, Set
from dataclasses import dataclass, replace

from manifest.model import Manifest
from oracle.stages import stages
from phases.presim.flow import carries_activation
from presim.design import Call, Design, Endpoint, Fifo, Link, Transfer, Worker
from presim.steps import steps_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """What is validated at once.

    Attributes:
        name: of its stages.
        workers: of the design; empty where nothing of the design computes it.
    """

    name: str
    workers: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A piece of a design.

    Attributes:
        design: with a shim where something was cut off.
        fed: fifos that the host fills with activations, under the fifo's name as host tensor.
        unknown: fifos at the cut whose objects are not known, so that it cannot be run.
    """

    design: Design
    fed: tuple[str, ...]
    unknown: tuple[str, ...]


def units_of(design: Design, manifest: Manifest) -> tuple[Unit, ...]:
    """The units of a dispatch, in an order in which data reaches them.

    An op without a kernel is none where its output flows all the same: as a view, or put together in a memory tile.
    """
    dispatch = next(d for d in manifest.dispatches if d.name == design.dispatch)
    outputs = {op.name: op.outputs for op in manifest.ops}
    carried = {f.tensor for f in design.fifos if f.producer.kind == "mem"} | {name for name, _ in design.views}
    stage_of = {op: number for number, stage in enumerate(stages(manifest)) for op in stage.ops}
    names = {number: stage.name for number, stage in enumerate(stages(manifest))}
    ops_of = {w.name: _ops_of(design, w) for w in design.workers}
    computed = {op for ops in ops_of.values() for op in ops}
    wanted = {stage_of[op] for op in dispatch.ops if op in computed or not carried.issuperset(outputs[op])}
    groups: list[set[int]] = [{number} for number in sorted(wanted)]
    for ops in ops_of.values():
        mine = {stage_of[op] for op in ops}
        touched = [g for g in groups if g & mine]
        if len(touched) > 1:
            groups = [g for g in groups if not g & mine] + [set().union(*touched)]
    found = []
    for group in sorted(groups, key=max):
        workers = frozenset(w for w, ops in ops_of.items() if {stage_of[op] for op in ops} & group)
        found.append(Unit(name=" + ".join(names[n] for n in sorted(group)), workers=workers))
    return tuple(found)


def _ops_of(design: Design, worker: Worker) -> set[str]:
    kernels = {k.name: k.op for k in design.kernels}
    called = {kernels.get(s.kernel, "") for s in steps_of(worker.program) if isinstance(s, Call)}
    return {op for op in called if op}


def cut(design: Design, workers: Set[str], manifest: Manifest, counts: Mapping[str, int]) -> Piece:
    """The piece of a design that some workers are.

    Args:
        design: whole.
        workers: that stay.
        manifest: says which fifos carry activations.
        counts: objects of one inference by fifo.
    """
    return _Cutter(design, workers, manifest, counts).piece()


class _Cutter:
    """Decides what stays, and puts a shim at every end that does not."""

    def __init__(self, design: Design, workers: Set[str], manifest: Manifest, counts: Mapping[str, int]) -> None:
        self.design = design
        self.workers = workers
        self.manifest = manifest
        self.counts = counts
        self.fifos = {f.name: f for f in design.fifos}
        self.links = self.kept_links()
        self.names = {f.name for f in design.fifos if self.touches(f)}
        self.names |= {n for link in self.links for n in (*link.sources, *link.targets)}

    def inside(self, end: Endpoint) -> bool:
        return end.kind == "worker" and end.actor in self.workers

    def touches(self, fifo: Fifo) -> bool:
        return self.inside(fifo.producer) or any(self.inside(c) for c in fifo.consumers)

    def kept_links(self) -> tuple[Link, ...]:
        """Links that a worker of the piece reads from or writes to, and those that bring its constants."""
        kept = {i for i, link in enumerate(self.design.links) if self.is_beside(link)}
        while True:
            reached = {n for i in kept for n in self.design.links[i].sources}
            more = {i for i, link in enumerate(self.design.links) if self.brings_constants(link, reached)} - kept
            if not more:
                return tuple(link for i, link in enumerate(self.design.links) if i in kept)
            kept |= more

    def is_beside(self, link: Link) -> bool:
        reads = any(self.inside(c) for n in link.targets for c in self.fifos[n].consumers)
        return reads or any(self.inside(self.fifos[n].producer) for n in link.sources)

    def brings_constants(self, link: Link, reached: Set[str]) -> bool:
        return any(n in reached and not carries_activation(self.fifos[n], self.manifest) for n in link.targets)

    def piece(self) -> Piece:
        fifos, transfers, fed, unknown = [], [], [], []
        kept_mem = self.mem_consumers()
        for fifo in self.design.fifos:
            if fifo.name not in self.names:
                continue
            made = self.with_ends(fifo, kept_mem)
            fifos.append(made)
            transfers += [t for t in self.constant_fills(fifo) if made.producer.kind == "shim"]
            count = self.count_of(fifo)
            feeds = made.producer.kind == "shim" and carries_activation(fifo, self.manifest)
            drains = any(c.kind == "shim" for c in made.consumers)
            if count is None and (feeds or drains):
                unknown.append(fifo.name)
                continue
            if feeds:
                fed.append(fifo.name)
                transfers.append(self.transfer(fifo, count or 0, fills=True))
            if drains:
                transfers.append(self.transfer(fifo, count or 0, fills=False))
        return Piece(design=self.reduced(fifos, transfers), fed=tuple(fed), unknown=tuple(unknown))

    def transfer(self, fifo: Fifo, count: int, *, fills: bool) -> Transfer:
        if fills:
            return Transfer(fifo=fifo.name, direction="fill", tensor=fifo.name, objects=count)
        ratio = math.prod(fifo.shape) // math.prod(fifo.consumer_shape or fifo.shape)
        objects = count * fifo.repeat_count * ratio
        return Transfer(fifo=fifo.name, direction="drain", tensor=fifo.name, objects=objects, wait=True)

    def count_of(self, fifo: Fifo) -> int | None:
        """Objects of one inference; of constants what the host sends."""
        if fifo.name in self.counts:
            return self.counts[fifo.name]
        fills = [t.objects for t in self.constant_fills(fifo)]
        return sum(fills) if fills else None

    def constant_fills(self, fifo: Fifo) -> list[Transfer]:
        if carries_activation(fifo, self.manifest):
            return []
        return [t for t in self.design.sequence if t.fifo == fifo.name and t.direction == "fill"]

    def mem_consumers(self) -> set[tuple[str, int]]:
        """(fifo, index of the consumer) of the memory tiles that the kept links stand in."""
        taken: dict[tuple[str, int], Link] = {}
        for link in self.design.links:
            for name in link.sources:
                ends = [i for i, c in enumerate(self.fifos[name].consumers) if c.kind == "mem"]
                fits = [i for i in ends if link.tile is not None and self.fifos[name].consumers[i].tile == link.tile]
                free = [i for i in fits or ends if (name, i) not in taken] or fits or ends
                taken[name, free[0]] = link
        return {place for place, link in taken.items() if link in self.links}

    def with_ends(self, fifo: Fifo, kept_mem: Set[tuple[str, int]]) -> Fifo:
        is_target = any(fifo.name in link.targets for link in self.links)
        is_static = fifo.producer.kind == "mem" and not any(fifo.name in link.targets for link in self.design.links)
        stays = self.inside(fifo.producer) or is_target or is_static
        producer = fifo.producer if stays else Endpoint(actor=f"host into {fifo.name}", kind="shim")
        consumers = [
            c
            for i, c in enumerate(fifo.consumers)
            if self.inside(c) or (c.kind == "mem" and (fifo.name, i) in kept_mem)
        ]
        if not consumers or (stays and not is_static and len(consumers) < len(fifo.consumers)):
            consumers.append(Endpoint(actor=f"host from {fifo.name}", kind="shim"))
        return replace(fifo, producer=producer, consumers=tuple(consumers))

    def reduced(self, fifos: list[Fifo], transfers: list[Transfer]) -> Design:
        workers = tuple(w for w in self.design.workers if w.name in self.workers)
        calls = [s for w in workers for s in steps_of(w.program) if isinstance(s, Call)]
        buffers = {a.name for call in calls for a in call.arguments if a.kind == "buffer"}
        kernels = {call.kernel for call in calls}
        return replace(
            self.design,
            workers=workers,
            fifos=tuple(fifos),
            kernels=tuple(k for k in self.design.kernels if k.name in kernels),
            links=self.links,
            buffers=tuple(b for b in self.design.buffers if b.name in buffers),
            cascades=tuple(c for c in self.design.cascades if {c.source, c.target} <= set(self.workers)),
            sequence=tuple(sorted(transfers, key=lambda t: t.direction, reverse=True)),
            splits=(),
        )
