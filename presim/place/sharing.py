"""Which fifos between neighbours are direct, and what that does to the memory of their tiles.

A fifo that may share a memory and whose cores are side by side is direct. One shared pool lies in one of two tiles and
can be more than fits there: then the largest such fifo goes by DMA again, as it was planned, if channels are left; then
resident buffers move into the memory of a neighbour that their worker reaches.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from manifest.device import Device
from presim.adjacency import reaches
from presim.design import Buffer, Call, Design, Endpoint, Fifo, Tile
from presim.place.grid import Grid
from presim.pools import may_share, shares_memory
from presim.static.budget import Use, uses
from presim.static.scope import Scope, scope_of
from presim.steps import steps_of


def share(design: Design, before: Design, device: Device, grid: Grid) -> Design:
    """Settle which fifos are direct.

    Args:
        design: every worker and worker end placed.
        before: the same design as it was given; a fifo both of whose workers had their tiles stays as it is.
        device: for its budgets.
        grid: of the device.
    """
    given = {fifo.name: fifo for fifo in before.fifos}
    fifos = [fifo if shares_memory(given[fifo.name]) else _direct(fifo) for fifo in design.fifos]
    design = replace(design, fifos=tuple(fifos))
    while (changed := _relieve(design, given, device)) is not None:
        design = changed
    return _spill(design, device, grid)


def _direct(fifo: Fifo) -> Fifo:
    """A fifo with the depth of its shared pool; by DMA where its objects at the start are those of its producer.

    With depths said for each end the shared pool gets both together: what ran with two pools and a stream between them
    runs in one of that size.
    """
    if not shares_memory(fifo) or fifo.producer.actor == fifo.consumers[0].actor:
        return fifo
    if fifo.init_array is not None:
        return replace(fifo, via_dma=True)
    ends = (fifo.producer, fifo.consumers[0])
    if all(end.depth is None for end in ends):
        return fifo
    depth = sum(fifo.depth if end.depth is None else end.depth for end in ends)
    producer, consumer = (replace(end, depth=None) for end in ends)
    return replace(fifo, producer=producer, consumers=(consumer,), depth=depth, literal=True)


def _relieve(design: Design, given: Mapping[str, Fifo], device: Device) -> Design | None:
    """One direct fifo less, where a tile is over its memory and its cores have channels left; None = nothing to do."""
    limit = device.l1_bytes.value
    scope = scope_of(design, device)
    found = uses(scope)
    for tile, use in found.items():
        if limit is None or tile.kind != "core" or sum(use.data_bytes.values()) <= limit:
            continue
        for fifo in _hosted(scope, tile, use):
            if not shares_memory(given[fifo.name]) and _has_channels(fifo, found, device):
                apart = _by_dma(fifo, given[fifo.name])
                return replace(design, fifos=tuple(apart if f.name == fifo.name else f for f in design.fifos))
    return None


def _hosted(scope: Scope, tile: Tile, use: Use) -> list[Fifo]:
    """Direct fifos whose pool lies on a tile, the largest first."""
    pools = [p for p in scope.wiring.pools.values() if p.kind == "shared" and p.tile == tile]
    pools.sort(key=lambda pool: (-use.data_bytes[f"fifo {pool.name}"], pool.name))
    fifos = (scope.fifo(pool.fifo) for pool in pools)
    return [fifo for fifo in fifos if fifo.producer.actor != fifo.consumers[0].actor]


def _has_channels(fifo: Fifo, found: Mapping[Tile, Use], device: Device) -> bool:
    ends = ((fifo.producer, "MM2S", device.core_mm2s.value), (fifo.consumers[0], "S2MM", device.core_s2mm.value))
    return all(
        limit is None or end.tile is None or len(found.get(end.tile, Use()).channels(direction)) < limit
        for end, direction, limit in ends
    )


def _by_dma(fifo: Fifo, given: Fifo) -> Fifo:
    """A fifo as it was planned, on its tiles, never direct."""

    def planned(end: Endpoint, as_given: Endpoint) -> Endpoint:
        return replace(end, depth=as_given.depth)

    return replace(
        given,
        producer=planned(fifo.producer, given.producer),
        consumers=(planned(fifo.consumers[0], given.consumers[0]),),
        via_dma=True,
    )


def _spill(design: Design, device: Device, grid: Grid) -> Design:
    """Move resident buffers out of tiles that are over their memory, the largest first."""
    limit = device.l1_bytes.value
    if limit is None:
        return design
    bytes_of = {tile: dict(use.data_bytes) for tile, use in uses(scope_of(design, device)).items()}
    users = _users(design)
    moved: dict[str, Tile] = {}
    for tile in [t for t, sizes in bytes_of.items() if t.kind == "core" and sum(sizes.values()) > limit]:
        mine = [b for b in design.buffers if b.tile is None and users.get(b.name) == {tile}]
        mine.sort(key=lambda b: (-bytes_of[tile][f"buffer {b.name}"], b.name))
        for buffer in mine:
            if sum(bytes_of[tile].values()) <= limit:
                break
            key = f"buffer {buffer.name}"
            for target in _memories(tile, grid):
                held = bytes_of.setdefault(target, {})
                if sum(held.values()) + bytes_of[tile][key] <= limit:
                    held[key] = bytes_of[tile].pop(key)
                    moved[buffer.name] = target
                    break
    return replace(design, buffers=tuple(_moved(buffer, moved) for buffer in design.buffers))


def _moved(buffer: Buffer, moved: Mapping[str, Tile]) -> Buffer:
    return replace(buffer, tile=moved[buffer.name]) if buffer.name in moved else buffer


def _users(design: Design) -> dict[str, set[Tile | None]]:
    """Tiles of the workers that use each buffer."""
    found: dict[str, set[Tile | None]] = {}
    for worker in design.workers:
        for step in steps_of(worker.program):
            if isinstance(step, Call):
                for argument in step.arguments:
                    if argument.kind == "buffer":
                        found.setdefault(argument.name, set()).add(worker.tile)
    return found


def _memories(tile: Tile, grid: Grid) -> Iterator[Tile]:
    """Memories of neighbours that a core reaches."""
    for east, north in ((-1, 0), (1, 0), (0, 1), (0, -1)):
        column, row = tile.column + east, tile.row + north
        target = Tile(column=column, row=row)
        if grid.has_core(column, row) and reaches(tile, target, grid.arch):
            yield target


__all__ = ["may_share", "share"]
