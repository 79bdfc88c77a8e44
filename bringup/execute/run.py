"""Run lowered designs with compiled kernels in a sanitized child, and say what came of it."""

import contextlib
import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final, Self

from numpy.typing import NDArray

from bringup.execute import task as files
from bringup.execute.compile import Library
from bringup.execute.events import make_page, read_page
from bringup.execute.report import MAX_REPORT_BYTES, Crash, crash_of
from bringup.execute.task import HostTask
from bringup.execute.toolchain import find_toolchain
from manifest.errors import UnavailableError

Array = NDArray[Any]
ROOT: Final = Path(__file__).resolve().parents[2]
TIMEOUT_S: Final = 600.0
GRACE_S: Final = 30.0
ASAN: Final = "detect_leaks=0:abort_on_error=1:redzone=256:quarantine_size_mb=32:hard_rss_limit_mb=6144:color=never"
UBSAN: Final = "print_stacktrace=1:halt_on_error=1:abort_on_error=1:color=never"
NAMES_KEPT: Final = ("PATH", "HOME", "TMPDIR", "LANG", "LC_ALL", "SYSTEMROOT", "VIRTUAL_ENV")


@dataclass(frozen=True, slots=True, kw_only=True)
class HostResult:
    """What a run showed.

    Attributes:
        verdict: of the simulator, or `refused` (the design or its data make no sense) or `crash`.
        text: one line.
        outputs: host tensors by inference.
        captured: objects of the fifos that were asked for.
        crash: of verdict `crash`.
        place: of a fault of a kernel: worker, kernel, argument, element, kind.
        fault: of the simulator, as a mapping; None = none.
        mismatch: likewise.
        sound: it ran to its goal and nothing that it leaves grows.
        compared: elements compared, by fifo or host tensor.
        cycle: waits of a deadlock.
        left: what is left, in words.
        schedules: orders of execution that agree.
        inferences: that reached their goal.
        calls: kernel calls of all schedules.
        foreign: modules that the child had and should not have had.
        seconds: of the simulation in the child.
    """

    verdict: str
    text: str
    outputs: Sequence[Mapping[str, Array]] = ()
    captured: Mapping[str, Array] = field(default_factory=dict)
    crash: Crash | None = None
    place: Mapping[str, Any] | None = None
    fault: Mapping[str, Any] | None = None
    mismatch: Mapping[str, Any] | None = None
    sound: bool = False
    compared: Mapping[str, int] = field(default_factory=dict)
    cycle: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    schedules: int = 0
    inferences: int = 0
    calls: int = 0
    foreign: tuple[str, ...] = ()
    seconds: float = 0.0


class Runner:
    """A server for jobs, started with the first of them; a context manager.

    Args:
        folder: for one folder per job; must exist.
        timeout_s: of one job.
        sanitize: whether the libraries have the sanitizers in them.
    """

    def __init__(self, folder: Path, *, timeout_s: float = TIMEOUT_S, sanitize: bool = True) -> None:
        self.folder = folder.resolve()
        self.timeout_s = timeout_s
        self.sanitize = sanitize
        self.process: subprocess.Popen[bytes] | None = None
        self.pending = b""
        self.count = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the server."""
        process, self.process = self.process, None
        if process is None:
            return
        with contextlib.suppress(OSError):
            _pipe(process.stdin).close()
        try:
            process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        _pipe(process.stdout).close()

    def run(self, task: HostTask, library: Library) -> HostResult:
        """Run one job; whatever it does, the next one can be run.

        Raises:
            UnavailableError: there is no compiler whose run-time libraries the child needs.
            ValueError: the library is not of the runner's kind.
        """
        if library.sanitize != self.sanitize:
            msg = f"{library.path.name}: expected a library with sanitize={self.sanitize}"
            raise ValueError(msg)
        self.count += 1
        folder = self.folder / f"job-{self.count:04}"
        files.write_task(folder, task, library.path.resolve(), library.externals, tiles=library.tiles)
        make_page(folder / files.EVENTS)
        status = self._ask(folder)
        read = files.read_result(folder) if status == 0 else None
        if read is None:
            return _crashed(folder, status, task, library, self.timeout_s)
        value, outputs, captured = read
        return _completed(value, outputs, captured)

    def _ask(self, folder: Path) -> int:
        """Hand a folder to the server and wait; the server is started again if it has ended."""
        process = self._server()
        request = json.dumps({"folder": str(folder), "timeout_s": self.timeout_s}).encode() + b"\n"
        try:
            _pipe(process.stdin).write(request)
            _pipe(process.stdin).flush()
            answer = self._line(process, time.monotonic() + self.timeout_s + GRACE_S)
        except BrokenPipeError:
            answer = b""
        if not answer:
            code = process.poll()
            process.kill()
            self.close()
            return 1 if code is None else code
        return int(json.loads(answer)["status"])

    def _line(self, process: "subprocess.Popen[bytes]", deadline: float) -> bytes:
        """The next line of the server, b"" = it ended or took too long."""
        stream = _pipe(process.stdout)
        while b"\n" not in self.pending:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([stream], [], [], left)[0]:
                return b""
            data = os.read(stream.fileno(), 65536)
            if not data:
                return b""
            self.pending += data
        line, _, self.pending = self.pending.partition(b"\n")
        return line

    def _server(self) -> "subprocess.Popen[bytes]":
        if self.process is not None and self.process.poll() is None:
            return self.process
        self.close()
        self.pending = b""
        with (self.folder / "server").open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "bringup.execute.child"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=self.folder,
                env=child_environment(sanitize=self.sanitize),
            )
        return self.process


def child_environment(*, sanitize: bool) -> dict[str, str]:
    """Environment of the child: nothing but what it needs.

    Raises:
        UnavailableError: there is no compiler, or it has no sanitizer libraries.
    """
    made = {name: os.environ[name] for name in NAMES_KEPT if name in os.environ}
    made |= {"PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}
    made |= {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONSAFEPATH": "1"}
    if sanitize:
        tools = find_toolchain()
        made["LD_PRELOAD"] = f"{tools.library('libasan.so')} {tools.library('libstdc++.so')}"
        made |= {"ASAN_OPTIONS": ASAN, "UBSAN_OPTIONS": UBSAN}
    return made


def _pipe(stream: "IO[bytes] | None") -> "IO[bytes]":
    if stream is None:
        msg = "the child has no pipe"
        raise UnavailableError(msg)
    return stream


def _crashed(folder: Path, status: int, task: HostTask, library: Library, timeout_s: float) -> HostResult:
    stderr = ""
    if (folder / files.STDERR).exists():
        with (folder / files.STDERR).open("rb") as file:
            stderr = file.read(MAX_REPORT_BYTES).decode("utf-8", "replace")
    event = read_page(folder / files.EVENTS, [len(e.pointers) for e in library.externals])
    crash = crash_of(
        status,
        stderr,
        event,
        externals=library.externals,
        workers=[w.name for w in task.design.workers],
        sources=list(library.sources),
        timeout_s=timeout_s,
    )
    return HostResult(verdict="crash", text=crash.text, crash=crash, calls=event.calls)


def _completed(
    value: Mapping[str, Any], outputs: Sequence[Mapping[str, Array]], captured: Mapping[str, Array]
) -> HostResult:
    return HostResult(
        verdict=value["verdict"],
        text=value["text"],
        outputs=outputs,
        captured=captured,
        place=value["place"],
        fault=value.get("fault"),
        mismatch=value.get("mismatch"),
        sound=value.get("sound", False),
        compared=value.get("compared", {}),
        cycle=tuple(value.get("cycle", ())),
        left=tuple(value.get("left", ())),
        schedules=value.get("schedules", 0),
        inferences=value.get("inferences", 0),
        calls=value["calls"],
        foreign=tuple(value["foreign"]),
        seconds=value["seconds"],
    )


def simulate_sources(task: HostTask, library: Library, folder: Path, *, timeout_s: float = TIMEOUT_S) -> HostResult:
    """Run one job with a server of its own.

    Args:
        task: the lowered design with its data.
        library: compiled kernels.
        folder: existing, for the files of the run.
        timeout_s: of the job.
    """
    with Runner(folder, timeout_s=timeout_s, sanitize=library.sanitize) as runner:
        return runner.run(task, library)
