"""What made-up inputs reach, against the accumulators that real inputs make and the bound of the importer."""

from typing import Any

import numpy as np
import pytest

from manifest.onnx_import import Imported
from oracle.reference.reach import code_ranges, reached
from tests.qdq_models import Sketch, linear, op_of


def only(imported: Imported, op_type: str) -> tuple[int, int]:
    """(reached, proved bound) of the only op of a type."""
    op = op_of(imported.manifest, op_type)
    assert op.accumulator is not None
    return reached(imported.manifest, imported.arrays)[op.name], op.accumulator.bound


def test_gemm_follows_the_signs_of_the_weights() -> None:
    weight = np.array([[3, -1], [-5, 2]])
    assert only(linear(weight).load(), "Gemm") == (5 * 128 + 3 * 127, 8 * 128)


def test_bias_and_transposition_count() -> None:
    s = Sketch()
    bias = s.dq(s.const([1000, -7000], np.int32), 0.125, dtype=np.int32, out="bias")
    imported = linear(np.array([[3, 1], [1, 2]]), bias=bias, sketch=s, options={"transB": 1}).load()
    assert only(imported, "Gemm") == (7000 + 3 * 128, 7000 + 3 * 128)


def test_a_bias_of_finer_scale_promotes_the_accumulator() -> None:
    s = Sketch()
    bias = s.dq(s.const([5], np.int32), 0.125 / 4, dtype=np.int32, out="bias")
    imported = linear(np.array([[1]]), bias=bias, sketch=s).load()
    assert only(imported, "Gemm") == (127 * 4 + 5, 128 * 4 + 5)


def test_a_fused_relu_narrows_what_the_next_op_can_be_fed() -> None:
    s = Sketch()
    x = s.qdq(s.input("x", (1, 1)), 0.5, out="xd")
    h = s.qdq(s.node("Relu", [s.node("Gemm", [x, s.weight([[1]], 0.5)], "g")]), 0.5, out="h")
    flat = s.node("Reshape", [h, s.const([1, 1], np.int64)], "f")
    s.qdq(s.node("MatMul", [flat, s.weight([[-2]], 0.5)], name="mm"), 0.5, out="y")
    s.output("y", (1, 1))
    imported = s.load()
    ranges = code_ranges(imported.manifest, imported.arrays)
    assert (ranges["xd.q"], ranges["h.q"], ranges["f"]) == ((-128, 127), (0, 127), (0, 127))
    assert only(imported, "MatMul") == (2 * 127, 2 * 127)


@pytest.mark.parametrize("attributes", [{}, {"pads": [1, 1, 1, 1]}, {"strides": [2, 2], "dilations": [2, 1]}])
def test_conv_is_never_beyond_the_bound_and_never_below_what_codes_make(attributes: dict[str, Any]) -> None:
    rng = np.random.default_rng(5)
    s = Sketch()
    x = s.qdq(s.input("x", (1, 4, 7, 7)), 0.5, 90, np.uint8, out="xd")
    weight = s.weight(rng.integers(-128, 128, (6, 2, 3, 3)), [0.5] * 6, name="w", axis=0)
    s.qdq(s.node("Conv", [x, weight], name="conv", group=2, **attributes), 64.0, out="y")
    s.output("y", (1, 6, 1, 1))
    reach, bound = only(s.load(), "Conv")
    assert reach <= bound
    codes = rng.integers(0, 256, (500, 1, 18)) - 90
    stored = next(i for i in s.initializers if i.name == "w")
    weights = np.frombuffer(stored.raw_data, np.int8).reshape(1, 6, 18).astype(np.int64)
    assert reach >= np.abs((codes * weights).sum(axis=2)).max()


def test_averages_sums_and_products_of_activations() -> None:
    s = Sketch()
    x = s.qdq(s.input("x", (1, 2, 3, 3)), 0.5, -100, out="xd")
    s.qdq(s.node("GlobalAveragePool", [x], name="gap"), 0.5, out="m")
    s.qdq(s.node("Add", [x, x], name="add"), 0.25, out="a")
    s.qdq(s.node("MatMul", [x, x], name="mm"), 4.0, out="p")
    for name, shape in (("m", (1, 2, 1, 1)), ("a", (1, 2, 3, 3)), ("p", (1, 2, 3, 3))):
        s.output(name, shape)
    imported = s.load()
    assert only(imported, "GlobalAveragePool") == (9 * 227, 9 * 227)
    assert only(imported, "MatMul") == (3 * 227 * 227, 3 * 227 * 227)
    requant = op_of(imported.manifest, "Add").requant
    assert requant is not None
    assert only(imported, "Add")[0] == sum(requant.multipliers) * 227


@pytest.mark.parametrize("order", [("r", "xd"), ("xd", "r")])
def test_behind_a_concat_the_widest_of_its_inputs_counts(order: tuple[str, str]) -> None:
    s = Sketch()
    x = s.qdq(s.input("x", (1, 4)), 0.5, out="xd")
    s.qdq(s.node("Relu", [x], name="relu"), 0.5, out="r")
    joined = s.node("Concat", list(order), "c", name="join", axis=1)
    s.qdq(s.node("Gemm", [joined, s.weight(np.full((8, 4), -1), 0.5)], name="fc"), 0.5, out="y")
    s.output("y", (1, 4))
    assert only(s.load(), "Gemm") == (8 * 128, 8 * 128)


@pytest.mark.parametrize(
    ("size", "attributes", "elements"),
    [
        ((4, 4), {"kernel_shape": [2, 2]}, 4),
        ((1, 1), {"kernel_shape": [1, 2], "pads": [0, 1, 0, 0]}, 1),
        ((3, 1), {"kernel_shape": [2, 2], "pads": [0, 1, 0, 1]}, 2),
        ((1, 3), {"kernel_shape": [1, 4], "pads": [0, 2, 0, 0], "strides": [1, 2]}, 2),
        ((1, 3), {"kernel_shape": [1, 3], "pads": [0, 2, 0, 2], "strides": [1, 2], "count_include_pad": 1}, 3),
    ],
)
def test_a_window_that_hangs_over_the_border_sums_what_lies_in_the_image(
    size: tuple[int, int], attributes: dict[str, Any], elements: int
) -> None:
    s = Sketch()
    x = s.qdq(s.input("x", (1, 2, *size)), 0.5, -100, out="xd")
    s.qdq(s.node("AveragePool", [x], name="pool", **attributes), 0.5, out="y")
    s.output("y")
    reach, bound = only(s.load(), "AveragePool")
    assert reach == elements * 227
    assert reach <= bound
