"""What the gates of a port are worth today: PASS, FAIL, NOT_RUN as written, or STALE, MISSING, TAMPERED as found.

Why beside `integrity`: that one compares files with the last commit, this one compares a gate with what it judged.
A consistent commit may still hold a gate whose inputs a later run of a phase above replaced.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Final, Literal

from checklists.model import GateReport, ItemResult, Verdict
from checklists.report import expired_decisions, load_report
from manifest.errors import PortError
from phases.integrity import Integrity
from phases.pipeline import PHASES, Phase
from phases.state import UnsafePathError, is_person, sha256_of

GateVerdict = Literal["PASS", "FAIL", "NOT_RUN", "STALE", "MISSING", "TAMPERED"]
VALUE_PREFIX: Final = "value:"
"""Inputs of a gate that are no file (`value:cpu-flags`); only `check --rerun` can look at them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GateView:
    """One phase as a reader finds it.

    Attributes:
        phase: its name.
        verdict: what it is worth today.
        report: the gate as written, also where it is STALE; None where it is missing or not to be believed.
        reasons: why it is not simply what is written, one line each.
    """

    phase: str
    verdict: GateVerdict
    report: GateReport | None = None
    reasons: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether it opens the next phase."""
        return self.verdict == "PASS"

    @property
    def words(self) -> str:
        """The verdict, with its level where it is one that a gate has."""
        return self.report.words if self.report is not None and self.verdict == self.report.verdict else self.verdict


def read_gates(root: Path, found: Integrity, today: date) -> tuple[GateView, ...]:
    """All phases of a port, in order.

    Args:
        root: the port.
        found: what `integrity.inspect` gave for it.
        today: the day that the expiry of waivers is judged by.
    """
    views: list[GateView] = []
    for phase in PHASES:
        views.append(_read(root, phase, found, today, above=views[-1] if views else None))
    return tuple(views)


def first_open(report: GateReport) -> ItemResult | None:
    """The item that keeps a gate from PASS: the first FAIL, else the first NOT_RUN, else the first BLOCKED."""
    for verdict in (Verdict.FAIL, Verdict.NOT_RUN, Verdict.BLOCKED):
        for item in report.items:
            if item.verdict is verdict and (report.level == "hardware" or item.level == "host"):
                return item
    return None


def last_present(views: tuple[GateView, ...]) -> str:
    """The last phase whose gate is there, phase 1 where none is."""
    present = [view.phase for view in views if view.verdict != "MISSING"]
    return present[-1] if present else views[0].phase


def _read(root: Path, phase: Phase, found: Integrity, today: date, *, above: GateView | None) -> GateView:
    listed = found.state.files if found.state is not None else {}
    fault = next((f for f in found.tampered if f.name == phase.gate), None)
    if fault is not None:
        return GateView(phase=phase.name, verdict="TAMPERED", reasons=(fault.line(),))
    if phase.gate not in listed:
        if (root / phase.gate).exists():
            reason = f"{phase.gate}: tampered: no run of this port wrote it"
            return GateView(phase=phase.name, verdict="TAMPERED", reasons=(reason,))
        why = f"`{phase.command}` has not been run" if phase.items else "the phase is not part of this version"
        reason = f"{phase.gate}: missing: {why}"
        return GateView(phase=phase.name, verdict="MISSING", reasons=(reason,))
    try:
        report = load_report((root / phase.gate).read_bytes(), phase.gate)
    except (PortError, OSError) as error:
        return GateView(phase=phase.name, verdict="TAMPERED", reasons=(str(error),))
    if report.phase != phase.name:
        reason = f"{phase.gate}: tampered: it is the gate of {report.phase!r}"
        return GateView(phase=phase.name, verdict="TAMPERED", reasons=(reason,))
    reasons = tuple(dict.fromkeys(_stale(root, phase, report, found, today=today, above=above)))
    verdict: GateVerdict = "STALE" if reasons else _written(report)
    return GateView(phase=phase.name, verdict=verdict, report=report, reasons=reasons)


def _written(report: GateReport) -> GateVerdict:
    if report.verdict.value == "PASS":
        return "PASS"
    return "FAIL" if report.verdict.value == "FAIL" else "NOT_RUN"


def _stale(
    root: Path, phase: Phase, report: GateReport, found: Integrity, *, today: date, above: GateView | None
) -> Iterator[str]:
    """Why a gate no longer speaks about the port as it is."""
    listed = found.state.files if found.state is not None else {}
    for name, sha256 in {**report.inputs, **report.upstream}.items():
        if name.startswith(VALUE_PREFIX):
            continue
        if is_person(name):
            if _sha(root, name) != sha256:
                yield f"{name}: stale: changed since {phase.gate} was judged"
        elif listed.get(name) != sha256:
            yield f"{name}: stale: {phase.gate} was judged on another content of it"
    sources = {s.path for _, s in found.info.sources} if found.info is not None else set()
    for fault in found.stale:
        if fault.name in sources or (_reads(phase, fault.name) and fault.name not in report.inputs):
            yield fault.line()
    for waiver in expired_decisions(report, today):
        yield f"{phase.gate}: stale: a waiver is over: {waiver.line()}"
    if above is not None and above.verdict in ("STALE", "MISSING", "TAMPERED"):
        yield f"{phase.gate}: stale: the gate above ({above.phase}) is {above.verdict}"


def _reads(phase: Phase, name: str) -> bool:
    return any(name == read or (read.endswith("/") and name.startswith(read)) for read in phase.reads)


def _sha(root: Path, name: str) -> str | None:
    try:
        return sha256_of(root, name)
    except UnsafePathError:
        return None
