"""What backends are told."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendOptions:
    """Options of all backends; each reads its own.

    Attributes:
        work: folder for what is built and run; None = a temporary one that goes with the backend.
        schedules: of the host, orders of execution beside round-robin.
        timeout_s: of one job.
        lower_timeout_s: of running a design file.
        build: of xrt: where the Makefile put its results; None = `build` in the generated folder.
        dated: of xrt: a built file that is older than a source is stale; False where the sources are a copy made
            now, whose times say nothing: hashes alone decide.
        recordings: of replay: folder of recordings.
        record: of xrt: folder that recordings are written to; None = none are.
    """

    work: Path | None = None
    schedules: int = 3
    timeout_s: float = 600.0
    lower_timeout_s: float = 120.0
    build: Path | None = None
    dated: bool = True
    recordings: Path | None = None
    record: Path | None = None
