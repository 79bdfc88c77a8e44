"""Whether a design fits the array as a whole: cores, memory tiles, ways to the host."""

from collections import Counter
from collections.abc import Iterable, Iterator

from manifest.errors import Problem
from presim.design import Design, Fifo
from presim.plan.limits import Limits, size_of
from presim.pools import wire

Row = tuple[str, str, int, int | None, str, str]
"""(code, what, need, have, what takes most of it, remedy)."""


def array_problems(design: Design, limits: Limits) -> tuple[Problem, ...]:
    """Every budget of the whole array that a design exceeds; what the device file does not say limits nothing."""
    where = f"dispatch {design.dispatch!r}"
    return tuple(
        Problem(
            code=code,
            where=where,
            what=f"it needs more {what} than the array has: need {need}, have {have}",
            expected=f"at most {have}",
            got=f"{need}{most and f', {most}'}",
            remedy=remedy,
        )
        for code, what, need, have, most, remedy in _rows(design, limits)
        if have is not None and need > have
    )


def _rows(design: Design, limits: Limits) -> Iterator[Row]:
    fewer = "cut the dispatch into smaller ones (--cut)"
    owner = _owners(design)
    cores = _most((w.stage or w.name, 1) for w in design.workers)
    yield "PLAN-CORES", "cores", len(design.workers), limits.cores, cores, fewer
    fills = [t.fifo for t in design.sequence if t.direction == "fill"]
    drains = [t.fifo for t in design.sequence if t.direction == "drain"]
    host = "join tensors in the model, or cut the dispatch so that fewer enter and leave it (--cut)"
    yield "PLAN-SHIM", "streams from the host", len(fills), limits.fills, _most((owner[f], 1) for f in fills), host
    yield "PLAN-SHIM", "streams to the host", len(drains), limits.drains, _most((owner[f], 1) for f in drains), host
    pools = [p for p in wire(design).pools.values() if p.tile_kind == "mem"]
    sizes = [(owner[p.fifo], p.declared * size_of(p.shape, p.dtype)) for p in pools]
    tile, count = limits.memtile_bytes, limits.memtiles
    largest = max(sizes, key=lambda row: row[1], default=("", 0))
    yield "PLAN-MEMTILE", "bytes in one memory tile", largest[1], tile, _most([largest]), fewer
    total = sum(size for _, size in sizes)
    yield "PLAN-MEMTILE", "bytes in memory tiles", total, _product(tile, count), _most(sizes), fewer
    into = [name for link in design.links for name in link.sources]
    out = [f.name for f in design.fifos if f.producer.kind == "mem"]
    for what, names, each in (("into", into, limits.join), ("out of", out, limits.mem_out)):
        most = _most((owner[n], 1) for n in names)
        yield "PLAN-CHANNELS", f"streams {what} memory tiles", len(names), _product(each, count), most, fewer


def _owners(design: Design) -> dict[str, str]:
    """By fifo the op that it serves: that of its first reader on a core, else that of its writer, else its tensor."""
    stages = {w.name: w.stage or w.name for w in design.workers}
    behind = {name: link.targets for link in design.links for name in link.sources}
    fifos = {f.name: f for f in design.fifos}

    def owner(fifo: Fifo, seen: frozenset[str]) -> str:
        readers = [stages[e.actor] for e in fifo.consumers if e.actor in stages]
        if readers:
            return readers[0]
        for name in behind.get(fifo.name, ()):
            if name not in seen and (found := owner(fifos[name], seen | {name})):
                return found
        return stages.get(fifo.producer.actor, "")

    return {f.name: owner(f, frozenset({f.name})) or f.tensor for f in design.fifos}


def _most(parts: Iterable[tuple[str, int]]) -> str:
    """The op with the largest share of a need, "" = there is none."""
    counts: Counter[str] = Counter()
    for name, size in parts:
        counts[name] += size
    rows = counts.most_common(1)
    return f"{rows[0][1]} of it for op {rows[0][0]!r}" if rows and rows[0][1] else ""


def _product(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else a * b
