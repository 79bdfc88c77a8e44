"""Whether a design fits the array as a whole: cores, memory tiles, ways to the host."""

from collections.abc import Iterator

from manifest.errors import Problem
from presim.design import Design
from presim.plan.limits import Limits, size_of
from presim.pools import wire


def array_problems(design: Design, limits: Limits) -> tuple[Problem, ...]:
    """Every budget of the whole array that a design exceeds; what the device file does not say limits nothing."""
    where = f"dispatch {design.dispatch!r}"
    return tuple(
        Problem(
            code=code,
            where=where,
            what=f"it needs more {what} than the array has: need {need}, have {have}",
            expected=f"at most {have}",
            got=str(need),
            remedy=remedy,
        )
        for code, what, need, have, remedy in _rows(design, limits)
        if have is not None and need > have
    )


def _rows(design: Design, limits: Limits) -> Iterator[tuple[str, str, int, int | None, str]]:
    fewer = "cut the dispatch into smaller ones (--cut)"
    yield "PLAN-CORES", "cores", len(design.workers), limits.cores, fewer
    fills = sum(t.direction == "fill" for t in design.sequence)
    drains = len(design.sequence) - fills
    host = "join tensors in the model, or cut the dispatch so that fewer enter and leave it (--cut)"
    yield "PLAN-SHIM", "streams from the host", fills, limits.fills, host
    yield "PLAN-SHIM", "streams to the host", drains, limits.drains, host
    pools = [p for p in wire(design).pools.values() if p.tile_kind == "mem"]
    sizes = [p.declared * size_of(p.shape, p.dtype) for p in pools]
    tile, count = limits.memtile_bytes, limits.memtiles
    yield "PLAN-MEMTILE", "bytes in one memory tile", max(sizes, default=0), tile, fewer
    yield "PLAN-MEMTILE", "bytes in memory tiles", sum(sizes), _product(tile, count), fewer
    into = sum(len(link.sources) for link in design.links)
    out = sum(f.producer.kind == "mem" for f in design.fifos)
    yield "PLAN-CHANNELS", "streams into memory tiles", into, _product(limits.join, count), fewer
    yield "PLAN-CHANNELS", "streams out of memory tiles", out, _product(limits.mem_out, count), fewer


def _product(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else a * b
