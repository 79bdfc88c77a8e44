"""The presim checklist as a whole."""

from dataclasses import replace
from datetime import date

import pytest

from checklists.evaluate import evaluate
from checklists.items import presim_runs
from checklists.items.presim import ITEMS
from checklists.model import CheckItem, Verdict, Waiver
from checklists.report import load_report, report_to_json
from presim.evidence import PresimEvidence
from tests.presim_evidence import good_presim

TODAY = date(2030, 1, 1)
GOOD = good_presim()
NOTHING = replace(
    GOOD,
    stages=(),
    chain=(),
    full=(),
    static=(),
    budgets=(),
    kernels=0,
    mechanisms=(),
    equivalences=(),
    regimes=(),
    regression=None,
    design_again_sha256="",
)


def test_codes_are_stable() -> None:
    assert [item.code for item in ITEMS] == [f"PS{n:03}" for n in range(1, 15)]


def test_good_evidence_passes_and_reads_back() -> None:
    report = evaluate(ITEMS, GOOD, (), TODAY, phase="presim")
    assert report.words == "PASS at host level"
    assert {i.verdict for i in report.items} == {Verdict.PASS}
    assert load_report(report_to_json(report)) == report


def test_an_item_that_had_nothing_to_judge_never_passes() -> None:
    report = evaluate(ITEMS, NOTHING, (), TODAY, phase="presim")
    assert {i.verdict for i in report.items} == {Verdict.NOT_RUN}


def test_a_model_without_work_on_the_array_is_shown_as_such() -> None:
    host = replace(NOTHING, dispatches=(), stages_expected=(), decompositions=(), design_again_sha256="a" * 64)
    report = evaluate(ITEMS, host, (), TODAY, phase="presim")
    verdicts = {i.code: i.verdict for i in report.items}
    assert verdicts.pop("PS009") is Verdict.PASS
    assert set(verdicts.values()) == {Verdict.NOT_APPLICABLE}


def test_an_unknown_device_figure_is_waived_by_its_name() -> None:
    rows = (replace(GOOD.budgets[0], have=None), GOOD.budgets[1])
    waiver = Waiver(code="PS007", subject="l1_bytes", reason="r", owner="o", until=TODAY)
    evidence = replace(GOOD, budgets=rows)
    assert evaluate(ITEMS, evidence, (), TODAY, phase="presim").verdict is Verdict.NOT_RUN
    assert evaluate(ITEMS, evidence, (waiver,), TODAY, phase="presim").passed


@pytest.mark.parametrize("item", ITEMS, ids=[i.code for i in ITEMS])
def test_every_item_has_a_rule_a_title_a_source_and_a_basis(item: CheckItem[PresimEvidence]) -> None:
    assert len(item.rule.split()) >= 15
    assert any(word in item.rule for word in ("FAIL", "NOT_RUN"))
    assert item.title
    assert item.source
    assert item.basis


def test_limits_stand_in_the_rule_that_applies_them() -> None:
    assert f"fewer than {presim_runs.MIN_INPUTS} inferences" in (presim_runs.full_design_exact.__doc__ or "")
    assert f"fewer than {presim_runs.MIN_SCHEDULES} schedules" in (presim_runs.no_hang.__doc__ or "")
