import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from checklists.items.baseline_data import granularity_holds, inputs_in_range
from checklists.model import Finding, Verdict
from oracle.evidence import BaselineEvidence

Accuracy = Callable[..., Finding]
Range = Callable[..., Finding]


@pytest.fixture
def accuracy(good: BaselineEvidence) -> Accuracy:
    def judge(**fields: Any) -> Finding:
        assert good.accuracy is not None
        return granularity_holds(replace(good, accuracy=replace(good.accuracy, **fields)))

    return judge


@pytest.fixture
def span(good: BaselineEvidence) -> Range:
    return lambda **fields: inputs_in_range(replace(good, inputs=(replace(good.inputs[0], **fields),)))


UNLABELLED: dict[str, Any] = {"labels": False, "accuracy": None, "float_accuracy": None, "majority_share": None}
NO_FLOAT: dict[str, Any] = {"float_accuracy": None, "sqnr_db": None, "cosine": None, "top1_agreement": None}


def test_BL003_passes_at_the_largest_drop_and_fails_beyond_it(accuracy: Accuracy) -> None:
    assert accuracy(accuracy=0.96, float_accuracy=0.97).verdict is Verdict.PASS
    finding = accuracy(accuracy=0.9599, float_accuracy=0.97)
    assert finding.verdict is Verdict.FAIL
    for words in ("95.99 %", "97.00 %", "'conv_out'"):
        assert words in finding.summary


def test_BL003_names_the_worst_layers_only_where_it_fails(accuracy: Accuracy) -> None:
    assert "'conv_out'" not in accuracy().summary
    assert accuracy(accuracy=0.5, worst_layers=()).summary.endswith("at most 1.00 %")


def test_BL003_says_what_the_outputs_are_compared_with(accuracy: Accuracy) -> None:
    text = accuracy(**UNLABELLED, against="the file's own float meaning").summary
    assert "against the file's own float meaning" in text
    assert "cosine 0.999000" in text
    silent = accuracy(**{**UNLABELLED, "cosine": None}, against="").summary
    assert "against the float model" in silent
    assert "cosine" not in silent


def test_BL003_a_better_quantised_model_passes(accuracy: Accuracy) -> None:
    assert accuracy(accuracy=1.0, float_accuracy=0.97).verdict is Verdict.PASS


@pytest.mark.parametrize(
    ("sqnr_db", "verdict"), [(20.0, Verdict.PASS), (19.999999, Verdict.FAIL), (math.nan, Verdict.FAIL)]
)
def test_BL003_without_labels_sqnr_decides(accuracy: Accuracy, sqnr_db: float, verdict: Verdict) -> None:
    assert accuracy(**UNLABELLED, sqnr_db=sqnr_db).verdict is verdict


@pytest.mark.parametrize(
    ("agreement", "verdict"), [(0.95, Verdict.PASS), (0.949999, Verdict.FAIL), (None, Verdict.PASS)]
)
def test_BL003_without_labels_agreement_decides_where_there_are_classes(
    accuracy: Accuracy, agreement: float | None, verdict: Verdict
) -> None:
    assert accuracy(**UNLABELLED, top1_agreement=agreement).verdict is verdict


def test_BL003_equal_outputs_have_infinite_sqnr_and_pass(accuracy: Accuracy) -> None:
    finding = accuracy(**UNLABELLED, sqnr_db=math.inf)
    assert finding.verdict is Verdict.PASS
    assert finding.figures["sqnr_db"] == "inf"


def test_BL003_fails_where_labels_do_not_fit_the_model_however_good_the_outputs(accuracy: Accuracy) -> None:
    equal: dict[str, Any] = {"accuracy": 0.1, "majority_share": 0.1, "sqnr_db": 60.0}
    assert accuracy(**equal, float_accuracy=0.1).verdict is Verdict.PASS
    finding = accuracy(**equal, float_accuracy=0.0999)
    assert finding.verdict is Verdict.FAIL
    assert "do not fit the model" in finding.summary


def test_BL003_fails_where_labels_do_not_fit_and_there_are_no_outputs_to_compare(accuracy: Accuracy) -> None:
    assert accuracy(accuracy=0.05, float_accuracy=0.05, sqnr_db=None).verdict is Verdict.FAIL


@pytest.mark.parametrize(("share", "verdict"), [(0.96, Verdict.PASS), (0.9601, Verdict.FAIL), (None, Verdict.NOT_RUN)])
def test_BL003_with_labels_alone_the_commonest_label_is_the_limit(
    accuracy: Accuracy, share: float | None, verdict: Verdict
) -> None:
    assert accuracy(**NO_FLOAT, accuracy=0.96, majority_share=share).verdict is verdict


def test_BL003_names_the_cliffs(accuracy: Accuracy) -> None:
    assert "cliffs: dw1" in accuracy(cliffs=("dw1",)).summary
    finding = accuracy(cliffs=("a", "b", "c", "d"))
    assert "a, b, c and 1 more" in finding.summary
    assert finding.figures["cliffs"] == ("a", "b", "c", "d")


def test_BL003_is_not_run_with_nothing_to_judge(good: BaselineEvidence, accuracy: Accuracy) -> None:
    assert accuracy(samples=0).verdict is Verdict.NOT_RUN
    assert accuracy(samples=1).verdict is Verdict.PASS
    assert accuracy(**{**UNLABELLED, **NO_FLOAT}).verdict is Verdict.NOT_RUN
    assert granularity_holds(replace(good, accuracy=None)).verdict is Verdict.NOT_RUN
    assert "--data" in granularity_holds(replace(good, data=False)).summary


def test_BL012_the_top_code_of_a_symmetric_type_may_miss_one(span: Range) -> None:
    assert span().verdict is Verdict.PASS


def test_BL012_fails_with_one_element_clipped_too_many(span: Range) -> None:
    far: dict[str, Any] = {"maximum": 1.5, "declared_maximum": None, "declared_minimum": None, "elements": 1000}
    assert span(**far, clipped=10).verdict is Verdict.PASS
    finding = span(**far, clipped=11)
    assert finding.verdict is Verdict.FAIL
    assert finding.subjects == ("x",)
    assert "11 of 1000 elements clipped" in finding.summary


def test_BL012_clipping_counts_beyond_the_edge_only(span: Range) -> None:
    high, width = 127 / 128, 255 / 128
    free: dict[str, Any] = {"declared_maximum": None, "declared_minimum": None, "clipped": 900}
    assert span(**free, maximum=high + width / 64).verdict is Verdict.PASS
    assert span(**free, maximum=high + width / 64 + 1e-9).verdict is Verdict.FAIL
    assert span(**free, minimum=-1 - width / 64 - 1e-9, maximum=0.5).verdict is Verdict.FAIL


def test_BL012_the_0_to_255_trap_is_named_even_where_few_elements_are_clipped(span: Range) -> None:
    free: dict[str, Any] = {"declared_maximum": None, "declared_minimum": None, "clipped": 1}
    finding = span(**free, maximum=255.0, used_codes_fraction=0.5)
    assert finding.verdict is Verdict.FAIL
    assert "look like 0..255 where the model expects 0..1" in finding.summary
    width = 255 / 128
    assert span(**free, maximum=127 / 128 + 8 * width).verdict is Verdict.PASS
    assert span(**free, maximum=127 / 128 + 8 * width + 1e-6).verdict is Verdict.FAIL


@pytest.mark.parametrize(("codes", "limit"), [(256, 1 / 32), (257, 1 / 128), (65536, 1 / 128)])
def test_BL012_fails_where_data_uses_too_little_of_the_range(span: Range, codes: int, limit: float) -> None:
    wide: dict[str, Any] = {
        "representable_minimum": 0.0,
        "representable_maximum": 255.0,
        "declared_minimum": None,
        "declared_maximum": None,
        "clipped": 0,
        "codes": codes,
    }
    assert span(**wide, used_codes_fraction=limit).verdict is Verdict.PASS
    finding = span(**wide, used_codes_fraction=limit * 0.999)
    assert finding.verdict is Verdict.FAIL
    assert "look like 0..1 where the model expects 0..255" in finding.summary
    assert span(**wide, used_codes_fraction=math.nan).verdict is Verdict.FAIL


def test_BL012_names_a_trap_only_where_the_sizes_are_far_apart(span: Range) -> None:
    free: dict[str, Any] = {"representable_minimum": None, "representable_maximum": None, "minimum": 0.0}
    for maximum, declared, words in (
        (8.01, 1.0, "look like 0..255"),
        (255.0, 1.0, "(about 255 times too large)"),
        (1.0, 0.0, "look like 0..255"),
        (1.0, 255.0, "(about 255 times too small)"),
        (0.0, 1.0, "(all are 0)"),
        (8.0, 1.0, "other preprocessing"),
        (1.0, 32.1, "look like 0..1 where"),
    ):
        finding = span(**free, maximum=maximum, declared_maximum=declared)
        assert finding.verdict is Verdict.FAIL
        assert words in finding.summary
    near: dict[str, Any] = {"declared_minimum": 24.0, "declared_maximum": 32.0, "minimum": 31.9, "maximum": 32.0}
    assert "other preprocessing" in span(**{**free, **near}).summary


def test_BL012_one_sample_of_one_element_is_enough(span: Range) -> None:
    assert span(samples=1, elements=1, clipped=0).verdict is Verdict.PASS
    assert span(samples=1, elements=1, clipped=0, maximum=math.nan).verdict is Verdict.FAIL


def test_BL012_fails_outside_the_declared_range(span: Range) -> None:
    assert span(declared_maximum=1.0).verdict is Verdict.PASS
    finding = span(declared_maximum=0.999)
    assert finding.verdict is Verdict.FAIL
    assert "outside the declared range" in finding.summary
    assert span(declared_minimum=0.001, declared_maximum=None).verdict is Verdict.FAIL


def test_BL012_float32_rounding_of_a_declared_limit_is_no_fault(span: Range) -> None:
    assert span(declared_maximum=1.0 - 1e-7).verdict is Verdict.PASS


def test_BL012_fails_where_data_spans_too_little_of_the_declared_range(span: Range) -> None:
    assert span(declared_maximum=32.0).verdict is Verdict.PASS
    finding = span(declared_maximum=32.1)
    assert finding.verdict is Verdict.FAIL
    assert "look like 0..1 where the model expects 0..255" in finding.summary


@pytest.mark.parametrize("fields", [{"minimum": math.nan}, {"maximum": math.inf}, {"minimum": -math.inf}])
def test_BL012_fails_on_data_that_is_not_finite(span: Range, fields: dict[str, float]) -> None:
    finding = span(**fields)
    assert finding.verdict is Verdict.FAIL
    assert "not finite" in finding.summary


def test_BL012_is_not_run_with_nothing_to_judge(good: BaselineEvidence, span: Range) -> None:
    assert span(samples=0).verdict is Verdict.NOT_RUN
    assert span(elements=0).verdict is Verdict.NOT_RUN
    free: dict[str, Any] = {"representable_minimum": None, "representable_maximum": None, "declared_minimum": None}
    assert span(**free).verdict is Verdict.PASS
    finding = span(**free, declared_maximum=None)
    assert finding.verdict is Verdict.NOT_RUN
    assert finding.subjects == ("x",)
    assert inputs_in_range(replace(good, inputs=())).verdict is Verdict.NOT_RUN
    assert "--data" in inputs_in_range(replace(good, data=False)).summary


@pytest.mark.parametrize("missing", ["representable_minimum", "representable_maximum"])
def test_BL012_half_a_range_is_no_range(span: Range, missing: str) -> None:
    assert span(**{missing: None}, maximum=0.9, used_codes_fraction=0.0).verdict is Verdict.PASS


def test_BL012_names_every_input_at_fault_and_every_one_not_judged(good: BaselineEvidence) -> None:
    x = good.inputs[0]
    bad = replace(x, name="y", maximum=2.0)
    lost = replace(x, name="z", samples=0)
    finding = inputs_in_range(replace(good, inputs=(x, bad, lost)))
    assert finding.verdict is Verdict.FAIL
    assert finding.subjects == ("y", "z")
