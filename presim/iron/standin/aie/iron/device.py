"""Stand-in for `aie.iron.device`."""

from presim.iron.api import absent
from presim.iron.device import CLASSES, AnyComputeTile, AnyMemTile, AnyShimTile, Device, Tile
from presim.iron.hostutils import from_name

NPU1 = CLASSES["NPU1"]
NPU1Col1 = CLASSES["NPU1Col1"]
NPU1Col2 = CLASSES["NPU1Col2"]
NPU1Col3 = CLASSES["NPU1Col3"]
NPU2 = CLASSES["NPU2"]
NPU2Col1 = CLASSES["NPU2Col1"]
NPU2Col2 = CLASSES["NPU2Col2"]
NPU2Col3 = CLASSES["NPU2Col3"]
NPU2Col4 = CLASSES["NPU2Col4"]
NPU2Col5 = CLASSES["NPU2Col5"]
NPU2Col6 = CLASSES["NPU2Col6"]
NPU2Col7 = CLASSES["NPU2Col7"]
XCVE2802 = CLASSES["XCVE2802"]
XCVC1902 = CLASSES["XCVC1902"]

__all__ = [
    "NPU1",
    "NPU2",
    "XCVC1902",
    "XCVE2802",
    "AnyComputeTile",
    "AnyMemTile",
    "AnyShimTile",
    "Device",
    "NPU1Col1",
    "NPU1Col2",
    "NPU1Col3",
    "NPU2Col1",
    "NPU2Col2",
    "NPU2Col3",
    "NPU2Col4",
    "NPU2Col5",
    "NPU2Col6",
    "NPU2Col7",
    "Tile",
    "from_name",
]

__getattr__ = absent("aie.iron.device")
