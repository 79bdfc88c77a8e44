from dataclasses import replace
from xml.etree import ElementTree

import pytest

from checklists.model import GateReport
from phases.reports.junit import render_junit


def cases(gate: GateReport) -> dict[str, ElementTree.Element]:
    return {str(c.get("name"))[:5]: c for c in ElementTree.fromstring(render_junit([gate])).iter("testcase")}


def test_has_one_case_per_item(gate: GateReport) -> None:
    assert list(cases(gate)) == [i.code for i in gate.items]


@pytest.mark.parametrize(
    ("code", "tag"),
    [
        ("BL001", None),
        ("BL002", "failure"),
        ("BL003", "error"),
        ("BL004", "error"),
        ("BL005", "skipped"),
        ("BL006", "skipped"),
    ],
)
def test_each_verdict_has_its_element_with_the_summary(gate: GateReport, code: str, tag: str | None) -> None:
    case = cases(gate)[code]
    found = [child for child in case if child.tag in ("failure", "error", "skipped")]
    assert [child.tag for child in found] == ([] if tag is None else [tag])
    if found:
        assert found[0].get("message") == "tensor conv_out"


def test_counts_of_the_suite_are_right(gate: GateReport) -> None:
    suite = ElementTree.fromstring(render_junit([gate])).find("testsuite")
    assert suite is not None
    assert [suite.get(k) for k in ("tests", "failures", "errors", "skipped")] == ["6", "1", "2", "2"]


def test_a_hardware_item_at_host_level_is_skipped(gate: GateReport) -> None:
    blocked = replace(gate.items[3], level="hardware")
    gate = replace(gate, items=(*gate.items[:3], blocked, *gate.items[4:]))
    assert cases(gate)["BL004"].find("skipped") is not None
    assert cases(replace(gate, level="hardware"))["BL004"].find("error") is not None


def test_a_waived_item_says_who_accepted_it(gate: GateReport) -> None:
    out = cases(gate)["BL006"].findtext("system-out") or ""
    assert "because conv_out (owner ann, until 2031-01-01)" in out


def test_a_suite_says_its_verdict_with_level(gate: GateReport) -> None:
    properties = {p.get("name"): p.get("value") for p in ElementTree.fromstring(render_junit([gate])).iter("property")}
    assert properties["verdict"] == "FAIL at host level"


def test_one_suite_per_gate(gate: GateReport) -> None:
    xml = ElementTree.fromstring(render_junit([gate, replace(gate, phase="presim")]))
    names = [f"phases.{name}: FAIL at host level" for name in ("baseline", "presim")]
    assert [s.get("name") for s in xml.iter("testsuite")] == names


def test_same_gate_same_bytes_without_clock(gate: GateReport) -> None:
    data = render_junit([gate])
    assert data == render_junit([gate])
    assert b"timestamp" not in data
    assert b"hostname" not in data


def test_hostile_names_stay_text(hostile_gate: GateReport) -> None:
    data = render_junit([hostile_gate])
    assert b"<script>" not in data
    case = cases(hostile_gate)["BL002"]
    message = case[0].get("message") or ""
    assert "<script>" in message
    assert r"\x1b" in message
