"""Compute phase 1 anew from the recorded model and data, elsewhere, and compare bytes with the port."""

import dataclasses
import io
from datetime import date
from pathlib import Path

from rich.console import Console

from manifest.errors import UpstreamError
from phases.again import different_files
from phases.baseline.options import Arguments, resolve
from phases.baseline.run import run
from phases.exit_codes import GATE_NOT_PASSED, OK
from phases.port import open_port, writing


def differences(root: Path, scratch: Path, *, today: date | None = None) -> tuple[str, ...]:
    """What a run on the same inputs gives differently, one line per file; reports are not compared.

    Args:
        root: the port, sound and not stale.
        scratch: an empty folder for the second port.
        today: the day that waivers are judged by, the current one if None.

    Raises:
        UpstreamError: model or data is not there any more, so that nothing can be computed.
    """
    port = open_port(root)
    for role, source in port.info.sources:
        if not source.locate(root).is_file():
            msg = f"{source.path}: {role}: not there, so a rerun is impossible"
            raise UpstreamError(msg)
    options = resolve(Arguments(model=root), today=today)
    elsewhere = scratch / root.resolve().name
    with writing(elsewhere):
        code = run(
            dataclasses.replace(options, out=elsewhere, port_base=root), Console(file=io.StringIO()), in_ci=False
        )
    if code not in (OK, GATE_NOT_PASSED):
        return (f"gates/baseline.json: rerun: phase 1 ended with exit {code}",)
    return different_files(port, open_port(elsewhere), "baseline")
