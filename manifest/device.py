"""Devices as data: one JSON file each in `manifest/devices/`, every figure with its source, no defaults.

Why null and no guess: a budget that needs a figure nobody has published says NOT_RUN and names it; a number
borrowed from a sibling device would say PASS.
"""

import dataclasses
import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from jsonschema import Draft202012Validator

from manifest.errors import Problem, RefusedError

DIRECTORY: Final = Path(__file__).resolve().parent / "devices"
SCHEMA: Final = Path(__file__).resolve().parent / "schema" / "device-1.json"
DEVICES: Final = tuple(sorted(p.stem for p in DIRECTORY.glob("*.json")))
"""Names that `--device` takes."""

DEFAULT_DEVICE: Final = "npu2"

Shape = tuple[int, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One number of a device; None = not published or not settled (the source then says what was found)."""

    value: int | None
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """Column numbers, or None."""

    value: tuple[int, ...] | None
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MmulShapes:
    """Native dense (r, s, t) of A (r x s) times B (s x t), the library kernels' own first; None = unknown."""

    value: tuple[Shape, ...] | None
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """An AI Engine array. Bytes, bits and counts are per tile or channel unless the name says otherwise.

    Attributes:
        name: file name and value of `--device`.
        title: product and array in words.
        arch: `aie1`, `aie2`, `aie2p`, `aie2ps`.
        columns: columns that a design may use.
        rows: all rows: shim, memory and core rows.
        core_tiles: compute tiles.
        memtiles: memory tiles of the whole array.
        shim_dma_columns: columns whose shim tile reaches external memory.
        l1_bytes: data memory of a core tile.
        l1_banks: banks as the compiler's allocator models them.
        l1_banks_physical: banks as the hardware has them.
        program_memory_bytes: of a core tile.
        memtile_bytes: of one memory tile.
        lock_max_value: highest semaphore value.
        core_bds: buffer descriptors of a core tile (likewise mem, shim).
        core_bd_dims: dimensions of a descriptor without the iteration (likewise mem, shim).
        core_bd_words: longest transfer of a descriptor in 32-bit words (likewise mem, shim).
        core_s2mm: stream-to-memory DMA channels of a core tile; `_mm2s`: memory-to-stream (likewise mem, shim).
        mem_neighbour_channels: memory tile channels that reach the neighbours' memory and locks.
        dma_queue_depth: tasks that a channel queues; one more is dropped without an error.
        stream_bits: width of a stream port, moved per cycle.
        load_bits: read per cycle by a core, all ports.
        store_bits: written per cycle by a core.
        cascade_bits: width of a cascade link.
        cascade_words: words between two cores on a cascade.
        clock_mhz: array clock for predictions.
        int8_macs_per_cycle: dense multiply-accumulates of a core (likewise int16, bf16).
        stack_bytes: stack that the compiler reserves in a core's data memory.
        mmul: native block shapes by `<a>x<b>` (`int8xint8`, `int16xint8`, `int16xint16`).
    """

    name: str
    title: str
    arch: str
    columns: Figure
    rows: Figure
    shim_rows: Figure
    mem_rows: Figure
    core_rows: Figure
    core_tiles: Figure
    memtiles: Figure
    shim_dma_columns: Columns
    l1_bytes: Figure
    l1_banks: Figure
    l1_banks_physical: Figure
    program_memory_bytes: Figure
    memtile_bytes: Figure
    memtile_banks: Figure
    core_locks: Figure
    mem_locks: Figure
    shim_locks: Figure
    lock_max_value: Figure
    core_bds: Figure
    mem_bds: Figure
    shim_bds: Figure
    core_bd_dims: Figure
    mem_bd_dims: Figure
    shim_bd_dims: Figure
    core_bd_words: Figure
    mem_bd_words: Figure
    shim_bd_words: Figure
    core_s2mm: Figure
    core_mm2s: Figure
    mem_s2mm: Figure
    mem_mm2s: Figure
    shim_s2mm: Figure
    shim_mm2s: Figure
    mem_neighbour_channels: Figure
    dma_queue_depth: Figure
    stream_bits: Figure
    load_bits: Figure
    store_bits: Figure
    cascade_bits: Figure
    cascade_words: Figure
    clock_mhz: Figure
    int8_macs_per_cycle: Figure
    int16_macs_per_cycle: Figure
    bf16_macs_per_cycle: Figure
    stack_bytes: Figure
    mmul: Mapping[str, MmulShapes]

    def unknown(self) -> tuple[str, ...]:
        """Names of the figures that are null in the file, sorted; `mmul.<pair>` for block shapes."""
        values = ((f.name, getattr(self, f.name)) for f in dataclasses.fields(self))
        plain = [name for name, v in values if isinstance(v, Figure | Columns) and v.value is None]
        return tuple(sorted(plain + [f"mmul.{pair}" for pair, shapes in self.mmul.items() if shapes.value is None]))


@functools.cache
def load_device(name: str) -> Device:
    """The device `name`.

    Raises:
        RefusedError: no such device; lists the names.
        ValueError: the file of the device breaks its schema (a defect of the catalogue).
    """
    if name not in DEVICES:
        problem = Problem(
            code="DEVICE-UNKNOWN", where="--device", what="no such device", expected=", ".join(DEVICES), got=repr(name)
        )
        raise RefusedError((problem,))
    return device_from_json(json.loads((DIRECTORY / f"{name}.json").read_text(encoding="utf-8")))


def device_from_json(value: Any) -> Device:
    """A device from the JSON value of its file.

    Raises:
        ValueError: the value breaks the schema; the text lists where.
    """
    rules = json.loads(SCHEMA.read_text(encoding="utf-8"))
    errors = [f"{'/'.join(map(str, e.path))}: {e.message}" for e in Draft202012Validator(rules).iter_errors(value)]
    if errors:
        msg = "; ".join(sorted(errors))
        raise ValueError(msg)
    words: dict[str, Any] = {"name": value["name"], "title": value["title"], "arch": value["arch"]}
    figures: dict[str, Any] = {k: Figure(**v) for k, v in value["figures"].items()}
    columns = value["shim_dma_columns"]
    shapes = {k: MmulShapes(value=_shapes(v["value"]), source=v["source"]) for k, v in value["mmul"].items()}
    return Device(
        **words,
        **figures,
        shim_dma_columns=Columns(value=_tuple(columns["value"]), source=columns["source"]),
        mmul=shapes,
    )


def _tuple(value: list[int] | None) -> tuple[int, ...] | None:
    return None if value is None else tuple(value)


def _shapes(value: list[list[int]] | None) -> tuple[Shape, ...] | None:
    return None if value is None else tuple((r, s, t) for r, s, t in value)
