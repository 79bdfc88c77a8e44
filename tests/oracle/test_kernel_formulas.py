"""onnxruntime's float32 formulas on inputs where every other order of operations gives another code."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from manifest.model import Accumulator, Bias
from oracle.cpu import read_cpu_flags
from oracle.run import Oracle
from oracle.sketch import Sketch, quantization, requantization
from oracle.strategies import Case
from oracle.value import Array
from tests.oracle import onnx_of

f32 = np.float32
RNG = np.random.default_rng(3)
TRIPLES = [tuple(float(f32(v)) for v in RNG.uniform(0.01, 1, 3)) for _ in range(12)]
"""Scales of input, weight and output."""

OTHERS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "weight scale over output scale first": lambda sx, sw, sy: f32(sx) * f32(f32(sw) / f32(sy)),
    "in float64": lambda sx, sw, sy: f32(sx * sw / sy),
    "input scale over output scale first": lambda sx, sw, sy: f32(f32(sx) / f32(sy)) * f32(sw),
}


def check(case: Case) -> Array:
    """Equal to onnxruntime; returns the codes."""
    got = Oracle(case.manifest, case.arrays, fma=read_cpu_flags().fma).run(case.inputs)["y"]
    np.testing.assert_array_equal(got, onnx_of.run(onnx_of.qoperator(case)))
    return got


def conv(sums: Array, scales: tuple[float, ...], point: int) -> Case:
    """A 1x1 QLinearConv of nothing: its accumulators are the biases `sums`, one channel each."""
    sx, sw, sy = scales
    sketch = Sketch()
    sketch.activation("x", (1, 1, 1, 1), "uint8", quantization([sx], [0]), role="input")
    sketch.constant("w", np.ones((len(sums), 1, 1, 1), np.int8), quantization([sw], [0]))
    units = quantization([sx * sw] * len(sums), [0] * len(sums), 0)
    sketch.constant("b", sums.astype(np.int32), units, role="bias")
    sketch.activation("y", (1, len(sums), 1, 1), "uint8", quantization([sy], [point]), role="output")
    sketch.op(
        "Conv",
        ("x", "w", "b"),
        "y",
        requant=requantization([Fraction(sx) * Fraction(sw) / Fraction(sy)], "uint8", reference="scale_f32"),
        attributes={"kernel_shape": (1, 1), "strides": (1, 1), "dilations": (1, 1), "pads": (0,) * 4, "group": 1},
        bias=Bias(kind="accumulator"),
        origin="qoperator",
        accumulator=Accumulator(bits=32, bound=2**31 - 1),
    )
    inputs: dict[str, Array] = {"x": np.zeros((1, 1, 1, 1, 1), np.uint8)}
    return Case(manifest=sketch.manifest(["x"], ["y"]), arrays=sketch.arrays, inputs=inputs)


@pytest.mark.parametrize("other", OTHERS)
def test_the_requantization_multiplier_is_built_in_the_kernels_order(other: str) -> None:
    """Accumulators are chosen beside ties, so that one unit in the last place of the multiplier shows."""
    telling = 0
    for sx, sw, sy in TRIPLES:
        small = sy * 2.0**17  # codes up to 200 come from accumulators of about 2**24
        right = f32(f32(f32(sx) * f32(sw)) / f32(small))
        wrong = OTHERS[other](sx, sw, small)
        ties = (np.arange(-100, 100) + 0.5) / float(right)
        sums = np.unique(np.concatenate([np.floor(ties), np.ceil(ties)])).astype(np.int64)
        sums = sums[np.abs(sums) < 2**30]
        codes = check(conv(sums, (sx, sw, small), 100)).ravel()
        expected = np.clip(np.rint(sums.astype(np.int32).astype(f32) * right) + 100, 0, 255)
        np.testing.assert_array_equal(codes, expected)
        telling += int(np.count_nonzero(codes != np.clip(np.rint(sums.astype(f32) * wrong) + 100, 0, 255)))
    assert telling > 0


def test_large_accumulators_round_to_float32_first() -> None:
    sums = np.array([2**24 + 1, 2**24 + 3, 2**30 + 1, -(2**24) - 1], np.int64)
    codes = check(conv(sums, (1.0, 1.0, 2.0**25), 0)).ravel()
    assert codes.tolist() == [0, 1, 32, 0]


ALL = np.arange(256, dtype=np.uint8)
GRID = {"a": np.repeat(ALL, 256)[None], "b": np.tile(ALL, 256)[None]}


def pair(op_type: str, scales: tuple[float, ...], points: tuple[int, ...]) -> Case:
    """All 65,536 pairs of codes."""
    sketch = Sketch()
    for name, scale, point in zip("ab", scales, points, strict=False):
        sketch.activation(name, (65536,), "uint8", quantization([scale], [point]), role="input")
    sketch.activation("y", (65536,), "uint8", quantization([scales[2]], [points[2]]), role="output")
    ratios = [Fraction(1)] * (2 if op_type == "Add" else 1)
    requant = requantization(ratios, "uint8", reference="scale_f32", inside=True, shared_shift=op_type == "Add")
    sketch.op(op_type, ("a", "b"), "y", requant=requant, origin="qoperator")
    return Case(manifest=sketch.manifest(["a", "b"], ["y"]), arrays={}, inputs=GRID)


@pytest.mark.parametrize("op_type", ["Add", "Mul"])
@pytest.mark.parametrize("scales", [(0.5, 0.25, 1.0), (1.0, 0.125, 2.0), *TRIPLES[:6], (0.021, 0.004, 0.37)])
def test_all_pairs_of_codes(op_type: str, scales: tuple[float, ...]) -> None:
    check(pair(op_type, scales, (3, 128, 77)))


@pytest.mark.parametrize("op_type", ["Add", "Mul"])
def test_the_zero_point_lies_inside_the_rounding(op_type: str) -> None:
    """With 2**k scales and an odd zero point ties go another way than behind the rounding."""
    got = check(pair(op_type, (0.5, 0.5, 1.0), (0, 0, 1)))
    a, b = GRID["a"].astype(f32), GRID["b"].astype(f32)
    real = (a + b) * f32(0.5) if op_type == "Add" else a * b * f32(0.25)
    behind = np.clip(np.rint(real) + 1, 0, 255)
    assert np.count_nonzero(got != behind) > 100


def concat(scales: tuple[float, ...], points: tuple[int, ...]) -> Case:
    sketch = Sketch()
    for name, scale, point in zip("ab", scales, points, strict=False):
        sketch.activation(name, (65536,), "uint8", quantization([scale], [point]), role="input")
    sketch.activation("y", (131072,), "uint8", quantization([scales[2]], [points[2]]), role="output")
    ratios = [Fraction(s) / Fraction(scales[2]) for s in scales[:2]]
    requant = requantization(ratios, "uint8", reference="scale_f32")
    sketch.op("Concat", ("a", "b"), "y", requant=requant, origin="qoperator", attributes={"axis": 0})
    return Case(manifest=sketch.manifest(["a", "b"], ["y"]), arrays={}, inputs=GRID)


@pytest.mark.parametrize("scales", [(0.5, 1.0, 1.0), (0.5, 0.25, 1.0), *TRIPLES[:6]])
def test_concat_of_all_codes(scales: tuple[float, ...]) -> None:
    check(concat(scales, (3, 77, 77)))


@pytest.mark.parametrize("scale", [0.5, 0.1, 0.021, float(f32(1 / 3))])
@pytest.mark.parametrize(("dtype", "point"), [("uint8", 77), ("int8", -3), ("int16", 5), ("uint16", 40000)])
def test_quantize_linear_at_and_beside_ties(scale: float, dtype: str, point: int) -> None:
    """A product with the reciprocal, or the zero point inside, would differ on some of these."""
    scale = float(f32(scale))
    info = np.iinfo(dtype)
    span = np.arange(max(info.min - point - 3, -3000), min(info.max - point + 4, 3000)) + 0.5
    ties = (span * scale).astype(f32)
    x = np.concatenate([ties, np.nextafter(ties, f32(9e9)), np.nextafter(ties, f32(-9e9))])
    x = np.concatenate([x, np.array([np.nan, np.inf, -np.inf, -0.0, 3e38, -3e38], f32)])[None]
    sketch = Sketch()
    sketch.activation("x", x.shape[1:], "float32", role="input")
    sketch.activation("y", x.shape[1:], dtype, quantization([scale], [point]), role="output")  # type: ignore[arg-type]
    sketch.op("QuantizeLinear", ("x",), "y", host=True)
    case = Case(manifest=sketch.manifest(["x"], ["y"]), arrays={}, inputs={"x": x})
    got = Oracle(case.manifest, {}).run(case.inputs)["y"]
    model = onnx_of.Model(case)
    model.node("QuantizeLinear", ["x", *model.scale_point("y")], "y")
    np.testing.assert_array_equal(got[0], model.session().run(None, {"x": x[0]})[0])
