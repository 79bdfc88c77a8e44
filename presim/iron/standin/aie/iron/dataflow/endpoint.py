"""Stand-in for `aie.iron.dataflow.endpoint`."""

from presim.iron.api import absent
from presim.iron.links import TileEndpoint as ObjectFifoEndpoint

__all__ = ["ObjectFifoEndpoint"]

__getattr__ = absent("aie.iron.dataflow.endpoint")
