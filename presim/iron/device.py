"""Devices and tiles of `aie.iron.device`."""

from typing import Any, Final

from presim.iron.api import row
from presim.iron.errors import WrongValueError


class Tile:
    """A tile by column and row, or a wish for any tile of a kind.

    Attributes:
        col: column, None = any.
        row: row, None = any.
        kind: `core`, `mem`, `shim` of a wish, "" of a tile by its place.
    """

    @row("aie.iron.device.Tile")
    def __init__(
        self, col: int | None = None, row: int | None = None, *, tile_type: Any = None, allocation_scheme: Any = None
    ) -> None:
        self.col = col
        self.row = row
        self.kind = str(tile_type or "")
        self.allocation_scheme = allocation_scheme

    def __str__(self) -> str:
        return f"({self.col}, {self.row})" if self.col is not None and self.row is not None else f"any {self.kind} tile"

    def __repr__(self) -> str:
        names = {"core": "AnyComputeTile", "mem": "AnyMemTile", "shim": "AnyShimTile"}
        return names.get(self.kind, f"Tile({self.col}, {self.row})")


AnyComputeTile: Final = Tile(tile_type="core")
AnyMemTile: Final = Tile(tile_type="mem")
AnyShimTile: Final = Tile(tile_type="shim")


class Device:
    """An array.

    Attributes:
        name: device of this project that has its figures.
        columns: columns that a design may use.
    """

    name = ""
    columns = 0
    height = 0
    first_core_row = 2

    @property
    def cols(self) -> int:
        """Columns."""
        return self.columns

    @property
    def rows(self) -> int:
        """Rows, with shim and memory tiles."""
        return self.height

    @row("aie.iron.device.Device.get_compute_tiles")
    def get_compute_tiles(self) -> list[Tile]:
        """Every core tile, column by column."""
        return [Tile(c, r) for c in range(self.columns) for r in range(self.first_core_row, self.height)]

    @row("aie.iron.device.Device.get_mem_tiles")
    def get_mem_tiles(self) -> list[Tile]:
        """Every memory tile."""
        return [Tile(c, r) for c in range(self.columns) for r in range(1, self.first_core_row)]

    @row("aie.iron.device.Device.get_shim_tiles")
    def get_shim_tiles(self) -> list[Tile]:
        """Every shim tile."""
        return [Tile(c, 0) for c in range(self.columns)]


TABLE: Final = (
    ("NPU1", "npu1", 4, 6, 2),
    ("NPU1Col1", "npu1", 1, 6, 2),
    ("NPU1Col2", "npu1", 2, 6, 2),
    ("NPU1Col3", "npu1", 3, 6, 2),
    ("NPU2", "npu2", 8, 6, 2),
    ("NPU2Col1", "npu2", 1, 6, 2),
    ("NPU2Col2", "npu2", 2, 6, 2),
    ("NPU2Col3", "npu2", 3, 6, 2),
    ("NPU2Col4", "npu2", 4, 6, 2),
    ("NPU2Col5", "npu2", 5, 6, 2),
    ("NPU2Col6", "npu2", 6, 6, 2),
    ("NPU2Col7", "npu2", 7, 6, 2),
    ("XCVE2802", "vek280", 38, 11, 3),
    ("XCVC1902", "vc1902", 50, 9, 1),
)
"""(name in IRON, device file of this project, columns, rows, first core row)."""


def _made(name: str, device: str, columns: int, rows: int, first: int) -> type[Device]:
    body = {"name": device, "columns": columns, "height": rows, "first_core_row": first, "__doc__": f"{name}."}
    return type(name, (Device,), body)


CLASSES: Final[dict[str, type[Device]]] = {entry[0]: _made(*entry) for entry in TABLE}
CHOICES: Final = {"npu1": "NPU1", "npu2": "NPU2", "vek280": "XCVE2802", "vc1902": "XCVC1902"}
"""What `iron.get_current_device()` is by the device that the command was given."""

_current: list[Device] = [CLASSES["NPU2"]()]


@row("aie.iron.get_current_device")
def get_current_device() -> Device:
    """The device that the command was given, or that the file set."""
    return _current[-1]


@row("aie.iron.set_current_device")
def set_current_device(device: Any) -> None:
    """Make a device the current one."""
    _current.append(device_of(device))


def device_of(value: Any) -> Device:
    """A device from an instance, a class or a name of it."""
    if isinstance(value, Device):
        return value
    if isinstance(value, type) and issubclass(value, Device):
        return value()
    msg = f"expected a device such as NPU2(), got {value!r}"
    raise WrongValueError(msg)
