"""Stand-in for `aie.iron.dataflow`."""

from presim.iron.api import absent

__all__: list[str] = []

__getattr__ = absent("aie.iron.dataflow")
