"""Stand-in for `aie.iron.algorithms`."""

from presim.iron.algorithms import row_at_a_time, row_at_a_time_tiled, row_at_a_time_with_skip, sliding_3row
from presim.iron.api import absent
from presim.iron.transform import transform, transform_binary, transform_parallel, transform_parallel_binary

__all__ = [
    "row_at_a_time",
    "row_at_a_time_tiled",
    "row_at_a_time_with_skip",
    "sliding_3row",
    "transform",
    "transform_binary",
    "transform_parallel",
    "transform_parallel_binary",
]

__getattr__ = absent("aie.iron.algorithms")
