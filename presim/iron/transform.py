"""`aie.iron.algorithms`: whole designs that apply a kernel, or Python, to every tile of a tensor.

Tensors of the sequence are named `in0`, `in1`, ..., `out` and `param0`, ..., since the host's names are not known here.
"""

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from presim.iron.api import row
from presim.iron.buffer import BaseKernel
from presim.iron.control import range_
from presim.iron.descriptors import array_type, is_array_type
from presim.iron.device import get_current_device
from presim.iron.errors import WrongValueError
from presim.iron.fifo import ObjectFifo
from presim.iron.program import Program, Resolved, Runtime
from presim.iron.sequence import TaskGroup
from presim.iron.taps import TensorAccessPattern
from presim.iron.worker import Worker

Function = Callable[..., Any]


@row("aie.iron.algorithms.transform")
def transform(func: Any, tensor_ty: Any, *params: Any, tile_size: int = 16) -> Resolved:
    """One input, on one core; a kernel gets the tile's size behind its parameters."""
    return _Plan("transform", func, tensor_ty, params, inputs=1, tile_size=tile_size, sized=True).one_core()


@row("aie.iron.algorithms.transform_binary")
def transform_binary(func: Any, tensor_ty: Any, *, tile_size: int = 16) -> Resolved:
    """Two inputs, on one core."""
    return _Plan("transform_binary", func, tensor_ty, (), inputs=2, tile_size=tile_size, sized=True).one_core()


@row("aie.iron.algorithms.transform_parallel")
def transform_parallel(
    func: Any,
    tensor_ty: Any,
    *params: Any,
    tile_size: int = 16,
    num_channels: int = 1,
    pass_size_to_kernel: bool = True,
) -> Resolved:
    """One input, cut into one part per column and channel of the device."""
    sized = pass_size_to_kernel
    plan = _Plan("transform_parallel", func, tensor_ty, params, inputs=1, tile_size=tile_size, sized=sized)
    return plan.per_column(num_channels)


@row("aie.iron.algorithms.transform_parallel_binary")
def transform_parallel_binary(
    func: Any, tensor_ty: Any, *, tile_size: int = 16, num_channels: int = 1, pass_size_to_kernel: bool = True
) -> Resolved:
    """Two inputs, cut into one part per column and channel of the device."""
    sized = pass_size_to_kernel
    plan = _Plan("transform_parallel_binary", func, tensor_ty, (), inputs=2, tile_size=tile_size, sized=sized)
    return plan.per_column(num_channels)


class _Plan:
    """What a template is called with."""

    def __init__(
        self, what: str, func: Any, tensor_ty: Any, params: Sequence[Any], *, inputs: int, tile_size: int, sized: bool
    ) -> None:
        found = array_type(tensor_ty, f"algorithms.{what}: tensor_ty")
        self.what, self.func, self.params, self.inputs = what, func, tuple(params), inputs
        self.tile_size, self.sized = tile_size, sized
        self.elements = int(np.prod(found.shape))
        element = tensor_ty.__args__[1].__args__[0]
        self.tensor_ty = np.ndarray[(self.elements,), np.dtype[element]]  # type: ignore[misc,valid-type]
        self.tile_ty = np.ndarray[(tile_size,), np.dtype[element]]  # type: ignore[misc,valid-type]
        self.is_kernel = isinstance(func, BaseKernel)
        if self.params and not self.is_kernel:
            msg = f"algorithms.{what}: parameters are for kernels, got a {type(func).__name__}"
            raise WrongValueError(msg)

    def one_core(self) -> Resolved:
        return self._design([""], lambda _: None)

    def per_column(self, channels: int) -> Resolved:
        if channels not in {1, 2} or (channels > 1 and self.params):
            msg = f"algorithms.{self.what}: num_channels: 1 or 2, 1 with parameters; got {channels}"
            raise WrongValueError(msg)
        columns = get_current_device().cols
        suffixes = [f"_{c}" if channels == 1 else f"_{c}_{n}" for c in range(columns) for n in range(channels)]
        share = self.elements // len(suffixes)
        dims = (1, self.elements)
        return self._design(suffixes, lambda i: TensorAccessPattern(dims, share * i, [1, 1, 1, share], [0, 0, 0, 1]))

    def _design(self, suffixes: Sequence[str], tap_of: Callable[[int], Any]) -> Resolved:
        if self.elements % (self.tile_size * len(suffixes)):
            msg = (
                f"algorithms.{self.what}: {self.elements} elements are no multiple of"
                f" {self.tile_size} x {len(suffixes)} workers"
            )
            raise WrongValueError(msg)
        ins = [[ObjectFifo(self.tile_ty, name=f"in{i}{s}") for i in range(self.inputs)] for s in suffixes]
        outs = [ObjectFifo(self.tile_ty, name=f"out{s}") for s in suffixes]
        held = {i: ObjectFifo(p, name=f"param{i}") for i, p in enumerate(self.params) if is_array_type(p)}
        core_body = self._body(self.elements // (self.tile_size * len(suffixes)), list(held))
        workers = [
            Worker(core_body, [*(f.cons() for f in taken), *(f.cons() for f in held.values()), made.prod(), self.func])
            for taken, made in zip(ins, outs, strict=True)
        ]

        def sequence(*tensors: Any) -> None:
            group = TaskGroup()
            for at, taken in enumerate(ins):
                for fifo, tensor in zip(taken, tensors, strict=False):
                    fifo.prod().fill(tensor, tap_of(at), group=group)
            group.finish()
            for fifo, tensor in zip(held.values(), tensors[self.inputs + 1 :], strict=True):
                fifo.prod().fill(tensor)
            group = TaskGroup()
            for at, fifo in enumerate(outs):
                fifo.cons().drain(tensors[self.inputs], tap_of(at), wait=True, group=group)
            group.finish()

        names = [*(f"in{i}" for i in range(self.inputs)), "out", *(f"param{i}" for i in held)]
        parameters = [inspect.Parameter(n, inspect.Parameter.POSITIONAL_OR_KEYWORD) for n in names]
        sequence.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        types = [self.tensor_ty] * (self.inputs + 1) + [self.params[i] for i in held]
        return Program(get_current_device(), Runtime(sequence, types), workers=workers).resolve_program()

    def _body(self, count: int, held: Sequence[int]) -> Function:
        """Core function: parameters in memory are held all the time, tiles one at a time."""

        def core_body(*args: Any) -> None:
            taken, kept, made, func = args[: self.inputs], args[self.inputs : -2], args[-2], args[-1]
            extra = list(self.params)
            for i, handle in zip(held, kept, strict=True):
                extra[i] = handle.acquire(1)
            for _ in range_(count):
                tiles = [handle.acquire(1) for handle in taken]
                tile = made.acquire(1)
                if self.is_kernel:
                    func(*tiles, tile, *extra, *([self.tile_size] if self.sized else []))
                else:
                    for j in range_(self.tile_size):
                        tile[j] = func(*(t[j] for t in tiles))
                for handle in taken:
                    handle.release(1)
                made.release(1)
            for handle in kept:
                handle.release(1)

        return core_body
