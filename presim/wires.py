"""Where tiles and lines of a picture are: tiles in a frame, lines around them through the gaps between."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from presim.design import Tile
from presim.place.grid import Grid
from presim.routes import Edge
from presim.svg import Point

LANE: Final = 6.0
LANES: Final = 8
SPARE: Final = 1
"""Columns and rows that are shown around what is used."""

SIDES: Final = ("west", "east", "south", "north")


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """The part of the array that is shown, and its measures in pixels.

    Attributes:
        width: of a tile.
        height: of a tile.
        gap_x: between columns.
        gap_y: between rows.
        left: of the first column.
        top: of the last row.
        first: first column that is shown.
        last: last one.
        rows: rows that are shown, from row 0 on.
        grid: of the device; None in the measures alone.
    """

    width: float = 172.0
    height: float = 84.0
    gap_x: float = 60.0
    gap_y: float = 54.0
    left: float = 0.0
    top: float = 0.0
    first: int = 0
    last: int = 0
    rows: int = 1
    grid: Grid | None = None

    def around(self, tiles: Sequence[Tile], grid: Grid, *, left: float, top: float) -> "Frame":
        """The frame around tiles, with a column and a row to spare where there are any."""
        columns = [tile.column for tile in tiles] or [0]
        most = grid.core_row + grid.core_rows
        highest = max((tile.row for tile in tiles), default=0)
        return replace(
            self,
            left=left + self.gap_x / 2,
            top=top + self.gap_y / 2,
            first=max(0, min(columns) - SPARE),
            last=min(grid.columns - 1, max(columns) + SPARE),
            rows=min(most, max(highest, grid.core_row) + SPARE + 1),
            grid=grid,
        )

    @property
    def right(self) -> float:
        """Right end of the last column and its gap."""
        return self.left + (self.last - self.first + 1) * (self.width + self.gap_x)

    @property
    def bottom(self) -> float:
        """Lower end of row 0."""
        return self.top + self.rows * (self.height + self.gap_y) - self.gap_y

    def tiles(self) -> list[Tile]:
        """Tiles that are shown, from the shim row up."""
        grid = self.grid
        if grid is None:
            return []
        return [
            Tile(
                column=column, row=row, kind="shim" if row < grid.mem_row else "mem" if row < grid.core_row else "core"
            )
            for row in range(self.rows)
            for column in range(self.first, self.last + 1)
        ]

    def corner(self, tile: Tile) -> Point:
        """Upper left corner of a tile."""
        x = self.left + (tile.column - self.first) * (self.width + self.gap_x)
        return (x, self.top + (self.rows - 1 - tile.row) * (self.height + self.gap_y))

    def port(self, tile: Tile, side: str, part: float) -> Point:
        """A point on a side of a tile; `part` 0 to 1 from its left or upper end."""
        x, y = self.corner(tile)
        if side in ("west", "east"):
            return (x if side == "west" else x + self.width, y + self.height * part)
        return (x + self.width * part, y if side == "north" else y + self.height)

    def between(self, a: Tile, b: Tile) -> tuple[Point, Point]:
        """A straight line between neighbours, beside their middle."""
        if a.row == b.row:
            sides = ("east", "west") if a.column < b.column else ("west", "east")
        else:
            sides = ("north", "south") if a.row < b.row else ("south", "north")
        return self.port(a, sides[0], 0.82), self.port(b, sides[1], 0.82)


FRAME: Final = Frame()
"""Measures of every picture."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wire:
    """The line of a fifo to a consumer."""

    edge: Edge
    points: tuple[Point, ...]


@dataclass(slots=True)
class _Lanes:
    """Lines that run in the same gap get lanes beside each other."""

    taken: dict[tuple[str, int], int] = field(default_factory=dict)

    def offset(self, kind: str, index: int) -> float:
        number = self.taken.get((kind, index), 0)
        self.taken[kind, index] = number + 1
        place = number % LANES
        return LANE * ((place + 1) // 2) * (1 if place % 2 else -1)


def wires_of(edges: Iterable[Edge], frame: Frame) -> tuple[Wire, ...]:
    """The lines of all ways whose ends are placed."""
    placed = [
        (edge, edge.fifo.producer.tile, edge.consumer.tile)
        for edge in edges
        if edge.fifo.producer.tile is not None and edge.consumer.tile is not None
    ]
    return _Wirer([(e, a, b) for e, a, b in placed if a is not None and b is not None], frame).wires()


class _Wirer:
    def __init__(self, placed: Sequence[tuple[Edge, Tile, Tile]], frame: Frame) -> None:
        self.placed = placed
        self.frame = frame
        self.lanes = _Lanes()
        self.sides = [_sides(a, b) for _, a, b in placed]
        self.ports: dict[tuple[Tile, str], list[tuple[int, int]]] = {}
        for index, (_, a, b) in enumerate(placed):
            self.ports.setdefault((a, self.sides[index][0]), []).append((index, 0))
            self.ports.setdefault((b, self.sides[index][1]), []).append((index, 1))

    def wires(self) -> tuple[Wire, ...]:
        return tuple(Wire(edge=edge, points=self.points(index, a, b)) for index, (edge, a, b) in enumerate(self.placed))

    def part(self, tile: Tile, side: str, index: int, end: int) -> float:
        """Where on a side an end is: spread evenly, clear of the corners."""
        ends = self.ports[tile, side]
        return 0.12 + 0.62 * (ends.index((index, end)) + 1) / (len(ends) + 1)

    def points(self, index: int, a: Tile, b: Tile) -> tuple[Point, ...]:
        """Corner points from producer to consumer."""
        from_side, to_side = self.sides[index]
        start = self.frame.port(a, from_side, self.part(a, from_side, index, 0))
        end = self.frame.port(b, to_side, self.part(b, to_side, index, 1))
        if a == b:
            x = start[0] + 12
            return (start, (x, start[1]), (x, end[1]), end)
        if from_side in ("north", "south"):
            y = self.lane_y(a.row if from_side == "north" else a.row - 1)
            return (start, (start[0], y), (end[0], y), end)
        x = self.lane_x(a.column if from_side == "east" else a.column - 1)
        if to_side in ("west", "east"):
            return (start, (x, start[1]), (x, end[1]), end)
        y = self.lane_y(b.row if to_side == "north" else b.row - 1)
        return (start, (x, start[1]), (x, y), (end[0], y), end)

    def lane_x(self, column: int) -> float:
        """A lane in the gap east of a column."""
        frame = self.frame
        middle = frame.left + (column + 1 - frame.first) * (frame.width + frame.gap_x) - frame.gap_x / 2
        return middle + self.lanes.offset("x", column)

    def lane_y(self, row: int) -> float:
        """A lane in the gap north of a row."""
        frame = self.frame
        middle = frame.top + (frame.rows - 1 - row) * (frame.height + frame.gap_y) - frame.gap_y / 2
        return middle + self.lanes.offset("y", row)


def _sides(a: Tile, b: Tile) -> tuple[str, str]:
    """Sides at which a line leaves one tile and enters another."""
    east, north = b.column - a.column, b.row - a.row
    if a == b:
        return "east", "east"
    if east == 0 and abs(north) == 1:
        return ("north", "south") if north > 0 else ("south", "north")
    leave = "west" if east < 0 else "east"
    if north == 0 and abs(east) == 1:
        return leave, "west" if east > 0 else "east"
    return leave, "south" if north > 0 else "north"
