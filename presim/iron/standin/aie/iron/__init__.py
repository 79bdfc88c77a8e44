"""Stand-in for `aie.iron` of mlir-aie 1.4."""

from presim.iron.api import absent
from presim.iron.buffer import Buffer, ExternalFunction, Kernel, ScratchpadParameter
from presim.iron.control import dtype_to_str, str_to_dtype
from presim.iron.device import get_current_device, set_current_device
from presim.iron.fifo import ObjectFifo, ObjectFifoHandle
from presim.iron.jit import (
    CompileTime,
    In,
    InOut,
    Out,
    arange,
    jit,
    ones,
    rand,
    randint,
    tensor,
    zeros,
    zeros_like,
)
from presim.iron.program import Program, Runtime
from presim.iron.sequence import TaskGroup
from presim.iron.worker import CascadeFlow, Worker, WorkerRuntimeBarrier

__all__ = [
    "Buffer",
    "CascadeFlow",
    "CompileTime",
    "ExternalFunction",
    "In",
    "InOut",
    "Kernel",
    "ObjectFifo",
    "ObjectFifoHandle",
    "Out",
    "Program",
    "Runtime",
    "ScratchpadParameter",
    "TaskGroup",
    "Worker",
    "WorkerRuntimeBarrier",
    "arange",
    "dtype_to_str",
    "get_current_device",
    "jit",
    "ones",
    "rand",
    "randint",
    "set_current_device",
    "str_to_dtype",
    "tensor",
    "zeros",
    "zeros_like",
]

__getattr__ = absent("aie.iron")
