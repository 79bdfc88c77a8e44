"""Stand-in for `aie.iron.device`."""

from presim.iron.api import absent
from presim.iron.device import CLASSES as _CLASSES
from presim.iron.device import AnyComputeTile, AnyMemTile, AnyShimTile, Device, Tile
from presim.iron.hostutils import from_name

NPU1 = _CLASSES["NPU1"]
NPU1Col1 = _CLASSES["NPU1Col1"]
NPU1Col2 = _CLASSES["NPU1Col2"]
NPU1Col3 = _CLASSES["NPU1Col3"]
NPU2 = _CLASSES["NPU2"]
NPU2Col1 = _CLASSES["NPU2Col1"]
NPU2Col2 = _CLASSES["NPU2Col2"]
NPU2Col3 = _CLASSES["NPU2Col3"]
NPU2Col4 = _CLASSES["NPU2Col4"]
NPU2Col5 = _CLASSES["NPU2Col5"]
NPU2Col6 = _CLASSES["NPU2Col6"]
NPU2Col7 = _CLASSES["NPU2Col7"]
XCVE2802 = _CLASSES["XCVE2802"]
XCVC1902 = _CLASSES["XCVC1902"]

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
