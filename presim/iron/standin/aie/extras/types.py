"""Stand-in for `aie.extras.types`."""

from presim.iron.api import absent
from presim.iron.hostutils import i8, i16, i32, index

__all__ = ["i8", "i16", "i32", "index"]

__getattr__ = absent("aie.extras.types")
