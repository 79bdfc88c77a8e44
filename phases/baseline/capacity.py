"""What a device has, and what a run of ops needs of it: the figures of the single-dispatch budget, all predicted.

A dispatch may use 80 % of the data memory of the cores (less the stack) and of the memory tiles; what is left is for
ping-pong copies, alignment and descriptors.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
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

    Row m of a tensor is there once a * m + b rows of a tensor that enters the dispatch are in. Where two paths from the
    same such tensor meet, the earlier one keeps the rows between the two times. Paths without a common origin keep
    nothing: the one that is early is held back at its origin.
    """

    def __init__(self) -> None:
        self.skip_bytes = 0
        self._times: dict[str, Times] = {}

    def append(self, op: Footprint) -> None:
        """Add one op: the skip bytes of its inputs and the times of its outputs."""
        arrivals = [self._times.get(e.tensor, {e.tensor: (1, 0)}) for e in op.edges]
        result: Times = {}
        for edge, arrival in zip(op.edges, arrivals, strict=True):
            if len(arrivals) > 1:
                self.skip_bytes += _kept_rows(edge, arrival, arrivals) * edge.row_bytes
            for origin, (a, b) in arrival.items():
                need = (0, a * edge.rows + b) if edge.whole else (a * edge.stride, b + a * edge.extra)
                before = result.get(origin)
                if before is None or (sum(need), need[0]) > (sum(before), before[0]):
                    result[origin] = need
        self._times.update(dict.fromkeys(op.outputs, result))


Times = dict[str, tuple[int, int]]
"""(a, b) by the tensor that enters the dispatch."""


def _kept_rows(edge: Edge, arrival: Times, others: Sequence[Times]) -> int:
    """Rows of `edge` that wait for the slowest path from the same origin, at the first or the last row."""
    rows = 0
    for origin, (a, b) in arrival.items():
        meets = [o[origin] for o in others if origin in o]
        late = max(x * m + y - (a * m + b) for x, y in meets for m in (1, edge.rows))
        if late > 0:
            rows = max(rows, edge.rows if a == 0 else min(edge.rows, -(-late // a)))
    return rows


class Load:
    """Need of a run of ops, appended one by one in execution order.

    Cores: a product (Conv, Gemm, MatMul) has cores of its own, ceil(bytes / usable L1) of them; another op joins the
    core of the op before it while data and program memory hold both, else it opens one. Where that is more than the
    array has, weights move to the memory tiles, as far as they hold them and where the fewest bytes save a core.
    """

    def __init__(self, capacity: Capacity) -> None:
        self._capacity = capacity
        self._weights_bytes = 0
        self._window_bytes = 0
        self._stream = Stream()
        self._groups: list[_Group] = []
        self._resident_cores = 0
        self._resident_bodies = 0
        self._program_bytes = 0
        self._bodies: set[str] = set()

    def append(self, op: Footprint) -> None:
        """Add one op."""
        self._weights_bytes += op.weights_bytes
        self._window_bytes += op.window_bytes
        self._stream.append(op)
        if not op.body:
            return
        self._bodies.add(op.body)
        if op.product or not self._groups or not self._groups[-1].takes(op):
            self._groups.append(_Group(self._capacity))
        group = self._groups[-1]
        cores, bodies = group.cores, group.cores * len(group.bodies)
        group.append(op)
        self._resident_cores += group.cores - (cores if bodies else 0)
        self._resident_bodies += group.cores * len(group.bodies) - bodies
        self._program_bytes = max(self._program_bytes, group.program_bytes)

    def budget(self, name: str, *, inputs: int, outputs: int) -> DispatchBudget:
        """Need against have.

        Args:
            name: of the dispatch.
            inputs: tensors that enter (weights take one more channel).
            outputs: tensors that leave.
        """
        capacity = self._capacity
        cores = self._cores()
        resident = self._resident_cores
        return DispatchBudget(
            name=name,
            need_bytes=self._weights_bytes + self._window_bytes + self._stream.skip_bytes,
            have_bytes=capacity.total_bytes,
            weights_bytes=self._weights_bytes,
            window_bytes=self._window_bytes,
            skip_bytes=self._stream.skip_bytes,
            cores_needed=cores,
            cores_have=capacity.cores,
            kernel_bodies=len(self._bodies),
            bodies_per_core=round(self._resident_bodies / resident, 2) if resident else 0.0,
            program_bytes=self._program_bytes,
            program_have_bytes=capacity.program_bytes,
            program_assumed=True,
            shim_channels_need=max(inputs + (self._weights_bytes > 0), outputs),
            shim_channels_have=capacity.shim_channels,
        )

    def _cores(self) -> int:
        """Cores needed, with as many weights in the memory tiles as that takes."""
        count = self._resident_cores
        have, left = self._capacity.cores, self._capacity.memtile_bytes or 0
        if have is None or count <= have:
            return count
        for cost in sorted(c for g in self._groups for c in g.savings()):
            if count <= have or cost > left:
                break
            count, left = count - 1, left - cost
        return count


def exceeds(budget: DispatchBudget) -> str:
    """What of the array a dispatch exceeds, or ""; unknown figures exceed nothing."""
    rows = (
        ("bytes", budget.need_bytes, budget.have_bytes),
        ("cores", budget.cores_needed, budget.cores_have),
        ("program bytes per core", budget.program_bytes, budget.program_have_bytes),
        ("shim channels", budget.shim_channels_need, budget.shim_channels_have),
    )
    return ", ".join(f"{what} need {n}, have {h}" for what, n, h in rows if h is not None and n > h)


class _Group:
    """Ops that share cores: a product or a run of others, and what joined them.

    Attributes:
        bodies: kernel bodies on each of its cores.
        program_bytes: of each of its cores.
    """

    def __init__(self, capacity: Capacity) -> None:
        self.bodies: set[str] = set()
        self.program_bytes = CORE_PROGRAM_BYTES
        self._core_bytes = capacity.core_bytes
        self._program_have = capacity.program_bytes
        self._weights = 0
        self._window = 0

    @property
    def cores(self) -> int:
        """Cores with all weights in their L1."""
        return self._cores_for(self._weights + self._window)

    def append(self, op: Footprint) -> None:
        """Add an op."""
        self._weights += op.weights_bytes
        self._window += op.window_bytes
        if op.body not in self.bodies:
            self.bodies.add(op.body)
            self.program_bytes += op.program_bytes

    def takes(self, op: Footprint) -> bool:
        """Whether an op fits the cores that there are; where L1 is unknown nothing is shared."""
        if self._core_bytes is None:
            return False
        data = self._weights + self._window + op.weights_bytes + op.window_bytes
        program = self.program_bytes + (0 if op.body in self.bodies else op.program_bytes)
        fits = self._program_have is None or program <= self._program_have
        return fits and self._cores_for(data) == self.cores

    def savings(self) -> list[int]:
        """Weight bytes to move for one core less, for two, ..., each on top of the ones before."""
        if self._core_bytes is None:
            return []
        least, size = self._cores_for(self._window), self._weights + self._window
        tops = [size, *(n * self._core_bytes for n in range(self.cores - 1, least - 1, -1))]
        return [a - b for a, b in pairwise(tops)]

    def _cores_for(self, size: int) -> int:
        return 1 if self._core_bytes is None else max(1, -(-size // self._core_bytes))
