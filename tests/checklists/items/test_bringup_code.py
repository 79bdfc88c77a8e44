"""BU001 to BU004, BU010, BU011, BU012 and BU018."""

from dataclasses import replace

import pytest

from bringup.evidence import MemoryRow, RuleEvidence
from checklists.items.bringup_code import (
    artifacts_linked,
    emitted_is_simulated,
    outputs_alive,
    overflows_split,
    rules_recorded,
    sources_clean,
)
from checklists.items.bringup_device import device_matches, device_stack
from checklists.model import Verdict
from tests.bringup_evidence import changed, good_bringup

GOOD = good_bringup()


def test_BU001_another_design_than_the_planned_one_fails() -> None:
    assert emitted_is_simulated(GOOD).verdict is Verdict.PASS
    finding = emitted_is_simulated(changed(GOOD, 4, lowered_sha256="e" * 64, text="fifo 'f': depth 2, planned 3"))
    assert finding.verdict is Verdict.FAIL
    assert "depth 2, planned 3" in finding.summary


@pytest.mark.parametrize("field", ["lowered_sha256", "planned_sha256"])
def test_BU001_what_was_not_lowered_is_not_run(field: str) -> None:
    assert emitted_is_simulated(changed(GOOD, 4, **{field: ""})).verdict is Verdict.NOT_RUN
    assert emitted_is_simulated(replace(GOOD, steps=GOOD.steps[:4])).verdict is Verdict.NOT_RUN


def test_BU002_a_finding_fails_and_names_rule_file_and_line() -> None:
    assert GOOD.lint is not None
    assert sources_clean(GOOD).verdict is Verdict.PASS
    found = replace(GOOD.lint, findings=(("restrict", "kernels/conv.cc:3", "pointer without __restrict"),))
    finding = sources_clean(replace(GOOD, lint=found))
    assert finding.verdict is Verdict.FAIL
    assert "kernels/conv.cc:3" in finding.summary
    assert "restrict" in finding.summary


def test_BU002_no_rule_or_no_file_is_not_run() -> None:
    assert GOOD.lint is not None
    for lint in (None, replace(GOOD.lint, rules=()), replace(GOOD.lint, files=0)):
        assert sources_clean(replace(GOOD, lint=lint)).verdict is Verdict.NOT_RUN


def test_BU003_a_changed_missing_or_added_file_fails_and_is_named() -> None:
    assert artifacts_linked(GOOD).verdict is Verdict.PASS
    for disk in (
        (GOOD.on_disk[0], ("kernels/gemm.cc", "9" * 64)),
        GOOD.on_disk[:1],
        (*GOOD.on_disk, ("x.cc", "3" * 64)),
    ):
        finding = artifacts_linked(replace(GOOD, on_disk=disk))
        assert finding.verdict is Verdict.FAIL
        assert "gemm.cc" in finding.summary or "x.cc" in finding.summary


def test_BU003_a_step_built_from_a_stale_file_fails() -> None:
    finding = artifacts_linked(changed(GOOD, 0, sources=(("kernels/conv.cc", "9" * 64),)))
    assert finding.verdict is Verdict.FAIL
    assert finding.subjects == ("kernels/conv.cc",)


def test_BU003_another_emission_that_differs_fails_and_none_is_not_run() -> None:
    assert artifacts_linked(replace(GOOD, emitted_again_equal=False)).verdict is Verdict.FAIL
    assert artifacts_linked(replace(GOOD, emitted_again_equal=None)).verdict is Verdict.NOT_RUN
    assert artifacts_linked(replace(GOOD, steps=())).verdict is Verdict.NOT_RUN
    assert artifacts_linked(changed(GOOD, 0, sources=())).verdict is Verdict.NOT_RUN


def test_BU004_one_byte_above_fails() -> None:
    assert overflows_split(GOOD).verdict is Verdict.PASS
    finding = overflows_split(replace(GOOD, memory=(replace(GOOD.memory[0], need=65537),)))
    assert finding.verdict is Verdict.FAIL
    assert "need 65537 bytes, have 65536" in finding.summary


def test_BU004_a_dispatch_without_rows_or_an_unknown_figure_is_not_run() -> None:
    assert overflows_split(replace(GOOD, memory=())).verdict is Verdict.NOT_RUN
    assert overflows_split(replace(GOOD, memory=(replace(GOOD.memory[0], have=None),))).verdict is Verdict.NOT_RUN
    other = MemoryRow(dispatch="d1", place="core (1, 2)", need=1, have=2)
    assert overflows_split(replace(GOOD, memory=(other,))).verdict is Verdict.NOT_RUN


def test_BU010_an_output_of_one_value_fails_and_is_named() -> None:
    assert outputs_alive(GOOD).verdict is Verdict.PASS
    finding = outputs_alive(changed(GOOD, 4, uniform=("logits",)))
    assert finding.verdict is Verdict.FAIL
    assert finding.subjects == ("logits",)


def test_BU010_without_a_compared_dispatch_is_not_run() -> None:
    assert outputs_alive(replace(GOOD, steps=GOOD.steps[:4])).verdict is Verdict.NOT_RUN


def test_BU011_an_event_without_a_rule_fails() -> None:
    assert rules_recorded(GOOD).verdict is Verdict.PASS
    lost = RuleEvidence(event="op 'fc2' overflows L1", recorded=False)
    finding = rules_recorded(replace(GOOD, rules=(*GOOD.rules, lost)))
    assert finding.verdict is Verdict.FAIL
    assert "fc2" in finding.summary


def test_BU011_does_not_apply_to_0_events_and_applies_to_1() -> None:
    assert rules_recorded(replace(GOOD, rules=())).verdict is Verdict.NOT_APPLICABLE
    assert rules_recorded(replace(GOOD, rules=())).figures["events"] == 0
    assert rules_recorded(GOOD).figures["events"] == 1


def test_BU012_another_or_an_unknown_device_fails() -> None:
    assert device_matches(GOOD).verdict is Verdict.PASS
    for name in ("npu1", ""):
        finding = device_matches(replace(GOOD, device_name=name, device_reported="NPU Phoenix"))
        assert finding.verdict is Verdict.FAIL
        assert "NPU Phoenix" in finding.summary
        assert "npu2" in finding.summary


def test_BU012_without_a_device_is_blocked_with_the_reason() -> None:
    finding = device_matches(replace(GOOD, steps=GOOD.steps[:6], unavailable="pyxrt: not installed"))
    assert finding.verdict is Verdict.BLOCKED
    assert finding.summary == "pyxrt: not installed"


def test_BU018_one_byte_of_stack_too_little_fails() -> None:
    assert device_stack(GOOD).verdict is Verdict.PASS
    finding = device_stack(replace(GOOD, stack=(("conv", 1024, 1025),)))
    assert finding.verdict is Verdict.FAIL
    assert "1025" in finding.summary
    assert device_stack(replace(GOOD, stack=())).verdict is Verdict.NOT_RUN
