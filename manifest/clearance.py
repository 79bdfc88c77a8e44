"""The right to go on: a frozen value that names the gates above and the exact bytes they judged.

Made by `phases.runner` alone, through `issue`. Every function that writes placement or code takes one and calls
`verify` with the canonical bytes it is about to use; that reads the gates again from disk, so that a value made by
hand, an edited gate or another manifest opens nothing. Not defended against: a person who forges a whole consistent
set of files; running the phase again recomputes the gate.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, Final

from manifest.errors import UpstreamError
from manifest.io import canonical_json, parse_canonical, schema_errors, sha256_hex

CHAIN: Final = ("baseline", "presim", "bringup", "optimize")
ACCEPTED_LEVELS: Final[Mapping[str, tuple[str, ...]]] = {
    "baseline": ("host",),
    "presim": ("host",),
    "bringup": ("host", "hardware"),
    "optimize": ("host", "hardware"),
}
"""Levels at which a gate opens the next phase; what follows carries the level on and never says measured for host."""

MANIFEST: Final = "manifest.json"
DESIGN: Final = "design.json"
WHERE: Final = "clearance"
MAX_GATE_BYTES: Final = 64 << 20
_OPEN: Final = ("FAIL", "NOT_RUN", "BLOCKED")


@dataclass(frozen=True, slots=True, kw_only=True)
class Clearance:
    """Which gates were PASS for which bytes.

    Attributes:
        port: the port's directory.
        manifest_sha256: of the canonical manifest that the gates judged.
        design_sha256: of the canonical design, None below presim.
        gates: (phase, sha256 of its gate file), in the order of `CHAIN` from baseline on.
    """

    port: Path
    manifest_sha256: str
    design_sha256: str | None
    gates: tuple[tuple[str, str], ...]

    def verify(self, manifest_bytes: bytes, design_bytes: bytes | None = None, *, today: date | None = None) -> None:
        """Read the gates from disk and hold them against exactly these bytes.

        Args:
            manifest_bytes: the canonical manifest about to be used.
            design_bytes: the canonical design about to be used, or None where none is.
            today: the day that waivers are judged by; None = the current one.

        Raises:
            UpstreamError: names the file: a gate is missing, changed, not PASS, judged at a level that does not
                open the next phase, rests on an expired waiver or on another gate, manifest or design.
        """
        phases = tuple(phase for phase, _ in self.gates)
        if not phases or phases != CHAIN[: len(phases)]:
            raise _error(WHERE, "GATE-CHAIN", f"expected gates from {CHAIN[0]} on, in order", str(phases))
        _same(MANIFEST, self.manifest_sha256, sha256_hex(manifest_bytes), "the clearance is for another manifest")
        if design_bytes is not None:
            if self.design_sha256 is None or "presim" not in phases:
                raise _error(DESIGN, "GATE-CHAIN", "expected a clearance from gates/presim.json", "one without it")
            _same(DESIGN, self.design_sha256, sha256_hex(design_bytes), "the clearance is for another design")
        upstream: dict[str, str] = {}
        for phase, recorded in self.gates:
            name = f"gates/{phase}.json"
            data = _read(self.port, name)
            if sha256_hex(data) != recorded:
                raise _error(name, "GATE-TAMPERED", "expected the file that the clearance was made from", "another")
            _check_gate(name, phase, parse_canonical(data, name), upstream, today or date.today())
            self._check_inputs(name, phase, parse_canonical(data, name)["inputs"])
            upstream = {name: recorded}

    def _check_inputs(self, name: str, phase: str, inputs: Mapping[str, str]) -> None:
        _same(name, inputs.get(MANIFEST, "none"), self.manifest_sha256, "it judged another manifest")
        if phase != "baseline" and self.design_sha256 is not None:
            _same(name, inputs.get(DESIGN, "none"), self.design_sha256, "it judged another design")


def issue(
    port: Path,
    through: str,
    manifest_bytes: bytes,
    design_bytes: bytes | None = None,
    *,
    today: date | None = None,
) -> Clearance:
    """Make a clearance from the gates of a port, verified; for `phases.runner` alone.

    Args:
        port: the port's directory.
        through: last phase whose gate has to be PASS.
        manifest_bytes: the canonical manifest.
        design_bytes: the canonical design, needed from presim on.
        today: the day that waivers are judged by; None = the current one.

    Raises:
        UpstreamError: as `Clearance.verify`.
    """
    phases = CHAIN[: CHAIN.index(through) + 1]
    made = Clearance(
        port=port,
        manifest_sha256=sha256_hex(manifest_bytes),
        design_sha256=None if design_bytes is None else sha256_hex(design_bytes),
        gates=tuple((phase, sha256_hex(_read(port, f"gates/{phase}.json"))) for phase in phases),
    )
    made.verify(manifest_bytes, design_bytes, today=today)
    return made


def _read(port: Path, name: str) -> bytes:
    path = port / name
    try:
        if path.stat().st_size > MAX_GATE_BYTES:
            raise _error(name, "GATE-TAMPERED", f"expected at most {MAX_GATE_BYTES} bytes", "more")
        return path.read_bytes()
    except OSError as error:
        raise _error(name, "GATE-MISSING", "expected a gate file", error.strerror or str(error)) from error


def _check_gate(name: str, phase: str, gate: Any, upstream: Mapping[str, str], today: date) -> None:
    """The gate by itself: schema, own hash, phase, verdict that its items allow, level, gate above, waivers."""
    if errors := schema_errors(gate, "gate-1"):
        raise _error(name, "GATE-TAMPERED", "expected the fields of a gate", errors[0])
    own = sha256_hex(canonical_json({**gate, "self_sha256": ""}))
    _same(name, gate["self_sha256"], own, "self_sha256 is not that of its content")
    _same(name, gate["phase"], phase, "it is the gate of another phase")
    if gate["verdict"] != "PASS":
        raise _error(name, "GATE-NOT-PASSED", "expected PASS", f"{gate['verdict']} at {gate['level']} level")
    counted = [item for item in gate["items"] if gate["level"] == "hardware" or item["level"] == "host"]
    still_open = [item["code"] for item in counted if item["verdict"] in _OPEN]
    if still_open or not any(item["verdict"] == "PASS" for item in counted):
        got = ", ".join(still_open) or "no item that is PASS"
        raise _error(name, "GATE-TAMPERED", "expected items that allow PASS", got)
    if gate["level"] not in ACCEPTED_LEVELS[phase]:
        raise _error(name, "GATE-LEVEL", f"expected {' or '.join(ACCEPTED_LEVELS[phase])} level", gate["level"])
    if gate["upstream"] != upstream:
        raise _error(name, "GATE-STALE", "expected to rest on the gate above as it is", "another gate")
    _check_waivers(name, gate["items"], today)


def _check_waivers(name: str, items: list[Any], today: date) -> None:
    for item in items:
        for waiver in item["waivers"]:
            if _last_day(name, waiver["until"]) < today:
                expected = f"expected a waiver of {item['code']} that holds"
                raise _error(name, "GATE-STALE", expected, f"until {waiver['until']}")


def _last_day(name: str, text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise _error(name, "GATE-TAMPERED", "expected a date", text) from error


def _same(name: str, got: str, expected: str, what: str) -> None:
    if got != expected:
        raise _error(name, "GATE-MISMATCH", f"{what}: expected {expected}", got)


def _error(name: str, code: str, expected: str, got: str) -> UpstreamError:
    text = f"[{code}] {name}: {expected}; got {got}; remedy: run the phase again"
    return UpstreamError(" ".join(text.split()))
