"""Placement: every tile exists, holds one worker, reaches what it has to reach."""

from collections import Counter
from collections.abc import Iterator
from typing import Final

from presim.adjacency import cascades_to, reaches
from presim.design import Call, Tile
from presim.static.findings import Checked, StaticFinding, error, warning
from presim.static.scope import Scope, place, unknown
from presim.steps import steps_of

PLACEMENT: Final = "placement"
SHIM_COLUMNS: Final = "shim_columns"
CASCADES: Final = "cascades"


def tiles_of(scope: Scope) -> list[Tile]:
    """Every tile that a design names, each once, sorted."""
    design = scope.design
    named = [w.tile for w in design.workers] + [b.tile for b in design.buffers] + [link.tile for link in design.links]
    named += [end.tile for fifo in design.fifos for end in (fifo.producer, *fifo.consumers)]
    return sorted({tile for tile in named if tile is not None})


def placement(scope: Scope) -> Checked:
    """Every worker is on a core tile of its own that exists; every memory and shim end on a tile of its kind."""
    found: list[StaticFinding] = []
    for tile in tiles_of(scope):
        found += _tile(scope, tile)
    owners = Counter(w.tile for w in scope.design.workers if w.tile is not None)
    for tile, count in owners.items():
        if count > 1:
            names = ", ".join(w.name for w in scope.design.workers if w.tile == tile)
            found.append(
                error(PLACEMENT, place(tile), f"{count} workers ({names}), a core runs one", used=count, limit=1)
            )
        if tile.kind != "core":
            found.append(error(PLACEMENT, place(tile), "has a worker; workers run on core tiles"))
    for fifo in scope.design.fifos:
        for end in (fifo.producer, *fifo.consumers):
            wanted = {"worker": "core", "mem": "mem", "shim": "shim"}[end.kind]
            if end.tile is not None and end.tile.kind != wanted:
                text = f"its end at {end.actor!r} is a {end.kind}'s and on {place(end.tile)}"
                found.append(error(PLACEMENT, f"fifo {fifo.name!r}", text))
    found += _buffers(scope)
    missing = _unplaced(scope)
    if missing:
        text = f"{missing} ends, workers or links are not placed; budgets of tiles do not count them"
        found.append(warning(PLACEMENT, "design", text, used=missing, limit=0))
    return Checked(rule=PLACEMENT, looked_at=len(tiles_of(scope)), findings=tuple(found))


def _buffers(scope: Scope) -> Iterator[StaticFinding]:
    """Buffers in memories that a worker which uses them does not reach; without a tile they are the first user's."""
    homes = {buffer.name: buffer.tile for buffer in scope.design.buffers}
    for worker in scope.design.workers:
        calls = (step for step in steps_of(worker.program) if isinstance(step, Call))
        used = dict.fromkeys(a.name for call in calls for a in call.arguments if a.kind == "buffer")
        for name in used if worker.tile is not None else ():
            home = homes[name] = homes[name] or worker.tile
            if home is not None and worker.tile is not None and not reaches(worker.tile, home, scope.device.arch):
                text = f"worker {worker.name!r} on {place(worker.tile)} does not reach it on {place(home)}"
                yield error(PLACEMENT, f"buffer {name!r}", text)


def _unplaced(scope: Scope) -> int:
    ends = [e.tile for f in scope.design.fifos for e in (f.producer, *f.consumers)]
    others = [w.tile for w in scope.design.workers]
    return sum(tile is None for tile in ends + others)


def _tile(scope: Scope, tile: Tile) -> Iterator[StaticFinding]:
    columns = scope.figure("columns")
    if columns is not None and not 0 <= tile.column < columns:
        text = f"column {tile.column}, {scope.device.name} has columns 0 to {columns - 1}"
        yield error(PLACEMENT, place(tile), text, used=tile.column, limit=columns - 1)
    shims, mems, cores = (scope.figure(f"{kind}_rows") for kind in ("shim", "mem", "core"))
    if shims is None or mems is None or cores is None:
        return
    first = {"shim": 0, "mem": shims, "core": shims + mems}[tile.kind]
    count = {"shim": shims, "mem": mems, "core": cores}[tile.kind]
    if not first <= tile.row < first + count:
        rows = f"rows {first} to {first + count - 1}" if count else "none"
        yield error(
            PLACEMENT, place(tile), f"{scope.device.name} has {tile.kind} tiles in {rows}", used=tile.row, limit=count
        )


def shim_columns(scope: Scope) -> Checked:
    """Host transfers go through columns whose shim tile reaches external memory."""
    shims = [t for t in tiles_of(scope) if t.kind == "shim"]
    allowed = scope.device.shim_dma_columns.value
    found = []
    for tile in shims:
        if allowed is None:
            found.append(unknown(SHIM_COLUMNS, place(tile), "shim_dma_columns", scope.device, tile.column))
        elif tile.column not in allowed:
            columns = ", ".join(map(str, allowed))
            text = (
                f"column {tile.column} has no DMA to external memory on {scope.device.name}; those with one: {columns}"
            )
            found.append(error(SHIM_COLUMNS, place(tile), text, used=tile.column))
    return Checked(rule=SHIM_COLUMNS, looked_at=len(shims), findings=tuple(found))


def cascades(scope: Scope) -> Checked:
    """A cascade goes to the core south or east of it; on the first generation along the row alone."""
    found = []
    for cascade in scope.design.cascades:
        source, target = scope.worker(cascade.source), scope.worker(cascade.target)
        if source is None or target is None or source.tile is None or target.tile is None:
            continue
        if not cascades_to(source.tile, target.tile, scope.device.arch):
            text = f"from {place(source.tile)} to {place(target.tile)}: no cascade leads there"
            found.append(error(CASCADES, f"cascade {cascade.source!r} > {cascade.target!r}", text))
    return Checked(rule=CASCADES, looked_at=len(scope.design.cascades), findings=tuple(found))
