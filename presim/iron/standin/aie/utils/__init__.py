"""Stand-in for `aie.utils`."""

from presim.iron.api import absent
from presim.iron.device import get_current_device, set_current_device

__all__ = ["get_current_device", "set_current_device"]

__getattr__ = absent("aie.utils")
