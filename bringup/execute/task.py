"""What the parent gives the child and gets back, as files in one folder for each job.

Files: `task.json` (canonical), `design.json`, `arrays.npz` in; `result.json`, `outputs.npz` out; `events` a shared
page that says what runs; `stderr` what the sanitizers say.
"""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from bringup.execute.abi import ExternalAbi, PointerAbi, ScalarAbi
from manifest.io import load_arrays, save_arrays
from presim.design import Design
from presim.design_io import design_from_json, design_to_json

Array = NDArray[Any]
Slot = Literal["array", "input", "fifo", "output", "captured"]

TASK: Final = "task.json"
DESIGN: Final = "design.json"
ARRAYS: Final = "arrays.npz"
RESULT: Final = "result.json"
OUTPUTS: Final = "outputs.npz"
EVENTS: Final = "events"
STDERR: Final = "stderr"
MAX_BYTES: Final = 8 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class HostTask:
    """One design to be run with compiled kernels.

    Attributes:
        name: unique in the run, for messages.
        design: as it was lowered from what was generated.
        arrays: initial values by key.
        inputs: host tensors of each inference.
        fifos: expected objects of fifos for each inference.
        outputs: expected host tensors for each inference.
        symbols: row of `Design.kernels` -> symbol, where they differ.
        schedules: orders of execution beside round-robin.
        rehearse: look for results that depend on memory that nobody wrote.
        capture: fifos whose objects are returned.
        max_steps: instructions of one schedule.
    """

    name: str
    design: Design
    inputs: Sequence[Mapping[str, Array]]
    arrays: Mapping[str, Array] = field(default_factory=dict)
    fifos: Sequence[Mapping[str, Array]] = ()
    outputs: Sequence[Mapping[str, Array]] = ()
    symbols: Mapping[str, str] = field(default_factory=dict)
    schedules: int = 3
    rehearse: bool = True
    capture: frozenset[str] = frozenset()
    max_steps: int = 50_000_000


class _Store:
    """Arrays with arbitrary names behind short ones; the mask of a masked array beside it."""

    def __init__(self) -> None:
        self.arrays: dict[str, Array] = {}
        self.rows: list[dict[str, Any]] = []

    def add(self, slot: Slot, name: str, array: Array, inference: int = 0) -> None:
        key = f"a{len(self.rows):06}"
        masked = isinstance(array, np.ma.MaskedArray)
        self.arrays[key] = np.ma.getdata(array) if masked else np.asarray(array)
        if masked:
            self.arrays[f"{key}m"] = np.ma.getmaskarray(array)
        self.rows.append({"slot": slot, "name": name, "inference": inference, "key": key, "masked": masked})

    def add_all(self, slot: Slot, tensors: Sequence[Mapping[str, Array]]) -> None:
        for inference, named in enumerate(tensors):
            for name, array in named.items():
                self.add(slot, name, array, inference)


class _Stored:
    """The same, read back."""

    def __init__(self, rows: Sequence[Mapping[str, Any]], arrays: Mapping[str, Array]) -> None:
        self.rows = rows
        self.arrays = arrays

    def named(self, slot: Slot, inference: int = 0) -> dict[str, Array]:
        found: dict[str, Array] = {}
        for row in self.rows:
            if row["slot"] == slot and row["inference"] == inference:
                array = self.arrays[row["key"]]
                if row["masked"]:
                    array = np.ma.masked_array(array, self.arrays[f"{row['key']}m"])
                found[row["name"]] = array
        return found

    def all(self, slot: Slot, count: int) -> tuple[dict[str, Array], ...]:
        return tuple(self.named(slot, i) for i in range(count))


def write_task(folder: Path, task: HostTask, library: Path, externals: Sequence[ExternalAbi], *, tiles: bool) -> None:
    """Write a folder; it is made, and must be new."""
    folder.mkdir(parents=True)
    store = _Store()
    for name, array in task.arrays.items():
        store.add("array", name, array)
    store.add_all("input", task.inputs)
    store.add_all("fifo", task.fifos)
    store.add_all("output", task.outputs)
    value = {
        "name": task.name,
        "library": str(library),
        "tiles": tiles,
        "externals": [_external_value(e) for e in externals],
        "symbols": dict(task.symbols),
        "schedules": task.schedules,
        "rehearse": task.rehearse,
        "capture": sorted(task.capture),
        "max_steps": task.max_steps,
        "counts": [len(task.inputs), len(task.fifos), len(task.outputs)],
        "arrays": store.rows,
    }
    (folder / TASK).write_text(json.dumps(value), encoding="utf-8")
    (folder / DESIGN).write_bytes(design_to_json([task.design]))
    save_arrays(folder / ARRAYS, store.arrays)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadTask:
    """A task as the child sees it."""

    task: HostTask
    library: Path
    externals: tuple[ExternalAbi, ...]
    tiles: bool


def read_task(folder: Path) -> ReadTask:
    """Read a folder that `write_task` made."""
    value = json.loads((folder / TASK).read_text(encoding="utf-8"))
    stored = _Stored(value["arrays"], load_arrays(folder / ARRAYS, max_bytes=MAX_BYTES))
    inputs, fifos, outputs = value["counts"]
    task = HostTask(
        name=value["name"],
        design=design_from_json((folder / DESIGN).read_bytes())[0],
        arrays=stored.named("array"),
        inputs=stored.all("input", inputs),
        fifos=stored.all("fifo", fifos),
        outputs=stored.all("output", outputs),
        symbols=value["symbols"],
        schedules=value["schedules"],
        rehearse=value["rehearse"],
        capture=frozenset(value["capture"]),
        max_steps=value["max_steps"],
    )
    externals = tuple(_external_of(e) for e in value["externals"])
    return ReadTask(task=task, library=Path(value["library"]), externals=externals, tiles=value["tiles"])


def write_result(
    folder: Path,
    value: Mapping[str, Any],
    outputs: Sequence[Mapping[str, Array]],
    captured: Mapping[str, Array],
) -> None:
    """Write what a run showed; the JSON last and at once, so that it is there only when all of it is."""
    store = _Store()
    store.add_all("output", outputs)
    for name, array in captured.items():
        store.add("captured", name, array)
    save_arrays(folder / OUTPUTS, store.arrays)
    part = folder / f"{RESULT}.part"
    part.write_text(json.dumps({**value, "count": len(outputs), "arrays": store.rows}), encoding="utf-8")
    part.replace(folder / RESULT)


def read_result(folder: Path) -> tuple[dict[str, Any], tuple[dict[str, Array], ...], dict[str, Array]] | None:
    """(values, outputs by inference, captured objects); None where the child did not come so far."""
    path = folder / RESULT
    if not path.exists():
        return None
    value = json.loads(path.read_text(encoding="utf-8"))
    stored = _Stored(value["arrays"], load_arrays(folder / OUTPUTS, max_bytes=MAX_BYTES))
    return value, stored.all("output", value["count"]), stored.named("captured")


def _external_value(external: ExternalAbi) -> dict[str, Any]:
    rows = [
        {"kind": "pointer" if isinstance(p, PointerAbi) else "scalar", **dataclasses.asdict(p)}
        for p in external.parameters
    ]
    return {"symbol": external.symbol, "parameters": rows}


def _external_of(value: Mapping[str, Any]) -> ExternalAbi:
    rows: list[PointerAbi | ScalarAbi] = []
    for row in value["parameters"]:
        fields = {k: v for k, v in row.items() if k != "kind"}
        rows.append(PointerAbi(**fields) if row["kind"] == "pointer" else ScalarAbi(**fields))
    return ExternalAbi(symbol=value["symbol"], parameters=tuple(rows))
