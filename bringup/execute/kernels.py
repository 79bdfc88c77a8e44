"""Compiled kernels as functions of the simulator: arguments by address, scalars in order, cascades through the runtime.

Runs in the child alone.
"""

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bringup.execute.abi import ACCESSES, C_TYPES, ExternalAbi
from bringup.execute.events import EventPage
from bringup.execute.wrapper import table_of, trampoline_of
from presim.design import Call, Design
from presim.simulate import CascadePort, KernelContext, KernelFunction
from presim.steps import steps_of

Array = NDArray[Any]
RUNNING: Final = 0
REHEARSING: Final = 1
MAX_CASCADE_BYTES: Final = 1 << 22
MAX_CACHED: Final = 100_000
_FAULTS: Final = {1: "changed", 2: "unwritten", 3: "memory"}


class KernelFaultError(Exception):
    """A kernel does what its signature does not say; its text is the verdict."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelPlace:
    """Where a fault of a kernel is; `element` -1 = none."""

    worker: str
    kernel: str
    argument: str
    element: int
    kind: str


class _Row(ctypes.Structure):
    _fields_ = (
        ("bytes", ctypes.c_int64),
        ("item", ctypes.c_int32),
        ("access", ctypes.c_int32),
        ("fresh", ctypes.c_uint64),
    )


class Tiles:
    """Modes and cascades of the tiles; every run of every schedule gets tiles of its own, as after power-on."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self.library = library
        self.ids: dict[int, int] = {}
        self.kept: list[object] = []
        library.aie_host_cascade_take_output.restype = ctypes.c_size_t
        library.aie_host_cascade_take_output.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
        library.aie_host_cascade_set_input.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
        library.aie_host_cascade_unread.restype = ctypes.c_size_t
        self.block = np.zeros(MAX_CASCADE_BYTES, np.uint8)

    def select(self, modes: object) -> None:
        """The tile whose modes the simulator keeps in this object."""
        key = id(modes)
        tile = self.ids.get(key)
        if tile is None:
            tile = self.ids[key] = len(self.ids)
            self.kept.append(modes)
        self.library.aie_host_select_tile(tile)

    def modes(self) -> tuple[int, int]:
        """Rounding and saturation of the selected tile."""
        rounding, saturation = ctypes.c_int32(), ctypes.c_int32()
        self.library.aie_host_get_modes(ctypes.byref(rounding), ctypes.byref(saturation))
        return rounding.value, saturation.value

    def give(self, block: Array) -> None:
        """What comes over the cascade in the next call."""
        data = np.ascontiguousarray(block).reshape(-1).view(np.uint8)
        self.library.aie_host_cascade_set_input(data.ctypes.data, data.size)

    def take(self) -> Array:
        """What the last call put on the cascade, as bytes."""
        count = self.library.aie_host_cascade_take_output(self.block.ctypes.data, self.block.size)
        return self.block[:count].copy()

    def unread(self) -> int:
        """Bytes that the last call did not read."""
        return int(self.library.aie_host_cascade_unread())


class CompiledKernels:
    """Kernels of one library for one design.

    Args:
        path: the shared object.
        externals: functions in it.
        design: whose rows call them.
        symbols: row -> symbol, where they differ.
        events: what is written before every call.
        tiles: modes and cascades are in the library.
        rehearse: see `HostTask`.

    Raises:
        ValueError: a row has no function, or its calls are not alike.
    """

    def __init__(
        self,
        path: Path,
        externals: Sequence[ExternalAbi],
        design: Design,
        symbols: Mapping[str, str],
        events: EventPage,
        *,
        tiles: bool,
        rehearse: bool,
    ) -> None:
        self.library = ctypes.CDLL(str(path))
        self.library.host_call_share(*events.blocks())
        self.tiles = Tiles(self.library) if tiles else None
        self.events = events
        self.workers = {w.name: i for i, w in enumerate(design.workers)}
        self.rehearse = rehearse
        self.rehearsed: set[tuple[str, str, tuple[int, ...]]] = set()
        self.addresses: dict[int, tuple[Array, int]] = {}
        self.place: KernelPlace | None = None
        by_symbol = {e.symbol: (i, e) for i, e in enumerate(externals)}
        calls = _calls(design)
        self.functions: dict[str, KernelFunction] = {}
        for name, call in calls.items():
            symbol = symbols.get(name, name)
            if symbol not in by_symbol:
                msg = f"kernel {name!r}: no function {symbol} was compiled"
                raise ValueError(msg)
            self.functions[name] = CompiledKernel(self, *by_symbol[symbol], call)

    def address(self, array: Array) -> int:
        """Of its first byte; arrays of a world live as long as it, so they are asked once."""
        known = self.addresses.get(id(array))
        if known is not None and known[0] is array:
            return known[1]
        if not array.flags.c_contiguous:
            msg = "an argument is not contiguous"
            raise KernelFaultError(msg)
        if len(self.addresses) > MAX_CACHED:
            self.addresses.clear()
        found = int(array.__array_interface__["data"][0])
        self.addresses[id(array)] = (array, found)
        return found


def _calls(design: Design) -> dict[str, Call]:
    """One call of every row; all of them have the same kinds of arguments and the same scalars."""
    found: dict[str, Call] = {}
    for worker in design.workers:
        for step in steps_of(worker.program):
            if isinstance(step, Call):
                first = found.setdefault(step.kernel, step)
                if _form(first) != _form(step):
                    msg = f"kernel {step.kernel!r}: its calls differ in number or kind of arguments"
                    raise ValueError(msg)
    return found


def _form(call: Call) -> tuple[tuple[str, ...], tuple[str, ...]]:
    kinds = tuple(a.kind if a.kind.startswith("cascade") else "memory" for a in call.arguments)
    return kinds, tuple(name for name, _ in call.scalars)


class CompiledKernel:
    """One function, to be called by the simulator."""

    def __init__(self, kernels: CompiledKernels, number: int, external: ExternalAbi, call: Call) -> None:
        self.kernels = kernels
        self.number = number
        self.external = external
        self.scalars = tuple(name for name, _ in call.scalars)
        kinds = [a.kind for a in call.arguments]
        self.memory = [i for i, kind in enumerate(kinds) if not kind.startswith("cascade")]
        self.cascade_in = next((i for i, kind in enumerate(kinds) if kind == "cascade_in"), None)
        self.cascade_out = next((i for i, kind in enumerate(kinds) if kind == "cascade_out"), None)
        if len(self.memory) != len(external.pointers) or len(self.scalars) != len(external.scalars):
            msg = (
                f"kernel {external.symbol}: the design passes {len(self.memory)} blocks and {len(self.scalars)}"
                f" scalars, its code takes {len(external.pointers)} and {len(external.scalars)}"
            )
            raise ValueError(msg)
        library = kernels.library
        self.function = getattr(library, trampoline_of(external.symbol))
        self.function.restype = ctypes.c_int64
        self.table = (_Row * max(1, len(self.memory))).in_dll(library, table_of(external.symbol))
        self.sizes = [p.size_bytes for p in external.pointers]
        self.access = [ACCESSES[self.table[i].access] for i in range(len(self.memory))]
        self.pointers = (ctypes.c_void_p * max(1, len(self.memory)))()
        self.values = (ctypes.c_int64 * max(1, len(self.scalars)))()
        self.limits = [_limits(s.dtype) for s in external.scalars]

    def __call__(self, context: KernelContext, *values: Any) -> None:
        """See `presim.simulate.kernel.KernelFunction`."""
        kernels, events = self.kernels, self.kernels.events
        try:
            scalars = self._scalars(context)
            copies = self._pointers(values)
            events.call(kernels.workers[context.worker], self.number, scalars)
            if kernels.tiles is not None:
                kernels.tiles.select(context.modes)
            key = (context.worker, self.external.symbol, scalars)
            if kernels.rehearse and key not in kernels.rehearsed:
                kernels.rehearsed.add(key)
                self._rehearse(values)
            self._run(values)
            for number, copy in copies:
                if not np.array_equal(copy.view(np.uint8), values[self.memory[number]].reshape(-1).view(np.uint8)):
                    raise self._fault(number, -1, "changed")
        except _PlacedError as error:
            # The other schedules have to come to the same verdict.
            kernels.rehearsed.clear()
            kernels.place = KernelPlace(
                worker=context.worker,
                kernel=self.external.symbol,
                argument="" if error.number < 0 else self.external.pointer_name(error.number),
                element=error.element,
                kind=error.kind,
            )
            raise KernelFaultError(str(error)) from error
        finally:
            events.returned()

    def _scalars(self, context: KernelContext) -> tuple[int, ...]:
        found = tuple(context.scalars[name] for name in self.scalars)
        for i, value in enumerate(found):
            low, high = self.limits[i]
            if not low <= value <= high:
                msg = f"scalar {self.scalars[i]}: {value} is no {self.external.scalars[i].dtype}"
                raise _PlacedError(msg, -1, -1, "scalar")
            self.values[i] = value
        return found

    def _pointers(self, values: Sequence[Any]) -> list[tuple[int, Array]]:
        """Set the addresses; what may not be written and is not known to be only read is given as a copy."""
        copies = []
        for number, at in enumerate(self.memory):
            array = values[at]
            if array.nbytes != self.sizes[number]:
                name = self.external.pointer_name(number)
                msg = f"argument {name!r}: the design holds {array.nbytes} bytes, its code takes {self.sizes[number]}"
                raise _PlacedError(msg, number, -1, "size")
            access = self.access[number]
            if access != "in" and not array.flags.writeable:
                if access != "any":
                    msg = f"argument {self.external.pointer_name(number)!r} is read-only"
                    raise _PlacedError(msg, number, -1, "read-only")
                copy = np.array(array).reshape(-1)
                copies.append((number, copy))
                self.pointers[number] = copy.ctypes.data
                continue
            self.pointers[number] = self.kernels.address(array)
        return copies

    def _rehearse(self, values: Sequence[Any]) -> None:
        """Run on blocks whose content differs where the kernel may not look."""
        tiles = self.kernels.tiles
        if tiles is None:
            self._check(self.function(self.pointers, self.values, REHEARSING))
            return
        modes = tiles.modes()
        if self.cascade_in is not None:
            tiles.give(values[self.cascade_in])
        self._check(self.function(self.pointers, self.values, REHEARSING))
        tiles.take()
        self.kernels.library.host_call_set_modes(*modes)

    def _run(self, values: Sequence[Any]) -> None:
        tiles = self.kernels.tiles
        if tiles is None:
            if self.cascade_in is not None or self.cascade_out is not None:
                msg = "it uses the cascade, and was compiled without tiles"
                raise _PlacedError(msg, -1, -1, "cascade")
            self._check(self.function(self.pointers, self.values, RUNNING))
            return
        if self.cascade_in is not None:
            tiles.give(values[self.cascade_in])
        self._check(self.function(self.pointers, self.values, RUNNING))
        if self.cascade_in is not None and tiles.unread():
            msg = f"it leaves {tiles.unread()} bytes of the cascade unread"
            raise _PlacedError(msg, -1, -1, "cascade")
        if self.cascade_out is not None:
            self._put(values[self.cascade_out], tiles.take())

    def _put(self, port: CascadePort, block: Array) -> None:
        if block.size:
            port.put(block)

    def _check(self, code: int) -> None:
        if code == 0:
            return
        kind = _FAULTS.get(code >> 56, "unknown")
        raise self._fault((code >> 48) & 0xFF, code & ((1 << 48) - 1), kind)

    def _fault(self, number: int, element: int, kind: str) -> "_PlacedError":
        name = self.external.pointer_name(number)
        texts = {
            "changed": f"changes element {element} of argument {name!r}, which it only reads"
            if element >= 0
            else f"changes argument {name!r}, which the worker holds to read",
            "unwritten": f"element {element} of argument {name!r} depends on memory that nobody wrote",
            "memory": "no memory for a copy of its arguments",
        }
        return _PlacedError(texts.get(kind, kind), number, element, kind)


class _PlacedError(Exception):
    """A fault with the number of the pointer, -1 = none."""

    def __init__(self, text: str, number: int, element: int, kind: str) -> None:
        self.number = number
        self.element = element
        self.kind = kind
        super().__init__(text)


def _limits(dtype: str) -> tuple[int, int]:
    kind, bits = dtype.rstrip("0123456789"), 8 * C_TYPES[dtype][1]
    if kind == "uint":
        return 0, min((1 << bits) - 1, (1 << 63) - 1)
    return -(1 << (bits - 1)), (1 << (bits - 1)) - 1
