from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from checklists.items.baseline_scheme import (
    accumulator_proved,
    layouts_round_trip,
    manifest_reproducible,
    power_of_two_verified,
    scheme_locked,
)
from checklists.model import Verdict
from oracle.evidence import AccumulatorBound, BaselineEvidence

Change = Callable[..., BaselineEvidence]


@pytest.fixture
def scheme(good: BaselineEvidence) -> Change:
    return lambda **fields: replace(good, scheme=replace(good.scheme, **fields))


@pytest.fixture
def manifest(good: BaselineEvidence) -> Change:
    return lambda **fields: replace(good, manifest=replace(good.manifest, **fields))


def bounds(good: BaselineEvidence, *rows: tuple[str, int, int]) -> BaselineEvidence:
    return replace(good, accumulators=tuple(AccumulatorBound(op=o, bound=b, bits=w, reached=0) for o, b, w in rows))


def test_BL001_passes_with_every_tensor_locked(good: BaselineEvidence) -> None:
    assert scheme_locked(good).verdict is Verdict.PASS


def test_BL001_fails_with_one_unlocked_tensor_and_names_it(scheme: Change) -> None:
    finding = scheme_locked(scheme(unlocked=("relu_out",)))
    assert finding.verdict is Verdict.FAIL
    assert finding.subjects == ("relu_out",)
    assert "'relu_out'" in finding.summary


def test_BL001_names_three_and_counts_the_rest(scheme: Change) -> None:
    finding = scheme_locked(scheme(unlocked=("a", "b", "c", "d", "e")))
    assert "'a', 'b', 'c' and 2 more" in finding.summary
    assert len(finding.subjects) == 5


def test_BL001_is_not_run_without_quantised_tensors(scheme: Change) -> None:
    assert scheme_locked(scheme(tensors=0)).verdict is Verdict.NOT_RUN
    assert scheme_locked(scheme(tensors=1)).verdict is Verdict.PASS


def test_BL002_passes_when_every_scale_is_a_power_of_two(scheme: Change) -> None:
    assert power_of_two_verified(scheme()).verdict is Verdict.PASS
    assert power_of_two_verified(scheme(claims_power_of_two=False)).verdict is Verdict.PASS


def test_BL002_fails_one_scale_beyond_the_claim(scheme: Change) -> None:
    finding = power_of_two_verified(scheme(power_of_two=4, exceptions=("w",)))
    assert finding.verdict is Verdict.FAIL
    assert "'w'" in finding.summary
    assert finding.subjects == ("w",)


def test_BL002_is_not_applicable_without_the_claim_and_lists_the_exceptions(scheme: Change) -> None:
    finding = power_of_two_verified(scheme(claims_power_of_two=False, power_of_two=4, exceptions=("w",)))
    assert finding.verdict is Verdict.NOT_APPLICABLE
    assert finding.figures["exceptions"] == ("w",)
    assert finding.figures["power_of_two"] == 4


@pytest.mark.parametrize(
    "fields",
    [
        {"power_of_two": 4},
        {"exceptions": ("w",)},
        {"power_of_two": 4, "exceptions": ("w", "v")},
        {"power_of_two": 4, "claims_power_of_two": False},
    ],
)
def test_BL002_fails_where_count_and_list_contradict_each_other(scheme: Change, fields: dict[str, Any]) -> None:
    assert power_of_two_verified(scheme(**fields)).verdict is Verdict.FAIL


def test_BL002_is_not_run_without_scales(scheme: Change) -> None:
    assert power_of_two_verified(scheme(scales=0, power_of_two=0)).verdict is Verdict.NOT_RUN
    assert power_of_two_verified(scheme(scales=1, power_of_two=1)).verdict is Verdict.PASS


def test_BL005_passes_with_equal_hashes(good: BaselineEvidence) -> None:
    assert manifest_reproducible(good).verdict is Verdict.PASS


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"schema_errors": ("ops/0: x",)}, "ops/0: x"),
        ({"second_sha256": "b" * 64}, "b" * 64),
        ({"reload_equal": False}, "does not read back"),
    ],
)
def test_BL005_fails_on_one_fault_and_says_which(manifest: Change, fields: dict[str, Any], words: str) -> None:
    finding = manifest_reproducible(manifest(**fields))
    assert finding.verdict is Verdict.FAIL
    assert words in finding.summary


@pytest.mark.parametrize(
    "fields", [{"second_sha256": ""}, {"first_sha256": ""}, {"first_sha256": "", "second_sha256": ""}]
)
def test_BL005_is_not_run_where_one_import_is_missing(manifest: Change, fields: dict[str, Any]) -> None:
    assert manifest_reproducible(manifest(**fields)).verdict is Verdict.NOT_RUN


def test_BL006_passes_and_fails_by_one_layout(manifest: Change) -> None:
    assert layouts_round_trip(manifest()).verdict is Verdict.PASS
    finding = layouts_round_trip(manifest(layout_failures=("w",)))
    assert finding.verdict is Verdict.FAIL
    assert finding.subjects == ("w",)
    assert "'w'" in finding.summary


def test_BL006_fails_by_one_layout_whose_elements_stand_elsewhere(manifest: Change) -> None:
    finding = layouts_round_trip(manifest(layout_misplaced=("w",)))
    assert finding.verdict is Verdict.FAIL
    assert finding.subjects == ("w",)
    assert "'w'" in finding.summary
    assert "another order" in finding.summary
    assert layouts_round_trip(manifest(layout_failures=("v",), layout_misplaced=("w",))).subjects == ("v", "w")


def test_BL006_is_not_applicable_only_without_weights(good: BaselineEvidence, manifest: Change) -> None:
    without = manifest(layouts=0)
    assert layouts_round_trip(without).verdict is Verdict.NOT_RUN
    finding = layouts_round_trip(replace(without, random_ops=None, comparisons=()))
    assert finding.verdict is Verdict.NOT_APPLICABLE
    assert finding.figures["layouts"] == 0


@pytest.mark.parametrize("bits", [32, 64])
def test_BL007_passes_at_the_limit_and_fails_one_above(good: BaselineEvidence, bits: int) -> None:
    limit = 2 ** (bits - 1) - 1
    at = bounds(good, ("conv", limit, bits), ("gemm", 0, 32))
    above = bounds(good, ("conv", limit + 1, bits), ("gemm", 0, 32))
    assert accumulator_proved(at).verdict is Verdict.PASS
    finding = accumulator_proved(above)
    assert finding.verdict is Verdict.FAIL
    assert finding.subjects == ("conv",)
    for words in ("'conv'", str(limit + 1), str(limit)):
        assert words in finding.summary


def test_BL007_refuses_a_bound_below_zero(good: BaselineEvidence) -> None:
    assert accumulator_proved(bounds(good, ("conv", -1, 32), ("gemm", 0, 32))).verdict is Verdict.FAIL


def test_BL007_reports_the_fullest_accumulator_over_widths(good: BaselineEvidence) -> None:
    finding = accumulator_proved(bounds(good, ("conv", 2**40, 64), ("gemm", 2**30, 32)))
    assert (finding.figures["largest_bound"], finding.figures["bits"]) == (2**30, 32)


def test_BL007_is_not_run_where_one_op_has_no_bound(good: BaselineEvidence) -> None:
    finding = accumulator_proved(bounds(good, ("conv", 5, 32)))
    assert finding.verdict is Verdict.NOT_RUN
    assert finding.subjects == ("gemm",)


def test_BL007_waiving_the_overflow_does_not_hide_the_missing_bound(good: BaselineEvidence) -> None:
    assert accumulator_proved(bounds(good, ("conv", 2**31, 32))).subjects == ("conv", "gemm")


def test_BL007_is_not_applicable_only_where_no_op_accumulates(good: BaselineEvidence) -> None:
    none = replace(good, accumulators=())
    assert accumulator_proved(none).verdict is Verdict.NOT_RUN
    assert accumulator_proved(replace(none, random_ops=None)).verdict is Verdict.NOT_RUN
    finding = accumulator_proved(replace(none, random_ops=None, comparisons=()))
    assert finding.verdict is Verdict.NOT_APPLICABLE
    assert finding.figures["ops"] == 0


def reach(good: BaselineEvidence, *rows: tuple[str, int, int | None]) -> BaselineEvidence:
    return replace(good, accumulators=tuple(AccumulatorBound(op=o, bound=b, bits=32, reached=r) for o, b, r in rows))


def test_BL007_passes_where_an_input_reaches_the_bound_and_fails_one_beyond(good: BaselineEvidence) -> None:
    assert accumulator_proved(reach(good, ("conv", 900, 900), ("gemm", 5, 0))).verdict is Verdict.PASS
    finding = accumulator_proved(reach(good, ("conv", 900, 901), ("gemm", 5, 0)))
    assert finding.verdict is Verdict.FAIL
    assert finding.subjects == ("conv",)
    for words in ("'conv'", "901", "900", "the bias left out"):
        assert words in finding.summary


def test_BL007_is_not_run_where_one_bound_was_held_against_no_input(good: BaselineEvidence) -> None:
    assert accumulator_proved(reach(good, ("conv", 9, 1), ("gemm", 9, 0))).verdict is Verdict.PASS
    finding = accumulator_proved(reach(good, ("conv", 9, 1), ("gemm", 9, None)))
    assert finding.verdict is Verdict.NOT_RUN
    assert finding.subjects == ("gemm",)
    assert "'gemm'" in finding.summary
    assert finding.figures["tried"] == 1


def test_BL007_says_bound_and_limit_in_one_unit(good: BaselineEvidence) -> None:
    one = accumulator_proved(reach(good, ("conv", 900, 900), ("gemm", 5, 0))).summary
    assert "2 ops" in one
    assert "can reach 900 of 2147483647 (32 bits)" in one
