"""A generated folder in small: one dispatch that copies vectors, with everything that the backends read."""

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from bringup.emit.names import emitted_names
from bringup.kernels.model import symbol_of
from bringup.model import Job
from manifest.io import canonical_json, sha256_hex
from presim.design import Call, Design, Loop
from tests.bringup.execute.compiled import move_design, rows
from tests.presim.sketches import Array

DESIGN_FILE = "d0/design.py"
MOVE = """#include <aie_api/aie.hpp>
extern "C" void move(const int32_t *__restrict x, int32_t *__restrict y) {
  for (int i = 0; i < 4; ++i) y[i] = x[i];
}
"""


@dataclass(frozen=True)
class Function:
    symbol: str
    arg_types: tuple[Any, ...]


@dataclass(frozen=True)
class Lowered:
    """What a design file lowers to, made from the plan."""

    design: Design
    arrays: Mapping[str, Array] = field(default_factory=dict)
    externals: tuple[Function, ...] = (Function("move", (("int32", (4,)), ("int32", (4,)))),)


def lowered(design: Design) -> Design:
    """A plan under the names of its design file."""

    def named(step: Any) -> Any:
        if isinstance(step, Loop):
            return replace(step, body=tuple(map(named, step.body)))
        return replace(step, kernel=symbol_of(step.kernel)) if isinstance(step, Call) else step

    made = emitted_names(design)
    workers = tuple(replace(w, name=w.name, program=tuple(map(named, w.program))) for w in made.workers)
    kernels = tuple(replace(k, name=symbol_of(k.name), op="", type="external", rounding="") for k in made.kernels)
    return replace(made, workers=workers, kernels=kernels)


def parameter(name: str, role: str, *, writes: bool = False, dtype: str = "int32", elements: int = 4) -> dict[str, Any]:
    return {"name": name, "role": role, "dtype": dtype, "shape": [elements], "writes": writes}


def index_of(files: Mapping[str, bytes], *, device: str = "npu2", elements: int = 16) -> dict[str, Any]:
    tensors = [
        {"name": n, "parameter": n, "dtype": "int32", "elements": elements, "filled": n == "x", "drained": n == "y"}
        for n in ("x", "y")
    ]
    kernel = {
        "parameters": [parameter("x", "object_in"), parameter("y", "object_out", writes=True)],
        "scalars": [],
    }
    return {
        "schema_version": 1,
        "device": device,
        "manifest_sha256": "1" * 64,
        "design_sha256": "2" * 64,
        "files": {name: sha256_hex(data) for name, data in files.items()},
        "kernels": {"move": kernel},
        "jobs": [{"design": DESIGN_FILE, "folder": "d0", "kernels": ["move"], "tensors": tensors}],
    }


def write_folder(root: Path, *, kernel: str = MOVE, device: str = "npu2", **index: Any) -> Path:
    """Write the generated folder."""
    files = {"kernels/move.cc": kernel.encode(), DESIGN_FILE: b"# a design file\n", "d0/weights/0.npy": b"w"}
    for name, data in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)
    (root / "generated.json").write_bytes(canonical_json({**index_of(files, device=device), **index}))
    return root


def job_in(root: Path, *, device: str = "npu2", **changes: Any) -> Job:
    own: dict[str, Any] = {
        "name": "d0/00_dispatch_d0",
        "kind": "dispatch",
        "dispatch": "d0",
        "design": replace(move_design(), device=device),
        "root": root,
        "design_file": DESIGN_FILE,
        "expected": [{"y": x} for x in rows()],
        "outputs": [{"y": x.reshape(-1)} for x in rows()],
        **changes,
    }
    return Job(**own)


def inputs() -> list[dict[str, Array]]:
    return [{"x": x.reshape(-1)} for x in rows()]


def write_build(root: Path, *, link: Sequence[str] | None = None, insts: bytes = b"\1\0\0\0" * 4) -> Path:
    """What the Makefile leaves, newer than the sources."""
    folder = root / "build" / "d0"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "final.xclbin").write_bytes(b"xclbin2")
    (folder / "insts.bin").write_bytes(insts)
    names = ("generated.json", "kernels/move.cc", DESIGN_FILE) if link is None else link
    lines = [f"{hashlib.sha256((root / n).read_bytes()).hexdigest()}  {n}\n" for n in names]
    (folder / "sources.sha256").write_text("".join(lines))
    newest = max(p.stat().st_mtime_ns for p in root.rglob("*") if p.is_file())
    for path in folder.iterdir():
        os.utime(path, ns=(newest + 1, newest + 1))
    return folder


def equal(outcome: Any) -> bool:
    return all(
        np.array_equal(got["y"].reshape(-1), want.reshape(-1))
        for got, want in zip(outcome.outputs, rows(), strict=True)
    )
