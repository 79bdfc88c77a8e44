"""Stand-in for `aie.utils`."""

from presim.iron.api import absent

__getattr__ = absent("aie.utils")
