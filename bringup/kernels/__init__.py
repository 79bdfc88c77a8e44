"""Emitters of kernel code: one module for each op, the C++ templates in `include/`."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from bringup.kernels import (
    add,
    average_pool,
    clip,
    concat,
    conv,
    flatten,
    gemm,
    global_average_pool,
    matmul,
    max_pool,
    mul,
    quantize_linear,
    reinterpret,
    relu,
    reshape,
    transpose,
)
from bringup.kernels.model import KernelModule

KERNELS: Final[Mapping[str, KernelModule]] = MappingProxyType(
    {
        "add": add,
        "average_pool": average_pool,
        "clip": clip,
        "concat": concat,
        "conv": conv,
        "copy": reinterpret,
        "flatten": flatten,
        "gemm": gemm,
        "gemm_finish": gemm,
        "gemm_rows": gemm,
        "global_average_pool": global_average_pool,
        "global_average_pool_finish": global_average_pool,
        "lut": quantize_linear,
        "matmul": matmul,
        "max_pool": max_pool,
        "mul": mul,
        "relu": relu,
        "requantize": quantize_linear,
        "reshape": reshape,
        "transpose": transpose,
    }
)
"""`Kernel.type` -> module."""
