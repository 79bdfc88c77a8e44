"""Made-up inputs: they stay in range, are repeatable, and do reach ties and extremes."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from manifest.model import QRANGE, Quantization, Tensor
from manifest.onnx_import import Imported
from oracle.reference.exact import Evaluator
from oracle.reference.graph import graph_of
from oracle.reference.patterns import BOUNDARY, float_inputs, integer_inputs, tie_inputs
from oracle.reference.random_ops import matrix_of
from oracle.stages import stages
from tests.qdq_models import Sketch
from tests.reference_models import cnn, sixteen

CASES = 12


def tensor(dtype: Any, shape: tuple[int, ...] = (2, 3, 4), zero: int = 3, scale: float = 0.25) -> Tensor:
    quant = Quantization(scales=(scale,), zero_points=(zero,))
    return Tensor(name="t", shape=shape, dtype=dtype, onnx_dtype=dtype, role="activation", quant=quant)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16"])
def test_integer_inputs_hold_both_extremes_and_the_zero_point(dtype: str) -> None:
    values = integer_inputs({"t": tensor(dtype)}, CASES, np.random.default_rng(0))["t"]
    low, high = QRANGE[dtype]
    assert values.dtype == np.dtype(dtype)
    assert values.shape == (len(BOUNDARY) + CASES, 2, 3, 4)
    assert (values[0] == low).all()
    assert (values[1] == high).all()
    assert (values[2] == 3).all()
    assert set(np.unique(values[3])) == {low, high}
    assert (np.sort((values[5] != 3).reshape(-1))[:-1] == 0).all()


def test_two_inputs_meet_as_equals_and_as_opposites() -> None:
    both = integer_inputs({"a": tensor("int8"), "b": tensor("int8")}, 0, np.random.default_rng(0))
    pairs = {(int(a.min()), int(a.max()), int(b.min()), int(b.max())) for a, b in zip(*both.values(), strict=True)}
    assert {(-128, -128, -128, -128), (127, 127, 127, 127), (-128, -128, 127, 127)} <= pairs


def test_scalars_and_single_elements_have_inputs_too() -> None:
    for shape in ((), (1,), (1, 1)):
        values = integer_inputs({"t": tensor("uint8", shape)}, 3, np.random.default_rng(0))["t"]
        assert values.shape == (len(BOUNDARY) + 3, *shape)


def test_float_inputs_lie_on_ties_beside_them_and_beyond_every_range() -> None:
    target = tensor("int8", (64, 64), scale=0.25)
    source = Tensor(name="x", shape=(64, 64), dtype="float32", onnx_dtype="float32", role="input")
    values = float_inputs(source, target, 8, np.random.default_rng(0))
    assert values.dtype == np.float32
    finite = values[np.isfinite(values)].astype(np.float64) / 0.25
    distance = np.abs(finite - np.floor(finite) - 0.5)
    assert (distance == 0).sum() > 100
    assert ((distance > 0) & (distance < 1e-4)).sum() > 100
    assert np.isnan(values).any()
    assert np.isposinf(values).any()
    assert np.isneginf(values).any()
    assert (values > 1e30).any()
    assert (np.signbit(values) & (values == 0)).any()


def gemm(trans_a: int = 0, trans_b: int = 0, op: str = "Gemm") -> Sketch:
    rng = np.random.default_rng(0)
    s = Sketch()
    x = s.qdq(s.input("x", (6, 3) if trans_a else (3, 6)), 0.5, 3, np.uint8, out="a")
    weights = s.weight(rng.integers(-99, 99, (5, 6) if trans_b else (6, 5)), 0.125)
    attributes: dict[str, Any] = {"transA": trans_a, "transB": trans_b} if op == "Gemm" else {}
    s.qdq(s.node(op, [x, weights], "g", **attributes), 2.0, 3, np.uint8, out="y")
    s.output("y", (3, 5))
    return s


@pytest.mark.parametrize(
    "make",
    [
        cnn,
        lambda: sixteen(2.0**-10),
        gemm,
        lambda: gemm(1, 0),
        lambda: gemm(0, 1),
        lambda: gemm(op="MatMul"),
    ],
    ids=["conv", "conv16", "gemm", "transA", "transB", "matmul"],
)
def test_searched_inputs_reach_a_tie(make: Callable[[], Sketch]) -> None:
    imported: Imported = make().load()
    graph = graph_of(imported.model_bytes, imported.manifest, imported.arrays, fma=True)
    found = [m for stage in stages(imported.manifest) if (m := matrix_of(graph, stage)) is not None]
    matrix = found[0]
    inputs = tie_inputs(matrix, CASES, np.random.default_rng(0))
    assert inputs.shape == (CASES, *matrix.activation.shape)
    assert inputs.dtype == np.dtype(matrix.activation.dtype)
    evaluator = Evaluator(
        ops=imported.manifest.ops,
        tensors=imported.manifest.by_name(),
        arrays=imported.arrays,
        inputs={matrix.activation.name: inputs},
    )
    reached = 0
    for case in range(CASES):
        places = np.ndindex(*matrix.output.shape)
        values = (evaluator.in_codes(matrix.output.name, (case, *place)).value for place in places)
        reached += any((value - Fraction(1, 2)).denominator == 1 for value in values)
    assert reached >= CASES * 2 // 3


def test_ties_that_float64_misses_are_searched_too() -> None:
    s = Sketch()
    x = s.qdq(s.input("x", (1, 16)), 7 / 128, out="xd")
    weights = s.weight(np.random.default_rng(0).integers(-127, 128, (16, 12)), 1 / 128)
    s.qdq(s.node("Gemm", [x, weights]), 25 / 512, out="y")
    s.output("y", (1, 12))
    imported = s.load()
    graph = graph_of(imported.model_bytes, imported.manifest, imported.arrays, fma=True)
    (matrix,) = (m for stage in stages(imported.manifest) if (m := matrix_of(graph, stage)) is not None)
    inputs = tie_inputs(matrix, 64, np.random.default_rng(0)).astype(np.int64).reshape(64, 16)
    ratio = Fraction(7, 800)
    sums = {v for v in (inputs @ matrix.weights).reshape(-1).tolist() if (v * ratio - Fraction(1, 2)).denominator == 1}
    missed = [v for v in sums if round(v * ratio) != round(v * float(ratio))]
    assert missed


def test_levels_spread_averages_over_the_whole_range() -> None:
    values = integer_inputs({"t": tensor("int8", (1, 8, 6, 6))}, 40, np.random.default_rng(0))["t"]
    means = values[len(BOUNDARY) :].mean(axis=(3, 4)).reshape(-1)
    assert len(np.unique(np.floor(means / 16))) == 16


def test_the_same_seed_gives_the_same_inputs() -> None:
    a, b = (integer_inputs({"t": tensor("int16")}, CASES, np.random.default_rng(7))["t"] for _ in range(2))
    np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("special", [True, False])
def test_infinities_and_nan_are_for_quantizelinear_alone(special: bool) -> None:
    s = Sketch()
    s.output(s.qdq(s.input("x", (4, 50)), 0.1, out="y"))
    manifest = s.load().manifest
    values = float_inputs(manifest.tensor("x"), manifest.tensor("y.q"), 8, np.random.default_rng(0), special=special)
    assert bool(np.isfinite(values).all()) is not special
