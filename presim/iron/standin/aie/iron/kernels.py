"""Stand-in for `aie.iron.kernels`."""

from presim.iron.api import absent
from presim.iron.kernels import (
    add,
    bn_conv2dk1_i8,
    bn_conv2dk1_relu,
    bn_conv2dk1_skip,
    bn_conv2dk3_dw,
    mm,
    mul,
    mv,
    passthrough,
    relu,
    scale,
)

__all__ = [
    "add",
    "bn_conv2dk1_i8",
    "bn_conv2dk1_relu",
    "bn_conv2dk1_skip",
    "bn_conv2dk3_dw",
    "mm",
    "mul",
    "mv",
    "passthrough",
    "relu",
    "scale",
]

__getattr__ = absent("aie.iron.kernels")
