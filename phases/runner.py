"""The only place that says "may continue": judges a phase, verifies the gates above, makes a clearance.

Why the gate is judged here and not in a phase: its hashes of what was read, and the hash of the gate above, are
filled in by one piece of code for all phases.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, Final

from checklists.evaluate import evaluate
from checklists.model import GateReport, Level, Waiver
from manifest.clearance import DESIGN, MANIFEST, Clearance, issue
from manifest.errors import UpstreamError
from manifest.io import canonical_json, sha256_hex
from phases.gates import VALUE_PREFIX, GateView, first_open, last_present, read_gates
from phases.integrity import Integrity, inspect
from phases.pipeline import NAMES, PHASES, phase_named, tool_version
from phases.port import Port, open_port

NOT_INPUTS: Final = ("gates/", "reports/")


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """A port as a reader finds it: its files, and its gates in order."""

    root: Path
    integrity: Integrity
    gates: tuple[GateView, ...]

    def gate(self, phase: str) -> GateView:
        """The gate of a phase."""
        return self.gates[NAMES.index(phase)]


def survey(root: Path, today: date | None = None) -> Survey:
    """Look at a port, whatever state it is in.

    Args:
        root: the port.
        today: the day that waivers are judged by, the current one if None.

    Raises:
        RefusedError: `root` is no port.
        LockedError: another run is changing it right now.
    """
    found = inspect(root)
    return Survey(root=root, integrity=found, gates=read_gates(root, found, today or date.today()))


def obstacles(seen: Survey, through: str | None = None) -> tuple[str, ...]:
    """Why a port may not be used through a phase, one line each; empty = it may.

    Args:
        seen: the port.
        through: the last phase whose gate has to be PASS, files that only later phases read do not count; None =
            the last one present, and every file counts.
    """
    last = through if through is not None else last_present(seen.gates)
    found = seen.integrity
    lines = [fault.line() for fault in found.faults if through is None or fault not in found.stale]
    for view in seen.gates[: NAMES.index(last) + 1]:
        if view.verdict in ("FAIL", "NOT_RUN"):
            lines.append(f"gates/{view.phase}.json: not PASS: the gate is {view.words}{_first_open(view)}")
        lines += [reason for reason in view.reasons if not _told(reason, lines)]
    return tuple(lines)


def judge(
    phase: str,
    evidence: object,
    root: Path,
    *,
    files: Mapping[str, bytes],
    person: Mapping[str, bytes],
    waivers: Sequence[Waiver] = (),
    values: Mapping[str, Any] | None = None,
    today: date | None = None,
    level: Level = "host",
) -> GateReport:
    """Judge the evidence of a phase.

    Args:
        phase: its name.
        evidence: what it collected.
        root: the port; the gate above is read from it.
        files: what the phase is about to write and judged; gates and reports among it are no inputs.
        person: the person's own files as read (`read_person`).
        waivers: the person's decisions.
        values: inputs that are no file (JSON values), such as the CPU flags.
        today: the day that waivers are judged by, the current one if None.
        level: what the gate is judged at.

    Raises:
        UpstreamError: a gate above is not PASS, missing, stale or tampered.
    """
    row = phase_named(phase)
    inputs = {n: sha256_hex(data) for n, data in files.items() if not n.startswith(NOT_INPUTS)}
    inputs |= {n: sha256_hex(data) for n, data in person.items()}
    inputs |= {VALUE_PREFIX + n: sha256_hex(canonical_json(v)) for n, v in (values or {}).items()}
    upstream = {}
    if row is not PHASES[0]:
        above = PHASES[PHASES.index(row) - 1]
        upstream = {above.gate: require_passed(root, above.name, today).state.files[above.gate]}
    return evaluate(
        row.items,
        evidence,
        waivers,
        today or date.today(),
        level,
        phase=phase,
        inputs=inputs,
        upstream=upstream,
        tool_version=tool_version(),
    )


def require_passed(root: Path, through: str, today: date | None = None) -> Port:
    """Open a port whose gates are all PASS through a phase.

    Raises:
        RefusedError: `root` is no port.
        UpstreamError: one line per file that changed and per gate that is not PASS, missing or stale.
        LockedError: another run is changing it right now.
    """
    lines = obstacles(survey(root, today), through)
    if lines:
        raise UpstreamError("\n".join(lines))
    return open_port(root)


def clear(root: Path, through: str, *, today: date | None = None) -> Clearance:
    """The right to go on from a port; the only place that gives it.

    Args:
        root: the port.
        through: the last phase whose gate has to be PASS.
        today: the day that waivers are judged by, the current one if None.

    Raises:
        RefusedError: `root` is no port.
        UpstreamError: one line per file that changed and per gate that is not PASS, missing or stale.
        LockedError: another run is changing it right now.
    """
    port = require_passed(root, through, today)
    design = port.read(DESIGN) if DESIGN in port.state.files and through != PHASES[0].name else None
    return issue(root, through, port.read(MANIFEST), design, today=today)


def _first_open(view: GateView) -> str:
    """The first item that keeps a gate from PASS, in words."""
    item = first_open(view.report) if view.report is not None else None
    return f"; {item.code} {item.title}: {item.verdict}: {item.summary}" if item is not None else ""


def _told(reason: str, lines: Sequence[str]) -> bool:
    """Whether a line about the same file is there already."""
    name = reason.split(":", 1)[0]
    return any(line.split(":", 1)[0] == name for line in lines)
