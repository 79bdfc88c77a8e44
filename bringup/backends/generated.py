"""The generated folder as backends read it: its index, held to a form, never trusted."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Final

from bringup.execute import ExternalAbi, PointerAbi, ScalarAbi
from bringup.execute.abi import Access
from bringup.model import Job
from manifest.io import sha256_hex
from presim.steps import elements_of

INDEX: Final = "generated.json"
KERNELS: Final = "kernels"
MAX_INDEX_BYTES: Final = 64 << 20
MAX_FILE_BYTES: Final = 1 << 30


class GeneratedError(Exception):
    """The generated folder is not what the emitter writes; its text is one line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostTensor:
    """A buffer of the host, in the order of the sequence's parameters."""

    name: str
    dtype: str
    elements: int
    filled: bool
    drained: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Generated:
    """The index of a generated folder.

    Attributes:
        root: the folder.
        device: that it is for.
        manifest_sha256, design_sha256: that it was made from.
        sha256: of the index itself.
        files: path -> sha256 as emitted.
        value: the whole index.
    """

    root: Path
    device: str
    manifest_sha256: str
    design_sha256: str
    sha256: str
    files: Mapping[str, str]
    value: Mapping[str, Any]

    def externals(self) -> tuple[ExternalAbi, ...]:
        """Signatures of all kernels.

        Raises:
            GeneratedError: a row is not understood.
        """
        try:
            return tuple(_external(symbol, row) for symbol, row in sorted(self.value[KERNELS].items()))
        except (KeyError, TypeError, ValueError) as error:
            msg = f"{INDEX}: kernels: {error}"
            raise GeneratedError(msg) from error

    def scalars(self) -> Mapping[str, tuple[str, ...]]:
        """Names of the scalars of every symbol, in C order."""
        return {symbol: tuple(row["scalars"]) for symbol, row in self.value[KERNELS].items()}

    def tensors(self, job: Job) -> tuple[HostTensor, ...]:
        """Buffers of the host of one job.

        Raises:
            GeneratedError: the index does not have the job.
        """
        for row in self.value.get("jobs", ()):
            if row.get("design") == job.design_file:
                names = ("name", "dtype", "elements", "filled", "drained")
                return tuple(HostTensor(**{n: t[n] for n in names}) for t in row["tensors"])
        msg = f"{INDEX}: no job for {job.design_file}"
        raise GeneratedError(msg)

    def used_by(self, job: Job) -> dict[str, str]:
        """Files that a job is built from, as emitted: its design, its arrays, all kernels."""
        inside = (f"{KERNELS}/", f"{job.dispatch}/weights/")
        return {n: h for n, h in self.files.items() if n == job.design_file or n.startswith(inside)}

    def on_disk(self, job: Job) -> dict[str, str]:
        """The same files as they are now; a file that is gone is absent."""
        return {n: sha256_hex(self.read(n)) for n in sorted(self.used_by(job)) if (self.root / n).is_file()}

    def changed(self, job: Job) -> tuple[str, ...]:
        """Files of a job that are not as they were emitted."""
        now = self.on_disk(job)
        return tuple(n for n, emitted in sorted(self.used_by(job).items()) if now.get(n) != emitted)

    def kernel_sources(self) -> dict[str, bytes]:
        """Kernels and headers, by path from the folder."""
        return {n: self.read(n) for n in sorted(self.files) if n.startswith(f"{KERNELS}/")}

    def read(self, name: str) -> bytes:
        """A file of the folder.

        Raises:
            GeneratedError: it is absent, too large or outside.
        """
        path = self.root / name
        if ".." in PurePosixPath(name).parts or not path.is_file() or path.stat().st_size > MAX_FILE_BYTES:
            msg = f"{name}: absent, too large or outside of the generated folder"
            raise GeneratedError(msg)
        return path.read_bytes()


def folder_of(job: Job) -> str:
    """Folder of a job's design file, relative to the generated folder."""
    return PurePosixPath(job.design_file).parent.as_posix()


def read_generated(root: Path) -> Generated:
    """Read the index.

    Raises:
        GeneratedError: it is absent or in another form.
    """
    path = root / INDEX
    if not path.is_file() or path.stat().st_size > MAX_INDEX_BYTES:
        msg = f"{INDEX}: absent or too large"
        raise GeneratedError(msg)
    data = path.read_bytes()
    try:
        value = json.loads(data)
        found = Generated(
            root=root,
            device=str(value["device"]),
            manifest_sha256=str(value["manifest_sha256"]),
            design_sha256=str(value["design_sha256"]),
            sha256=sha256_hex(data),
            files={str(k): str(v) for k, v in value["files"].items()},
            value=value,
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        msg = f"{INDEX}: not what the emitter writes ({error})"
        raise GeneratedError(msg) from error
    return found


def _external(symbol: str, row: Mapping[str, Any]) -> ExternalAbi:
    pointers = [
        PointerAbi(
            dtype=p["dtype"], elements=elements_of(p["shape"]), access=_access(p["role"], p["writes"]), name=p["name"]
        )
        for p in row["parameters"]
    ]
    scalars = [ScalarAbi(name=name) for name in row["scalars"]]
    return ExternalAbi(symbol=symbol, parameters=(*pointers, *scalars), source=f"{KERNELS}/{symbol}.cc")


def _access(role: str, writes: bool) -> Access:
    if not writes:
        return "in"
    return "out" if role == "object_out" else "inout"
