"""Puts one fault into the design of a real port, runs phase 2 on it, and says which gate item noticed."""

import contextlib
import io
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

from rich.console import Console

from checklists.report import load_report
from manifest.clearance import Clearance
from manifest.device import Device
from manifest.errors import RefusedError, UpstreamError
from manifest.io import manifest_from_json
from phases import runner
from phases.baseline.__main__ import main as baseline
from phases.exit_codes import exit_code_of
from phases.pipeline import PHASES
from phases.port import open_port, writing
from phases.presim import simulation
from phases.presim.options import PresimOptions
from phases.presim.planning import plan_all
from phases.presim.run import run as run_presim
from phases.presim.source import MANIFEST, Source
from presim.design import Design
from presim.directives import Directives, directives_of
from presim.packing import pack_constants
from tests.presim_faults.edits import Edit, Repack

EXAMPLES: Final = Path(__file__).resolve().parents[2] / "examples"
TODAY: Final = date(2026, 3, 1)
GATE: Final = "gates/presim.json"
SCHEDULES: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Base:
    """A model, device and directives whose design a fault is put into."""

    folder: str
    model: str
    data: str
    device: str = "npu2"
    directives: Mapping[str, Any] = field(default_factory=dict)


BASES: Final[Mapping[str, Base]] = {
    "digits_cnn": Base(folder="digits", model="digits_cnn.onnx", data="digits.npz"),
    "branching": Base(folder="branching", model="branching.onnx", data="branching.npz"),
    "branching, two halves": Base(
        folder="branching",
        model="branching.onnx",
        data="branching.npz",
        directives={"trunk_fc": {"parallelism": {"cas_num": 2}}},
    ),
    "branching, cascade": Base(
        folder="branching",
        model="branching.onnx",
        data="branching.npz",
        directives={"trunk_fc": {"parallelism": {"cas_length": 2}}},
    ),
    "branching on vek280": Base(folder="branching", model="branching.onnx", data="branching.npz", device="vek280"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Something broken on purpose, and who has to notice it with which words.

    Attributes:
        id: short name.
        breaks: what is wrong, in words.
        base: key of `BASES`.
        edit: of the design of the first dispatch, None where only constants are wrong.
        repack: of the constants on the tiles, None where they are right.
        items: codes of the items that have to be FAIL.
        words: all of them have to stand in the summary of each of `items`, or in the refusal.
        exit: expected exit code; 2 and 3 are refusals.
        survives: why no item can notice, "" where one must.
    """

    id: str
    breaks: str
    base: str = "branching"
    edit: Edit | None = None
    repack: Repack | None = None
    items: tuple[str, ...] = ()
    words: tuple[str, ...]
    exit: int = 1
    survives: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What phase 2 said: exit code, refusal or "", gate verdict or "", (verdict, summary) by item."""

    exit: int
    refusal: str = ""
    verdict: str = ""
    items: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    @property
    def failed(self) -> tuple[str, ...]:
        """Items that are FAIL."""
        return tuple(code for code, (verdict, _) in self.items.items() if verdict == "FAIL")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A fault and what was said; `missing` is what ought to have been said and was not, empty = as expected."""

    fault: Fault
    said: Said
    missing: tuple[str, ...]

    @property
    def as_expected(self) -> bool:
        """Whether the right item named the right place, or a known survivor survived."""
        return not self.missing

    @property
    def caught(self) -> bool:
        """Whether an item or a refusal noticed."""
        return self.as_expected and not self.fault.survives

    @property
    def excerpt(self) -> str:
        """Summary of the first expected item, or of the first that is FAIL, or the refusal."""
        code = next((c for c in (*self.fault.items, *self.said.failed) if c in self.said.items), "")
        return self.said.items[code][1] if code else self.said.refusal


def judge(fault: Fault, said: Said) -> Outcome:
    """Hold what was said against what had to be said, word for word."""
    if fault.survives:
        missing = [f"survives, but {code} noticed" for code in said.failed]
        missing += [f"survives, but exit {said.exit}"] if said.exit != 0 else []
        return Outcome(fault=fault, said=said, missing=tuple(missing))
    missing = [] if said.exit == fault.exit else [f"exit {fault.exit}, got {said.exit}"]
    for code in fault.items:
        verdict, summary = said.items.get(code, ("absent", ""))
        missing += [] if verdict == "FAIL" else [f"{code} FAIL, got {verdict}"]
        missing += [f"{code}: the words {word!r}" for word in fault.words if word not in summary]
    if not fault.items:
        missing += [f"refusal: the words {word!r}" for word in fault.words if word not in said.refusal]
    return Outcome(fault=fault, said=said, missing=tuple(missing))


class Bench:
    """One port per model and device in a scratch folder; faults go into designs planned from it.

    Args:
        scratch: an empty folder.
    """

    def __init__(self, scratch: Path) -> None:
        self._scratch = scratch
        self._ports: dict[tuple[str, str], Path] = {}

    def try_fault(self, fault: Fault) -> Outcome:
        """Run phase 2 with the fault in its design, on a fresh copy of the port."""
        return judge(fault, self.say(fault.base, edit=fault.edit, repack=fault.repack))

    def say(self, base: str, *, edit: Edit | None = None, repack: Repack | None = None, seeds: int = SCHEDULES) -> Said:
        """Run phase 2 on a base, sound unless `edit` or `repack` break it.

        Raises:
            EditError: the fault does not fit the design.
        """
        row = BASES[base]
        port = self._scratch / "tried.port"
        shutil.copytree(self._port(row), port)
        try:
            with _packing(repack):
                return _run(port, row, edit, seeds)
        finally:
            shutil.rmtree(port)

    def _port(self, row: Base) -> Path:
        key = (row.model, row.device)
        if key not in self._ports:
            port = self._scratch / f"{Path(row.model).stem}-{row.device}.port"
            folder = EXAMPLES / row.folder
            given = ["--data", str(folder / row.data), "--device", row.device, "--out", str(port)]
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                code = baseline([str(folder / row.model), *given])
            if code != 0:
                msg = f"phase 1 of {row.model} for {row.device}: exit {code}"
                raise AssertionError(msg)
            self._ports[key] = port
        return self._ports[key]


@contextlib.contextmanager
def _packing(repack: Repack | None) -> Iterator[None]:
    """The simulator's constants go through `repack`; the oracle's do not."""
    if repack is None:
        yield
        return

    def packed(*given: Any) -> Any:
        return repack(pack_constants(*given))

    with patch.object(simulation, "pack_constants", packed):
        yield


def _run(port: Path, row: Base, edit: Edit | None, seeds: int) -> Said:
    def planner(source: Source, device: Device, directives: Directives, clearance: Clearance) -> tuple[Design, ...]:
        first, *rest = plan_all(source, device, directives, clearance)
        return (edit(first) if edit else first, *rest)

    clearance = runner.clear(port, PHASES[0].name)
    with writing(port), contextlib.redirect_stderr(io.StringIO()):
        opened = open_port(port)
        manifest = manifest_from_json(opened.read(MANIFEST))
        options = PresimOptions(
            out=port,
            directives=directives_of(dict(row.directives), manifest),
            asked=row.directives,
            schedules=seeds,
            today=TODAY,
        )
        console = Console(file=io.StringIO())
        try:
            code = run_presim(options, opened, clearance, console, planner=planner, in_ci=False)
        except (RefusedError, UpstreamError) as error:
            return Said(exit=exit_code_of(error), refusal=str(error))
    report = load_report((port / GATE).read_bytes())
    items = {item.code: (item.verdict.value, item.summary) for item in report.items}
    return Said(exit=code, verdict=report.verdict.value, items=items)
