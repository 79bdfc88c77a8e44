"""From designs to the files of the generated folder; pure, and closed without the gates above."""

import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from bringup.emit.board import board_files
from bringup.emit.budget import memory_problems
from bringup.emit.design_file import DesignText, design_file, of_piece
from bringup.emit.kernels import INCLUDE, Kernels, kernels_of
from bringup.emit.model import PROFILE, Array, EmitInput, StepDesign
from bringup.emit.names import folder_name, identifier
from bringup.emit.sequence import host_tensors
from bringup.kernels import KERNELS
from bringup.kernels.model import KernelModule
from manifest.clearance import Clearance
from manifest.errors import Problem, RefusedError, UpstreamError
from manifest.io import canonical_json, sha256_hex
from presim.design import Design

INDEX: Final = "generated.json"
INDEX_VERSION: Final = 1
NEEDED_GATE: Final = "presim"


def emit(given: EmitInput, clearance: Clearance, *, modules: Mapping[str, KernelModule] = KERNELS) -> dict[str, bytes]:
    """The generated folder, path -> content; the same input gives the same bytes.

    Args:
        given: designs with everything that they are made of.
        clearance: of the gate of phase 2, for exactly these manifest and design bytes.
        modules: kernel emitters by type.

    Raises:
        UpstreamError: the gates do not speak for these bytes.
        RefusedError: what cannot be emitted, all of it.
    """
    clearance.verify(given.manifest_bytes, given.design_bytes)
    if NEEDED_GATE not in (phase for phase, _ in clearance.gates):
        msg = f"[GATE-CHAIN] clearance: expected one from gates/{NEEDED_GATE}.json; got none; remedy: run the phase"
        raise UpstreamError(msg)
    return _Emitter(given, modules).files()


def step_folder(step: StepDesign) -> str:
    """Folder of a step: `<dispatch>/steps/<NN>_<kind>_<name>`."""
    return f"{step.dispatch}/steps/{step.order:02d}_{step.kind}_{folder_name(step.name)}"


@dataclass(frozen=True, slots=True)
class _Whole:
    """A dispatch, emitted."""

    design: Design
    kernels: Kernels
    weights: Mapping[str, str]


class _Emitter:
    """Collects files."""

    def __init__(self, given: EmitInput, modules: Mapping[str, KernelModule]) -> None:
        self.given = given
        self.modules = modules
        self.out: dict[str, bytes] = {}
        self.jobs: list[dict[str, Any]] = []
        self.kernels: dict[str, Any] = {}
        self.hashes = (
            f"manifest sha256 {sha256_hex(given.manifest_bytes)}",
            f"design sha256 {sha256_hex(given.design_bytes)}",
            f"toolchain profile mlir-aie {PROFILE}",
        )

    def files(self) -> dict[str, bytes]:
        wholes = self.wholes()
        for dispatch, whole in wholes.items():
            self.dispatch(dispatch, whole)
        for step in self.given.steps:
            self.step(step, wholes[step.dispatch])
        self.golden(wholes)
        for name, text in board_files(self.given, self.jobs, tuple(self.kernels), self.hashes).items():
            self.out[name] = text.encode("utf-8")
        self.out[INDEX] = self.index()
        return dict(sorted(self.out.items()))

    def wholes(self) -> dict[str, _Whole]:
        """Kernels of every dispatch; all problems together."""
        problems: list[Problem] = []
        found: dict[str, _Whole] = {}
        for design in self.given.designs:
            try:
                found[design.dispatch] = self.whole(design)
            except RefusedError as error:
                problems += error.problems
        if problems:
            raise RefusedError(tuple(dict.fromkeys(problems)))
        return found

    def whole(self, design: Design) -> _Whole:
        given = self.given
        constants = given.constants.get(design.dispatch, {})
        kernels = kernels_of(design, given.manifest, given.device, constants, self.modules)
        packed = kernels.design or design
        if problems := memory_problems(packed, given.device):
            raise RefusedError(tuple(problems))
        names = [b.name for b in packed.buffers] + [f.name for f in packed.fifos]
        stored = [name for name in names if name in kernels.packed]
        weights = {name: f"weights/{number:03d}.npy" for number, name in enumerate(stored)}
        return _Whole(packed, kernels, weights)

    def dispatch(self, name: str, whole: _Whole) -> None:
        for source in whole.kernels.sources.values():
            self.text(f"kernels/{source.symbol}.cc", source.text, "//")
            for header in source.headers:
                self.text(f"kernels/{header}", (INCLUDE / header).read_text(encoding="utf-8"), "//")
        for row in whole.kernels.rows.values():
            source = whole.kernels.sources[row.name]
            self.kernels[source.symbol] = {
                "row": row.name,
                "op": row.op,
                "type": row.type,
                "rounding": row.rounding,
                "saturation": row.saturation,
                "parameters": [
                    {"name": p.name, "role": p.role, "dtype": p.dtype, "shape": list(p.shape), "writes": p.writes}
                    for p in source.parameters
                ],
                "scalars": list(source.scalars),
                "vectorized": source.vectorized,
                "notes": list(source.notes),
            }
        for part, path in whole.weights.items():
            self.out[f"{name}/{path}"] = npy_bytes(whole.kernels.packed[part])
        self.design(name, whole.design, whole, weights="", title=f"Dispatch {name}", kind="dispatch")

    def step(self, step: StepDesign, whole: _Whole) -> None:
        piece = of_piece(whole.design, step.design)
        title = f"Piece of dispatch {step.dispatch} ({step.kind})"
        folder = step_folder(step)
        self.design(folder, piece, whole, weights="../../", title=title, kind=step.kind, name=step.name)

    def design(
        self, folder: str, design: Design, whole: _Whole, *, weights: str, title: str, kind: str, name: str = ""
    ) -> None:
        names = {b.name for b in design.buffers} | {f.name for f in design.fifos}
        given = DesignText(
            design=design,
            manifest=self.given.manifest,
            arch=self.given.device.arch,
            rows=whole.kernels.rows,
            sources=whole.kernels.sources,
            files={n: f"{weights}{path}" for n, path in whole.weights.items() if n in names},
            title=title,
            header=self.hashes,
        )
        path = f"{folder}/design.py"
        self.out[path] = design_file(given).encode("utf-8")
        called = {k.name for k in design.kernels}
        self.jobs.append(
            {
                "design": path,
                "folder": folder,
                "dispatch": design.dispatch,
                "kind": kind,
                "name": name,
                "golden": self.golden_of(design) if kind == "dispatch" else {},
                "kernels": sorted(s.symbol for n, s in whole.kernels.sources.items() if n in called),
                "tensors": [
                    {
                        "name": t.tensor,
                        "parameter": t.parameter,
                        "dtype": t.dtype,
                        "elements": t.elements,
                        "filled": t.filled,
                        "drained": t.drained,
                        "object": list(_object(design, t.tensor)),
                    }
                    for t in host_tensors(design)
                ],
                "names": {identifier(n): n for n in sorted(_part_names(design)) if identifier(n) != n},
            }
        )

    def golden_of(self, design: Design) -> dict[str, str]:
        """Files of the golden arrays of a dispatch, by `<inference>/<tensor>`."""
        found = {}
        for key in self.given.golden:
            dispatch, inference, tensor = key.split("/", 2)
            if dispatch == design.dispatch:
                found[f"{inference}/{tensor}"] = golden_path(dispatch, int(inference), tensor)
        return found

    def golden(self, wholes: Mapping[str, _Whole]) -> None:
        """Golden arrays, their sizes held against what the sequence moves."""
        sizes = {(d, t.tensor): t for d, whole in wholes.items() for t in host_tensors(whole.design)}
        problems = []
        for key, array in sorted(self.given.golden.items()):
            dispatch, inference, tensor = key.split("/", 2)
            expected = sizes.get((dispatch, tensor))
            form = (array.dtype.name, array.shape)
            if expected is None or form != (expected.dtype, (expected.elements,)):
                want = "none" if expected is None else f"{expected.dtype} ({expected.elements},)"
                what = "a golden array in another form than the host moves"
                problems.append(Problem(code="EMIT-GOLDEN", where=key, what=what, expected=want, got=str(form)))
                continue
            self.out[golden_path(dispatch, int(inference), tensor)] = npy_bytes(array)
        if problems:
            raise RefusedError(tuple(problems))

    def text(self, path: str, text: str, mark: str) -> None:
        """A source with the hashes in front; the same path twice has to be the same text."""
        lines = "".join(f"{mark} {line}\n" for line in self.hashes)
        data = (lines + text).encode("utf-8")
        if self.out.setdefault(path, data) != data:
            what = "two kernels of different dispatches have one file"
            raise RefusedError((Problem(code="EMIT-KERNEL", where=path, what=what),))

    def index(self) -> bytes:
        given = self.given
        return canonical_json(
            {
                "schema_version": INDEX_VERSION,
                "profile": PROFILE,
                "device": given.device.name,
                "manifest_sha256": sha256_hex(given.manifest_bytes),
                "design_sha256": sha256_hex(given.design_bytes),
                "files": {name: sha256_hex(data) for name, data in sorted(self.out.items())},
                "kernels": self.kernels,
                "jobs": self.jobs,
                "golden": sorted(name for name in self.out if "/golden/" in name),
            }
        )


def golden_path(dispatch: str, inference: int, tensor: str) -> str:
    """File of a golden array: `<dispatch>/golden/<inference>_<tensor>.npy`."""
    return f"{dispatch}/golden/{inference}_{folder_name(tensor)}.npy"


def npy_bytes(array: Array) -> bytes:
    """An array as `.npy`, without pickle."""
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.ascontiguousarray(array), version=(1, 0), allow_pickle=False)
    return buffer.getvalue()


def _object(design: Design, tensor: str) -> tuple[int, ...]:
    """Shape of the objects in which a host tensor enters or leaves."""
    transfer = next(t for t in design.sequence if t.tensor == tensor)
    fifo = next(f for f in design.fifos if f.name == transfer.fifo)
    return fifo.shape if transfer.direction == "fill" else fifo.consumer_shape or fifo.shape


def _part_names(design: Design) -> Iterable[str]:
    names = [w.name for w in design.workers] + [f.name for f in design.fifos] + [b.name for b in design.buffers]
    return {*names, *(t.tensor for t in design.sequence)}
