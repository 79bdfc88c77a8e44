"""The process that runs compiled kernels: one server, one fork for each job.

Why forked: a kernel that overruns ends the process, and what a kernel leaves in static memory must not reach the next
job; a fork of a process that has read its modules costs milliseconds. The server does nothing but fork and wait, so
that it survives what its jobs do.

Protocol: a line `{"folder": ..., "timeout_s": ...}` on standard input, a line `{"folder": ..., "status": ...}` on
standard output, `status` as of `os.waitstatus_to_exitcode`.
"""

import json
import os
import resource
import signal
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from bringup.execute import task as files
from bringup.execute.events import EventPage
from bringup.execute.kernels import CompiledKernels
from manifest.errors import RefusedError
from presim.simulate import SimData, SimOptions, SimResult, simulate

FOREIGN: Final = frozenset({"onnx", "onnxruntime"})


def serve() -> None:
    """Fork for every line until standard input ends."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    for line in sys.stdin:
        request = json.loads(line)
        folder = Path(request["folder"])
        child = os.fork()
        if child == 0:
            _job(folder, float(request["timeout_s"]))
        _, status = os.waitpid(child, 0)
        answers.write(json.dumps({"folder": str(folder), "status": os.waitstatus_to_exitcode(status)}) + "\n")
        answers.flush()


def _job(folder: Path, timeout_s: float) -> None:
    """Run a job and end; a kernel that does not return is ended by the alarm."""
    code = 1
    try:
        error = os.open(folder / files.STDERR, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(error, 2)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, timeout_s)
        run_folder(folder)
        code = 0
    finally:
        if code:
            sys.excepthook(*sys.exc_info())
        sys.stderr.flush()
        os._exit(code)


def run_folder(folder: Path) -> None:
    """Read a task, run it, write its result."""
    events = EventPage(folder / files.EVENTS)
    events.stage("loading")
    read = files.read_task(folder)
    task = read.task
    begin = time.monotonic()
    kernels = None
    try:
        kernels = CompiledKernels(
            read.library, read.externals, task.design, task.symbols, events, tiles=read.tiles, rehearse=task.rehearse
        )
        data = SimData(
            kernels=kernels.functions, inputs=task.inputs, arrays=task.arrays, outputs=task.outputs, fifos=task.fifos
        )
        options = SimOptions(
            schedules=task.schedules, capture=task.capture, max_steps=task.max_steps, inferences=len(task.inputs)
        )
        events.stage("simulating")
        result = simulate(task.design, data=data, options=options)
    except (RefusedError, ValueError) as error:
        value: dict[str, Any] = {"verdict": "refused", "text": " ".join(str(error).split())}
        files.write_result(folder, {**_common(kernels, events, begin), **value}, (), {})
    else:
        files.write_result(
            folder, {**_common(kernels, events, begin), **_value(result)}, result.outputs, result.captured
        )
    events.stage("done")


def _common(kernels: CompiledKernels | None, events: EventPage, begin: float) -> dict[str, Any]:
    place = None if kernels is None else kernels.place
    return {
        "place": None if place is None else asdict(place),
        "calls": events.calls,
        "seconds": time.monotonic() - begin,
        "foreign": sorted(FOREIGN & {name.split(".")[0] for name in sys.modules}),
    }


def _value(result: SimResult) -> dict[str, Any]:
    return {
        "verdict": result.verdict,
        "text": result.text,
        "inferences": result.inferences,
        "cycle": [w.line() for w in result.cycle or result.chain],
        "left": [f"{left.kind} of fifo {left.fifo!r} at {left.where}: {left.why}" for left in result.left],
        "sound": result.sound,
        "fault": None if result.fault is None else asdict(result.fault),
        "mismatch": None if result.mismatch is None else asdict(result.mismatch),
        "compared": dict(result.compared),
        "operations": result.operations,
        "schedules": result.schedules,
        "notes": list(result.notes),
    }


if __name__ == "__main__":
    serve()
