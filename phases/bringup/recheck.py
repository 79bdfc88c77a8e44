"""Compute phase 3 anew beside phases that were computed anew, and compare bytes with the port."""

import dataclasses
import io
from datetime import date
from pathlib import Path
from typing import Final

from rich.console import Console

from bringup.backends import BACKENDS
from bringup.model import Unavailable
from manifest.errors import UnavailableError
from phases import runner
from phases.again import different_files
from phases.bringup.options import Arguments, last_options, resolve
from phases.bringup.run import PHASE, run
from phases.port import open_port, writing

ABOVE: Final = "presim"


def differences(root: Path, elsewhere: Path, *, today: date | None = None) -> tuple[str, ...]:
    """What a run on the same inputs gives differently, one line per file; reports are not compared.

    What a device showed is not in the port, so it cannot come out again without the device or the recordings.

    Args:
        root: the port, sound and not stale, phase 3 done.
        elsewhere: a port of the same name where phases 1 and 2 came out the same.
        today: the day that waivers are judged by, the current one if None.

    Raises:
        UnavailableError: phase 3 judged recordings, or a device that is not here.
    """
    port = open_port(root)
    if last_options(port)["backend"] == "replay":
        msg = "phase 3 of the port judged recordings, which are not in it; remedy: run phases.bringup on them again"
        raise UnavailableError(msg)
    options = resolve(Arguments(port=root), port, today=today)
    with writing(elsewhere):
        for name, data in options.person.items():
            target = elsewhere / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        if options.backend == "xrt" and options.level == "hardware":
            found = BACKENDS["xrt"](port.info.device, options.backend_options).identity()
            if isinstance(found, Unavailable):
                msg = f"phase 3 of the port ran on a device: {found.what}; expected {found.looked_for}"
                raise UnavailableError(msg)
        clearance = runner.clear(elsewhere, ABOVE, today=today)
        console = Console(file=io.StringIO())
        run(dataclasses.replace(options, out=elsewhere), open_port(elsewhere), clearance, console, in_ci=False)
    return different_files(port, open_port(elsewhere), PHASE)
