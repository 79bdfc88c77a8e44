"""What a run tells the person to do next."""

from dataclasses import replace
from datetime import date
from pathlib import Path

from checklists.evaluate import evaluate
from checklists.items import baseline, bringup
from checklists.items.presim import ITEMS
from checklists.model import GateReport
from phases.summary import next_steps
from tests.baseline_evidence import good_evidence
from tests.bringup_evidence import good_bringup
from tests.ports import TODAY
from tests.presim_evidence import good_presim

GOOD = good_presim()


def presim(**fields: object) -> GateReport:
    return evaluate(ITEMS, replace(GOOD, **fields), (), date(2030, 1, 1), phase="presim")  # type: ignore[arg-type]


def steps(report: GateReport) -> str:
    return "\n".join(next_steps(Path("m.port"), report, has_data=True))


def test_a_baseline_that_passed_leads_to_phase_2() -> None:
    report = evaluate(baseline.ITEMS, good_evidence(), (), TODAY)
    assert steps(report).startswith("python -m phases.presim m.port")


def test_a_presim_that_passed_leads_to_phase_3_and_its_suite() -> None:
    first, second = steps(presim()).splitlines()
    assert first.startswith("python -m phases.bringup m.port --backend host --level host")
    assert second == "python -m pytest m.port/regress runs the standing stage tests"


def test_a_bringup_that_passed_leads_to_the_board() -> None:
    report = evaluate(bringup.ITEMS, good_bringup(), (), TODAY, phase="bringup")
    assert steps(report).splitlines()[0].startswith("python -m phases.optimize m.port")
    assert "make -C m.port/generated" in steps(report)


def test_a_bringup_that_lacks_a_device_alone_leads_to_the_host_level() -> None:
    host = replace(good_bringup(), steps=good_bringup().steps[:6])
    report = evaluate(bringup.ITEMS, host, (), TODAY, "hardware", phase="bringup")
    assert steps(report).startswith("python -m phases.bringup m.port --level host")
    assert "explain BU012" in steps(report)


def test_an_unknown_figure_is_waived_by_its_name() -> None:
    row = replace(GOOD.budgets[0], have=None)
    text = steps(presim(budgets=(row, GOOD.budgets[1])))
    assert "python -m phases explain PS007" in text
    assert "python -m phases waive m.port PS007 --figure l1_bytes" in text


def test_other_gaps_are_explained_and_not_waived() -> None:
    text = steps(presim(regression=None))
    assert "explain PS013" in text
    assert "waive" not in text


def test_a_failure_can_be_accepted_with_its_subject() -> None:
    bad = replace(GOOD.stages[1], verdict="wrong_data", mismatches=1)
    text = steps(presim(stages=(GOOD.stages[0], bad)))
    assert "waive m.port PS001 --tensor or --op (one of gemm)" in text
