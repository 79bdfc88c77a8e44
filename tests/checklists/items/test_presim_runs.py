from dataclasses import replace
from typing import Any

import pytest

from checklists.items.presim_runs import (
    accesses_and_leftovers,
    chain_grows_by_one,
    full_design_exact,
    no_hang,
    stages_exact_alone,
)
from checklists.model import Finding, Verdict
from presim.evidence import PresimEvidence, RunEvidence
from tests.presim_evidence import good_presim

GOOD = good_presim()
WRONG: dict[str, Any] = {
    "verdict": "wrong_data",
    "text": "object 0 of fifo 'f': element [1] is 3, expected 4",
    "mismatches": 1,
}
GROWS: dict[str, Any] = {"left": (("f", "w", False, "one more per inference"),), "verdict": "completes_leaving"}
KEPT: dict[str, Any] = {"left": (("f", "w", True, "prefetched"),), "verdict": "completes_leaving"}


def stages(**fields: Any) -> Finding:
    return stages_exact_alone(replace(GOOD, stages=(GOOD.stages[0], replace(GOOD.stages[1], **fields))))


def chain(*links: RunEvidence, **others: Any) -> Finding:
    return chain_grows_by_one(replace(GOOD, chain=links, **others))


def full(**fields: Any) -> PresimEvidence:
    return replace(GOOD, full=(replace(GOOD.full[0], **fields),))


@pytest.mark.parametrize(
    "item", [stages_exact_alone, chain_grows_by_one, full_design_exact, no_hang, accesses_and_leftovers]
)
def test_items_about_runs_apply_as_soon_as_one_dispatch_runs_on_the_array(item: Any) -> None:
    nothing = replace(GOOD, stages_expected=(), stages=(), chain=(), full=(), dispatches=())
    finding = item(nothing)
    assert finding.verdict is Verdict.NOT_APPLICABLE
    assert finding.figures["array_dispatches"] == 0
    assert item(replace(nothing, dispatches=("d0",))).verdict is Verdict.NOT_RUN
    assert item(replace(nothing, dispatches=("d0",), stages_expected=("conv",))).verdict is Verdict.NOT_RUN


def test_PS001_passes_and_counts() -> None:
    finding = stages()
    assert finding.verdict is Verdict.PASS
    assert finding.summary == "2 stages are exact alone: 200 elements, 0 mismatches (simulated)"


def test_PS001_one_wrong_element_fails_and_names_stage_and_element() -> None:
    finding = stages(**WRONG)
    assert finding.verdict is Verdict.FAIL
    assert finding.subjects == ("gemm",)
    assert "'gemm'" in finding.summary
    assert "element [1] is 3, expected 4" in finding.summary
    assert stages(mismatches=1).verdict is Verdict.FAIL


@pytest.mark.parametrize("verdict", ["deadlock", "starvation", "fault", "nondeterministic"])
def test_PS001_a_stage_that_does_not_end_fails(verdict: str) -> None:
    finding = stages(verdict=verdict, text="the cycle")
    assert finding.verdict is Verdict.FAIL
    assert "the cycle" in finding.summary


def test_PS001_what_grows_fails_and_what_is_kept_does_not() -> None:
    assert stages(**GROWS).verdict is Verdict.FAIL
    assert stages(**KEPT).verdict is Verdict.PASS


@pytest.mark.parametrize(
    "fields", [{"elements": 0}, {"boundaries": 0}, {"uncompared": ("f",)}, {"verdict": "inconclusive"}]
)
def test_PS001_a_stage_that_showed_nothing_is_not_run(fields: dict[str, Any]) -> None:
    finding = stages(**fields)
    assert finding.verdict is Verdict.NOT_RUN
    assert finding.subjects == ("gemm",)
    assert stages(elements=1, boundaries=1).verdict is Verdict.PASS


def test_PS001_a_stage_that_was_not_simulated_is_named() -> None:
    finding = stages_exact_alone(replace(GOOD, stages=GOOD.stages[:1]))
    assert finding.verdict is Verdict.NOT_RUN
    assert finding.subjects == ("gemm",)


def test_PS002_passes() -> None:
    assert chain(*GOOD.chain).verdict is Verdict.PASS


def test_PS002_names_the_stage_that_was_added_last() -> None:
    finding = chain(GOOD.chain[0], replace(GOOD.chain[1], **WRONG))
    assert finding.verdict is Verdict.FAIL
    assert finding.subjects == ("gemm",)
    assert finding.summary.startswith("chain after adding 'gemm': object 0")


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"added": ""}, "does not add exactly one new stage"),
        ({"added": "conv"}, "does not add exactly one new stage"),
        ({"added": "other"}, "does not add exactly one new stage"),
        ({"order": 2}, "out of order"),
    ],
)
def test_PS002_a_step_that_is_no_single_new_link_fails(fields: dict[str, Any], words: str) -> None:
    finding = chain(GOOD.chain[0], replace(GOOD.chain[1], **fields))
    assert finding.verdict is Verdict.FAIL
    assert words in finding.summary


def test_PS002_a_stage_has_to_run_alone_before_it_joins() -> None:
    late = (GOOD.stages[0], replace(GOOD.stages[1], order=3))
    finding = chain(*GOOD.chain, stages=late)
    assert finding.verdict is Verdict.FAIL
    assert "'gemm' joined the chain before it ran alone" in finding.summary
    assert chain(*GOOD.chain, stages=GOOD.stages[:1]).verdict is Verdict.FAIL
    early = (GOOD.stages[0], replace(GOOD.stages[1], order=2))
    assert chain(*GOOD.chain, stages=early).verdict is Verdict.PASS


def test_PS002_a_stage_that_never_joined_is_not_run() -> None:
    finding = chain(GOOD.chain[0])
    assert finding.verdict is Verdict.NOT_RUN
    assert finding.subjects == ("gemm",)


def test_PS003_passes_with_exactly_three_inputs_of_which_one_is_real() -> None:
    finding = full_design_exact(full())
    assert finding.verdict is Verdict.PASS
    assert finding.figures["inferences"] == 3
    assert finding.figures["real_inputs"] == 1


def test_PS003_a_wrong_element_fails_with_its_place() -> None:
    finding = full_design_exact(full(**WRONG))
    assert finding.verdict is Verdict.FAIL
    assert finding.subjects == ("d0",)
    assert "element [1] is 3, expected 4" in finding.summary


@pytest.mark.parametrize(
    "fields",
    [
        {"inferences": 2},
        {"distinct_inputs": 2},
        {"real_inputs": 0},
        {"elements": 0},
        {"uncompared": ("f",)},
        {"verdict": "deadlock"},
        {"verdict": "inconclusive"},
    ],
)
def test_PS003_one_unit_less_is_not_run(fields: dict[str, Any]) -> None:
    finding = full_design_exact(full(**fields))
    assert finding.verdict is Verdict.NOT_RUN
    assert finding.subjects == ("d0",)


@pytest.mark.parametrize("item", [full_design_exact, no_hang, accesses_and_leftovers])
def test_every_dispatch_has_to_be_simulated(item: Any) -> None:
    finding = item(replace(GOOD, dispatches=("d0", "d1")))
    assert finding.verdict is Verdict.NOT_RUN
    assert finding.subjects == ("d1",)
    two = (*GOOD.full, replace(GOOD.full[0], name="d1", dispatch="d1"))
    assert item(replace(GOOD, dispatches=("d0", "d1"), full=two)).verdict is Verdict.PASS


def test_PS004_passes_with_four_schedules_and_not_with_three() -> None:
    assert no_hang(full()).verdict is Verdict.PASS
    few = no_hang(full(schedules=3))
    assert few.verdict is Verdict.NOT_RUN
    assert "3 schedules tried, at least 4 expected" in few.summary


@pytest.mark.parametrize("verdict", ["deadlock", "starvation", "nondeterministic"])
def test_PS004_a_hang_fails_with_its_text(verdict: str) -> None:
    finding = no_hang(full(verdict=verdict, text="depth 3 in place of 2 lets it run"))
    assert finding.verdict is Verdict.FAIL
    assert "depth 3 in place of 2 lets it run" in finding.summary


def test_PS004_an_inconclusive_run_is_not_run() -> None:
    assert no_hang(full(verdict="inconclusive", text="bound")).verdict is Verdict.NOT_RUN


def test_PS004_counts_margins() -> None:
    figures = no_hang(replace(GOOD, margins=(("f", 3, 3), ("g", 4, 3)))).figures
    assert figures["fifos_with_known_margin"] == 2
    assert figures["fifos_at_least_depth"] == 1


def test_PS005_a_broken_rule_of_the_fifos_fails() -> None:
    finding = accesses_and_leftovers(full(verdict="fault", text="fault: use after release of fifo 'f'"))
    assert finding.verdict is Verdict.FAIL
    assert "use after release of fifo 'f'" in finding.summary


def test_PS005_what_grows_fails_and_what_is_kept_is_listed() -> None:
    grown = accesses_and_leftovers(full(**GROWS))
    assert grown.verdict is Verdict.FAIL
    assert "'f'" in grown.summary
    assert "one more per inference" in grown.summary
    kept = accesses_and_leftovers(full(**KEPT))
    assert kept.verdict is Verdict.PASS
    assert kept.figures["left_fine"] == ("f at w: prefetched",)


@pytest.mark.parametrize("verdict", ["deadlock", "wrong_data", "inconclusive"])
def test_PS005_a_run_that_did_not_end_shows_nothing_about_leftovers(verdict: str) -> None:
    assert accesses_and_leftovers(full(verdict=verdict)).verdict is Verdict.NOT_RUN
