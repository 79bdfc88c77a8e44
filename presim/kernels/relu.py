"""`relu`: max(value, 0) on codes (the zero point is `qmin`), or on accumulators in front of the rounding.

Arguments and attributes as `requantize` in `quantize_linear`.
"""

from presim.kernels.quantize_linear import run

__all__ = ["run"]
