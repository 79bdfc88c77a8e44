"""What a device has, and what a run of ops needs of it: the figures of the single-dispatch budget, all predicted.

A dispatch may use 80 % of the data memory of the cores (less the stack) and of the memory tiles; what is left is for
ping-pong copies, alignment and descriptors.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from manifest.device import Device
from oracle.evidence import DispatchBudget
from phases.baseline.footprint import CORE_PROGRAM_BYTES, Edge, Footprint

SHARE: Final = Fraction(4, 5)
"""Share of data memory that a dispatch may use."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """What a dispatch may use; None where a device figure is null.

    Attributes:
        core_bytes: of one core: 0.8 x (L1 - stack).
        memtile_bytes: of all memory tiles together: 0.8 x their size.
        total_bytes: 0.8 x (L1 - stack) x cores + 0.8 x memory tiles.
        cores: core tiles; None also where `core_bytes` is, since nobody can say how many are needed.
        program_bytes: program memory of a core.
        shim_channels: per direction: channels of all shim tiles that reach external memory.
        unknown: names of the figures that are null.
    """

    core_bytes: int | None
    memtile_bytes: int | None
    total_bytes: int | None
    cores: int | None
    program_bytes: int | None
    shim_channels: int | None
    unknown: tuple[str, ...]


def capacity_of(device: Device) -> Capacity:
    """The budget of one dispatch on `device`."""
    l1, stack, cores = device.l1_bytes.value, device.stack_bytes.value, device.core_tiles.value
    size, count = device.memtile_bytes.value, device.memtiles.value
    columns, into, out = device.shim_dma_columns.value, device.shim_mm2s.value, device.shim_s2mm.value
    figures = {
        "core_tiles": cores,
        "l1_bytes": l1,
        "memtile_bytes": size,
        "memtiles": count,
        "program_memory_bytes": device.program_memory_bytes.value,
        "shim_dma_columns": columns,
        "shim_mm2s": into,
        "shim_s2mm": out,
        "stack_bytes": stack,
    }
    core = None if l1 is None or stack is None else l1 - stack
    memtile = None if size is None or count is None else size * count
    total = None if core is None or memtile is None or cores is None else int(SHARE * (core * cores + memtile))
    return Capacity(
        core_bytes=None if core is None else int(SHARE * core),
        memtile_bytes=None if memtile is None else int(SHARE * memtile),
        total_bytes=total,
        cores=None if core is None else cores,
        program_bytes=device.program_memory_bytes.value,
        shim_channels=None if columns is None or into is None or out is None else len(columns) * min(into, out),
        unknown=tuple(name for name, value in figures.items() if value is None),
    )


class Stream:
    """Rows kept for paths that part and meet again, counted while ops are appended in execution order.

    Row m of a tensor is there once a * m + b of a tensor that enters the dispatch are in (as a share of its rows).
    Where two paths from the same such tensor meet, the earlier one keeps the rows between the two times. Paths without
    a common origin keep nothing: the one that is early is held back at its origin.
    """

    def __init__(self) -> None:
        self.skip_bytes = 0
        self._times: dict[str, Times] = {}

    def append(self, op: Footprint) -> None:
        """Add one op: the skip bytes of its inputs and the times of its outputs."""
        arrivals = [self._times.get(e.tensor, {e.tensor: Time(a=Fraction(1, e.rows), b=Fraction(0))}) for e in op.edges]
        result: Times = {}
        for edge, arrival in zip(op.edges, arrivals, strict=True):
            self.skip_bytes += _kept_rows(edge, arrival, arrivals) * edge.row_bytes
            for origin, time in arrival.items():
                result[origin] = max(result.get(origin, _NEVER), _need(edge, time), key=lambda t: (t.a + t.b, t.a))
        self._times.update(dict.fromkeys(op.outputs, result))


@dataclass(frozen=True, slots=True, kw_only=True)
class Time:
    """Row m is there at a * m + b."""

    a: Fraction
    b: Fraction


Times = dict[str, Time]
"""By the tensor that enters the dispatch."""

_NEVER: Final = Time(a=Fraction(0), b=Fraction(-(1 << 62)))


def _need(edge: Edge, time: Time) -> Time:
    """When the output row m of an op is there, as far as this input goes."""
    if edge.whole:
        return Time(a=Fraction(0), b=time.a * edge.rows + time.b)
    return Time(a=time.a * edge.stride, b=time.b + time.a * edge.extra)


def _kept_rows(edge: Edge, arrival: Times, others: Sequence[Times]) -> int:
    """Rows of `edge` that wait for the slowest path from the same origin, at the first or the last row."""
    rows = 0
    for origin, time in arrival.items():
        meets = [o[origin] for o in others if origin in o]
        late = max(max(t.a * m + t.b for t in meets) - (time.a * m + time.b) for m in (1, edge.rows))
        if late > 0:
            rows = max(rows, edge.rows if time.a == 0 else min(edge.rows, math.ceil(late / time.a)))
    return rows


class Load:
    """Need of a run of ops, appended one by one in execution order.

    Cores: ops whose weights and window fit one core share it with their neighbours in execution order as long as data
    and program memory hold them; a larger op has ceil(bytes / usable L1) cores of its own. Where that is more than the
    array has, weights move to the memory tiles as far as they hold them: first of the ops that then need fewer cores of
    their own, then of all ops.
    """

    def __init__(self, capacity: Capacity) -> None:
        self._capacity = capacity
        self._ops: list[Footprint] = []
        self._weights_bytes = 0
        self._window_bytes = 0
        self._stream = Stream()
        self._resident = _Packing(capacity)
        self._bodies: set[str] = set()

    def append(self, op: Footprint) -> None:
        """Add one op."""
        self._ops.append(op)
        self._weights_bytes += op.weights_bytes
        self._window_bytes += op.window_bytes
        self._stream.append(op)
        self._resident.append(op, op.weights_bytes + op.window_bytes)
        if op.body:
            self._bodies.add(op.body)

    def budget(self, name: str, *, inputs: int, outputs: int) -> DispatchBudget:
        """Need against have.

        Args:
            name: of the dispatch.
            inputs: tensors that enter (weights take one more channel).
            outputs: tensors that leave.
        """
        capacity = self._capacity
        cores = self._cores()
        return DispatchBudget(
            name=name,
            need_bytes=self._weights_bytes + self._window_bytes + self._stream.skip_bytes,
            have_bytes=capacity.total_bytes,
            weights_bytes=self._weights_bytes,
            window_bytes=self._window_bytes,
            skip_bytes=self._stream.skip_bytes,
            cores_needed=cores.count,
            cores_have=capacity.cores,
            kernel_bodies=len(self._bodies),
            bodies_per_core=round(cores.bodies / cores.count, 2) if cores.count else 0.0,
            program_bytes=cores.program_bytes,
            program_have_bytes=capacity.program_bytes,
            program_assumed=True,
            shim_channels_need=max(inputs + (self._weights_bytes > 0), outputs),
            shim_channels_have=capacity.shim_channels,
        )

    def _cores(self) -> "_Packing":
        core, left = self._capacity.core_bytes, self._capacity.memtile_bytes or 0
        if core is None or self._capacity.cores is None or self._resident.count <= self._capacity.cores:
            return self._resident
        moved: set[str] = set()
        saving = {op.name: _saving(op, core) for op in self._ops}
        for op in sorted(self._ops, key=lambda o: (-saving[o.name], o.weights_bytes)):
            if saving[op.name] > 0 and op.weights_bytes <= left:
                left -= op.weights_bytes
                moved.add(op.name)
        tried = self._pack(moved)
        if tried.count > self._capacity.cores and self._weights_bytes <= (self._capacity.memtile_bytes or 0):
            return self._pack({op.name for op in self._ops})
        return tried

    def _pack(self, moved: set[str]) -> "_Packing":
        packing = _Packing(self._capacity)
        for op in self._ops:
            packing.append(op, op.window_bytes + (0 if op.name in moved else op.weights_bytes))
        return packing


def exceeds(budget: DispatchBudget) -> str:
    """What of the array a dispatch exceeds, or ""; unknown figures exceed nothing."""
    rows = (
        ("bytes", budget.need_bytes, budget.have_bytes),
        ("cores", budget.cores_needed, budget.cores_have),
        ("program bytes per core", budget.program_bytes, budget.program_have_bytes),
        ("shim channels", budget.shim_channels_need, budget.shim_channels_have),
    )
    return ", ".join(f"{what} need {n}, have {h}" for what, n, h in rows if h is not None and n > h)


def _saving(op: Footprint, core_bytes: int) -> int:
    """Cores of its own that a large op needs less with its weights in the memory tiles."""
    return -(-(op.weights_bytes + op.window_bytes) // core_bytes) - max(1, -(-op.window_bytes // core_bytes))


class _Packing:
    """Cores for ops in execution order: neighbours share one while it holds their data and programs.

    Attributes:
        count: cores.
        bodies: kernel bodies, summed over cores.
        program_bytes: of the fullest core.
    """

    def __init__(self, capacity: Capacity) -> None:
        self.count = 0
        self.bodies = 0
        self.program_bytes = 0
        self._capacity = capacity
        self._data = 0
        self._program = 0
        self._on_core: set[str] | None = None

    def append(self, op: Footprint, size: int) -> None:
        """Add an op with its bytes in L1."""
        if not op.body:
            return
        own = 1 if self._capacity.core_bytes is None else -(-size // self._capacity.core_bytes)
        if own > 1:
            self.count, self.bodies, self._on_core = self.count + own, self.bodies + own, None
            self.program_bytes = max(self.program_bytes, CORE_PROGRAM_BYTES + op.program_bytes)
            return
        if self._on_core is None or not self._holds(op, size):
            self.count, self._on_core = self.count + 1, set()
            self._data, self._program = 0, CORE_PROGRAM_BYTES
        self._data += size
        if op.body not in self._on_core:
            self._on_core.add(op.body)
            self._program += op.program_bytes
            self.bodies += 1
        self.program_bytes = max(self.program_bytes, self._program)

    def _holds(self, op: Footprint, size: int) -> bool:
        """Whether the open core takes one more op; with unknown data memory no core is shared."""
        data, program = self._capacity.core_bytes, self._capacity.program_bytes
        if data is None or self._on_core is None or self._data + size > data:
            return False
        more = 0 if op.body in self._on_core else op.program_bytes
        return program is None or self._program + more <= program
