"""Placement: a tile for every worker, memory and shim end and link of a planned design.

Rules: one worker to a core; cores side by side share a memory, so their fifo needs neither DMA nor memory tile; a
cascade leads east or south; memory and shim tiles are near what they serve and within their channels, descriptors,
locks and bytes; host transfers go through columns that reach external memory. The result is held against the static
checks of designs once more before it is returned.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from manifest.device import Device
from manifest.errors import Problem, RefusedError
from presim.design import Design, Endpoint, Tile
from presim.directives import Directives
from presim.place.bins import place_bins, require_memories
from presim.place.grid import Grid, grid_of
from presim.place.nets import nets_of
from presim.place.pins import Pins, pins_of
from presim.place.search import Search
from presim.place.sharing import share
from presim.place.units import Unit, units_of
from presim.static import check_design, structure
from presim.static.scope import place as place_of

CODES: Final[Mapping[str, str]] = {
    "placement": "PLACE-TILES",
    "shim_columns": "PLACE-SHIM",
    "cascades": "PLACE-CASCADE",
    "broadcast": "PLACE-BROADCAST",
    "dma_channels": "PLACE-CHANNELS",
    "buffer_descriptors": "PLACE-DESCRIPTORS",
    "descriptor_halves": "PLACE-DESCRIPTORS",
    "locks": "PLACE-LOCKS",
    "data_memory": "PLACE-MEMORY",
}
"""Static checks that a placement decides, with the code under which each refuses one."""

REMEDY: Final = "cut the model into dispatches (--cut TENSOR), or ask for less parallelism"


def place(design: Design, device: Device, directives: Directives | None = None) -> Design:
    """Place a design; the same arguments give the same tiles.

    Args:
        design: planned; what has a tile already keeps it.
        device: that it is for.
        directives: pins of the first worker of an op; None = none.

    Raises:
        RefusedError: pins that cannot hold, or a design that does not fit; names the resource, need and have.
    """
    faults = structure(design)
    if faults:
        raise RefusedError(tuple(Problem(code="PLACE-DESIGN", where=f.where, what=f.text) for f in faults))
    grid = grid_of(device)
    require_memories(design, device, grid)
    pins = pins_of(design, directives or Directives(), grid)
    placed = share(_with_workers(design, _spots(design, device, grid, pins)), design, device, grid)
    placed = place_bins(placed, device, grid)
    notes = tuple(f"placement of {op!r} not used: it has no core in this dispatch" for op in pins.unused)
    placed = replace(placed, notes=(*placed.notes, *notes))
    _recheck(placed, device)
    return placed


def _spots(design: Design, device: Device, grid: Grid, pins: Pins) -> dict[str, Tile]:
    """Tiles of the workers."""
    need, have = len(design.workers), grid.columns * grid.core_rows
    if need > have:
        raise RefusedError(
            (_problem("PLACE-CORES", f"dispatch {design.dispatch!r}", f"core tiles: need {need}, have {have}"),)
        )
    numbers = {worker.name: i for i, worker in enumerate(design.workers)}
    fixed = {numbers[name]: (tile.column, tile.row) for name, tile in pins.fixed.items()}
    wishes = {numbers[name]: (tile.column, tile.row) for name, tile in pins.wished.items()}
    found = Search(nets_of(design, device), units_of(design), grid, fixed, wishes).best()
    if isinstance(found, tuple):
        raise RefusedError((_no_room(design, found, pins, have - need),))
    return {worker.name: Tile(column=c, row=r) for worker, (c, r) in zip(design.workers, found, strict=True)}


def _no_room(design: Design, unit: Unit, pins: Pins, spare: int) -> Problem:
    names = [design.workers[worker].name for worker in unit]
    held = [name for name in names if name in pins.fixed]
    what = f"cascade of {len(unit)} cores: no free path leads east and south"
    what += f" through the place of {', '.join(map(repr, held))}" if held else f", with {spare} cores to spare in all"
    return _problem("PLACE-CASCADE", f"workers {names[0]!r} to {names[-1]!r}", what)


def _problem(code: str, where: str, what: str) -> Problem:
    return Problem(code=code, where=where, what=what, remedy=REMEDY)


def _with_workers(design: Design, spots: dict[str, Tile]) -> Design:
    """The design with workers and their ends on tiles."""

    def placed(end: Endpoint) -> Endpoint:
        return replace(end, tile=spots[end.actor]) if end.kind == "worker" else end

    fifos = [
        replace(fifo, producer=placed(fifo.producer), consumers=tuple(placed(end) for end in fifo.consumers))
        for fifo in design.fifos
    ]
    workers = [replace(worker, tile=spots[worker.name]) for worker in design.workers]
    return replace(design, workers=tuple(workers), fifos=tuple(fifos))


def _recheck(design: Design, device: Device) -> None:
    """Hold a placed design against the static checks."""
    workers = {place_of(worker.tile): worker.name for worker in design.workers}
    problems = []
    for checked in check_design(design, device):
        wrong = [f for f in checked.findings if f.severity == "error" and checked.rule in CODES]
        for finding in wrong:
            worker = workers.get(finding.where.split("), ", 1)[0] + ")")
            where = finding.where if worker is None else f"worker {worker!r} on {finding.where}"
            problems.append(_problem(CODES[checked.rule], where, finding.text))
    if problems:
        raise RefusedError(tuple(problems))
