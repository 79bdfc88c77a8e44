"""GateReport to the bytes of `gates/<phase>.json` and back.

Why reading judges again: the self hash finds a changed byte, the canonical form finds a second spelling, and the
verdict is recomputed from the items, so that a file that contradicts itself is never believed.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from datetime import date
from typing import Any, Final, TypeVar

from checklists.evaluate import gate_verdict
from checklists.model import GATE_SCHEMA_VERSION, WAIVABLE, GateReport, ItemResult, Level, Verdict, Waiver
from manifest.errors import UpstreamError

T = TypeVar("T")

LEVELS: Final[Mapping[str, Level]] = {"host": "host", "hardware": "hardware"}


def canonical_json(value: object) -> bytes:
    """Return the one spelling of a JSON value: sorted keys, indent 1, ASCII, newline at the end."""
    text = json.dumps(value, sort_keys=True, indent=1, ensure_ascii=True, allow_nan=False)
    return (text + "\n").encode("ascii")


def report_to_json(report: GateReport) -> bytes:
    """Return the canonical bytes of a gate; `self_sha256` is of these bytes with that field empty."""
    value = _to_dict(report)
    value["self_sha256"] = self_sha256(value)
    return canonical_json(value)


def self_sha256(value: Mapping[str, Any]) -> str:
    """Return the hex sha256 of a gate's canonical bytes with `self_sha256` set to the empty string."""
    return hashlib.sha256(canonical_json({**value, "self_sha256": ""})).hexdigest()


def load_report(data: bytes, where: str = "gate") -> GateReport:
    """Read a gate back.

    Args:
        data: bytes of the file.
        where: name of the file, for the message.

    Raises:
        UpstreamError: not JSON, not its own canonical form, a wrong self hash, a missing or ill-typed field, or a
            verdict that the items do not give.
    """
    try:
        value = json.loads(data)
        canonical = canonical_json(value) == data
    except (ValueError, RecursionError, UnicodeError) as exc:
        raise _tampered(where, "not JSON", type(exc).__name__) from exc
    if not isinstance(value, dict):
        raise _tampered(where, "expected a JSON object", type(value).__name__)
    if not canonical:
        raise _tampered(where, "expected the canonical form (sorted keys, indent 1, newline at the end)", "other bytes")
    recorded, computed = value.get("self_sha256"), self_sha256(value)
    if recorded != computed:
        raise _tampered(where, f"self_sha256: expected {computed}", repr(recorded))
    try:
        report = _from_dict(value)
    except (KeyError, TypeError, ValueError, AttributeError) as exc:
        raise _tampered(where, "expected the fields of a gate", f"{type(exc).__name__}: {exc}") from exc
    if report_to_json(report) != data:
        raise _tampered(where, "expected only the fields of a gate", "others")
    _check_verdicts(report, where)
    return report


def expired_decisions(report: GateReport, today: date) -> tuple[Waiver, ...]:
    """Decisions that the gate rests on and that are over: with any, the gate is STALE for its readers."""
    return tuple(w for w in report.waivers if w.expired(today))


def _check_verdicts(report: GateReport, where: str) -> None:
    """Refuse a gate whose verdicts do not follow from its own items."""
    for item in report.items:
        waived = item.verdict is Verdict.WAIVED and item.found in WAIVABLE and bool(item.waivers)
        if item.verdict is not item.found and not waived:
            raise _tampered(where, f"{item.code}: expected {item.found}", str(item.verdict))
    expected = gate_verdict(((i.level, i.verdict) for i in report.items), report.level)
    if report.verdict is not expected:
        raise _tampered(where, f"verdict: expected {expected} from its items", str(report.verdict))


def _tampered(where: str, expected: str, got: str) -> UpstreamError:
    """The error for a gate that cannot be believed."""
    text = f"[GATE-TAMPERED] {where}: {expected}; got {got}; remedy: run the phase again"
    return UpstreamError(" ".join(text.split()))


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
    """JSON values as a gate; KeyError, TypeError or ValueError where a field is missing or ill-typed."""
    if value["schema_version"] != GATE_SCHEMA_VERSION:
        msg = f"schema_version: expected {GATE_SCHEMA_VERSION}, got {value['schema_version']!r}"
        raise ValueError(msg)
    return GateReport(
        phase=_text(value["phase"]),
        verdict=Verdict(value["verdict"]),
        level=LEVELS[value["level"]],
        items=_rows(value["items"], _item_from_dict),
        inputs=_hashes(value["inputs"]),
        upstream=_hashes(value["upstream"]),
        tool_version=_text(value["tool_version"]),
        expired_waivers=_rows(value["expired_waivers"], _waiver_from_dict),
        unused_waivers=_rows(value["unused_waivers"], _waiver_from_dict),
    )


def _item_from_dict(value: Mapping[str, Any]) -> ItemResult:
    """JSON values as one item."""
    return ItemResult(
        code=_text(value["code"]),
        title=_text(value["title"]),
        source=_text(value["source"]),
        basis=_text(value["basis"]),
        level=LEVELS[value["level"]],
        found=Verdict(value["found"]),
        verdict=Verdict(value["verdict"]),
        summary=_text(value["summary"]),
        figures={k: tuple(v) if isinstance(v, list) else v for k, v in value["figures"].items()},
        subjects=_rows(value["subjects"], _text),
        waivers=_rows(value["waivers"], _waiver_from_dict),
    )


def _waiver_from_dict(value: Mapping[str, Any]) -> Waiver:
    """JSON values as one decision."""
    subject = value["subject"]
    return Waiver(
        code=_text(value["code"]),
        subject=None if subject is None else _text(subject),
        reason=_text(value["reason"]),
        owner=_text(value["owner"]),
        until=date.fromisoformat(value["until"]),
    )


def _rows(value: object, read: Callable[[Any], T]) -> tuple[T, ...]:
    """Read every row of a JSON list."""
    if not isinstance(value, list):
        msg = f"expected a list, got {type(value).__name__}"
        raise TypeError(msg)
    return tuple(read(row) for row in value)


def _hashes(value: object) -> dict[str, str]:
    """Read a mapping name -> sha256."""
    if not isinstance(value, dict):
        msg = f"expected a mapping of names to sha256, got {type(value).__name__}"
        raise TypeError(msg)
    return {_text(k): _text(v) for k, v in value.items()}


def _text(value: object) -> str:
    """Read a string."""
    if not isinstance(value, str):
        msg = f"expected text, got {type(value).__name__}"
        raise TypeError(msg)
    return value
