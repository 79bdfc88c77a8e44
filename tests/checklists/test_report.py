import hashlib
import json
from collections.abc import Callable
from datetime import date
from typing import Any

import pytest

from checklists.evaluate import evaluate
from checklists.model import CheckItem, Finding, GateReport, Verdict, Waiver
from checklists.report import expired_decisions, load_report, report_to_json
from manifest.errors import UpstreamError
from manifest.io import canonical_json

UNTIL = date(2030, 6, 1)


def passing(_: None) -> Finding:
    """Always."""
    return Finding(verdict=Verdict.PASS, summary="good", figures={"elements": 3, "share": 0.5, "names": ("a", "b")})


def failing(_: None) -> Finding:
    """Never."""
    return Finding(verdict=Verdict.FAIL, summary="bad", subjects=("a",))


@pytest.fixture
def report() -> GateReport:
    items = (
        CheckItem(code="BL001", title="One", source="s", basis="proved", run=passing),
        CheckItem(code="BL002", title="Two", source="s", basis="proved", run=failing),
    )
    waivers = (
        Waiver(code="BL002", subject="a", reason="r", owner="o", until=UNTIL),
        Waiver(code="BL001", reason="r", owner="o", until=UNTIL),
    )
    inputs = {"manifest.json": "0" * 64}
    return evaluate(items, None, waivers, date(2030, 1, 1), inputs=inputs, tool_version="0.1.0")


def reseal(data: bytes, change: Callable[[Any], None]) -> bytes:
    """Change a gate and give it a self hash that fits again."""
    value = json.loads(data)
    change(value)
    value["self_sha256"] = ""
    value["self_sha256"] = hashlib.sha256(canonical_json(value)).hexdigest()
    return canonical_json(value)


def test_a_gate_reads_back_equal(report: GateReport) -> None:
    assert load_report(report_to_json(report)) == report


def test_same_gate_same_bytes(report: GateReport) -> None:
    data = report_to_json(report)
    assert data == report_to_json(report)
    assert data.endswith(b"\n")
    assert data.isascii()


def test_a_gate_has_the_fields_of_the_design(report: GateReport) -> None:
    value = json.loads(report_to_json(report))
    assert value.keys() >= {
        "schema_version",
        "phase",
        "verdict",
        "level",
        "items",
        "inputs",
        "upstream",
        "tool_version",
        "self_sha256",
    }
    assert value["items"][0].keys() >= {"code", "title", "verdict", "summary", "figures"}
    assert (value["verdict"], value["level"]) == ("PASS", "host")
    assert value["items"][1]["verdict"] == "WAIVED"
    assert value["items"][1]["waivers"][0]["until"] == "2030-06-01"


def test_self_hash_is_of_the_file_with_that_field_empty(report: GateReport) -> None:
    value = json.loads(report_to_json(report))
    recorded = value["self_sha256"]
    value["self_sha256"] = ""
    assert hashlib.sha256(canonical_json(value)).hexdigest() == recorded


def test_every_changed_byte_is_found(report: GateReport) -> None:
    data = report_to_json(report)
    for at in range(0, len(data), 7):
        for flip in (0x01, 0x20):
            changed = bytearray(data)
            changed[at] ^= flip
            with pytest.raises(UpstreamError, match="tampered"):
                load_report(bytes(changed), "gates/baseline.json")


@pytest.mark.parametrize(
    "data", [b"", b"[]\n", b"null\n", b"[" * 100_000, b"\xff\xfe", b'{"self_sha256": ""}\n', b"{}\n"]
)
def test_what_is_no_gate_is_named(data: bytes) -> None:
    with pytest.raises(UpstreamError, match=r"gates/baseline\.json") as caught:
        load_report(data, "gates/baseline.json")
    assert "\n" not in str(caught.value)


def test_another_spelling_of_the_same_values_is_tampered(report: GateReport) -> None:
    value = json.loads(report_to_json(report))
    with pytest.raises(UpstreamError, match="canonical form"):
        load_report(json.dumps(value).encode())


def test_a_gate_that_contradicts_its_items_is_tampered_even_with_a_fitting_hash(report: GateReport) -> None:
    def change(value: Any) -> None:
        value["items"][0].update(found="FAIL", verdict="FAIL")

    with pytest.raises(UpstreamError, match="verdict: expected FAIL"):
        load_report(reseal(report_to_json(report), change))


@pytest.mark.parametrize(
    "change",
    [
        lambda v: v["items"][1].update(waivers=[]),
        lambda v: v["items"][1]["waivers"][0].update(code="BL001"),
        lambda v: v["items"][1].update(found="BLOCKED"),
    ],
)
def test_a_waiver_that_cannot_be_is_tampered_even_with_a_fitting_hash(
    report: GateReport, change: Callable[[Any], None]
) -> None:
    with pytest.raises(UpstreamError, match="BL002: expected"):
        load_report(reseal(report_to_json(report), change))


@pytest.mark.parametrize(
    "change",
    [
        lambda v: v.update(schema_version=2),
        lambda v: v.update(level="moon"),
        lambda v: v.update(verdict="GOOD"),
        lambda v: v.update(phase=1),
        lambda v: v.update(inputs=["a"]),
        lambda v: v.update(items={}),
        lambda v: v.update(extra=1),
        lambda v: v.pop("upstream"),
        lambda v: v["items"][0].pop("summary"),
        lambda v: v["items"][0].update(figures=[]),
        lambda v: v["items"][0].update(figures=None),
        lambda v: v["items"][1]["waivers"][0].update(until="soon"),
        lambda v: v["items"][1]["waivers"][0].update(until=3),
        lambda v: v["items"][1]["waivers"][0].update(until="2030-13-01"),
        lambda v: v.update(items=[1]),
    ],
)
def test_a_missing_or_ill_typed_field_is_tampered(report: GateReport, change: Callable[[Any], None]) -> None:
    with pytest.raises(UpstreamError, match="tampered"):
        load_report(reseal(report_to_json(report), change))


def test_a_gate_rests_on_its_decisions_until_their_last_day(report: GateReport) -> None:
    assert expired_decisions(report, UNTIL) == ()
    assert [w.code for w in expired_decisions(report, date(2030, 6, 2))] == ["BL002"]
