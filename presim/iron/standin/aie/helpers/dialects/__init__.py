"""Stand-in for `aie.helpers.dialects`."""

from presim.iron.api import absent

__getattr__ = absent("aie.helpers.dialects")
