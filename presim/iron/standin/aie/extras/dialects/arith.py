"""Stand-in for `aie.extras.dialects.arith`."""

from presim.iron.api import absent
from presim.iron.hostutils import constant, index_cast

__all__ = ["constant", "index_cast"]

__getattr__ = absent("aie.extras.dialects.arith")
