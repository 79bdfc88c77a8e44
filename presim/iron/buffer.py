"""Buffers of a core, kernels with external code."""

import typing
from typing import Any, ClassVar

import numpy as np

from presim.iron.api import row
from presim.iron.descriptors import CARRIED, ArrayType, array_type, is_array_type, is_scalar_type
from presim.iron.device import Tile
from presim.iron.errors import UnsupportedError, WrongCallError, WrongValueError
from presim.iron.expr import Scalar, scalar_text
from presim.iron.sequence import Session
from presim.iron.trace import CURRENT, SEQUENCE, CallNode, Element, Memory, static_int, tracer


class Buffer(Element):
    """Memory of a tile that is no fifo."""

    made: ClassVar[list["Buffer"]] = []

    @row("aie.iron.Buffer")
    def __init__(
        self,
        type: Any = None,
        initial_value: Any = None,
        name: str | None = None,
        tile: Tile | None = None,
        use_write_rtp: bool = False,
    ) -> None:
        if type is None and initial_value is None:
            msg = "Buffer: expected a type, an initial_value or both"
            raise WrongValueError(msg)
        self.name = f"buf_{len(Buffer.made)}" if name is None else str(name)
        self.initial = None if initial_value is None else carried(np.asarray(initial_value))
        what = f"Buffer {self.name!r}"
        if type is None:
            given = np.asarray(initial_value)
            type = np.ndarray[given.shape, np.dtype[given.dtype.type]]  # type: ignore[name-defined]
        self.descriptor = type
        self.type: ArrayType = array_type(type, what)
        if self.initial is not None and self.initial.size != self.type.elements:
            msg = f"{what}: initial_value of {self.initial.size} elements, its type has {self.type.elements}"
            raise WrongValueError(msg)
        self.tile = tile
        self.runtime = use_write_rtp
        self.owner: Any = None
        Buffer.made.append(self)

    @property
    def shape(self) -> tuple[int, ...]:
        """Its shape."""
        return self.type.shape

    @property
    def dtype(self) -> Any:
        """Type of an element."""
        return np.dtype(self.type.dtype).type

    def claim(self, worker: Any) -> None:
        """Give it to a worker.

        Raises:
            WrongValueError: another has it and it is on no tile of its own.
        """
        if self.owner is not None and self.owner is not worker and self.tile is None:
            msg = f"Buffer {self.name!r} is given to two Workers and has no tile"
            raise WrongValueError(msg)
        self.owner = worker

    def memory(self) -> Memory:
        """See `Element.memory`."""
        return Memory("buffer", self.name, "", 0, self.type)

    def __getitem__(self, index: Any) -> Any:
        current = CURRENT.get()
        if current is not None and self.name in current.constants:
            at = index if isinstance(index, tuple) else (index,)
            found = current.constants[self.name][tuple(static_int(i, "index of a runtime parameter") for i in at)]
            return int(found) if found.dtype.kind in "iub" else found
        return super().__getitem__(index)

    def __setitem__(self, index: Any, value: Any) -> None:
        host = SEQUENCE.get()
        if not isinstance(host, Session):
            super().__setitem__(index, value)
            return
        if not isinstance(value, int | float | np.generic):
            msg = f"Buffer {self.name!r}: the sequence writes a {type(value).__name__}, expected a number"
            raise UnsupportedError(msg)
        at = tuple(static_int(i, "an index") for i in (index if isinstance(index, tuple) else (index,)))
        values = host.written.setdefault(self.name, {})
        if at in values and values[at] != value:
            msg = f"Buffer {self.name!r}: the sequence writes element {at} twice; the simulator follows one value a run"
            raise UnsupportedError(msg)
        values[at] = value.item() if isinstance(value, np.generic) else value


class ScratchpadParameter:
    """A number that the host gives at run time."""

    @row("aie.iron.ScratchpadParameter")
    def __init__(self, name: str, dtype: Any) -> None:
        self.name = name
        self.dtype = dtype


class BaseKernel:
    """A function in C++."""

    def __init__(self, name: str, object_file: str, arg_types: Any) -> None:
        self.name = str(name)
        self.object_file = str(object_file)
        self.types = list(arg_types or ())
        self.parameters = [parameter_of(t, f"argument {i} of kernel {name!r}") for i, t in enumerate(self.types)]
        self.source_file: str | None = None
        self.source_string: str | None = None
        self.include_dirs: tuple[str, ...] = ()
        self.compile_flags: tuple[str, ...] = ()

    def __call__(self, *args: Any) -> None:
        """Call it in a core."""
        current = tracer(f"calling kernel {self.name!r}")
        if len(args) != len(self.parameters):
            msg = f"kernel {self.name!r} takes {len(self.parameters)} arguments, got {len(args)}"
            raise WrongCallError(msg)
        pairs = zip(args, self.parameters, strict=True)
        current.add(CallNode(self, tuple(self._argument(i, a, p) for i, (a, p) in enumerate(pairs))))

    def _argument(self, index: int, value: Any, parameter: "ArrayType | str") -> Any:
        what = f"argument {index} of kernel {self.name!r}"
        if isinstance(parameter, str):
            if isinstance(value, Scalar | int | float | np.generic):
                return value
            msg = f"{what}: expected a number of {parameter}, got a {type(value).__name__}"
            raise WrongCallError(msg)
        if not isinstance(value, Element):
            msg = f"{what}: expected memory of {parameter}, got a {type(value).__name__}"
            raise WrongCallError(msg)
        memory = value.memory()
        if memory.type.elements != parameter.elements or memory.type.element != parameter.element:
            msg = f"{what}: expected memory of {parameter}, got {memory.name!r} of {memory.type}"
            raise WrongCallError(msg)
        return memory


def parameter_of(value: Any, what: str) -> "ArrayType | str":
    """Type of a C parameter: memory, or numpy's name of a number."""
    if is_array_type(value):
        return array_type(value, what)
    if is_scalar_type(value):
        return str(np.dtype(typing.get_args(value)[0] if typing.get_origin(value) else value).name)
    msg = f"{what}: expected an array type or a numpy type, got {value!r}"
    raise WrongCallError(msg)


class Kernel(BaseKernel):
    """A function in an object file."""

    @row("aie.iron.Kernel")
    def __init__(
        self,
        name: str,
        object_file_name: str,
        arg_types: Any = (),
        *,
        stack_size_override: int | None = None,
    ) -> None:
        del stack_size_override
        super().__init__(name, object_file_name, arg_types)


class ExternalFunction(BaseKernel):
    """A function that is compiled from its source.

    Attributes:
        zero: kernel that clears its output, of the library's products.
        mac_dims: block of the multiplication, likewise.
    """

    zero: "ExternalFunction"
    mac_dims: tuple[int, int, int]

    @row("aie.iron.ExternalFunction")
    def __init__(  # noqa: PLR0917 (the parameters are those of IRON)
        self,
        name: str,
        object_file_name: str | None = None,
        source_file: Any = None,
        source_string: str | None = None,
        arg_types: Any = (),
        include_dirs: Any = (),
        compile_flags: Any = (),
        *,
        stack_size_override: int | None = None,
    ) -> None:
        del stack_size_override
        if source_file is None and source_string is None:
            msg = f"ExternalFunction {name!r}: expected a source_file or a source_string"
            raise WrongValueError(msg)
        super().__init__(name, object_file_name or f"{name}.o", arg_types)
        self.source_file = None if source_file is None else str(source_file)
        self.source_string = source_string
        self.include_dirs = tuple(str(d) for d in include_dirs or ())
        self.compile_flags = tuple(str(f) for f in compile_flags or ())

    @row("aie.iron.ExternalFunction.tile_size")
    def tile_size(self, arg_index: int = 0) -> int:
        """First dimension of an argument."""
        found = self.parameters[arg_index]
        if isinstance(found, str):
            msg = f"argument {arg_index} of kernel {self.name!r} is a number"
            raise WrongValueError(msg)
        return found.shape[0]

    @row("aie.iron.ExternalFunction.arg_types")
    def arg_types(self) -> list[Any]:
        """Types of the arguments."""
        return list(self.types)


def carried(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Values, those of a type that is carried as its bits."""
    return values.view(CARRIED[values.dtype.name]) if values.dtype.name in CARRIED else values


def is_static(value: Any) -> bool:
    """Whether the design can hold a kernel scalar as it is."""
    return scalar_text(value) is not None
