"""The simulator's own kernels: `target` arithmetic on objects, one file per op, named as in `manifest.opset`."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from presim.kernel_context import KernelFunction
from presim.kernels import (
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

KERNELS: Final[Mapping[str, KernelFunction]] = MappingProxyType(
    {
        "add": add.run,
        "average_pool": average_pool.run,
        "clip": clip.run,
        "concat": concat.run,
        "conv": conv.run,
        "copy": reinterpret.run,
        "flatten": flatten.run,
        "gemm": gemm.run,
        "gemm_finish": gemm.finish,
        "gemm_rows": gemm.rows,
        "global_average_pool": global_average_pool.run,
        "global_average_pool_finish": global_average_pool.finish,
        "lut": quantize_linear.table,
        "matmul": matmul.run,
        "max_pool": max_pool.run,
        "mul": mul.run,
        "relu": relu.run,
        "requantize": quantize_linear.run,
        "reshape": reshape.run,
        "transpose": transpose.run,
    }
)
"""`Kernel.type` -> function."""
