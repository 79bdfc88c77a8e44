"""Puts one fault into generated files, driver or recordings, runs phase 3, and says which gate item noticed."""

import contextlib
import io
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

from rich.console import Console

from bringup.backends import BackendOptions, ReplayBackend
from bringup.emit import EmitInput, emit, write
from bringup.model import Backend
from checklists.report import load_report
from manifest.clearance import Clearance
from manifest.errors import RefusedError, UnavailableError, UpstreamError
from phases import runner
from phases.baseline.__main__ import main as baseline
from phases.bringup import collect
from phases.bringup.options import BringupOptions
from phases.bringup.run import run as run_bringup
from phases.exit_codes import exit_code_of
from phases.port import open_port, writing
from phases.presim.__main__ import main as presim
from tests.bringup_faults.bases import BASES, Base, files_of
from tests.bringup_faults.board import Driver, Target
from tests.bringup_faults.edits import Emitted, Given, sealed
from tests.bringup_faults.host import Host

TODAY: Final = date(2026, 3, 1)
GATE: Final = "gates/bringup.json"
SCHEDULES: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Something broken on purpose, and who has to notice it with which words.

    Exactly one of `given`, `emitted`, `disk`, `driver` and `recording` is set.

    Attributes:
        id: short name.
        breaks: what is wrong, in words.
        base: key of `BASES`.
        given: changes what the emitter gets.
        emitted: changes what the emitter gives; the hashes in the index are those of the changed files.
        disk: changes the folder after it was written.
        driver: the device and what it does.
        recording: changes the folder of recordings of a sound run.
        items: codes of the items that have to be FAIL (or `verdict`); the first is the one that catches it.
        verdict: of `items`.
        words: all of them have to stand in the summary of the first item, or in the refusal.
        cause: likewise; the diagnosis.
        exit: expected exit code.
        survives: why no item can notice, "" where one must.
    """

    id: str
    breaks: str
    base: str = "digits_cnn"
    given: Given | None = None
    emitted: Emitted | None = None
    disk: Callable[[Path], None] | None = None
    driver: Driver | None = None
    recording: Callable[[Path], None] | None = None
    items: tuple[str, ...] = ()
    verdict: str = "FAIL"
    words: tuple[str, ...] = ()
    cause: str = ""
    exit: int = 1
    survives: str = ""

    @property
    def where(self) -> str:
        """Which of the five is broken."""
        return next(n for n in ("given", "emitted", "disk", "driver", "recording") if getattr(self, n) is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What phase 3 said: exit code, refusal or "", gate verdict or "", (verdict, summary) by item."""

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
        """Whether the right item named place and cause, or a known survivor survived."""
        return not self.missing

    @property
    def caught(self) -> bool:
        """Whether an item or a refusal noticed."""
        return self.as_expected and not self.fault.survives

    @property
    def excerpt(self) -> str:
        """Summary of the first expected item, or of the first that is FAIL, or the refusal."""
        code = next((c for c in (*self.fault.items[:1], *self.said.failed) if c in self.said.items), "")
        return self.said.items[code][1] if code else self.said.refusal


def judge(fault: Fault, said: Said) -> Outcome:
    """Hold what was said against what had to be said, word for word."""
    if fault.survives:
        missing = [f"survives, but {code} noticed" for code in said.failed]
        missing += [f"survives, but exit {said.exit}"] if said.exit != fault.exit else []
        return Outcome(fault=fault, said=said, missing=tuple(missing))
    missing = [] if said.exit == fault.exit else [f"exit {fault.exit}, got {said.exit}"]
    words = (*fault.words, *((fault.cause,) if fault.cause else ()))
    for number, code in enumerate(fault.items):
        verdict, summary = said.items.get(code, ("absent", ""))
        missing += [] if verdict == fault.verdict else [f"{code} {fault.verdict}, got {verdict}"]
        missing += [f"{code}: the words {word!r}" for word in words if number == 0 and word not in summary]
    if not fault.items:
        missing += [f"refusal: the words {word!r}" for word in words if word not in said.refusal]
    return Outcome(fault=fault, said=said, missing=tuple(missing))


class Bench:
    """One port per base in a scratch folder; what a job showed is kept for as long as nothing of it changes.

    Args:
        scratch: an empty folder.
        bases: models by name.
    """

    def __init__(self, scratch: Path, bases: Mapping[str, Base] = BASES) -> None:
        self.scratch = scratch
        self.bases = bases
        self.host = Host(scratch / "work")
        self._ports: dict[str, Path] = {}
        self._recordings: dict[str, Path] = {}

    def close(self) -> None:
        """End the child."""
        self.host.close()

    def try_fault(self, fault: Fault) -> Outcome:
        """Run phase 3 with the fault, on a fresh copy of the port."""
        self.port(fault.base)
        target: Backend | None = None
        device = self.bases[fault.base].device
        if fault.driver is not None:
            target = Target(device, fault.driver, self._fresh("build"))
        if fault.recording is not None:
            folder = self._fresh("recordings")
            shutil.copytree(self.recordings(fault.base), folder)
            fault.recording(folder)
            target = ReplayBackend(device, BackendOptions(recordings=folder))
        with broken(fault):
            said = self._run(fault.base, self.host.at(device), target)
        return judge(fault, said)

    def sound(self, base: str, *, seeds: int) -> Said:
        """Run phase 3 on sound files with other seeds; nothing that was kept is used."""
        self.port(base)
        with Host(self.scratch / "work", seeds=seeds, keeps=False) as host:
            return self._run(base, host.at(self.bases[base].device), None, seeds=seeds)

    def port(self, base: str) -> Path:
        """A port through phase 2; phase 3 has been run once, so that the jobs of sound files are known."""
        if base not in self._ports:
            row = self.bases[base]
            port = self.scratch / f"{len(self._ports)}-{row.name}.port"
            _made(row, port, self.scratch)
            self._ports[base] = port
            said = self._run(base, self.host.at(row.device), None, keep=self.scratch / f"{port.stem}.done.port")
            if said.verdict != "PASS":
                msg = f"{base} without a fault: {said.verdict}, {said.items}"
                raise AssertionError(msg)
        return self._ports[base]

    def done(self, base: str) -> Path:
        """The port with phase 3 done, without a fault."""
        return self.scratch / f"{self.port(base).stem}.done.port"

    def again(self, base: str, keep: Path) -> Said:
        """Run phase 3 on sound files once more; the port is kept."""
        self.port(base)
        return self._run(base, self.host.at(self.bases[base].device), None, keep=keep)

    def recordings(self, base: str) -> Path:
        """What a sound board recorded of a base."""
        if base not in self._recordings:
            device, folder = self.bases[base].device, self._fresh("sound-recordings")
            target = Target(device, Driver(), self._fresh("build"), record=folder)
            self._run(base, self.host.at(device), target)
            self._recordings[base] = folder
        return self._recordings[base]

    def _fresh(self, name: str) -> Path:
        path = self.scratch / name
        if name == "sound-recordings":
            return path
        shutil.rmtree(path, ignore_errors=True)
        return path

    def _run(
        self, base: str, host: Backend, target: Backend | None, *, seeds: int = SCHEDULES, keep: Path | None = None
    ) -> Said:
        port = self.scratch / "tried.port"
        shutil.copytree(self._ports[base], port)
        try:
            said = _say(port, host, target, seeds)
            if keep is not None:
                shutil.copytree(port, keep)
            return said
        finally:
            shutil.rmtree(port)


@contextlib.contextmanager
def broken(fault: Fault) -> Iterator[None]:
    """Emission and writing with a fault in them."""

    def emitting(given: EmitInput, clearance: Clearance, **more: Any) -> dict[str, bytes]:
        files = emit(fault.given(given) if fault.given else given, clearance, **more)
        return sealed(files, fault.emitted(dict(files))) if fault.emitted else files

    def writing_files(files: Mapping[str, bytes], folder: Path) -> None:
        write(files, folder)
        if fault.disk:
            fault.disk(folder)

    with patch.object(collect, "emit", emitting), patch.object(collect, "write", writing_files):
        yield


def _made(row: Base, port: Path, scratch: Path) -> None:
    """Phases 1 and 2."""
    model, data = files_of(row, scratch)
    words = [str(model), "--data", str(data), "--device", row.device, "--out", str(port)]
    above: list[str] = []
    if row.directives:
        path = scratch / f"{row.name}.directives.json"
        path.write_bytes(row.directives_bytes)
        above = ["--directives", str(path)]
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        codes = baseline(words), presim([str(port), *above])
    if codes != (0, 0):
        msg = f"phases 1 and 2 of {row.name}: exit {codes}"
        raise AssertionError(msg)


def _say(port: Path, host: Backend, target: Backend | None, seeds: int) -> Said:
    clearance = runner.clear(port, "presim")
    options = BringupOptions(
        out=port,
        backend="host" if target is None else target.name,
        level="host" if target is None else "hardware",
        schedules=seeds,
        today=TODAY,
    )
    with writing(port), contextlib.redirect_stderr(io.StringIO()):
        console = Console(file=io.StringIO())
        try:
            code = run_bringup(options, open_port(port), clearance, console, host=host, target=target, in_ci=False)
        except (RefusedError, UpstreamError, UnavailableError) as error:
            return Said(exit=exit_code_of(error), refusal=str(error))
    report = load_report((port / GATE).read_bytes())
    items = {item.code: (item.verdict.value, item.summary) for item in report.items}
    return Said(exit=code, verdict=report.verdict.value, items=items)
