"""Stand-in for `aie.iron.controlflow`."""

from presim.iron.api import absent
from presim.iron.control import range_

__all__ = ["range_"]

__getattr__ = absent("aie.iron.controlflow")
