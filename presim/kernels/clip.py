"""`clip`: values between two bounds, on codes (`qmin`, `qmax`) or on accumulators in front of the rounding.

Arguments and attributes as `requantize` in `quantize_linear`.
"""

from presim.kernels.quantize_linear import run

__all__ = ["run"]
