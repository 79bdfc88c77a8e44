"""`relu`: bounds on codes or in front of the rounding, as `requantize`."""

from bringup.kernels.quantize_linear import pack, source

__all__ = ["pack", "source"]
