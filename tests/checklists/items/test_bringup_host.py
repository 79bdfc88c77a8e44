"""BU005 to BU009, and BU013 to BU017 which ask the same of a device."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from bringup.evidence import BringupEvidence
from checklists.items.bringup_device import (
    device_chain,
    device_dispatches,
    device_handoff,
    device_runs,
    device_stages,
)
from checklists.items.bringup_host import host_chain, host_dispatches, host_handoff, host_runs, host_stages
from checklists.model import Finding, Verdict
from tests.bringup_evidence import changed, good_bringup, step

GOOD = good_bringup()
Item = Callable[[BringupEvidence], Finding]
ALL: tuple[tuple[Item, Item], ...] = (
    (host_stages, device_stages),
    (host_chain, device_chain),
    (host_dispatches, device_dispatches),
    (host_handoff, device_handoff),
    (host_runs, device_runs),
)
STAGE, CHAIN, WHOLE, HANDOFF = 1, 3, 4, 5
WRONG = {"status": "mismatch", "text": "output 'y': element [1] is 3, expected 4; likely cause: shift", "mismatches": 1}


@pytest.mark.parametrize(("host", "device"), ALL)
def test_the_same_rule_on_both_sides_sees_its_own_steps_alone(host: Item, device: Item) -> None:
    assert host(GOOD).verdict is device(GOOD).verdict is Verdict.PASS
    only_host = replace(GOOD, steps=GOOD.steps[:6])
    assert host(only_host).verdict is Verdict.PASS
    assert device(only_host).verdict is Verdict.BLOCKED
    only_device = replace(GOOD, steps=GOOD.steps[6:])
    assert host(only_device).verdict is Verdict.NOT_RUN
    assert device(only_device).verdict is Verdict.PASS


@pytest.mark.parametrize(
    ("item", "index", "name"),
    [(host_stages, STAGE, "gemm"), (host_chain, CHAIN, "gemm"), (host_dispatches, WHOLE, "d0")],
)
def test_one_wrong_element_fails_and_names_step_element_and_cause(item: Item, index: int, name: str) -> None:
    finding = item(changed(GOOD, index, **WRONG))
    assert finding.verdict is Verdict.FAIL
    assert name in finding.summary
    assert "element [1] is 3, expected 4" in finding.summary
    assert "shift" in finding.summary
    assert item(changed(GOOD, index, mismatches=1)).verdict is Verdict.FAIL


@pytest.mark.parametrize("fields", [{"elements": 0}, {"boundaries": 0}, {"uncompared": ("f",)}, {"real_inputs": 0}])
@pytest.mark.parametrize(("item", "index"), [(host_stages, STAGE), (host_dispatches, WHOLE), (host_handoff, HANDOFF)])
def test_what_shows_nothing_is_not_run(item: Item, index: int, fields: dict[str, object]) -> None:
    assert item(changed(GOOD, index, **fields)).verdict is Verdict.NOT_RUN


@pytest.mark.parametrize(("item", "index"), [(host_stages, STAGE), (host_dispatches, WHOLE), (host_handoff, HANDOFF)])
def test_another_canary_than_the_ports_shows_nothing(item: Item, index: int) -> None:
    assert item(changed(GOOD, index, canary_sha256="d" * 64)).verdict is Verdict.NOT_RUN
    assert item(replace(GOOD, canary_sha256="")).verdict is Verdict.NOT_RUN


@pytest.mark.parametrize("field", ["inferences", "distinct_inputs"])
@pytest.mark.parametrize(("item", "index"), [(host_dispatches, WHOLE), (host_handoff, HANDOFF)])
def test_a_dispatch_needs_three_different_inputs(item: Item, index: int, field: str) -> None:
    assert item(changed(GOOD, index, **{field: 2})).verdict is Verdict.NOT_RUN
    assert item(changed(GOOD, index, **{field: 4})).verdict is Verdict.PASS


def test_a_stage_that_did_not_run_is_named() -> None:
    finding = host_stages(replace(GOOD, steps=(GOOD.steps[0], *GOOD.steps[2:6])))
    assert finding.verdict is Verdict.NOT_RUN
    assert finding.subjects == ("gemm",)
    assert host_chain(replace(GOOD, steps=(*GOOD.steps[:3], GOOD.steps[4]))).subjects == ("gemm",)


def test_the_chain_grows_by_one() -> None:
    two = changed(GOOD, CHAIN, added=("conv", "gemm"))
    assert host_chain(two).verdict is Verdict.FAIL
    jump = replace(GOOD, steps=(*GOOD.steps[:2], replace(GOOD.steps[3], added=("gemm",)), GOOD.steps[4]))
    assert host_chain(jump).verdict is Verdict.FAIL
    assert "expected one stage" in host_chain(jump).summary


def test_a_stage_joins_only_after_it_was_exact_alone() -> None:
    late = changed(GOOD, STAGE, order=9)
    assert host_chain(late).verdict is Verdict.FAIL
    assert "before it was exact alone" in host_chain(late).summary
    assert host_chain(changed(GOOD, STAGE, **WRONG)).verdict is Verdict.FAIL


def test_the_chain_runs_in_order() -> None:
    assert "out of order" in host_chain(changed(GOOD, CHAIN, order=2)).summary


def test_a_kernel_that_changed_between_two_steps_fails_and_is_named() -> None:
    sources = (("kernels/conv.cc", "9" * 64), ("kernels/gemm.cc", "2" * 64))
    finding = host_chain(changed(GOOD, CHAIN, sources=sources))
    assert finding.verdict is Verdict.FAIL
    assert "kernels/conv.cc" in finding.summary


def test_the_hand_off_is_a_step_of_its_own_after_every_dispatch() -> None:
    early = changed(GOOD, HANDOFF, order=3)
    assert host_handoff(early).verdict is Verdict.FAIL
    assert host_handoff(replace(GOOD, steps=GOOD.steps[:5])).verdict is Verdict.NOT_RUN


def test_the_hand_off_does_not_apply_to_one_dispatch_alone() -> None:
    one = replace(GOOD, handoffs_expected=0, steps=GOOD.steps[:5])
    assert host_handoff(one).verdict is Verdict.NOT_APPLICABLE
    assert host_handoff(one).figures["handoffs_expected"] == 0
    assert host_handoff(replace(one, handoffs_expected=1)).verdict is Verdict.NOT_RUN


@pytest.mark.parametrize("status", ["deadlock", "timeout", "crash"])
def test_a_hang_or_crash_of_any_step_fails(status: str) -> None:
    finding = host_runs(changed(GOOD, 0, status=status, text="kernel 'k', argument 'row0'"))
    assert finding.verdict is Verdict.FAIL
    assert "row0" in finding.summary


def test_schedules_on_the_host_and_repetitions_on_a_device() -> None:
    assert host_runs(changed(GOOD, WHOLE, schedules=3)).verdict is Verdict.NOT_RUN
    assert device_runs(changed(GOOD, 6 + WHOLE, schedules=2)).verdict is Verdict.PASS
    assert device_runs(changed(GOOD, 6 + WHOLE, schedules=1)).verdict is Verdict.NOT_RUN


@pytest.mark.parametrize("status", ["ERT_CMD_STATE_TIMEOUT", "ERT_CMD_STATE_ABORT"])
def test_the_drivers_own_word_is_named(status: str) -> None:
    finding = device_runs(changed(GOOD, 6, driver_status=status))
    assert finding.verdict is Verdict.FAIL
    assert status in finding.summary
    assert device_runs(changed(GOOD, 6, driver_status="")).verdict is Verdict.NOT_RUN


@pytest.mark.parametrize("item", [pair[0] for pair in ALL if pair[0] is not host_handoff])
def test_items_apply_as_soon_as_one_dispatch_runs_on_the_array(item: Item) -> None:
    nothing = replace(GOOD, dispatches=(), stages_expected=(), steps=())
    assert item(nothing).verdict is Verdict.NOT_APPLICABLE
    assert item(nothing).figures["array_dispatches"] == 0
    assert item(replace(nothing, dispatches=("d0",))).verdict is Verdict.NOT_RUN


def test_recorded_steps_count_for_the_device_and_are_called_recorded() -> None:
    rows = tuple(replace(s, runs="recorded") for s in GOOD.steps[6:])
    finding = device_stages(replace(GOOD, steps=rows))
    assert finding.verdict is Verdict.PASS
    assert "recorded on hardware" in finding.summary
    assert "executed on this host" in host_stages(GOOD).summary
    assert "measured on hardware" in device_stages(GOOD).summary


def test_steps_are_kept_apart_by_kind() -> None:
    extra = step("stage", "conv", 20, parts=("conv",), added="conv")
    assert host_dispatches(replace(GOOD, steps=(extra,))).verdict is Verdict.NOT_RUN


@pytest.mark.parametrize(("schedules", "verdict"), [(0, Verdict.FAIL), (1, Verdict.FAIL), (2, Verdict.PASS)])
def test_runs_that_do_not_agree_are_told_apart_from_wrong_ones(schedules: int, verdict: Verdict) -> None:
    """A wrong result that came twice alike is for the items that compare with the oracle."""
    text = "two runs with the same inputs differ in tensor 'y'"
    finding = device_runs(changed(GOOD, 6, status="mismatch", text=text, schedules=schedules))
    assert finding.verdict is verdict
    assert (text in finding.summary) is (verdict is Verdict.FAIL)
