"""What a placement has to hold, without a line of the placer or of the static checks."""

from collections import Counter

from manifest.device import Device
from presim.design import Design, Fifo
from presim.place.grid import grid_of
from presim.pools import shares_memory


def require_legal(design: Design, device: Device) -> None:
    """Fail where a placed design breaks a rule of the array."""
    grid = grid_of(device)
    at = {worker.name: worker.tile for worker in design.workers}
    assert len(set(at.values())) == len(at)
    receives: Counter[object] = Counter()
    sends: Counter[object] = Counter()
    for fifo in design.fifos:
        for end in (fifo.producer, *fifo.consumers):
            assert end.tile is not None
            assert end.tile.kind == {"worker": "core", "mem": "mem", "shim": "shim"}[end.kind]
            assert end.kind != "worker" or at[end.actor] == end.tile
            assert end.kind != "shim" or end.tile.column in grid.shim_columns
        if not is_direct(fifo):
            sends[fifo.producer.tile] += 1
            receives.update(end.tile for end in fifo.consumers)
        assert len({end.tile for end in fifo.consumers}) == len(fifo.consumers)
    for counts, direction in ((sends, "mm2s"), (receives, "s2mm")):
        for tile, count in counts.items():
            limit = getattr(device, f"{tile.kind}_{direction}").value  # type: ignore[attr-defined]
            assert limit is None or count <= limit
    fifos = {fifo.name: fifo for fifo in design.fifos}
    for link in design.links:
        assert link.tile in {end.tile for end in fifos[link.sources[0]].consumers if end.kind == "mem"}
        assert link.tile == fifos[link.targets[0]].producer.tile
    for cascade in design.cascades:
        a, b = at[cascade.source], at[cascade.target]
        assert a is not None
        assert b is not None
        step = (b.column - a.column, b.row - a.row)
        east_only = (1 if a.row % 2 == 0 else -1, 0)
        assert step == east_only if device.arch == "aie1" else step in ((1, 0), (0, -1))


def is_direct(fifo: Fifo) -> bool:
    a, b = fifo.producer.tile, fifo.consumers[0].tile
    assert a is not None
    assert b is not None
    beside = a.kind == b.kind == "core" and abs(a.column - b.column) + abs(a.row - b.row) == 1
    assert shares_memory(fifo) == (len(fifo.consumers) == 1 and beside and not fifo.via_dma)
    return shares_memory(fifo)
