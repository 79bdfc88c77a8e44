"""What a tile has, as the planner may use it; None where a device figure is not published."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np

from manifest.device import Device

SHARE: Final = Fraction(9, 10)
"""Share of a core's data memory (less the stack) that a plan fills; the rest is for alignment."""

ALIGNMENT: Final = 32
"""Bytes to which every object and buffer is rounded up, one vector register."""

JOIN_LIMIT: Final = 6
"""Workers whose outputs one memory tile joins: its stream-to-memory channels."""

MAX_DEPTH: Final = 63
"""Objects of a pool: the highest value of a lock."""

MEM_OBJECTS: Final = 12
"""Objects that a memory tile keeps for a reader: half of the descriptors of its even or odd channels."""

STREAM_OBJECTS: Final = 24
"""Objects of weights that a memory tile sends over and over: the descriptors of its even or odd channels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Budgets of one dispatch.

    Attributes:
        core_bytes: of a core tile for buffers and objects.
        cores: core tiles.
        core_bds: buffer descriptors of a core tile.
        inputs: streams into a core tile.
        outputs: streams out of it.
        program_bytes: program memory of a core tile.
        memtile_bytes: of one memory tile; 0 = there are none.
        memtiles: memory tiles.
        join: streams that a memory tile joins, 0 = there are none.
        mem_out: streams out of a memory tile.
        fills: streams from the host into the array.
        drains: streams from the array to the host.
        stack_bytes: of a core tile.
        unknown: names of the figures that are null.
    """

    core_bytes: int | None
    cores: int | None
    core_bds: int | None
    inputs: int
    outputs: int
    program_bytes: int | None
    memtile_bytes: int | None
    memtiles: int | None
    join: int
    mem_out: int
    fills: int | None
    drains: int | None
    stack_bytes: int
    unknown: tuple[str, ...]


_FIGURES: Final = (
    "core_bds",
    "core_mm2s",
    "core_s2mm",
    "core_tiles",
    "l1_bytes",
    "mem_mm2s",
    "mem_s2mm",
    "memtile_bytes",
    "memtiles",
    "program_memory_bytes",
    "shim_mm2s",
    "shim_s2mm",
    "stack_bytes",
)
_DEFAULT_CHANNELS: Final = 2
"""Streams of a core tile on every generation; taken where a device file has none."""

_DEFAULT_STACK: Final = 1024


def limits_of(device: Device) -> Limits:
    """The budgets on `device`."""
    values: dict[str, int | None] = {name: getattr(device, name).value for name in _FIGURES}
    l1, stack = values["l1_bytes"], values["stack_bytes"]
    memtiles = values["memtiles"]
    columns = device.shim_dma_columns.value
    count = None if columns is None else len(columns)
    unknown = [name for name, value in values.items() if value is None]
    unknown += ["shim_dma_columns"] if columns is None else []
    return Limits(
        core_bytes=None if l1 is None else int(SHARE * (l1 - (stack or _DEFAULT_STACK))),
        cores=values["core_tiles"],
        core_bds=values["core_bds"],
        inputs=values["core_s2mm"] or _DEFAULT_CHANNELS,
        outputs=values["core_mm2s"] or _DEFAULT_CHANNELS,
        program_bytes=values["program_memory_bytes"],
        memtile_bytes=0 if memtiles == 0 else values["memtile_bytes"],
        memtiles=memtiles,
        join=0 if memtiles == 0 else values["mem_s2mm"] or JOIN_LIMIT,
        mem_out=0 if memtiles == 0 else values["mem_mm2s"] or JOIN_LIMIT,
        fills=_times(count, values["shim_mm2s"]),
        drains=_times(count, values["shim_s2mm"]),
        stack_bytes=stack or _DEFAULT_STACK,
        unknown=tuple(sorted(unknown)),
    )


def _times(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else a * b


def size_of(shape: Iterable[int], dtype: str) -> int:
    """Bytes of an object or buffer, rounded up to the alignment."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    return -(-size // ALIGNMENT) * ALIGNMENT
