from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from checklists.items.baseline_budget import dispatches_fit
from checklists.items.baseline_exact import (
    dispatches_concatenate,
    exact_full_model,
    exact_per_op,
    kernel_numbers_exact,
    reference_trustworthy,
    target_equals_reference,
)
from checklists.model import Finding, Verdict
from oracle.evidence import BaselineEvidence, Comparison, KernelEvidence, KernelFault, Mismatch

FIRST = Mismatch(index=(0, 3, 1), expected="5", got="6", exact="11/2", cause="tie rounded up")
Judge = Callable[[BaselineEvidence], Finding]
Put = Callable[[BaselineEvidence, Comparison], BaselineEvidence]


def put_random(e: BaselineEvidence, c: Comparison) -> BaselineEvidence:
    return replace(e, random_ops=replace(c, kind="random_op"))


def put_full(e: BaselineEvidence, c: Comparison) -> BaselineEvidence:
    return replace(e, comparisons=(replace(c, kind="file_op"),))


BOTH = pytest.mark.parametrize(("judge", "put"), [(exact_per_op, put_random), (exact_full_model, put_full)])


def first_row(c: Comparison, **fields: Any) -> Comparison:
    return replace(c, tensors=(replace(c.tensors[0], **fields), *c.tensors[1:]))


@BOTH
def test_BL008_BL009_pass_with_no_difference(good: BaselineEvidence, judge: Judge, put: Put) -> None:
    finding = judge(put(good, good.comparisons[0]))
    assert finding.verdict is Verdict.PASS
    assert finding.figures["elements"] == 200
    assert finding.figures["near_ties"] == 0


@BOTH
def test_BL008_BL009_fail_on_one_unexplained_element_and_name_it(
    good: BaselineEvidence, judge: Judge, put: Put
) -> None:
    finding = judge(put(good, first_row(good.comparisons[0], mismatches=1, unexplained=1, first=FIRST)))
    assert finding.verdict is Verdict.FAIL
    assert finding.subjects == ("conv_out",)
    assert finding.ops == {"conv_out": "conv"}
    for words in ("'conv_out'", "'conv'", "Conv", "[0, 3, 1]", "expected 5", "got 6", "11/2", "tie rounded up"):
        assert words in finding.summary


@BOTH
def test_BL008_BL009_pass_when_each_difference_is_explained(good: BaselineEvidence, judge: Judge, put: Put) -> None:
    finding = judge(put(good, first_row(good.comparisons[0], mismatches=3, near_ties=1, reference_inexact=2)))
    assert finding.verdict is Verdict.PASS
    assert (finding.figures["near_ties"], finding.figures["reference_inexact_above_2_24"]) == (1, 2)
    assert "1 near tie," in finding.summary
    assert "above 2^24: 2 elements" in finding.summary


@BOTH
def test_BL008_BL009_count_floats_within_tolerance_apart_from_near_ties(
    good: BaselineEvidence, judge: Judge, put: Put
) -> None:
    finding = judge(put(good, first_row(good.comparisons[0], mismatches=5, near_ties=2, within_tolerance=3)))
    assert finding.verdict is Verdict.PASS
    assert (finding.figures["near_ties"], finding.figures["floats_within_tolerance"]) == (2, 3)
    assert "2 near ties, 3 floats within 1e-05 relative" in finding.summary
    beyond = judge(put(good, first_row(good.comparisons[0], mismatches=6, near_ties=2, within_tolerance=3)))
    assert beyond.verdict is Verdict.FAIL


@BOTH
def test_BL008_BL009_fail_on_a_row_that_does_not_add_up(good: BaselineEvidence, judge: Judge, put: Put) -> None:
    assert judge(put(good, first_row(good.comparisons[0], mismatches=2, near_ties=1))).verdict is Verdict.FAIL


@BOTH
@pytest.mark.parametrize(
    "fields",
    [
        {"tensors": ()},
        {"samples": 0},
        {"tensors_expected": 3},
        {"tensors_expected": 0},
        {"why_not": "onnxruntime cannot run it"},
    ],
)
def test_BL008_BL009_are_not_run_over_too_little(
    good: BaselineEvidence, judge: Judge, put: Put, fields: dict[str, Any]
) -> None:
    finding = judge(put(good, replace(good.comparisons[0], **fields)))
    assert finding.verdict is Verdict.NOT_RUN
    assert finding.subjects == ()


@BOTH
def test_BL008_BL009_one_sample_of_one_element_of_one_tensor_is_enough(
    good: BaselineEvidence, judge: Judge, put: Put
) -> None:
    tiny = replace(first_row(good.comparisons[0], elements=1), samples=1, tensors_expected=1)
    finding = judge(put(good, replace(tiny, tensors=tiny.tensors[:1])))
    assert finding.verdict is Verdict.PASS
    assert (finding.figures["samples"], finding.figures["elements"], finding.figures["tensors"]) == (1, 1, 1)


@BOTH
def test_BL008_BL009_say_how_many_more_tensors_differ(good: BaselineEvidence, judge: Judge, put: Put) -> None:
    one = first_row(good.comparisons[0], mismatches=1, unexplained=1)
    assert "more tensor" not in judge(put(good, one)).summary
    both = replace(one, tensors=tuple(replace(t, mismatches=1, unexplained=1) for t in one.tensors))
    finding = judge(put(good, both))
    assert "1 more tensor differs" in finding.summary
    assert finding.subjects == ("conv_out", "gemm_out")


@BOTH
def test_BL008_BL009_are_not_run_over_zero_elements_of_one_tensor(
    good: BaselineEvidence, judge: Judge, put: Put
) -> None:
    finding = judge(put(good, first_row(good.comparisons[0], elements=0)))
    assert finding.verdict is Verdict.NOT_RUN
    assert "'conv_out'" in finding.summary


@BOTH
def test_BL008_BL009_count_a_tensor_compared_twice_once(good: BaselineEvidence, judge: Judge, put: Put) -> None:
    twice = replace(good.comparisons[0], tensors=(good.comparisons[0].tensors[0],) * 2)
    assert judge(put(good, twice)).verdict is Verdict.NOT_RUN


@BOTH
def test_BL008_BL009_waiving_a_tensor_does_not_hide_what_was_not_compared(
    good: BaselineEvidence, judge: Judge, put: Put
) -> None:
    broken = first_row(good.comparisons[0], mismatches=1, unexplained=1)
    finding = judge(put(good, replace(broken, tensors_expected=3)))
    assert finding.verdict is Verdict.FAIL
    assert finding.subjects[0] == "conv_out"
    assert len(finding.subjects) == 2
    assert "2 tensors compared, 3 expected" in finding.summary


def test_BL008_is_not_run_where_no_op_ran_alone(good: BaselineEvidence) -> None:
    assert exact_per_op(replace(good, random_ops=None)).verdict is Verdict.NOT_RUN


@pytest.mark.parametrize("kind", ["disable_all", "dump"])
def test_BL009_a_near_tie_explains_nothing_where_zero_differences_are_required(
    good: BaselineEvidence, kind: Any
) -> None:
    tied = replace(first_row(good.comparisons[0], mismatches=1, near_ties=1), kind=kind)
    assert exact_full_model(replace(good, comparisons=(tied,))).verdict is Verdict.FAIL
    inexact = replace(first_row(good.comparisons[0], mismatches=1, reference_inexact=1), kind=kind)
    assert exact_full_model(replace(good, comparisons=(inexact,))).verdict is Verdict.PASS


def test_BL009_an_op_that_the_dump_leaves_in_float_may_have_near_ties(good: BaselineEvidence) -> None:
    tied = replace(first_row(good.comparisons[0], mismatches=1, near_ties=1), kind="dump", left_in_float=("conv",))
    finding = exact_full_model(replace(good, comparisons=(tied,)))
    assert finding.verdict is Verdict.PASS
    assert finding.figures["left_in_float"] == 1
    other = replace(tied, left_in_float=("gemm",))
    assert exact_full_model(replace(good, comparisons=(other,))).verdict is Verdict.FAIL


def test_BL009_needs_every_required_comparison(good: BaselineEvidence) -> None:
    ran = replace(good.comparisons[0], kind="file_op")
    lost = replace(ran, kind="dump", tensors=(), why_not="session failed")
    finding = exact_full_model(replace(good, comparisons=(ran, lost)))
    assert finding.verdict is Verdict.NOT_RUN
    assert "comparison dump: session failed" in finding.summary
    optional = replace(lost, required=False)
    assert exact_full_model(replace(good, comparisons=(ran, optional))).verdict is Verdict.PASS


@pytest.mark.parametrize("required", [True, False])
def test_BL009_is_not_run_without_a_required_comparison(good: BaselineEvidence, required: bool) -> None:
    comparisons = () if required else (replace(good.comparisons[0], required=False),)
    assert exact_full_model(replace(good, comparisons=comparisons)).verdict is Verdict.NOT_RUN


def test_BL009_is_not_run_without_real_data(good: BaselineEvidence) -> None:
    finding = exact_full_model(replace(good, data=False))
    assert finding.verdict is Verdict.NOT_RUN
    assert "--data" in finding.summary


def test_BL009_a_dump_that_left_nothing_in_float_has_no_ops_to_judge(good: BaselineEvidence) -> None:
    empty = Comparison(kind="dump_op", reference="r", samples=10, tensors_expected=0, tensors=())
    assert exact_full_model(replace(good, comparisons=(good.comparisons[0], empty))).verdict is Verdict.PASS
    left = replace(empty, left_in_float=("conv",))
    assert exact_full_model(replace(good, comparisons=(good.comparisons[0], left))).verdict is Verdict.NOT_RUN
    assert exact_full_model(replace(good, comparisons=(empty,))).verdict is Verdict.NOT_RUN


def test_BL009_prints_the_disagreement_of_onnxruntimes_own_levels(good: BaselineEvidence) -> None:
    finding = exact_full_model(good)
    assert "levels disagree on 3 of 2000" in finding.summary
    assert finding.figures["levels_disagree_elements"] == 3
    silent = exact_full_model(replace(good, levels=None))
    assert "not measured" in silent.summary
    assert silent.figures["levels_disagree_elements"] is None


def test_BL009_fail_comes_before_not_run(good: BaselineEvidence) -> None:
    broken = replace(first_row(good.comparisons[0], mismatches=1, unexplained=1), kind="file_op")
    lost = replace(good.comparisons[0], kind="dump", why_not="session failed")
    assert exact_full_model(replace(good, comparisons=(lost, broken))).verdict is Verdict.FAIL


@pytest.mark.parametrize(
    ("fields", "verdict"),
    [
        ({}, Verdict.PASS),
        ({"integer_kernels_exact": False}, Verdict.FAIL),
        ({"integer_kernels_exact": False, "switched": True}, Verdict.PASS),
        ({"integer_kernels_exact": False, "hazard_ops": ()}, Verdict.PASS),
        ({"flags": ()}, Verdict.NOT_RUN),
        ({"reference_used": ""}, Verdict.NOT_RUN),
    ],
)
def test_BL010_follows_the_cpu(good: BaselineEvidence, fields: dict[str, Any], verdict: Verdict) -> None:
    finding = reference_trustworthy(replace(good, cpu=replace(good.cpu, **fields)))
    assert finding.verdict is verdict
    if verdict is Verdict.FAIL:
        assert "'conv'" in finding.summary
    if fields.get("switched"):
        assert "switched to optimisations off" in finding.summary


def deviate(good: BaselineEvidence, *rows: tuple[str, str, int, int], power_of_two: bool = False) -> BaselineEvidence:
    assert good.target is not None
    scheme = good.scheme if power_of_two else replace(good.scheme, power_of_two=4, exceptions=("w",))
    target = replace(good.target, deviating=sum(r[2] for r in rows), tensors=rows)
    return replace(good, scheme=scheme, target=target)


def test_BL011_passes_with_no_deviation_and_fails_with_one_element(good: BaselineEvidence) -> None:
    assert target_equals_reference(deviate(good)).verdict is Verdict.PASS
    finding = target_equals_reference(deviate(good, ("conv_out", "conv", 1, 2)))
    assert finding.verdict is Verdict.FAIL
    assert finding.subjects == ("conv_out",)
    assert finding.ops == {"conv_out": "conv"}
    for words in ("1 of 2000", "'conv_out'", "'conv'", "at most 2 codes"):
        assert words in finding.summary


def test_BL011_under_a_power_of_two_scheme_one_deviation_fails_and_says_what_it_may_be(good: BaselineEvidence) -> None:
    finding = target_equals_reference(deviate(good, ("conv_out", "conv", 1, 1), power_of_two=True))
    assert finding.verdict is Verdict.FAIL
    assert "anything else is a defect" in finding.summary
    assert "multiplier and shift" in target_equals_reference(deviate(good, ("conv_out", "conv", 1, 1))).summary


def test_BL011_count_and_list_each_fail_alone(good: BaselineEvidence) -> None:
    assert good.target is not None
    counted = replace(good, target=replace(good.target, deviating=1))
    assert target_equals_reference(counted).verdict is Verdict.FAIL
    assert target_equals_reference(counted).figures["largest_difference_codes"] == 0
    listed = replace(good, target=replace(good.target, tensors=(("conv_out", "conv", 1, 1),)))
    assert target_equals_reference(listed).verdict is Verdict.FAIL


def test_BL011_one_sample_of_one_element_is_enough(good: BaselineEvidence) -> None:
    assert good.target is not None
    tiny = replace(good, target=replace(good.target, samples=1, elements=1))
    assert target_equals_reference(tiny).verdict is Verdict.PASS


def test_BL011_is_not_run_without_elements_samples_or_data(good: BaselineEvidence) -> None:
    assert good.target is not None
    for target in (None, replace(good.target, elements=0), replace(good.target, samples=0)):
        assert target_equals_reference(replace(good, target=target)).verdict is Verdict.NOT_RUN
    assert target_equals_reference(replace(good, data=False)).verdict is Verdict.NOT_RUN


def cut(good: BaselineEvidence, elements: int, mismatches: int, count: int = 2) -> BaselineEvidence:
    dispatches = tuple(replace(good.budget.dispatches[0], name=f"d{i}") for i in range(count))
    budget = replace(
        good.budget,
        dispatches=dispatches,
        cuts=("conv_out",),
        concatenation_elements=elements,
        concatenation_mismatches=mismatches,
    )
    return replace(good, budget=budget)


def test_BL013_passes_with_equal_outputs_and_fails_with_one_other(good: BaselineEvidence) -> None:
    assert dispatches_concatenate(cut(good, 1, 0)).verdict is Verdict.PASS
    finding = dispatches_concatenate(cut(good, 100, 1))
    assert finding.verdict is Verdict.FAIL
    assert "1 of 100" in finding.summary
    assert "'conv_out'" in finding.summary


def test_BL013_fails_with_one_tensor_that_is_not_handed_on_and_names_it(good: BaselineEvidence) -> None:
    sound = cut(good, 1, 0)
    finding = dispatches_concatenate(replace(sound, budget=replace(sound.budget, lost=("skip",))))
    assert finding.verdict is Verdict.FAIL
    assert finding.subjects == ("skip",)
    assert "'skip'" in finding.summary


def test_BL013_is_not_applicable_with_one_dispatch_only(good: BaselineEvidence) -> None:
    finding = dispatches_concatenate(cut(good, 0, 0, count=1))
    assert finding.verdict is Verdict.NOT_APPLICABLE
    assert finding.figures["dispatches"] == 1
    assert dispatches_concatenate(cut(good, 0, 0, count=2)).verdict is Verdict.NOT_RUN
    assert dispatches_concatenate(cut(good, 0, 0, count=0)).verdict is Verdict.NOT_RUN


def test_BL009_names_a_comparison_that_is_not_needed_and_why(good: BaselineEvidence) -> None:
    assert exact_full_model(good).figures["comparisons_left_out"] == ()
    dump = replace(good.comparisons[0], kind="dump", required=False, why_not="16-bit activations", tensors=())
    finding = exact_full_model(replace(good, comparisons=(*good.comparisons, dump)))
    assert finding.verdict is Verdict.PASS
    assert finding.figures["comparisons_left_out"] == ("dump: 16-bit activations",)


def test_BL004_and_BL013_count_dispatches_alike(good: BaselineEvidence) -> None:
    sound = cut(good, 7, 0)
    edge = replace(sound.budget.dispatches[0], name="edge", where="host")
    three = replace(sound, budget=replace(sound.budget, dispatches=(edge, sound.budget.dispatches[0], edge)))
    words = "3 dispatches (1 on the array, 2 on the host)"
    assert dispatches_concatenate(three).summary == f"{words} equal the whole on 7 elements"
    assert dispatches_fit(three).summary.startswith(f"{words}: the one on the array fits npu2")
    assert dispatches_concatenate(sound).summary.startswith("2 dispatches equal")
    assert "every one on the array fits" in dispatches_fit(sound).summary
    assert dispatches_concatenate(cut(good, 0, 0, count=1)).summary.startswith("1 dispatch:")


FAULT = KernelFault(tensor="conv_out", op="conv", op_type="Conv", what="multiplier 5 is not what the scales say, 6")


def test_BL014_passes_without_a_fault_and_fails_with_one(good: BaselineEvidence) -> None:
    assert kernel_numbers_exact(good).verdict is Verdict.PASS
    finding = kernel_numbers_exact(replace(good, kernel=KernelEvidence(ops=2, accumulators=9, faults=(FAULT,))))
    assert finding.verdict is Verdict.FAIL
    assert finding.subjects == ("conv_out",)
    assert finding.ops == {"conv_out": "conv"}
    for words in ("'conv_out'", "'conv'", "Conv", "multiplier 5"):
        assert words in finding.summary
    assert "more ops" not in finding.summary


def test_BL014_counts_further_ops(good: BaselineEvidence) -> None:
    faults = (FAULT, replace(FAULT, tensor="gemm_out", op="gemm"))
    finding = kernel_numbers_exact(replace(good, kernel=KernelEvidence(ops=2, accumulators=9, faults=faults)))
    assert "; 1 more op" in finding.summary
    assert finding.subjects == ("conv_out", "gemm_out")


def test_BL014_is_not_applicable_only_where_no_op_is_rescaled(good: BaselineEvidence) -> None:
    none = KernelEvidence(ops=0, accumulators=0, faults=())
    finding = kernel_numbers_exact(replace(good, kernel=none))
    assert finding.verdict is Verdict.NOT_APPLICABLE
    assert finding.figures["ops"] == 0
    assert kernel_numbers_exact(replace(good, kernel=replace(none, ops=1))).verdict is Verdict.PASS
    assert kernel_numbers_exact(replace(good, kernel=None)).verdict is Verdict.NOT_RUN
