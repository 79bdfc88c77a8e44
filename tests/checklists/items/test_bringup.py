"""The bring-up checklist as a whole."""

from dataclasses import replace
from datetime import date

import pytest

from bringup.evidence import BringupEvidence
from checklists.evaluate import evaluate
from checklists.items.bringup import ITEMS
from checklists.model import CheckItem, Level, Verdict
from checklists.report import load_report, report_to_json
from tests.bringup_evidence import good_bringup

TODAY = date(2030, 1, 1)
GOOD = good_bringup()
HOST_ONLY = replace(
    GOOD, backend="host", steps=GOOD.steps[:6], device_reported="", device_name="", stack=(), unavailable=""
)
NOTHING = replace(
    HOST_ONLY, steps=(), lint=None, memory=(), rules=(), generated=(), on_disk=(), emitted_again_equal=None
)


def verdicts(evidence: BringupEvidence, level: Level = "host") -> dict[str, Verdict]:
    report = evaluate(ITEMS, evidence, (), TODAY, level, phase="bringup")
    return {item.code: item.verdict for item in report.items}


def test_codes_are_stable_and_hardware_items_are_the_last_ones() -> None:
    assert [item.code for item in ITEMS] == [f"BU{n:03}" for n in range(1, 19)]
    assert [item.level for item in ITEMS] == ["host"] * 11 + ["hardware"] * 7


def test_good_evidence_passes_at_both_levels_and_says_the_level() -> None:
    levels: tuple[Level, ...] = ("host", "hardware")
    for level in levels:
        report = evaluate(ITEMS, GOOD, (), TODAY, level, phase="bringup")
        assert report.words == f"PASS at {level} level"
        assert load_report(report_to_json(report)) == report
    assert set(verdicts(GOOD, "hardware").values()) == {Verdict.PASS}


def test_at_host_level_hardware_items_are_blocked_even_if_a_device_ran() -> None:
    found = verdicts(GOOD)
    assert {found[f"BU{n:03}"] for n in range(12, 19)} == {Verdict.BLOCKED}


def test_the_host_alone_never_passes_at_hardware_level() -> None:
    report = evaluate(ITEMS, HOST_ONLY, (), TODAY, "hardware", phase="bringup")
    assert report.verdict is Verdict.NOT_RUN
    assert {verdicts(HOST_ONLY, "hardware")[f"BU{n:03}"] for n in range(12, 19)} == {Verdict.BLOCKED}
    assert evaluate(ITEMS, HOST_ONLY, (), TODAY, "host", phase="bringup").passed


def test_an_item_that_had_nothing_to_judge_never_passes() -> None:
    found = verdicts(NOTHING)
    assert found.pop("BU011") is Verdict.NOT_APPLICABLE
    assert Verdict.PASS not in found.values()
    assert Verdict.NOT_APPLICABLE not in found.values()


@pytest.mark.parametrize("item", ITEMS, ids=[i.code for i in ITEMS])
def test_every_item_has_a_rule_a_title_a_source_and_a_basis(item: CheckItem[BringupEvidence]) -> None:
    assert len(item.rule.split()) >= 15
    assert any(word in item.rule for word in ("FAIL", "NOT_RUN", "BLOCKED", "NOT_APPLICABLE"))
    assert item.title
    assert item.source
    assert item.basis
