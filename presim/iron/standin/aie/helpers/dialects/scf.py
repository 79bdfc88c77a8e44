"""Stand-in for `aie.helpers.dialects.scf`."""

from presim.iron.api import absent
from presim.iron.control import else_, if_

__all__ = ["else_", "if_"]

__getattr__ = absent("aie.helpers.dialects.scf")
