"""Phases 2 and 3 on a candidate, in a port of its own: same baseline files, the candidate as the design.

Why whole phases and not a shortcut: a winner is called better only with gates of its own, made by the code that made
those of the design before.
"""

import dataclasses
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from bringup.backends import BackendOptions, HostBackend
from checklists.model import GateReport
from checklists.report import load_report
from manifest.io import manifest_from_json
from phases import runner
from phases.bringup.options import Arguments as BringupArguments
from phases.bringup.options import resolve as resolve_bringup
from phases.bringup.run import run as run_bringup
from phases.port import Port, open_port, write_phase, writing
from phases.presim.options import Arguments as PresimArguments
from phases.presim.options import resolve as resolve_presim
from phases.presim.planning import given
from phases.presim.run import run as run_presim
from phases.presim.source import MANIFEST
from presim.design import Design

BASELINE = "baseline"


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """Gates of a candidate.

    Attributes:
        presim: its gate.
        bringup: its gate, None where presim did not pass.
    """

    presim: GateReport
    bringup: GateReport | None


def prove(port: Port, designs: Sequence[Design], folder: Path, work: Path) -> Proof:
    """Run phases 2 and 3 on designs.

    Args:
        port: its baseline files are copied; nothing is written to it.
        designs: the candidate, one for each dispatch on the array.
        folder: does not exist yet; becomes the scratch port.
        work: where kernels are compiled.

    Raises:
        RefusedError: something of a design cannot be emitted.
        UpstreamError: the baseline gate does not pass there.
        UnavailableError: there is no compiler.
    """
    manifest = manifest_from_json(port.read(MANIFEST))
    quiet = Console(file=io.StringIO())
    with writing(folder):
        copy_baseline(port, folder)
        opened = open_port(folder)
        options = resolve_presim(PresimArguments(port=port.root), port, manifest)
        options = dataclasses.replace(options, out=folder)
        clearance = runner.clear(folder, BASELINE)
        run_presim(options, opened, clearance, quiet, planner=given(designs), in_ci=False)
        presim = load_report((folder / "gates/presim.json").read_bytes())
        if not presim.passed:
            return Proof(presim=presim, bringup=None)
        asked = resolve_bringup(BringupArguments(port=folder, backend="host", level="host"), open_port(folder))
        backend = HostBackend(port.info.device, BackendOptions(work=work, schedules=asked.schedules))
        try:
            clearance = runner.clear(folder, "presim")
            run_bringup(asked, open_port(folder), clearance, quiet, host=backend, in_ci=False)
        finally:
            backend.close()
    return Proof(presim=presim, bringup=load_report((folder / "gates/bringup.json").read_bytes()))


def copy_baseline(port: Port, folder: Path) -> None:
    """The files of phase 1 and the person's own, committed as phase 1 did; the caller holds `folder`."""
    names = [n for n in port.state.owners.get(BASELINE, ()) if n in port.state.files]
    person = {n: (port.root / n).read_bytes() for n in names if (port.root / n).is_file() and _is_person(n)}
    for name, data in person.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    files = {name: port.read(name) for name in names if name not in person}
    write_phase(folder, BASELINE, files, person)


def _is_person(name: str) -> bool:
    return name in ("port.toml", "waivers.toml") or name.startswith("kernels/")
