import math
from dataclasses import replace
from typing import Any

import pytest

from checklists.items.presim_model import (
    decompositions_equivalent,
    mechanisms_probed,
    regimes_predicted,
    regression_suite_green,
)
from checklists.model import Finding, Verdict
from tests.presim_evidence import good_presim, regime

GOOD = good_presim()


def novel(**fields: Any) -> Finding:
    return mechanisms_probed(replace(GOOD, mechanisms=(GOOD.mechanisms[0], replace(GOOD.mechanisms[1], **fields))))


def equivalence(**fields: Any) -> Finding:
    return decompositions_equivalent(replace(GOOD, equivalences=(replace(GOOD.equivalences[0], **fields),)))


def predicted(**fields: Any) -> Finding:
    return regimes_predicted(replace(GOOD, regimes=(GOOD.regimes[0], replace(GOOD.regimes[1], **fields))))


def suite(**fields: Any) -> Finding:
    assert GOOD.regression is not None
    return regression_suite_green(replace(GOOD, regression=replace(GOOD.regression, **fields)))


@pytest.mark.parametrize("item", [mechanisms_probed, regimes_predicted, regression_suite_green])
def test_items_about_the_model_apply_as_soon_as_one_dispatch_runs_on_the_array(item: Any) -> None:
    nothing = replace(GOOD, mechanisms=(), regimes=(), regression=None, stages_expected=(), dispatches=())
    finding = item(nothing)
    assert finding.verdict is Verdict.NOT_APPLICABLE
    assert finding.figures["array_dispatches"] == 0
    assert item(replace(nothing, dispatches=("d0",))).verdict is Verdict.NOT_RUN


def test_PS010_a_probed_novel_mechanism_passes() -> None:
    assert novel().verdict is Verdict.PASS


def test_PS010_a_novel_mechanism_without_a_probe_is_not_run_and_named() -> None:
    finding = novel(probe_verdict="", probe_passed=False)
    assert finding.verdict is Verdict.NOT_RUN
    assert finding.subjects == ("ring",)


def test_PS010_a_probe_that_found_something_else_fails() -> None:
    finding = novel(probe_verdict="deadlock", probe_passed=False)
    assert finding.verdict is Verdict.FAIL
    assert "'ring'" in finding.summary
    assert "deadlock" in finding.summary


def test_PS010_is_not_applicable_only_where_every_mechanism_is_known() -> None:
    finding = novel(known=True)
    assert finding.verdict is Verdict.NOT_APPLICABLE
    assert finding.figures["novel"] == 0
    assert novel(known=False).verdict is not Verdict.NOT_APPLICABLE


def test_PS011_passes_at_the_allowed_difference_and_fails_above() -> None:
    assert equivalence().verdict is Verdict.PASS
    finding = equivalence(largest_difference=math.nextafter(1e-6, 1))
    assert finding.verdict is Verdict.FAIL
    assert finding.subjects == ("scores",)
    assert equivalence(mismatches=1).verdict is Verdict.FAIL
    assert equivalence(largest_difference=math.nan).verdict is Verdict.FAIL


def test_PS011_every_decomposition_needs_its_equivalence() -> None:
    finding = decompositions_equivalent(replace(GOOD, decompositions=("chunked_softmax", "chunked_layer_norm")))
    assert finding.verdict is Verdict.NOT_RUN
    assert finding.subjects == ("chunked_layer_norm",)
    assert decompositions_equivalent(replace(GOOD, equivalences=())).verdict is Verdict.NOT_RUN
    assert equivalence(elements=0).verdict is Verdict.NOT_RUN
    assert equivalence(elements=1).verdict is Verdict.PASS


def test_PS011_another_decomposition_on_record_shows_nothing() -> None:
    finding = equivalence(decomposition="chunked_layer_norm")
    assert finding.verdict is Verdict.NOT_RUN
    assert finding.subjects == ("chunked_softmax",)
    assert "no equivalence on record of 'chunked_softmax'" in finding.summary
    two = (GOOD.equivalences[0], replace(GOOD.equivalences[0], decomposition="streaming_attention"))
    both = replace(GOOD, equivalences=two, decompositions=("chunked_softmax", "streaming_attention"))
    assert decompositions_equivalent(both).verdict is Verdict.PASS
    assert decompositions_equivalent(replace(both, equivalences=two[:1] * 2)).verdict is Verdict.NOT_RUN


def test_PS011_is_not_applicable_only_without_decompositions_and_records() -> None:
    finding = decompositions_equivalent(replace(GOOD, decompositions=(), equivalences=()))
    assert finding.verdict is Verdict.NOT_APPLICABLE
    assert finding.figures["decompositions"] == 0
    assert decompositions_equivalent(replace(GOOD, decompositions=())).verdict is Verdict.PASS


def test_PS012_passes_at_its_own_bound() -> None:
    finding = predicted()
    assert finding.verdict is Verdict.PASS
    assert finding.summary == "batch 1 is compute-bound, batch 8 is compute-bound (predicted)"
    assert predicted(bound="on_chip").verdict is Verdict.PASS
    assert predicted(interval_cycles=89).verdict is Verdict.PASS
    assert predicted(latency_cycles=83).verdict is Verdict.PASS


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"bound": "dram"}, "called dram-bound at 89 cycles"),
        ({"interval_cycles": 88}, "8 inferences take 706 cycles, but 90 of each bound them"),
        ({"latency_cycles": 82}, "8 inferences take 712 cycles, but 90 of each bound them"),
        ({"dram_cycles": 91}, "called compute-bound at 90 cycles"),
    ],
)
def test_PS012_a_regime_that_contradicts_itself_fails(fields: dict[str, Any], words: str) -> None:
    finding = predicted(**fields)
    assert finding.verdict is Verdict.FAIL
    assert finding.subjects == ("batch 8",)
    assert words in finding.summary


def test_PS012_needs_both_regimes_and_their_calibration() -> None:
    assert predicted(batch=1).verdict is Verdict.NOT_RUN
    only_n = (regime("batch 8", 8), regime("batch 16", 16))
    assert regimes_predicted(replace(GOOD, regimes=only_n)).verdict is Verdict.NOT_RUN
    finding = predicted(calibration_sha256="")
    assert finding.verdict is Verdict.NOT_RUN
    assert finding.subjects == ("batch 8",)


def test_PS012_an_unknown_device_figure_is_not_run_and_named() -> None:
    finding = regimes_predicted(replace(GOOD, regimes=(), regimes_unknown=("int8_macs_per_cycle",)))
    assert finding.verdict is Verdict.NOT_RUN
    assert finding.subjects == ("int8_macs_per_cycle",)


def test_PS013_passes_with_one_test_per_stage() -> None:
    assert suite().verdict is Verdict.PASS
    failed = suite(failed=1, names=("gemm",))
    assert failed.verdict is Verdict.FAIL
    assert failed.subjects == ("gemm",)
    assert failed.summary == "1 of 2 tests fail: stage 'gemm'"
    assert suite(stages=1, tests=1).verdict is Verdict.FAIL
    assert suite(tests=1).verdict is Verdict.NOT_RUN
