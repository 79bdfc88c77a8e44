"""Shim tiles for the ends where a piece was cut out of its design.

Why: in the simulator the host may stand anywhere; a generated design names the shim tile of every end, and each shim
tile has few channels.
"""

from collections import Counter
from dataclasses import replace

from manifest.device import Device
from presim.design import Design, Endpoint, Fifo, Tile

DEFAULT_CHANNELS = 2


def with_shims(design: Design, device: Device) -> Design:
    """The design with a shim tile at every shim end: the nearest column that has a channel left.

    An end beyond all channels stays without; the emitter refuses it.
    """
    columns = device.shim_dma_columns.value or ()
    used: Counter[tuple[str, int]] = Counter()
    for fifo in design.fifos:
        for way, end in _ends(fifo):
            if end.kind == "shim" and end.tile is not None:
                used[way, end.tile.column] += 1
    limits = {"fill": device.shim_mm2s.value, "drain": device.shim_s2mm.value}

    def placed(way: str, end: Endpoint, near: int) -> Endpoint:
        if end.kind != "shim" or end.tile is not None:
            return end
        limit = limits[way] or DEFAULT_CHANNELS
        free = [c for c in columns if used[way, c] < limit]
        if not free:
            return end
        column = min(free, key=lambda c: (abs(c - near), c))
        used[way, column] += 1
        return replace(end, tile=Tile(column=column, row=0, kind="shim"))

    fifos = []
    for fifo in design.fifos:
        near = _column(fifo)
        fifos.append(
            replace(
                fifo,
                producer=placed("fill", fifo.producer, near),
                consumers=tuple(placed("drain", c, near) for c in fifo.consumers),
            )
        )
    return replace(design, fifos=tuple(fifos))


def _ends(fifo: Fifo) -> list[tuple[str, Endpoint]]:
    return [("fill", fifo.producer), *(("drain", c) for c in fifo.consumers)]


def _column(fifo: Fifo) -> int:
    """A column that the fifo reaches."""
    return next((end.tile.column for _, end in _ends(fifo) if end.tile is not None), 0)
