"""The tiles of a device: which there are of each kind, and an order of the cores along a snake."""

from dataclasses import dataclass

from manifest.device import Device
from manifest.errors import Problem, RefusedError
from presim.design import Tile, TileKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """The array of a device.

    Attributes:
        device: name.
        arch: of the device.
        columns: of the array.
        mem_row: row of the first memory tiles.
        mem_rows: rows of memory tiles, 0 = none.
        core_row: row of the first core tiles.
        core_rows: rows of core tiles.
        shim_columns: columns whose shim tile reaches external memory, all where nobody has published them.
    """

    device: str
    arch: str
    columns: int
    mem_row: int
    mem_rows: int
    core_row: int
    core_rows: int
    shim_columns: tuple[int, ...]

    def has_core(self, column: int, row: int) -> bool:
        """Whether there is a core tile at an absolute column and row."""
        return 0 <= column < self.columns and self.core_row <= row < self.core_row + self.core_rows

    def kind(self, row: int) -> TileKind:
        """What the tiles of a row are."""
        return "shim" if row < self.mem_row else "mem" if row < self.core_row else "core"

    def cores(self) -> tuple[Tile, ...]:
        """Core tiles along a snake: up one column, down the next, from the first column that reaches the host on.

        Columns west of it come last, from there to the west.
        """
        first = self.shim_columns[0] if self.shim_columns else 0
        order = [*range(first, self.columns), *reversed(range(first))]
        rows = range(self.core_row, self.core_row + self.core_rows)
        return tuple(
            Tile(column=column, row=row)
            for number, column in enumerate(order)
            for row in (rows if number % 2 == 0 else reversed(rows))
        )

    def memories(self) -> tuple[Tile, ...]:
        """Memory tiles, by column, then row."""
        rows = range(self.mem_row, self.mem_row + self.mem_rows)
        return tuple(Tile(column=column, row=row, kind="mem") for column in range(self.columns) for row in rows)

    def shims(self) -> tuple[Tile, ...]:
        """Shim tiles that reach external memory, by column."""
        return tuple(Tile(column=column, row=0, kind="shim") for column in self.shim_columns)

    def to_host(self, column: int) -> int:
        """Columns from a column to the nearest that reaches the host."""
        return min((abs(column - c) for c in self.shim_columns), default=0)


def grid_of(device: Device) -> Grid:
    """The grid of a device.

    Raises:
        RefusedError: the size of the array is not published.
    """
    names = ("columns", "shim_rows", "mem_rows", "core_rows")
    found = {name: getattr(device, name).value for name in names}
    missing = [name for name, value in found.items() if value is None]
    if missing:
        raise RefusedError(
            tuple(
                Problem(
                    code="PLACE-DEVICE",
                    where=f"device {device.name!r}",
                    what=f"{name} is not known, nothing can be placed",
                    expected="a figure in its file",
                )
                for name in missing
            )
        )
    columns = device.shim_dma_columns.value
    return Grid(
        device=device.name,
        arch=device.arch,
        columns=found["columns"],
        mem_row=found["shim_rows"],
        mem_rows=found["mem_rows"],
        core_row=found["shim_rows"] + found["mem_rows"],
        core_rows=found["core_rows"],
        shim_columns=tuple(range(found["columns"])) if columns is None else columns,
    )
