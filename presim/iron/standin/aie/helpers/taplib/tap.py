"""Stand-in for `aie.helpers.taplib.tap`."""

from presim.iron.api import absent
from presim.iron.taps import TensorAccessPattern

__all__ = ["TensorAccessPattern"]

__getattr__ = absent("aie.helpers.taplib.tap")
