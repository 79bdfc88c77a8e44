"""Stand-in for the Python package `aie` of mlir-aie 1.4: names and keywords of its IRON, no MLIR."""

from presim.iron.api import absent

__getattr__ = absent("aie")
