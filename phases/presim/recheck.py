"""Compute phase 2 anew beside a phase 1 that was computed anew, and compare bytes with the port."""

import dataclasses
import io
from datetime import date
from pathlib import Path

from rich.console import Console

from manifest.io import manifest_from_json
from phases import runner
from phases.again import different_files
from phases.pipeline import PHASES
from phases.port import open_port, write_phase, writing
from phases.presim.options import ADOPTED, ADOPTED_OWNER, Arguments, resolve
from phases.presim.records import OWNER, record_files
from phases.presim.run import PHASE, run
from phases.presim.source import MANIFEST


def differences(root: Path, elsewhere: Path, *, today: date | None = None) -> tuple[str, ...]:
    """What a run on the same inputs gives differently, one line per file; reports are not compared.

    Args:
        root: the port, sound and not stale, phase 2 done.
        elsewhere: a port of the same name where phase 1 came out the same.
        today: the day that waivers are judged by, the current one if None.
    """
    port = open_port(root)
    manifest = manifest_from_json(port.read(MANIFEST))
    options = resolve(Arguments(port=root), port, manifest, today=today)
    with writing(elsewhere):
        for name, data in options.person.items():
            (elsewhere / name).write_bytes(data)
        records = record_files(port.read, port.state.files)
        if records:
            write_phase(elsewhere, OWNER, records, {})
        if options.adopted:
            write_phase(elsewhere, ADOPTED_OWNER, {ADOPTED: port.read(ADOPTED)}, {})
        clearance = runner.clear(elsewhere, PHASES[0].name, today=today)
        console = Console(file=io.StringIO())
        again = open_port(elsewhere)
        run(dataclasses.replace(options, out=elsewhere), again, clearance, console, in_ci=False)
    return different_files(port, open_port(elsewhere), PHASE)
