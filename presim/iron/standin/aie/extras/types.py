"""Stand-in for `aie.extras.types`."""

from presim.iron.api import absent
from presim.iron.hostutils import i32, index

__all__ = ["i32", "index"]

__getattr__ = absent("aie.extras.types")
