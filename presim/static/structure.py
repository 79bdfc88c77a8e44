"""Structure: names are unique and known, counts make sense, every part finds its counterpart.

What fails here has no meaning that could be simulated; the simulator refuses it with the same findings.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import numpy as np

from presim.design import Acquire, Argument, Call, Design, Endpoint, Fifo, Link, Loop, Release, Step, Transfer, Worker
from presim.static.findings import StaticFinding, error
from presim.steps import elements_of, side_of, variable_of

RULE: Final = "structure"
MOST_OBJECTS: Final = 1 << 20
MOST_BYTES: Final = 1 << 26
MOST_REPEATS: Final = 1 << 16
"""Bounds of a pool, far above every tile, so that no design can ask the simulator for all memory."""


def structure(design: Design) -> tuple[StaticFinding, ...]:
    """Every fault of structure of a design, in its own order."""
    found = [*_unique(design)]
    for fifo in design.fifos:
        found += [error(RULE, f"fifo {fifo.name!r}", text) for text in _fifo(fifo, {w.name for w in design.workers})]
    if found:
        return tuple(found)
    found += _links(design)
    found += _cascades(design)
    for worker in design.workers:
        found += _Program(design, worker).findings()
    for index, transfer in enumerate(design.sequence):
        where = f"transfer {index} of fifo {transfer.fifo!r}"
        found += [error(RULE, where, text) for text in _transfer(transfer, design)]
    return tuple(found)


def _unique(design: Design) -> Iterator[StaticFinding]:
    groups: Mapping[str, Iterable[str]] = {
        "worker": [w.name for w in design.workers],
        "fifo": [f.name for f in design.fifos],
        "kernel": [k.name for k in design.kernels],
        "buffer": [b.name for b in design.buffers],
    }
    for what, names in groups.items():
        for name, count in Counter(names).items():
            if count > 1:
                yield error(RULE, f"{what} {name!r}", f"{count} of this name, expected one")
    for buffer in design.buffers:
        if not _is_dtype(buffer.dtype) or not _positive(buffer.shape) or elements_of(buffer.shape) > MOST_BYTES:
            yield error(RULE, f"buffer {buffer.name!r}", f"no such type or size: {buffer.dtype} {buffer.shape}")


def _is_dtype(name: str) -> bool:
    try:
        return np.dtype(name).kind in "iufb"
    except TypeError:
        return False


def _positive(values: Sequence[int]) -> bool:
    return all(v >= 1 for v in values)


def _fifo(fifo: Fifo, workers: set[str]) -> Iterator[str]:
    if not _is_dtype(fifo.dtype):
        yield f"dtype: expected a numpy type of numbers, got {fifo.dtype!r}"
        return
    if not fifo.shape or not _positive(fifo.shape) or not _positive(fifo.consumer_shape):
        yield f"shape: expected sizes from 1, got {fifo.shape} and {fifo.consumer_shape} for consumers"
    if not fifo.consumers:
        yield "no consumer"
    if not 1 <= fifo.repeat_count <= MOST_REPEATS or (fifo.iter_count is not None and fifo.iter_count < 1):
        got = f"{fifo.repeat_count} and {fifo.iter_count}"
        yield f"repeat_count and iter_count: expected 1 or more, repeats at most {MOST_REPEATS}, got {got}"
    if fifo.consumer_shape and elements_of(fifo.shape) % elements_of(fifo.consumer_shape):
        yield f"consumer_shape {fifo.consumer_shape} does not divide an object of {fifo.shape}"
    yield from _initial(fifo)
    for end in (fifo.producer, *fifo.consumers):
        yield from _endpoint(fifo, end, workers)
    actors = Counter(c.actor for c in fifo.consumers if c.kind == "worker")
    for actor, count in actors.items():
        if count > 1:
            yield f"worker {actor!r} is {count} of its consumers, expected one"
    if sum(c.kind == "shim" for c in fifo.consumers) > 1:
        yield "two consumers at a shim, expected at most one"


def _initial(fifo: Fifo) -> Iterator[str]:
    depth = fifo.depth if fifo.producer.depth is None else fifo.producer.depth
    if fifo.init_objects < 0 or fifo.init_objects > depth:
        yield f"init_objects: expected 0 to its depth {depth}, got {fifo.init_objects}"
    if fifo.producer.kind == "shim" and (fifo.init_objects or fifo.init_array is not None):
        yield "objects at the start, but its producer is a shim, which holds none"


def _endpoint(fifo: Fifo, end: Endpoint, workers: set[str]) -> Iterator[str]:
    depth = fifo.depth if end.depth is None else end.depth
    if not 1 <= depth <= MOST_OBJECTS:
        yield f"depth at {end.actor!r}: expected 1 to {MOST_OBJECTS}, got {depth}"
    elif depth * elements_of(fifo.shape) * np.dtype(fifo.dtype).itemsize > MOST_BYTES:
        yield f"depth {depth} at {end.actor!r}: a pool of more than {MOST_BYTES} bytes, no tile has as many"
    if end.kind == "worker" and end.actor not in workers:
        yield f"there is no worker {end.actor!r}"
    shape = fifo.shape if end is fifo.producer else fifo.consumer_shape or fifo.shape
    if end.dims and not _dims_fit(end.dims, elements_of(shape)):
        product = math.prod(size for size, _ in end.dims)
        yield (
            f"dims {end.dims} at {end.actor!r}: expected a product of sizes of {elements_of(shape)} within the"
            f" object, got {product}"
        )


def _dims_fit(dims: Sequence[tuple[int, int]], elements: int) -> bool:
    """Sizes from 1 whose product is the object, and no index outside it."""
    if any(size < 1 or stride < 0 for size, stride in dims):
        return False
    return math.prod(s for s, _ in dims) == elements and sum((s - 1) * t for s, t in dims) < elements


def _links(design: Design) -> Iterator[StaticFinding]:
    fifos = {f.name: f for f in design.fifos}
    ends: Counter[str] = Counter()
    for index, link in enumerate(design.links):
        where = f"link {index} ({', '.join(link.sources)} > {', '.join(link.targets)})"
        texts = list(_link(link, fifos))
        yield from (error(RULE, where, text) for text in texts)
        ends.update(f"begin of {n}" for n in link.targets)
        ends.update(f"end of {n}" for n in link.sources)
        if not texts:
            yield from (error(RULE, where, text) for text in _segments(link, fifos))
    for end, count in ends.items():
        name = end.split(" of ", 1)[1]
        allowed = sum(c.kind == "mem" for c in fifos[name].consumers) if end.startswith("end") and name in fifos else 1
        if count > allowed:
            yield error(RULE, f"fifo {name!r}", f"{count} links at the {end}, expected at most {allowed}")


def _link(link: Link, fifos: Mapping[str, Fifo]) -> Iterator[str]:
    unknown = [n for n in (*link.sources, *link.targets) if n not in fifos]
    if unknown:
        yield f"unknown fifos {unknown}"
        return
    counts = {"forward": (1, 1), "split": (1, len(link.targets)), "join": (len(link.sources), 1)}[link.kind]
    if (len(link.sources), len(link.targets)) != counts or 0 in counts:
        yield f"{link.kind}: got {len(link.sources)} sources and {len(link.targets)} targets"
    parts = {"forward": 0, "split": len(link.targets), "join": len(link.sources)}[link.kind]
    if len(link.offsets) not in {parts, 0 if link.kind == "forward" else parts}:
        yield f"{link.kind}: expected {parts} offsets, got {len(link.offsets)}"
    for name in link.sources:
        if not any(c.kind == "mem" for c in fifos[name].consumers):
            yield f"fifo {name!r} has no consumer in a memory tile"
    for name in link.targets:
        if fifos[name].producer.kind != "mem":
            yield f"fifo {name!r} has no producer in a memory tile"
    if len({fifos[n].dtype for n in (*link.sources, *link.targets)}) > 1:
        yield "its fifos have different types"


def _segments(link: Link, fifos: Mapping[str, Fifo]) -> Iterator[str]:
    """Segments lie inside the object; whether they tile it is another check."""
    if link.kind == "forward":
        return
    if link.kind == "split":
        whole, parts = fifos[link.sources[0]], [(n, fifos[n].shape) for n in link.targets]
        size = elements_of(whole.consumer_shape or whole.shape)
    else:
        whole = fifos[link.targets[0]]
        parts = [(n, fifos[n].consumer_shape or fifos[n].shape) for n in link.sources]
        size = elements_of(whole.shape)
    for (name, shape), offset in zip(parts, link.offsets, strict=True):
        end = offset + elements_of(shape)
        if offset < 0 or end > size:
            yield f"segment of fifo {name!r} is [{offset}, {end}) of an object of {size} elements"


def _cascades(design: Design) -> Iterator[StaticFinding]:
    names = {w.name for w in design.workers}
    for what, ends in (
        ("source", [c.source for c in design.cascades]),
        ("target", [c.target for c in design.cascades]),
    ):
        for name, count in Counter(ends).items():
            if name not in names:
                yield error(RULE, f"cascade {what} {name!r}", "there is no such worker")
            elif count > 1:
                yield error(RULE, f"cascade {what} {name!r}", f"{count} cascades, a core has one in and one out")
    for cascade in design.cascades:
        if cascade.depth < 1 or cascade.words < 0:
            yield error(
                RULE, f"cascade {cascade.source!r} > {cascade.target!r}", "depth from 1 and words from 0 expected"
            )


class _Program:
    """Checks the steps of one worker."""

    def __init__(self, design: Design, worker: Worker) -> None:
        self.worker = worker
        self.fifos = {f.name: f for f in design.fifos}
        self.kernels = {k.name for k in design.kernels}
        self.buffers = {b.name for b in design.buffers}
        self.reads = any(c.target == worker.name for c in design.cascades)
        self.writes = any(c.source == worker.name for c in design.cascades)

    def findings(self) -> Iterator[StaticFinding]:
        for place, text in self._body(self.worker.program, "", frozenset()):
            yield error(RULE, f"worker {self.worker.name!r} step {place}", text)

    def _body(self, steps: Sequence[Step], prefix: str, counters: frozenset[str]) -> Iterator[tuple[str, str]]:
        for index, step in enumerate(steps):
            place = f"{prefix}{index}"
            if isinstance(step, Loop):
                if step.times < 0:
                    yield place, f"times: expected 0 or more, got {step.times}"
                yield from self._body(step.body, f"{place}.", counters | {step.counter})
            elif isinstance(step, Call):
                yield from ((place, text) for text in self._call(step, counters))
            else:
                yield from ((place, text) for text in self._access(step))

    def _access(self, step: Acquire | Release) -> Iterator[str]:
        yield from self._fifo(step.fifo, step.side)
        if step.count < 1:
            yield f"count: expected 1 or more, got {step.count}"

    def _fifo(self, name: str, side: str) -> Iterator[str]:
        fifo = self.fifos.get(name)
        if fifo is None:
            yield f"there is no fifo {name!r}"
        elif not side_of(fifo, self.worker.name, side):  # type: ignore[arg-type]
            yield f"fifo {name!r} does not say which end: producers {fifo.producer.actor!r}, side {side!r}"

    def _call(self, step: Call, counters: frozenset[str]) -> Iterator[str]:
        if step.kernel not in self.kernels:
            yield f"there is no kernel {step.kernel!r}"
        for argument in step.arguments:
            yield from self._argument(argument)
        for name, value in step.scalars:
            if isinstance(value, str):
                found = variable_of(value)
                if found is None or found[0] not in counters:
                    yield f"scalar {name!r}: {value!r} names no loop around it"

    def _argument(self, argument: Argument) -> Iterator[str]:
        if argument.kind == "fifo":
            yield from self._fifo(argument.name, argument.side)
            if argument.index < 0:
                yield f"index of fifo {argument.name!r}: expected 0 or more, got {argument.index}"
        elif argument.kind == "buffer":
            if argument.name not in self.buffers:
                yield f"there is no buffer {argument.name!r}"
        elif not (self.reads if argument.kind == "cascade_in" else self.writes):
            yield f"{argument.kind}, and the worker has no such cascade"


def _transfer(transfer: Transfer, design: Design) -> Iterator[str]:
    fifo = next((f for f in design.fifos if f.name == transfer.fifo), None)
    if fifo is None:
        yield "there is no such fifo"
        return
    fills = transfer.direction == "fill"
    if fills and fifo.producer.kind != "shim":
        yield "a fill, but its producer is not at a shim"
    if not fills and not any(c.kind == "shim" for c in fifo.consumers):
        yield "a drain, but no consumer is at a shim"
    if transfer.objects < 1 or transfer.offset < 0:
        yield f"objects from 1 and offset from 0 expected, got {transfer.objects} and {transfer.offset}"
    if (
        len(transfer.sizes) != len(transfer.strides)
        or not _positive(transfer.sizes)
        or min(transfer.strides, default=0) < 0
    ):
        yield f"sizes {transfer.sizes} and strides {transfer.strides} do not fit each other"
    elif transfer.sizes:
        elements = transfer.objects * elements_of(fifo.shape if fills else fifo.consumer_shape or fifo.shape)
        if math.prod(transfer.sizes) != elements:
            yield f"sizes {transfer.sizes} are {math.prod(transfer.sizes)} elements, its objects {elements}"
