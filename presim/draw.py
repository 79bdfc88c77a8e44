"""A picture of placed designs: the part of the array that is used, its workers, fifos, links and host transfers.

Why by hand and not with a plotting library: names, routes and numbers stay text and attributes that a person can search
and a test can read, and the same design gives the same bytes.
"""

import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from manifest.device import Device
from presim.design import Call, Design, Tile, Transfer
from presim.place.grid import Grid, grid_of
from presim.routes import MEANING, Edge, Route, edges_of, routes
from presim.static.budget import Use, uses
from presim.static.scope import scope_of
from presim.steps import steps_of
from presim.svg import document, element, on_longest, polyline, safe, text, title
from presim.wires import FRAME, Frame, Wire, wires_of

COLOURS: Final[Mapping[Route, str]] = {
    "inside": "#777777",
    "direct": "#1b7f3b",
    "stream": "#1f5fbf",
    "memory": "#8a3fa8",
    "host": "#c46a00",
}
WIDTHS: Final[Mapping[Route, float]] = {"inside": 1.2, "direct": 3.0, "stream": 1.6, "memory": 1.6, "host": 1.6}
CASCADE: Final = "#b3202c"
MARGIN: Final = 28
HEAD: Final = 96
HOST_STRIP: Final = 64
ROW: Final = 17
MIN_WIDTH: Final = 1000
KIB: Final = 1024
TAG_PLACES: Final = (0.5, 0.38, 0.62, 0.44, 0.56)
"""Where numbers are on their lines: lines beside each other have them at different heights."""


def draw(designs: Sequence[Design], device: Device) -> bytes:
    """An SVG of placed designs, one below the other.

    Args:
        designs: of sound structure, every end on a tile.
        device: that they are for.
    """
    root = element(None, "svg", xmlns="http://www.w3.org/2000/svg")
    background = element(root, "rect", fill="#ffffff")
    top, width = 0.0, float(MIN_WIDTH)
    for design in designs:
        picture = _Picture(element(root, "g", class_="dispatch", data_dispatch=design.dispatch), design, device, top)
        picture.draw()
        top, width = picture.bottom, max(width, picture.width)
    for item in (root, background):
        item.set("width", str(round(width)))
        item.set("height", str(round(top)))
    root.set("viewBox", f"0 0 {round(width)} {round(top)}")
    return document(root)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Label:
    """What is written into a tile."""

    name: str
    what: str
    lines: tuple[str, ...]


class _Picture:
    """One dispatch."""

    def __init__(self, parent: ET.Element, design: Design, device: Device, top: float) -> None:
        self.parent = parent
        self.design = design
        self.device = device
        self.grid: Grid = grid_of(device)
        self.edges = edges_of(design)
        self.numbers = {fifo.name: i + 1 for i, fifo in enumerate(design.fifos)}
        self.uses = uses(scope_of(design, device))
        self.frame: Frame = FRAME.around(self.tiles(), self.grid, left=MARGIN, top=top + HEAD)
        self.top = top
        self.bottom = self.frame.bottom + HOST_STRIP
        self.width = max(self.frame.right + MARGIN, float(MIN_WIDTH))

    def tiles(self) -> list[Tile]:
        """Tiles that something is on."""
        ends = [end.tile for edge in self.edges for end in (edge.fifo.producer, edge.consumer)]
        named = [w.tile for w in self.design.workers] + [link.tile for link in self.design.links] + ends
        named += [buffer.tile for buffer in self.design.buffers]
        return [tile for tile in named if tile is not None]

    def draw(self) -> None:
        """Everything, what covers other things last."""
        self.heading()
        for tile in self.frame.tiles():
            self.tile(tile)
        wires = wires_of(self.edges, self.frame)
        for wire in wires:
            self.fifo(wire)
        for cascade in self.design.cascades:
            self.cascade(cascade.source, cascade.target)
        for wire in wires:
            self.tag(wire)
        self.host()
        self.table()

    def heading(self) -> None:
        """What it is, and what the colours mean."""
        design, counts = self.design, routes(self.design)
        text(
            self.parent,
            (MARGIN, self.top + 30),
            f"dispatch {design.dispatch} on {design.device}: {len(design.workers)} cores, {len(design.fifos)} fifos",
            size=17,
            bold=True,
        )
        columns = f"columns {self.frame.first} to {self.frame.last} of {self.grid.columns}"
        text(self.parent, (MARGIN, self.top + 48), f"{self.device.title}; {columns} are shown", fill="#555555")
        x, y = float(MARGIN), self.top + 66
        for route, meaning in MEANING.items():
            words = f"{meaning} ({counts[route]})"
            length = 44 + 6.4 * len(words)
            if x + length > MIN_WIDTH:
                x, y = float(MARGIN), y + 16
            polyline(self.parent, ((x, y - 4), (x + 26, y - 4)), COLOURS[route], WIDTHS[route], _dash(route))
            text(self.parent, (x + 32, y), words)
            x += length

    def tile(self, tile: Tile) -> None:
        """A tile with what is on it."""
        x, y = self.frame.corner(tile)
        use = self.uses.get(tile)
        label = self.label(tile)
        worker = next((w.name for w in self.design.workers if w.tile == tile), None)
        kind = "worker" if worker is not None else f"tile {tile.kind}"
        group = element(self.parent, "g", class_=kind, data_worker=worker, data_tile=f"{tile.column},{tile.row}")
        title(group, f"{tile.kind} tile ({tile.column}, {tile.row})", *label.lines, *_use_lines(use))
        busy = use is not None and (use.chains or use.data_bytes)
        fill = {"core": "#eaf3ec", "mem": "#f3ebf6", "shim": "#fbf1e3"}[tile.kind] if busy else "#fafafa"
        element(
            group,
            "rect",
            x=x,
            y=y,
            width=FRAME.width,
            height=FRAME.height,
            rx=6,
            fill=fill,
            stroke="#555555" if busy else "#cccccc",
        )
        quiet = "#444444" if busy else "#aaaaaa"
        room = FRAME.width - 16.0
        text(group, (x + FRAME.width - 6, y + 14), f"{tile.column},{tile.row}", size=10, fill=quiet, anchor="end")
        text(group, (x + 8, y + 15), label.name, size=11, bold=worker is not None, fill=quiet, room=room - 30)
        text(group, (x + 8, y + 30), label.what, size=10, fill=quiet, room=room)
        if use is not None:
            self.fill_level(group, tile, use, (x, y))

    def label(self, tile: Tile) -> _Label:
        """Words for a tile."""
        for worker in self.design.workers:
            if worker.tile == tile:
                types = {kernel.name: kernel.type for kernel in self.design.kernels}
                called = (types[s.kernel] for s in steps_of(worker.program) if isinstance(s, Call))
                kinds = " + ".join(dict.fromkeys(called)) or worker.stage or "no kernel"
                return _Label(name=worker.name, what=kinds, lines=(f"worker {worker.name}", kinds))
        if tile.kind == "mem":
            links = [link for link in self.design.links if link.tile == tile]
            what = " + ".join(dict.fromkeys(link.kind for link in links))
            lines = (f"{link.kind}: {', '.join(link.sources)} > {', '.join(link.targets)}" for link in links)
            return _Label(name="memory tile", what=what, lines=tuple(lines))
        if tile.kind == "shim":
            reaches = tile.column in self.grid.shim_columns
            return _Label(name="shim tile", what="reaches the host" if reaches else "no way to the host", lines=())
        return _Label(name="", what="", lines=())

    def fill_level(self, group: ET.Element, tile: Tile, use: Use, corner: tuple[float, float]) -> None:
        """Channels, and a bar for the bytes that are taken of a tile's memory."""
        x, y = corner
        ins, outs = len(use.channels("S2MM")), len(use.channels("MM2S"))
        text(group, (x + 8, y + 46), f"DMA {ins} in, {outs} out", size=10, fill="#444444")
        need = sum(use.data_bytes.values())
        have = {"core": self.device.l1_bytes, "mem": self.device.memtile_bytes}.get(tile.kind)
        if have is None or not have.value or not need:
            return
        full = FRAME.width - 16.0
        element(group, "rect", x=x + 8, y=y + FRAME.height - 12, width=full, height=5, fill="#dddddd")
        part = full * min(1.0, need / have.value)
        colour = "#5c8f6a" if need <= have.value else CASCADE
        element(group, "rect", x=x + 8, y=y + FRAME.height - 12, width=part, height=5, fill=colour)
        words = f"{need / KIB:.1f} of {have.value // KIB} KiB"
        text(group, (x + 8, y + FRAME.height - 17), words, size=10, fill="#444444")

    def fifo(self, wire: Wire) -> None:
        """The line of a fifo to one consumer."""
        edge = wire.edge
        group = element(
            self.parent,
            "g",
            class_="fifo",
            data_fifo=edge.fifo.name,
            data_route=edge.route,
            data_producer=edge.fifo.producer.actor,
            data_consumer=edge.consumer.actor,
        )
        title(group, *_fifo_lines(edge))
        polyline(group, wire.points, "#ffffff", WIDTHS[edge.route] + 2.5, None)
        polyline(group, wire.points, COLOURS[edge.route], WIDTHS[edge.route], _dash(edge.route))

    def tag(self, wire: Wire) -> None:
        """The number of a fifo on its line."""
        number = str(self.numbers[wire.edge.fifo.name])
        x, y = on_longest(wire.points, TAG_PLACES[int(number) % len(TAG_PLACES)])
        half = 5.0 + 3.0 * len(number)
        colour = COLOURS[wire.edge.route]
        group = element(self.parent, "g", class_="tag", data_fifo=wire.edge.fifo.name)
        element(group, "rect", x=x - half, y=y - 7, width=2 * half, height=14, rx=7, fill="#ffffff", stroke=colour)
        text(group, (x, y + 4), number, size=10, fill=colour, anchor="middle", bold=True)

    def cascade(self, source: str, target: str) -> None:
        """The cascade between two workers."""
        tiles = {worker.name: worker.tile for worker in self.design.workers}
        a, b = tiles[source], tiles[target]
        if a is None or b is None:
            return
        group = element(self.parent, "g", class_="cascade", data_source=source, data_target=target)
        title(group, f"cascade {source} > {target}")
        points = self.frame.between(a, b)
        polyline(group, points, CASCADE, 5.0, None)
        x, y = on_longest(points)
        if a.row == b.row:
            text(group, (x, y - 8), "cascade", size=9, fill=CASCADE, anchor="middle")
        else:
            text(group, (x - 8, y + 3), "cascade", size=9, fill=CASCADE, anchor="end")

    def host(self) -> None:
        """Transfers of the runtime sequence below the shim tiles."""
        ends = {end.actor: end for edge in self.edges for end in (edge.fifo.producer, edge.consumer)}
        shims = {edge.fifo.name: ends[_shim_of(edge)].tile for edge in self.edges if edge.route == "host"}
        taken: dict[Tile, int] = {}
        for transfer in self.design.sequence:
            tile = shims.get(transfer.fifo)
            if tile is not None:
                taken[tile] = taken.get(tile, 0) + 1
                self.transfer(transfer, tile, taken[tile])

    def transfer(self, transfer: Transfer, tile: Tile, number: int) -> None:
        """One transfer: an arrow between its shim tile and the host, with the tensor."""
        x, y = self.frame.corner(tile)
        x += FRAME.width * ((number - 1) % 4 + 1) / 5
        y += FRAME.height
        group = element(self.parent, "g", class_="transfer", data_fifo=transfer.fifo, data_direction=transfer.direction)
        title(group, _transfer_line(transfer))
        points = ((x, y + 26), (x, y)) if transfer.direction == "fill" else ((x, y), (x, y + 26))
        polyline(group, points, COLOURS["host"], 2.0, None)
        words = f"{self.numbers[transfer.fifo]} {transfer.direction}"
        text(group, (x, y + 38 + 11 * ((number - 1) % 2)), words, size=9, fill=COLOURS["host"], anchor="middle")

    def table(self) -> None:
        """Every fifo in words."""
        y = self.bottom + 10
        for edge in self.edges:
            row = element(self.parent, "g", class_="row", data_fifo=edge.fifo.name)
            number = str(self.numbers[edge.fifo.name])
            colour = COLOURS[edge.route]
            text(row, (MARGIN + 22, y), number, size=11, anchor="end", bold=True, fill=colour)
            text(row, (MARGIN + 32, y), edge.fifo.name, room=230)
            text(row, (MARGIN + 270, y), edge.route, fill=colour)
            ways = f"{edge.fifo.producer.actor} > {edge.consumer.actor}"
            text(row, (MARGIN + 325, y), ways, room=330)
            text(row, (MARGIN + 665, y), _object_words(edge), room=self.width - 665 - 2 * MARGIN)
            y += ROW
        for transfer in self.design.sequence:
            row = element(self.parent, "g", class_="row", data_transfer=transfer.fifo)
            text(row, (MARGIN + 32, y), _transfer_line(transfer), fill=COLOURS["host"])
            y += ROW
        self.bottom = y + MARGIN


def _shim_of(edge: Edge) -> str:
    return edge.fifo.producer.actor if edge.fifo.producer.kind == "shim" else edge.consumer.actor


def _dash(route: Route) -> str | None:
    return {"memory": "6 3", "inside": "3 3"}.get(route)


def _object_words(edge: Edge) -> str:
    fifo = edge.fifo
    shape = "x".join(map(str, fifo.shape))
    depths = [fifo.depth if end.depth is None else end.depth for end in (fifo.producer, edge.consumer)]
    shared = edge.route in ("direct", "inside")
    depth = f"depth {depths[0]}" if shared else f"depth {depths[0]} > {depths[1]}"
    return f"{shape} {fifo.dtype}, {depth}"


def _fifo_lines(edge: Edge) -> tuple[str, ...]:
    return (
        f"fifo {edge.fifo.name}",
        f"{edge.fifo.producer.actor} > {edge.consumer.actor}: {MEANING[edge.route]}",
        _object_words(edge),
    )


def _transfer_line(transfer: Transfer) -> str:
    wait = ", awaited" if transfer.wait else ""
    return safe(f"{transfer.direction} of tensor {transfer.tensor!r}: {transfer.objects} objects{wait}")


def _use_lines(use: Use | None) -> tuple[str, ...]:
    if use is None:
        return ()
    sizes = (f"{name}: {count} bytes" for name, count in use.data_bytes.items())
    chains = (f"{chain.direction}: {chain.fifo}, {chain.descriptors} descriptors" for chain in use.chains)
    return (*sizes, *chains, f"{use.locks} locks")
