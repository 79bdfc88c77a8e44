"""Stand-in for `aie.iron.kernel`."""

from presim.iron.api import absent
from presim.iron.buffer import ExternalFunction, Kernel

__all__ = ["ExternalFunction", "Kernel"]

__getattr__ = absent("aie.iron.kernel")
