"""The host backend with a memory: a job is run again only where something that it is made of has changed.

Why it is sound: the key of a job holds the bytes of its design file, of the arrays that this loads, of the kernels
that it calls, of all headers, of its inputs and of what is expected; nothing else goes into its outcome but the list
of the folder's hashes, which is made anew. A changed kernel is compiled without those that the job does not call.
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from bringup.backends import BackendOptions, HostBackend
from bringup.backends.generated import KERNELS, Generated, GeneratedError, read_generated
from bringup.execute import ExternalAbi, Library
from bringup.model import Job, Outcome
from manifest.io import sha256_hex

Array = NDArray[Any]
Rows = Sequence[Mapping[str, Array]]
TIMEOUT_S: Final = 60
"""Of a job; one that is sound takes a second or two."""
_STORED: Final = re.compile(r"stored\(\"([^\"]+)\"\)")


class Host:
    """Backends of one session.

    Args:
        work: where kernels are compiled.
        seeds: orders of execution beside round-robin.
        keeps: whether outcomes are kept.
    """

    def __init__(self, work: Path, *, seeds: int = 3, keeps: bool = True) -> None:
        self.work = work
        self.options = BackendOptions(work=work, schedules=seeds, timeout_s=TIMEOUT_S)
        self.keeps = keeps
        self.known: dict[str, Outcome] = {}
        self.whole: dict[str, str] = {}
        self._backends: dict[str, Remembering] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the children."""
        for backend in self._backends.values():
            backend.close()

    def at(self, device: str) -> "Remembering":
        """The backend of a device."""
        return self._backends.setdefault(device, Remembering(device, self.options, self))


class Remembering(HostBackend):
    """See the module's text."""

    def __init__(self, device: str, options: BackendOptions, host: Host) -> None:
        super().__init__(device, options)
        self.host = host

    def run(self, job: Job, inputs: Rows) -> Outcome:
        """See `bringup.model.Backend.run`."""
        try:
            generated = read_generated(job.root)
            key = key_of(generated, job, inputs, _called(generated, job)) if self.host.keeps else ""
        except (GeneratedError, OSError):
            return super().run(job, inputs)
        if key not in self.host.known or not self.host.keeps:
            self.host.known[key] = super().run(job, inputs)
        return replace(self.host.known[key], sources=generated.on_disk(job))

    def library(self, generated: Generated, externals: Sequence[ExternalAbi], called: frozenset[str]) -> Library:
        """All kernels the first time that jobs are seen (sound files), else those that the job calls."""
        row = sha256_hex(json.dumps(generated.value["jobs"], sort_keys=True).encode())
        sources = sha256_hex(b"".join(generated.kernel_sources().values()))
        if self.host.whole.setdefault(row, sources) == sources:
            return super().library(generated, externals, called)
        return self.part(generated, externals, called)


def _called(generated: Generated, job: Job) -> frozenset[str]:
    row = next((r for r in generated.value["jobs"] if r["design"] == job.design_file), {"kernels": ()})
    return frozenset(row["kernels"])


def key_of(generated: Generated, job: Job, inputs: Rows, called: frozenset[str]) -> str:
    """Hash of everything that decides about the outcome of a job."""
    text = generated.read(job.design_file)
    folder = Path(job.design_file).parent
    paths = [_plain(folder / name) for name in _STORED.findall(text.decode())]
    kernels = [n for n in generated.files if n.startswith(f"{KERNELS}/")]
    paths += [n for n in kernels if n.endswith(".h") or Path(n).stem in called]
    rows = generated.value["kernels"]
    index = {"kernels": {s: rows.get(s) for s in sorted(called)}, "device": generated.device}
    index["jobs"] = [r for r in generated.value["jobs"] if r["design"] == job.design_file]
    digest = hashlib.sha256(json.dumps([job.name, index], sort_keys=True).encode() + text)
    for path in sorted(set(paths)):
        digest.update(path.encode() + generated.read(path))
    for named in (*inputs, *job.expected, *job.outputs):
        for name, array in sorted(named.items()):
            digest.update(f"{name} {array.dtype} {array.shape}".encode() + np.ma.getdata(array).tobytes())
            digest.update(np.ma.getmaskarray(array).tobytes())
        digest.update(b";")
    digest.update(f"{len(inputs)} {len(job.expected)} {len(job.outputs)}".encode())
    return digest.hexdigest()


def _plain(path: Path) -> str:
    """A path without `..`."""
    parts: list[str] = []
    for part in path.parts:
        if part == "..":
            parts.pop()
        else:
            parts.append(part)
    return "/".join(parts)
