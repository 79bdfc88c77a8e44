"""Stand-in for `aie.extras`."""

from presim.iron.api import absent

__getattr__ = absent("aie.extras")
