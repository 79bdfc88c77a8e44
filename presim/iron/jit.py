"""`iron.jit`, its markers, and the host tensors that published mains make.

Why a call of a jitted design ends the process: what it would do next is run on an NPU; the design is what is wanted.
"""

import functools
import inspect
from collections.abc import Callable
from typing import Any, Final, Generic, NoReturn, TypeVar

import numpy as np

from presim.iron.api import row
from presim.iron.errors import UnsupportedError, WrongCallError
from presim.iron.program import Resolved

T = TypeVar("T")
OPTIONS: Final = (
    "use_cache",
    "source_files",
    "object_files",
    "compile_flags",
    "include_paths",
    "aiecc_flags",
    "trace_config",
    "full_elf",
)


class In(Generic[T]):
    """Marks a tensor that the design reads."""


class Out(Generic[T]):
    """Marks a tensor that the design writes."""


class InOut(Generic[T]):
    """Marks a tensor that the design reads and writes."""


class CompileTime(Generic[T]):
    """Marks a parameter that specialises the design."""


class DesignKnownError(BaseException):
    """A jitted design was called: what the file is for is known, the rest would need an NPU."""


class JitDesign:
    """A design that `iron.jit` made."""

    def __init__(self, function: Callable[..., Any], fixed: dict[str, Any]) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self.fixed = fixed

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Build the design; that is all that is wanted of it."""
        self._build(args, kwargs)
        raise DesignKnownError

    @row("aie.iron.jit.specialize")
    def specialize(self, **kwargs: Any) -> "JitDesign":
        """The design with compile-time parameters fixed."""
        return JitDesign(self.function, {**self.fixed, **kwargs})

    @row("aie.iron.jit.as_mlir")
    def as_mlir(self, *args: Any, **kwargs: Any) -> Resolved:
        """The design without running it."""
        return self._build(args, kwargs)

    @row("aie.iron.jit.compile")
    def compile(self, *args: Any, **kwargs: Any) -> NoReturn:
        """The design, compiled; here it is known and the process ends."""
        self._build(args, kwargs)
        raise DesignKnownError

    def _build(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Resolved:
        given = {**self.fixed, **{k: v for k, v in kwargs.items() if k not in OPTIONS}}
        signature = inspect.signature(self.function)
        tensors = {
            n: None
            for n, p in list(signature.parameters.items())[len(args) :]
            if p.default is inspect.Parameter.empty and n not in given and is_tensor_marker(p.annotation)
        }
        try:
            bound = signature.bind(*args, **{**tensors, **given})
        except TypeError as error:
            msg = f"calling jitted design {self.function.__name__!r}: {error}; it takes {signature}"
            raise WrongCallError(msg) from None
        found = self.function(*bound.args, **bound.kwargs)
        if not isinstance(found, Resolved):
            msg = f"jitted {self.function.__name__!r} returns a {type(found).__name__}, expected a resolved Program"
            raise WrongCallError(msg)
        return found


def is_tensor_marker(annotation: Any) -> bool:
    """Whether a parameter is a tensor."""
    name = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))
    return name.split("[")[0].rsplit(".", 1)[-1] in {"In", "Out", "InOut"}


@row("aie.iron.jit")
def jit(function: Callable[..., Any] | None = None, **kwargs: Any) -> Any:
    """Make a function that returns a resolved Program a design that can be called."""
    if function is None:
        return functools.partial(jit, **kwargs)
    fixed = {k: v for k, v in kwargs.items() if k not in OPTIONS}
    unknown = sorted(set(fixed) - set(inspect.signature(function).parameters))
    if unknown:
        msg = f"iron.jit: {unknown} are neither options ({', '.join(OPTIONS)}) nor parameters of {function.__name__!r}"
        raise WrongCallError(msg)
    return JitDesign(function, fixed)


class Tensor:
    """A host tensor; values are there, no device is."""

    def __init__(self, values: Any, dtype: Any) -> None:
        self.values = np.array(values, dtype=dtype)

    @property
    def shape(self) -> tuple[int, ...]:
        """Its shape."""
        return self.values.shape

    @property
    def dtype(self) -> Any:
        """Type of an element."""
        return self.values.dtype.type

    @row("aie.iron.Tensor.numpy")
    def numpy(self) -> Any:
        """Its values."""
        return self.values

    @row("aie.iron.Tensor.numel")
    def numel(self) -> int:
        """Its elements."""
        return int(self.values.size)

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, index: Any) -> Any:
        return self.values[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        self.values[index] = value

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        del copy
        return self.values if dtype is None else self.values.astype(dtype)


def _shape(sizes: tuple[Any, ...]) -> tuple[int, ...]:
    found = sizes[0] if len(sizes) == 1 and isinstance(sizes[0], tuple | list) else sizes
    return tuple(int(s) for s in found)


@row("aie.iron.tensor")
def tensor(data: Any, dtype: Any = np.float32, device: Any = "npu", **kwargs: Any) -> Tensor:
    """A tensor of given values, or of a shape."""
    del device, kwargs
    if isinstance(data, tuple):
        return Tensor(np.zeros(data), dtype)
    return Tensor(data, dtype)


@row("aie.iron.zeros")
def zeros(*size: Any, dtype: Any = np.float32, device: Any = "npu", out: Any = None, **kwargs: Any) -> Tensor:
    """Zeros."""
    del device, kwargs
    return _into(out, Tensor(np.zeros(_shape(size)), dtype))


@row("aie.iron.ones")
def ones(*size: Any, dtype: Any = np.float32, device: Any = "npu", out: Any = None, **kwargs: Any) -> Tensor:
    """Ones."""
    del device, kwargs
    return _into(out, Tensor(np.ones(_shape(size)), dtype))


@row("aie.iron.arange")
def arange(  # noqa: PLR0917 (the parameters are those of IRON)
    start: Any, end: Any = None, step: Any = 1, dtype: Any = None, device: Any = "npu", out: Any = None
) -> Tensor:
    """Numbers in a row."""
    del device
    values = np.arange(start) if end is None else np.arange(start, end, step)
    return _into(out, Tensor(values, values.dtype if dtype is None else dtype))


@row("aie.iron.randint")
def randint(  # noqa: PLR0917 (the parameters are those of IRON)
    low: int, high: int, size: Any, dtype: Any = np.int64, device: Any = "npu", out: Any = None, **kwargs: Any
) -> Tensor:
    """Random integers, the same in every run."""
    del device, kwargs
    return _into(out, Tensor(np.random.default_rng(0).integers(low, high, size), dtype))


@row("aie.iron.rand")
def rand(*size: Any, dtype: Any = np.float32, device: Any = "npu", out: Any = None, **kwargs: Any) -> Tensor:
    """Random numbers from 0 to 1, the same in every run."""
    del device, kwargs
    return _into(out, Tensor(np.random.default_rng(0).random(_shape(size)), dtype))


@row("aie.iron.zeros_like")
def zeros_like(other: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """Zeros in the shape of another tensor."""
    del device
    return Tensor(np.zeros(other.shape), other.dtype if dtype is None else dtype)


def _into(out: Any, made: Tensor) -> Tensor:
    if out is None:
        return made
    if not isinstance(out, Tensor):
        msg = "out: expected a tensor of iron"
        raise UnsupportedError(msg)
    out.values[...] = made.values
    return out
