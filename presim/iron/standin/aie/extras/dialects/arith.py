"""Stand-in for `aie.extras.dialects.arith`."""

from presim.iron.api import absent
from presim.iron.hostutils import addi, constant, index_cast, muli, subi

__all__ = ["addi", "constant", "index_cast", "muli", "subi"]

__getattr__ = absent("aie.extras.dialects.arith")
