"""Placement of a design: constructive while the search runs, by CP-SAT for the winner; and a check of its own.

Why its own check: the placers share the rules that they build by. This one counts tiles, neighbours and channels from
the finished design alone.
"""

from collections import Counter
from collections.abc import Iterator

from manifest.device import Device
from optimize.evidence import PlacementEvidence
from optimize.placement.designs import place_design
from optimize.placement.solve import Solution
from presim.design import Design, Endpoint, Fifo, Tile
from presim.directives import Directives
from presim.place import place


def placed(design: Design, device: Device, directives: Directives) -> Design:
    """A planned design on tiles, quickly."""
    return place(design, device, directives)


def proved(
    design: Design, device: Device, directives: Directives, *, accept_cut: bool
) -> tuple[Design, Solution | None]:
    """A planned design on tiles, with what the solver knows of exactly that placement, None = it found none.

    Args:
        design: planned.
        device: that it is for.
        directives: pins.
        accept_cut: take a placement that a clock cut off; else the constructive one stays.
    """
    found, solution = place_design(design, device, directives)
    if solution.reproducible or accept_cut:
        return found, solution
    return place(design, device, directives), None


def placement_evidence(design: Design, device: Device, solution: Solution | None) -> PlacementEvidence:
    """How a placed design lies."""
    faults = tuple(violations(design, device))
    cost = None if solution is None or solution.cost is None else float(solution.cost)
    bound = None if solution is None or solution.bound is None else float(solution.bound)
    return PlacementEvidence(
        dispatch=design.dispatch,
        status="constructive" if solution is None else solution.status,
        cost=cost,
        bound=bound,
        reproducible=solution is None or solution.reproducible,
        legal=not faults,
        fault=faults[0] if faults else "",
    )


def violations(design: Design, device: Device) -> Iterator[str]:
    """Everything about the tiles of a finished design that cannot be."""
    yield from _tiles(design, device)
    used: Counter[tuple[Tile, str]] = Counter()
    for fifo in design.fifos:
        ends = (fifo.producer, *fifo.consumers)
        if any(end.tile is None for end in ends):
            yield f"fifo {fifo.name!r}: an end is on no tile"
        elif not direct(fifo):
            used.update((end.tile, "out" if i == 0 else "in") for i, end in enumerate(ends) if end.tile is not None)
    for (tile, way), count in used.items():
        limit = _channels(device, tile, way)
        if limit is not None and count > limit:
            yield f"tile ({tile.column}, {tile.row}): {count} channels {way}, {limit} are there"


def _tiles(design: Design, device: Device) -> Iterator[str]:
    yield from _workers(design, device)
    for tile in {end.tile for f in design.fifos for end in (f.producer, *f.consumers) if end.tile is not None}:
        yield from _outside(tile, device)
    places = {w.name: w.tile for w in design.workers}
    for fifo in design.fifos:
        for end in (fifo.producer, *fifo.consumers):
            if end.kind == "worker" and end.tile != places.get(end.actor):
                yield f"fifo {fifo.name!r}: worker {end.actor!r} is elsewhere"
    for cascade in design.cascades:
        source, target = places.get(cascade.source), places.get(cascade.target)
        if source is None or target is None or not _beside(source, target):
            yield f"cascade {cascade.source!r} to {cascade.target!r}: no neighbours to the south or east"


def _workers(design: Design, device: Device) -> Iterator[str]:
    first = (device.shim_rows.value or 0) + (device.mem_rows.value or 0)
    taken = Counter(w.tile for w in design.workers)
    for worker in design.workers:
        tile = worker.tile
        if tile is None:
            yield f"worker {worker.name!r} is on no tile"
        elif taken[tile] > 1:
            yield f"worker {worker.name!r}: tile ({tile.column}, {tile.row}) has {taken[tile]} workers"
        elif tile.row < first:
            yield f"worker {worker.name!r}: row {tile.row} has no cores"


def _outside(tile: Tile, device: Device) -> Iterator[str]:
    columns, rows, shims = device.columns.value, device.rows.value, device.shim_dma_columns.value
    if (columns is not None and not 0 <= tile.column < columns) or (rows is not None and not 0 <= tile.row < rows):
        yield f"tile ({tile.column}, {tile.row}) is outside the array"
    if tile.kind == "shim" and (tile.row != 0 or (shims is not None and tile.column not in shims)):
        yield f"tile ({tile.column}, {tile.row}) reaches no external memory"


def direct(fifo: Fifo) -> bool:
    """Whether producer and consumer hand over in a memory that both reach, and take no channel."""
    one = len(fifo.consumers) == 1 and fifo.repeat_count == 1 and not fifo.via_dma and not fifo.consumer_shape
    if not one or fifo.producer.dims or fifo.consumers[0].dims:
        return False
    return _neighbours(fifo.producer, fifo.consumers[0])


def _neighbours(one: Endpoint, other: Endpoint) -> bool:
    """Whether two cores reach one memory: own, west, north or south of a core of the second generation."""
    a, b = one.tile, other.tile
    if a is None or b is None or one.kind != "worker" or other.kind != "worker":
        return False
    return abs(a.column - b.column) + abs(a.row - b.row) <= 1


def _beside(source: Tile, target: Tile) -> bool:
    step = (target.column - source.column, target.row - source.row)
    return step in ((1, 0), (0, -1))


def _channels(device: Device, tile: Tile, way: str) -> int | None:
    """Channels of a tile in one direction, None = not known."""
    figures = {
        ("core", "in"): device.core_s2mm,
        ("core", "out"): device.core_mm2s,
        ("mem", "in"): device.mem_s2mm,
        ("mem", "out"): device.mem_mm2s,
        ("shim", "in"): device.shim_s2mm,
        ("shim", "out"): device.shim_mm2s,
    }
    return figures[tile.kind, way].value
