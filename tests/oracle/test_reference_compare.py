"""The oracle against real onnxruntime on small graphs."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from manifest.onnx_import import Imported
from oracle.evidence import Comparison
from oracle.reference import compare_model, compare_random, level_disagreement
from tests.reference_models import FEEDS, Array, cnn, feeds, sixteen


def compare(imported: Imported, data: Mapping[str, Array]) -> tuple[Comparison, ...]:
    """All comparisons of a model."""
    return compare_model(imported.model_bytes, imported.manifest, imported.arrays, data)


def both(imported: Imported, data: Mapping[str, Array]) -> tuple[Comparison, ...]:
    """All comparisons on data and on made-up inputs."""
    random = compare_random(imported.model_bytes, imported.manifest, imported.arrays, seed=3)
    return (*compare(imported, data), random)


@pytest.mark.parametrize("act", [np.uint8, np.int8])
@pytest.mark.parametrize("zero", [0, 3])
def test_power_of_two_file_equals_onnxruntime_end_to_end(act: Any, zero: int) -> None:
    result = both(cnn(act=act, zero=zero).load(), feeds())
    assert [c.kind for c in result] == ["disable_all", "random_op"]
    for c in result:
        assert (c.mismatches, c.why_not) == (0, "")
        assert len(c.tensors) == c.tensors_expected >= 5
        assert c.elements > 0
    assert result[0].samples == FEEDS
    assert {row.op_type for row in result[0].tensors} >= {"Conv", "MaxPool", "AveragePool", "Gemm", "QuantizeLinear"}


@pytest.mark.parametrize("act", [np.uint8, np.int8])
def test_other_scales_are_compared_as_dump_and_op_by_op(act: Any) -> None:
    result = both(cnn(0.0613, act=act).load(), feeds())
    assert [c.kind for c in result] == ["dump", "file_op", "random_op"]
    for c in result:
        assert (c.unexplained, c.why_not, c.required) == (0, "", True)
        assert len(c.tensors) == c.tensors_expected
    assert result[0].mismatches == 0
    assert "graph dumped at ORT_ENABLE_EXTENDED" in result[0].reference
    assert set(result[1].left_in_float) >= {"conv", "gemm"}


def test_sixteen_bit_files_are_never_dumped() -> None:
    result = compare(sixteen().load(), feeds())
    dump, file_op = result
    assert (dump.kind, dump.required, dump.samples) == ("dump", False, 0)
    assert "16-bit" in dump.why_not
    assert (file_op.kind, file_op.unexplained, file_op.why_not) == ("file_op", 0, "")


def test_no_feeds_is_not_run() -> None:
    for c in compare(cnn().load(), {}):
        assert (c.samples, c.elements, c.tensors) == (0, 0, ())
        assert "no feeds" in c.why_not
        assert c.tensors_expected > 0


def test_zero_feeds_is_not_run() -> None:
    for c in compare(cnn(0.0613).load(), {"x": np.zeros((0, 1, 2, 6, 5), np.float32)}):
        assert (c.samples, c.elements) == (0, 0)
        assert c.why_not


def test_made_up_inputs_depend_on_the_seed_alone() -> None:
    imported = cnn(0.0613).load()
    a, b, other = (
        compare_random(imported.model_bytes, imported.manifest, imported.arrays, seed=seed) for seed in (5, 5, 6)
    )
    assert a == b
    assert a.reference != other.reference


def test_levels_are_counted_over_the_quantised_tensors() -> None:
    imported = cnn(0.0613).load()
    levels = level_disagreement(imported.model_bytes, imported.manifest, feeds())
    assert levels is not None
    assert levels.elements == FEEDS * sum(
        int(np.prod(imported.manifest.tensor(name).shape)) for name in ("a.q", "d.q", "e.q", "f.q", "y.q")
    )
    assert level_disagreement(imported.model_bytes, imported.manifest, {}) is None
    narrow = sixteen().load()
    assert level_disagreement(narrow.model_bytes, narrow.manifest, feeds()) is None
