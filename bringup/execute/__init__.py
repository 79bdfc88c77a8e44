"""Generated kernels executed on the host: compiled with sanitizers, run in a child inside the simulated dataflow."""

from bringup.execute.abi import ExternalAbi, PointerAbi, ScalarAbi, external
from bringup.execute.compile import CompileError, Library, build
from bringup.execute.report import Crash
from bringup.execute.run import HostResult, Runner, simulate_sources
from bringup.execute.task import HostTask

__all__ = [
    "CompileError",
    "Crash",
    "ExternalAbi",
    "HostResult",
    "HostTask",
    "Library",
    "PointerAbi",
    "Runner",
    "ScalarAbi",
    "build",
    "external",
    "simulate_sources",
]
