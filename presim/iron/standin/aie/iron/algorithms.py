"""Stand-in for `aie.iron.algorithms`."""

from presim.iron.algorithms import row_at_a_time, row_at_a_time_tiled, row_at_a_time_with_skip, sliding_3row
from presim.iron.api import absent

__all__ = ["row_at_a_time", "row_at_a_time_tiled", "row_at_a_time_with_skip", "sliding_3row"]

__getattr__ = absent("aie.iron.algorithms")
