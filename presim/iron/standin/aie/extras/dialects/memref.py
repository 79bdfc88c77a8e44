"""Stand-in for `aie.extras.dialects.memref`."""

from presim.iron.api import absent
from presim.iron.hostutils import view

__all__ = ["view"]

__getattr__ = absent("aie.extras.dialects.memref")
