"""Stand-in for `aie.extras.dialects`."""

from presim.iron.api import absent

__getattr__ = absent("aie.extras.dialects")
