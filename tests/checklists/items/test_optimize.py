"""The optimization checklist as a whole, and each item on both sides of its limit."""

from collections.abc import Callable
from dataclasses import replace
from datetime import date

import pytest

from checklists.evaluate import evaluate
from checklists.items.optimize import ITEMS
from checklists.model import CheckItem, Finding, Level, Verdict
from checklists.report import load_report, report_to_json
from optimize.evidence import AblationEvidence, BoundaryEvidence, OptimizeEvidence
from tests.optimize_evidence import ablation, candidate, good_optimize

TODAY = date(2030, 1, 1)
GOOD = good_optimize()
assert GOOD.before is not None
assert GOOD.after is not None
BEFORE, AFTER = GOOD.before, GOOD.after
SIMULATED = replace(GOOD, before=replace(BEFORE, basis="simulated"), after=replace(AFTER, basis="simulated"))
NOTHING = replace(
    SIMULATED,
    ablation=(),
    candidates=(),
    before=None,
    after=None,
    placements=(),
    boundaries=(),
    regimes=(),
    bandwidth=("", "", ""),
    conversions=(),
    streamed=(),
    screening=(),
    kernels=0,
)


def item(code: str) -> Callable[[OptimizeEvidence], Finding]:
    return next(i.run for i in ITEMS if i.code == code)


def verdict(code: str, evidence: OptimizeEvidence) -> Verdict:
    return item(code)(evidence).verdict


def test_codes_are_stable() -> None:
    assert [i.code for i in ITEMS] == [f"OP{n:03}" for n in range(1, 14)]
    assert [i.code for i in ITEMS if i.level == "hardware"] == ["OP013"]


def test_good_evidence_passes_at_both_levels() -> None:
    levels: tuple[Level, ...] = ("host", "hardware")
    for level in levels:
        report = evaluate(ITEMS, GOOD, (), TODAY, level, phase="optimize")
        assert report.words == f"PASS at {level} level"
        assert load_report(report_to_json(report)) == report
    assert {i.verdict for i in evaluate(ITEMS, GOOD, (), TODAY, "hardware").items} == {Verdict.PASS}


def test_a_simulated_gain_never_passes_at_hardware_level() -> None:
    assert evaluate(ITEMS, SIMULATED, (), TODAY, "host").passed
    assert evaluate(ITEMS, SIMULATED, (), TODAY, "hardware").verdict is Verdict.NOT_RUN
    assert verdict("OP013", SIMULATED) is Verdict.BLOCKED


def test_an_item_that_had_nothing_to_judge_never_passes() -> None:
    found = {i.code: i.verdict for i in evaluate(ITEMS, NOTHING, (), TODAY, "hardware").items}
    assert set(found.values()) == {Verdict.NOT_RUN, Verdict.BLOCKED}


def test_nothing_applies_without_a_dispatch_on_the_array() -> None:
    host = replace(NOTHING, dispatches=(), expected_boundaries=0, conversions_expected=0, weighted_ops=0, candidates=())
    found = {i.code: i.verdict for i in evaluate(ITEMS, host, (), TODAY, "host").items}
    assert found.pop("OP013") is Verdict.BLOCKED
    assert set(found.values()) == {Verdict.NOT_APPLICABLE}


@pytest.mark.parametrize("row", ITEMS, ids=[i.code for i in ITEMS])
def test_every_item_has_a_rule_a_title_a_source_and_a_basis(row: CheckItem[OptimizeEvidence]) -> None:
    assert len(row.rule.split()) >= 15
    assert any(word in row.rule for word in ("FAIL", "NOT_RUN", "BLOCKED"))
    assert row.title
    assert row.source
    assert row.basis


@pytest.mark.parametrize(
    "rows",
    [
        (ablation("conv", 600, 1), ablation("gemm", 700, 2)),
        (ablation("conv", 600, 1), ablation("gemm", 100, 3)),
        (ablation("conv", 600, 1), ablation("gemm", 100, 1)),
    ],
)
def test_OP001_what_is_no_ranking_fails(rows: tuple[AblationEvidence, ...]) -> None:
    assert verdict("OP001", replace(GOOD, ablation=rows)) is Verdict.FAIL


def test_OP001_names_a_dispatch_without_one() -> None:
    finding = item("OP001")(replace(GOOD, dispatches=("d0", "d1")))
    assert finding.verdict is Verdict.NOT_RUN
    assert finding.subjects == ("d1",)


def test_OP002_work_down_the_ranking_passes_and_up_it_fails() -> None:
    first, second = GOOD.candidates
    finding = item("OP002")(replace(GOOD, candidates=(second, first)))
    assert finding.verdict is Verdict.FAIL
    assert "conv" in finding.summary
    later = replace(first, turn=2)
    assert verdict("OP002", replace(GOOD, candidates=(second, later))) is Verdict.PASS
    assert verdict("OP002", replace(GOOD, candidates=(first, replace(second, rank=1)))) is Verdict.PASS


def test_OP002_a_group_without_a_rank_fails_and_whole_designs_do_not_count() -> None:
    first, second = GOOD.candidates
    assert verdict("OP002", replace(GOOD, candidates=(first, replace(second, rank=0)))) is Verdict.FAIL
    whole = candidate("c0", "", accepted=True)
    assert verdict("OP002", replace(GOOD, candidates=(whole,))) is Verdict.NOT_APPLICABLE
    assert item("OP002")(replace(GOOD, candidates=(whole,))).figures["on_single_groups"] == 0


@pytest.mark.parametrize("fields", [{"mismatches": 1}, {"elements": 0}, {"verdict": "wrong_data"}])
def test_OP003_an_accepted_candidate_that_changes_one_bit_fails(fields: dict[str, object]) -> None:
    wrong = replace(GOOD.candidates[0], **fields)  # type: ignore[arg-type]
    finding = item("OP003")(replace(GOOD, candidates=(wrong, GOOD.candidates[1])))
    assert finding.verdict is Verdict.FAIL
    assert finding.subjects == ("c1",)
    rejected = replace(wrong, accepted=False, reason="changes a bit")
    assert verdict("OP003", replace(GOOD, candidates=(rejected, candidate("c3", "", accepted=True)))) is Verdict.PASS


def test_OP003_a_candidate_that_was_dropped_without_a_reason_fails() -> None:
    assert verdict("OP003", replace(GOOD, candidates=(candidate("c1", "", accepted=False),))) is Verdict.FAIL


@pytest.mark.parametrize(
    ("goal", "key", "value"),
    [("throughput", "interval_cycles", 1000), ("latency", "latency_cycles", 1200), ("tiles", "tiles", 3)],
)
def test_OP004_the_same_is_not_better_and_one_less_is(goal: str, key: str, value: int) -> None:
    same = replace(GOOD, goal=goal, after=replace(AFTER, **{key: value}))  # type: ignore[arg-type]
    assert verdict("OP004", same) is Verdict.FAIL
    less = replace(GOOD, goal=goal, after=replace(AFTER, **{key: value - 1}))  # type: ignore[arg-type]
    assert verdict("OP004", less) is Verdict.PASS


def test_OP004_the_winner_needs_gates_of_its_own() -> None:
    assert verdict("OP004", replace(GOOD, after=replace(AFTER, presim="FAIL"))) is Verdict.FAIL
    assert verdict("OP004", replace(GOOD, after=replace(AFTER, bringup="FAIL at host level"))) is Verdict.FAIL
    assert verdict("OP004", replace(GOOD, after=replace(AFTER, bringup=""))) is Verdict.NOT_RUN


@pytest.mark.parametrize("code", ["OP004", "OP005", "OP013"])
def test_nothing_better_is_a_result_only_if_something_was_tried(code: str) -> None:
    stays = replace(GOOD, after=None)
    assert verdict(code, stays) is Verdict.NOT_APPLICABLE
    assert item(code)(stays).figures["candidates"] == 2
    assert verdict(code, replace(stays, candidates=())) in (Verdict.NOT_RUN, Verdict.BLOCKED)


def test_OP005_other_outputs_fail() -> None:
    assert verdict("OP005", replace(GOOD, after=replace(AFTER, output_sha256="d" * 64))) is Verdict.FAIL
    assert verdict("OP005", replace(GOOD, after=replace(AFTER, output_sha256=""))) is Verdict.NOT_RUN


def test_OP006_an_illegal_or_unreproducible_placement_fails() -> None:
    (row,) = GOOD.placements
    illegal = replace(row, legal=False, fault="core tile (0, 2) twice")
    assert "core tile (0, 2) twice" in item("OP006")(replace(GOOD, placements=(illegal,))).summary
    assert verdict("OP006", replace(GOOD, placements=(replace(row, reproducible=False),))) is Verdict.FAIL
    assert verdict("OP006", replace(GOOD, placements=())) is Verdict.NOT_RUN


def test_OP007_a_better_boundary_that_was_not_taken_fails() -> None:
    (row,) = GOOD.boundaries
    assert verdict("OP007", replace(GOOD, boundaries=(replace(row, better=True),))) is Verdict.FAIL
    assert verdict("OP007", replace(GOOD, expected_boundaries=2)) is Verdict.NOT_RUN
    assert verdict("OP007", replace(GOOD, expected_boundaries=0)) is Verdict.NOT_APPLICABLE
    more = BoundaryEvidence(tensor="u", bytes=1, cycles=1, alternative="a", better=False)
    assert verdict("OP007", replace(GOOD, expected_boundaries=2, boundaries=(row, more))) is Verdict.PASS


def test_OP008_regimes_with_other_bounds_need_the_best_design_for_each() -> None:
    first, second = GOOD.regimes
    assert verdict("OP008", replace(GOOD, regimes=(first, replace(second, better="c7")))) is Verdict.FAIL
    assert verdict("OP008", replace(GOOD, regimes=(first, replace(second, placement="a")))) is Verdict.PASS
    same = replace(GOOD, regimes=(first, replace(second, bound="compute", placement="a")))
    assert verdict("OP008", same) is Verdict.NOT_APPLICABLE
    assert verdict("OP008", replace(GOOD, regimes=(first,))) is Verdict.NOT_RUN


def test_OP009_a_table_says_what_it_is() -> None:
    assert verdict("OP009", replace(GOOD, bandwidth=("mine", "", "f" * 64))) is Verdict.FAIL
    assert verdict("OP009", replace(GOOD, bandwidth=("mine", "measured", "f" * 64))) is Verdict.PASS


def test_OP010_and_OP011_need_every_op() -> None:
    assert verdict("OP010", replace(GOOD, conversions=(("permute", 0),))) is Verdict.FAIL
    assert verdict("OP010", replace(GOOD, conversions_expected=2)) is Verdict.NOT_RUN
    assert verdict("OP011", replace(GOOD, weighted_ops=3)) is Verdict.NOT_RUN
    assert verdict("OP011", replace(GOOD, streamed=(("conv", "resident", ""), GOOD.streamed[1]))) is Verdict.FAIL


def test_OP012_a_static_finding_is_never_a_speed_up() -> None:
    claimed = (replace(GOOD.screening[0], confirmed=True),)
    assert verdict("OP012", replace(SIMULATED, screening=claimed)) is Verdict.FAIL
    assert verdict("OP012", replace(GOOD, screening=claimed)) is Verdict.PASS
    assert "hardware unconfirmed" in item("OP012")(GOOD).summary


def test_OP013_a_measured_loss_fails() -> None:
    assert verdict("OP013", replace(GOOD, after=replace(AFTER, interval_cycles=1000))) is Verdict.FAIL
