"""Built files of a job, and whether they were made from exactly the generated sources.

The Makefile of the generated folder leaves beside `final.xclbin` and `insts.bin` a `sources.sha256`: lines of
`sha256sum` over the design file, the kernels and `generated.json` as they were when it built.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bringup.backends.generated import INDEX, KERNELS, Generated, folder_of
from bringup.model import Job
from manifest.io import sha256_hex

XCLBIN: Final = "final.xclbin"
INSTS: Final = "insts.bin"
LINK: Final = "sources.sha256"
WORD_BYTES: Final = 4
MAX_LINK_BYTES: Final = 1 << 20
_LINE: Final = re.compile(r"^(?P<sha256>[0-9a-f]{64}) [ *](?P<file>.+)$")


class StaleError(Exception):
    """Built files are absent or not made from what is there now; its text is one line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifacts:
    """What is executed."""

    xclbin: Path
    insts: bytes
    sha256: Mapping[str, str]


def find_artifacts(generated: Generated, job: Job, build: Path, *, dated: bool = True) -> Artifacts:
    """The built files of a job.

    Args:
        generated: the index.
        job: whose.
        build: folder that the Makefile builds in.
        dated: times of the sources count.

    Raises:
        StaleError: they are absent, older than a source, made from other sources, or `insts.bin` is no list of words.
    """
    folder = build / folder_of(job)
    for name in (XCLBIN, INSTS, LINK):
        path = folder / name
        if not path.is_file() or path.stat().st_size == 0:
            where = f"{folder_of(job)}/{name}"
            msg = f"{where}: absent or empty in the build folder; run make all steps in the generated folder"
            raise StaleError(msg)
    changed = generated.changed(job)
    if changed:
        msg = f"{changed[0]}: not as it was emitted; generate again"
        raise StaleError(msg)
    _check_link(generated, job, folder / LINK)
    if dated:
        _check_age(generated, job, folder)
    insts = (folder / INSTS).read_bytes()
    if len(insts) % WORD_BYTES:
        msg = f"{folder_of(job)}/{INSTS}: {len(insts)} bytes, no whole number of instruction words"
        raise StaleError(msg)
    hashes = {name: sha256_hex((folder / name).read_bytes()) for name in (XCLBIN, INSTS)}
    return Artifacts(xclbin=folder / XCLBIN, insts=insts, sha256=hashes)


def needed_sources(generated: Generated, job: Job) -> dict[str, str]:
    """Files that the link has to name: index, design file, and the kernels that the job links."""
    row: Mapping[str, Any] = next(
        (r for r in generated.value.get("jobs", ()) if r.get("design") == job.design_file), {}
    )
    symbols = row.get("kernels", ())
    wanted = {job.design_file, *(f"{KERNELS}/{s}.cc" for s in symbols)}
    wanted |= {n for n in generated.files if n.startswith(f"{KERNELS}/") and n.endswith(".h")}
    return {INDEX: generated.sha256, **{n: generated.files[n] for n in sorted(wanted) if n in generated.files}}


def _check_link(generated: Generated, job: Job, path: Path) -> None:
    if path.stat().st_size > MAX_LINK_BYTES:
        msg = f"{LINK}: larger than {MAX_LINK_BYTES} bytes"
        raise StaleError(msg)
    found = {}
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        match = _LINE.match(line)
        if match is not None:
            found[match["file"]] = match["sha256"]
    for name, wanted in needed_sources(generated, job).items():
        if name not in found:
            msg = f"{folder_of(job)}/{LINK}: does not name {name}; what was built cannot be traced to it"
            raise StaleError(msg)
        if found[name] != wanted:
            msg = f"{folder_of(job)}/{XCLBIN}: built from another {name} (sha256 {found[name][:12]}, now {wanted[:12]})"
            raise StaleError(msg)


def _check_age(generated: Generated, job: Job, folder: Path) -> None:
    """A built file is never older than a source, whatever hashes say."""
    newest = max((generated.root / n).stat().st_mtime_ns for n in needed_sources(generated, job))
    for name in (XCLBIN, INSTS):
        if (folder / name).stat().st_mtime_ns < newest:
            msg = f"{folder_of(job)}/{name}: older than the sources"
            raise StaleError(msg)
