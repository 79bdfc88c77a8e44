"""Emitters of kernel code: one module for each op, the C++ templates in `include/`."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from bringup.kernels.model import KernelModule

KERNELS: Final[Mapping[str, KernelModule]] = MappingProxyType({})
"""`Kernel.type` -> module."""
