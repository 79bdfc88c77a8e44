"""The checklist as a whole."""

from dataclasses import replace
from datetime import date

import pytest

from checklists.evaluate import evaluate
from checklists.items import baseline_data
from checklists.items.baseline import ITEMS
from checklists.model import CheckItem, Verdict
from checklists.report import load_report, report_to_json
from oracle.evidence import BaselineEvidence, BudgetEvidence, CpuEvidence, ManifestEvidence, SchemeEvidence

TODAY = date(2030, 1, 1)


def nothing_collected() -> BaselineEvidence:
    """What is left when no step of the phase ran."""
    return BaselineEvidence(
        data=True,
        scheme=SchemeEvidence(
            tensors=0, unlocked=(), claims_power_of_two=False, scales=0, power_of_two=0, exceptions=()
        ),
        manifest=ManifestEvidence(
            schema_errors=(),
            first_sha256="",
            second_sha256="",
            reload_equal=False,
            layouts=0,
            layout_failures=(),
        ),
        budget=BudgetEvidence(
            device="npu2", dispatches=(), cuts=(), concatenation_elements=0, concatenation_mismatches=0
        ),
        accumulators=(),
        random_ops=None,
        comparisons=(),
        cpu=CpuEvidence(flags=(), integer_kernels_exact=False, hazard_ops=(), reference_used="", switched=False),
    )


def test_codes_are_stable() -> None:
    assert [item.code for item in ITEMS] == [f"BL{n:03}" for n in range(1, 15)]


def test_good_evidence_passes_and_reads_back(good: BaselineEvidence) -> None:
    report = evaluate(ITEMS, good, (), TODAY)
    assert report.words == "PASS at host level"
    assert {i.code: i.verdict for i in report.items if i.verdict is not Verdict.PASS} == {
        "BL013": Verdict.NOT_APPLICABLE
    }
    assert load_report(report_to_json(report)) == report


def test_an_item_that_had_nothing_to_judge_never_passes() -> None:
    report = evaluate(ITEMS, nothing_collected(), (), TODAY)
    verdicts = {i.code: i.verdict for i in report.items}
    assert verdicts.pop("BL006") is Verdict.NOT_APPLICABLE
    assert verdicts.pop("BL007") is Verdict.NOT_APPLICABLE
    assert set(verdicts.values()) == {Verdict.NOT_RUN}
    assert report.verdict is Verdict.NOT_RUN


@pytest.mark.parametrize("item", ITEMS, ids=[i.code for i in ITEMS])
def test_every_item_has_a_rule_a_title_a_source_and_a_basis(item: CheckItem[BaselineEvidence]) -> None:
    assert len(item.rule.split()) >= 15
    assert any(word in item.rule for word in ("FAIL", "NOT_RUN"))
    assert item.title
    assert item.source
    assert item.basis


def test_limits_stand_in_the_rule_that_applies_them() -> None:
    rule = baseline_data.inputs_in_range.__doc__ or ""
    assert f"{100 * baseline_data.MAX_CLIPPED:.0f} %" in rule
    for limit in (baseline_data.EDGE, baseline_data.MIN_USED_8_BIT, baseline_data.MIN_USED_16_BIT):
        assert f"1/{round(1 / limit)}" in rule
    assert f"{baseline_data.FAR:.0f} times" in rule


def test_without_data_the_gate_does_not_pass_and_says_what_to_do(good: BaselineEvidence) -> None:
    report = evaluate(
        ITEMS, replace(good, data=False, comparisons=(), accuracy=None, target=None, inputs=()), (), TODAY
    )
    left = {i.code: i.summary for i in report.items if i.verdict is Verdict.NOT_RUN}
    assert set(left) == {"BL003", "BL009", "BL011", "BL012"}
    assert all("--data" in summary for summary in left.values())
    assert report.verdict is Verdict.NOT_RUN
