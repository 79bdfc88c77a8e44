"""Stand-in for `aie.iron.dataflow.objectfifo`."""

from presim.iron.api import absent
from presim.iron.links import JoinedFifos as ObjectFifoLink

__all__ = ["ObjectFifoLink"]

__getattr__ = absent("aie.iron.dataflow.objectfifo")
