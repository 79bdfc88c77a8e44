"""GateReport to the bytes of `gates/<phase>.json` and back.

Why reading judges again: the self hash finds a changed byte, the canonical form finds a second spelling, and the
verdict is recomputed from the items, so that a file that contradicts itself is never believed.
"""

from collections.abc import Mapping
from datetime import date
from typing import Any

from checklists.evaluate import gate_verdict
from checklists.model import WAIVABLE, GateReport, ItemResult, Verdict, Waiver
from manifest.errors import UpstreamError
from manifest.io import canonical_json, parse_canonical, schema_errors, sha256_hex

SCHEMA = "gate-1"


def report_to_json(report: GateReport) -> bytes:
    """Return the canonical bytes of a gate; `self_sha256` is of these bytes with that field empty."""
    value = _to_dict(report)
    value["self_sha256"] = self_sha256(value)
    return canonical_json(value)


def self_sha256(value: Mapping[str, Any]) -> str:
    """Return the hex sha256 of a gate's canonical bytes with `self_sha256` set to the empty string."""
    return sha256_hex(canonical_json({**value, "self_sha256": ""}))


def load_report(data: bytes, where: str = "gate") -> GateReport:
    """Read a gate back.

    Args:
        data: bytes of the file.
        where: name of the file, for the message.

    Raises:
        UpstreamError: not JSON, not its own canonical form, a wrong self hash, a missing or ill-typed field, or a
            verdict that the items do not give.
    """
    value = parse_canonical(data, where)
    faults = schema_errors(value, SCHEMA)
    if faults:
        raise _tampered(where, faults[0])
    if value["self_sha256"] != self_sha256(value):
        raise _tampered(where, f"self_sha256: expected {self_sha256(value)}, got {value['self_sha256']}")
    try:
        report = _from_dict(value)
    except ValueError as error:  # a day that no calendar has
        raise _tampered(where, str(error)) from error
    _check_verdicts(report, where)
    return report


def expired_decisions(report: GateReport, today: date) -> tuple[Waiver, ...]:
    """Decisions that the gate rests on and that are over: with any, the gate is STALE for its readers."""
    return tuple(w for w in report.waivers if w.expired(today))


def _check_verdicts(report: GateReport, where: str) -> None:
    """Refuse a gate whose verdicts do not follow from its own items."""
    for item in report.items:
        waived = (
            item.verdict is Verdict.WAIVED and item.found in WAIVABLE and {w.code for w in item.waivers} == {item.code}
        )
        if item.verdict is not item.found and not waived:
            raise _tampered(where, f"{item.code}: expected {item.found}, got {item.verdict}")
    expected = gate_verdict(((i.level, i.verdict) for i in report.items), report.level)
    if report.verdict is not expected:
        raise _tampered(where, f"verdict: expected {expected} from its items, got {report.verdict}")


def _tampered(where: str, fault: str) -> UpstreamError:
    """The error for a gate that cannot be believed."""
    return UpstreamError(f"{where}: tampered: {fault}; remedy: run the phase again")


def _to_dict(report: GateReport) -> dict[str, Any]:
    """A gate as JSON values, without its self hash."""
    return {
        "schema_version": report.schema_version,
        "phase": report.phase,
        "verdict": report.verdict.value,
        "level": report.level,
        "items": [_item_to_dict(item) for item in report.items],
        "inputs": dict(report.inputs),
        "upstream": dict(report.upstream),
        "tool_version": report.tool_version,
        "expired_waivers": [_waiver_to_dict(w) for w in report.expired_waivers],
        "unused_waivers": [_waiver_to_dict(w) for w in report.unused_waivers],
    }


def _item_to_dict(item: ItemResult) -> dict[str, Any]:
    """One item as JSON values."""
    return {
        "code": item.code,
        "title": item.title,
        "source": item.source,
        "basis": item.basis,
        "level": item.level,
        "found": item.found.value,
        "verdict": item.verdict.value,
        "summary": item.summary,
        "figures": {k: list(v) if isinstance(v, tuple) else v for k, v in item.figures.items()},
        "subjects": list(item.subjects),
        "waivers": [_waiver_to_dict(w) for w in item.waivers],
    }


def _waiver_to_dict(waiver: Waiver) -> dict[str, Any]:
    """One decision as JSON values."""
    return {
        "code": waiver.code,
        "subject": waiver.subject,
        "reason": waiver.reason,
        "owner": waiver.owner,
        "until": waiver.until.isoformat(),
    }


def _from_dict(value: Mapping[str, Any]) -> GateReport:
    """JSON values that fit the schema as a gate; ValueError where a day is none."""
    return GateReport(
        schema_version=value["schema_version"],
        phase=value["phase"],
        verdict=Verdict(value["verdict"]),
        level=value["level"],
        items=tuple(_item_from_dict(row) for row in value["items"]),
        inputs=value["inputs"],
        upstream=value["upstream"],
        tool_version=value["tool_version"],
        expired_waivers=tuple(_waiver_from_dict(row) for row in value["expired_waivers"]),
        unused_waivers=tuple(_waiver_from_dict(row) for row in value["unused_waivers"]),
    )


def _item_from_dict(value: Mapping[str, Any]) -> ItemResult:
    """JSON values as one item."""
    return ItemResult(
        code=value["code"],
        title=value["title"],
        source=value["source"],
        basis=value["basis"],
        level=value["level"],
        found=Verdict(value["found"]),
        verdict=Verdict(value["verdict"]),
        summary=value["summary"],
        figures={k: tuple(v) if isinstance(v, list) else v for k, v in value["figures"].items()},
        subjects=tuple(value["subjects"]),
        waivers=tuple(_waiver_from_dict(row) for row in value["waivers"]),
    )


def _waiver_from_dict(value: Mapping[str, Any]) -> Waiver:
    """JSON values as one decision."""
    return Waiver(
        code=value["code"],
        subject=value["subject"],
        reason=value["reason"],
        owner=value["owner"],
        until=date.fromisoformat(value["until"]),
    )
