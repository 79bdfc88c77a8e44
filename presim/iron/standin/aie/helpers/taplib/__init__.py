"""Stand-in for `aie.helpers.taplib`."""

from presim.iron.api import absent
from presim.iron.taps import TensorAccessPattern, TensorAccessSequence, TensorTiler2D

__all__ = ["TensorAccessPattern", "TensorAccessSequence", "TensorTiler2D"]

__getattr__ = absent("aie.helpers.taplib")
