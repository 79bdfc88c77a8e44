"""Stand-in for `aie.helpers`."""

from presim.iron.api import absent

__getattr__ = absent("aie.helpers")
