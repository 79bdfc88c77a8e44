"""Emitters of kernel code: one module for each op, the C++ templates in `include/`."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from bringup.kernels import conv, gemm, matmul
from bringup.kernels.model import KernelModule

KERNELS: Final[Mapping[str, KernelModule]] = MappingProxyType(
    {
        "conv": conv,
        "gemm": gemm,
        "gemm_finish": gemm,
        "gemm_rows": gemm,
        "matmul": matmul,
    }
)
"""`Kernel.type` -> module."""
