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
from manifest.errors import RefusedError
from manifest.io import manifest_from_json
from phases import runner
from phases.bringup.options import Arguments as BringupArguments
from phases.bringup.options import resolve as resolve_bringup
from phases.bringup.run import run as run_bringup
from phases.pipeline import phase_named
from phases.port import Port, open_port, read_person, write_phase, writing
from phases.presim.options import Arguments as PresimArguments
from phases.presim.options import resolve as resolve_presim
from phases.presim.planning import given
from phases.presim.run import run as run_presim
from phases.presim.source import MANIFEST
from phases.state import is_person
from presim.design import Design

BASELINE = "baseline"


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """Gates of a candidate.

    Attributes:
        presim: its gate, None where phase 2 refused the design.
        bringup: its gate, None where presim did not pass or phase 3 refused the design.
        refusal: the first problem of a refusal, "" = none.
    """

    presim: GateReport | None
    bringup: GateReport | None
    refusal: str = ""

    @property
    def words(self) -> tuple[str, str]:
        """What is said of both gates; "" = not run."""
        refused = f"FAIL: refused: {self.refusal}"
        if self.presim is None:
            return refused, ""
        if not self.presim.passed:
            return str(self.presim.verdict), ""
        return str(self.presim.verdict), refused if self.bringup is None else self.bringup.words


def prove(port: Port, designs: Sequence[Design], folder: Path, work: Path) -> Proof:
    """Run phases 2 and 3 on designs.

    Args:
        port: its baseline files are copied; nothing is written to it.
        designs: the candidate, one for each dispatch on the array.
        folder: does not exist yet; becomes the scratch port.
        work: where kernels are compiled.

    Raises:
        UpstreamError: the baseline gate does not pass there.
        UnavailableError: there is no compiler.
    """
    presim: GateReport | None = None
    with writing(folder):
        copy_baseline(port, folder)
        try:
            presim = _presim(port, designs, folder)
            bringup = _bringup(port, folder, work) if presim.passed else None
        except RefusedError as error:
            return Proof(presim=presim, bringup=None, refusal=error.problems[0].line())
    return Proof(presim=presim, bringup=bringup)


def _presim(port: Port, designs: Sequence[Design], folder: Path) -> GateReport:
    manifest = manifest_from_json(port.read(MANIFEST))
    options = dataclasses.replace(resolve_presim(PresimArguments(port=port.root), port, manifest), out=folder)
    clearance = runner.clear(folder, BASELINE)
    run_presim(options, open_port(folder), clearance, quiet(), planner=given(designs), in_ci=False)
    return load_report((folder / "gates/presim.json").read_bytes())


def _bringup(port: Port, folder: Path, work: Path) -> GateReport:
    options = resolve_bringup(BringupArguments(port=folder, backend="host", level="host"), open_port(folder))
    backend = HostBackend(port.info.device, BackendOptions(work=work, schedules=options.schedules))
    try:
        clearance = runner.clear(folder, "presim")
        run_bringup(options, open_port(folder), clearance, quiet(), host=backend, in_ci=False)
    finally:
        backend.close()
    return load_report((folder / "gates/bringup.json").read_bytes())


def quiet() -> Console:
    """A console that keeps what it is told to itself."""
    return Console(file=io.StringIO())


def copy_baseline(port: Port, folder: Path) -> None:
    """The files of phase 1 and the person's own, kernels too, committed as phase 1 did; the caller holds `folder`."""
    person = read_person(port.root, phase_named("bringup").reads)
    for name, data in person.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    names = [n for n in port.state.owners.get(BASELINE, ()) if n in port.state.files and not is_person(n)]
    judged = {n: data for n, data in person.items() if n in phase_named(BASELINE).reads}
    write_phase(folder, BASELINE, {name: port.read(name) for name in names}, judged)
