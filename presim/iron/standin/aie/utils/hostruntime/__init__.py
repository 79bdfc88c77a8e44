"""Stand-in for `aie.utils.hostruntime`."""

from presim.iron.api import absent

__getattr__ = absent("aie.utils.hostruntime")
