"""Float outputs that are sums: where large terms cancel, onnxruntime's float32 is off by a share of the terms."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from manifest.model import Manifest
from manifest.onnx_import import Imported
from manifest.onnx_import.instrument import extract
from oracle.evidence import TensorComparison
from oracle.reference import compare_random
from oracle.reference.graph import graph_of, type_at_cut
from oracle.reference.judge import judge_floats, rules_of
from oracle.reference.sample import StageRun
from oracle.reference.session import OFF, Session
from oracle.reference.stagewise import Result, StageWise
from oracle.reference.tally import Judged
from oracle.run import Oracle
from oracle.stages import stages
from tests.qdq_models import Sketch, op_of

CODES = np.array([[[[200, 255, 3], [56, 1, 253], [128, 130, 126]]]], np.uint8)


def average(zero_point: int = 128) -> Imported:
    """x [1, 1, 3, 3] -> Q/DQ at 0.1 -> GlobalAveragePool -> float output y."""
    s = Sketch()
    x = s.qdq(s.input("x", (1, 1, 3, 3)), 0.1, zero_point, np.uint8, out="a")
    s.output(s.node("GlobalAveragePool", [x], "y"), (1, 1, 1, 1))
    return s.load()


def stage_run(codes: np.ndarray) -> StageRun:
    imported = average()
    graph = graph_of(imported.model_bytes, imported.manifest, imported.arrays, fma=True)
    stage = next(s for s in stages(imported.manifest) if "y" in s.outputs)
    return StageRun(graph=graph, stage=stage, tensors={"a.q": codes[np.newaxis]}, made={}, offset=0)


def judged(ours: np.float32, theirs: np.float32, codes: np.ndarray = CODES) -> Judged:
    expected, got = (np.full((1, 1, 1, 1, 1), v, np.float32) for v in (theirs, ours))
    return judge_floats(stage_run(codes), "y", expected, got, bit_equal=False)


SUM = int((CODES.astype(np.int64) - 128).sum())
TERMS = int(np.abs(CODES.astype(np.int64) - 128).sum())
SCALE = Fraction(float(np.float32(0.1)))
EXACT = np.float32(float(SUM * SCALE / 9))
LIMIT = float((9 + 4) * Fraction(1, 2**24) * TERMS * SCALE / 9)


def test_these_terms_cancel() -> None:
    assert SUM == 0
    assert TERMS > 500


@pytest.mark.parametrize("sign", [1, -1])
def test_an_error_within_that_of_the_sum_is_explained(sign: int) -> None:
    found = judged(EXACT, np.float32(sign * LIMIT * 0.999))
    assert (found.within_tolerance, found.unexplained) == (1, 0)


@pytest.mark.parametrize("theirs", [LIMIT * 1.001, -LIMIT * 1.001, 1.0, np.nan, np.inf])
def test_one_beyond_it_is_not(theirs: float) -> None:
    found = judged(EXACT, np.float32(theirs))
    assert (found.within_tolerance, found.unexplained) == (0, 1)


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_a_value_that_is_not_finite_explains_no_other(value: float) -> None:
    run = stage_run(CODES)
    expected, got = (np.array([[[[[1.0, first]]]]], np.float32) for first in (value, value))
    assert judge_floats(run, "y", expected, got, bit_equal=False) == Judged(elements=2)
    got[..., 0] = 1.01
    assert judge_floats(run, "y", expected, got, bit_equal=False).unexplained == 1
    got[..., 1] = 5
    assert judge_floats(run, "y", expected, got, bit_equal=False).unexplained == 2


def test_nothing_is_explained_where_the_oracle_is_not_the_exact_one() -> None:
    assert judged(np.float32(LIMIT / 4), np.float32(0)).unexplained == 1


def test_a_random_comparison_meets_such_sums_and_passes() -> None:
    for zero_point in (100, 128, 131):
        imported = average(zero_point)
        for seed in range(8):
            found = compare_random(imported.model_bytes, imported.manifest, imported.arrays, seed=seed)
            assert found.unexplained == 0, found.tensors


FACTOR = float(np.float32(1.8654698))


def product(scale: float, dtype: Any) -> Imported:
    """x -> Q/DQ at 2**-15 -> Add to itself -> Mul by a float32 of 24 bits -> Q/DQ at `scale` -> y."""
    s = Sketch(21)
    x = s.qdq(s.input("x", (1, 64)), 2.0**-15, 32719, np.uint16, out="a")
    s.output(s.qdq(s.node("Mul", [s.node("Add", [x, x]), s.const(FACTOR)], "m"), scale, 3, dtype, out="y"), (1, 64))
    return s.load()


def test_a_shift_of_a_product_beyond_2_24_is_judged_by_rationals() -> None:
    imported = product(2.0**-12, np.uint16)
    op = op_of(imported.manifest, "Mul")
    assert op.requant is not None
    assert (op.requant.reference, op.accumulator) == ("srs", None)
    codes = np.arange(2**16, dtype=np.uint16).reshape(-1, 1, 64)
    found = compare_stage(imported, codes)
    assert (found.unexplained, found.near_ties) == (0, 0)
    assert found.reference_inexact > 0


def test_nothing_is_explained_where_every_product_is_exact_in_float32() -> None:
    assert Oracle(*parts(product(2.0**-8, np.uint8))).largest("m.node") > 2**24
    s = Sketch()
    x = s.qdq(s.input("x", (1, 64)), 2.0**-7, 5, out="a")
    s.output(s.qdq(s.node("Mul", [s.node("Add", [x, x]), s.const(0.75)], "m"), 2.0**-6, 3, out="y"), (1, 64))
    small = s.load()
    assert Oracle(*parts(small)).largest("m.node") <= 2**24
    op = op_of(small.manifest, "Mul")
    graph = graph_of(small.model_bytes, small.manifest, small.arrays, fma=True)
    stage = next(stage for stage in stages(small.manifest) if op.name in stage.ops)
    run = StageRun(graph=graph, stage=stage, tensors={}, made={}, offset=0)
    assert not rules_of(run).inexact
    assert not rules_of(run).ties


def parts(imported: Imported) -> tuple[Manifest, Mapping[str, Any]]:
    return imported.manifest, imported.arrays


def compare_stage(imported: Imported, codes: np.ndarray) -> TensorComparison:
    """The stage of y's codes on given codes, against onnxruntime."""
    graph = graph_of(imported.model_bytes, imported.manifest, imported.arrays, fma=True)
    stage = next(s for s in stages(imported.manifest) if "y.q" in s.outputs)
    session = Session(
        extract(imported.model_bytes, ["a.q"], ["y.q"], {"a.q": type_at_cut(imported.manifest.tensor("a.q"))}), OFF
    )
    result = Result()
    truth = session.run({"a.q": codes}, ["y.q"])
    StageWise(graph, session, stage=stage).compare_chunk({"a.q": codes}, truth, 0, result)
    (row,) = result.table()
    return row
