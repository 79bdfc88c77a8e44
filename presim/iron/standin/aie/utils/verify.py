"""Stand-in for `aie.utils.verify`."""

from presim.iron.api import absent
from presim.iron.hostutils import assert_pass

__all__ = ["assert_pass"]

__getattr__ = absent("aie.utils.verify")
