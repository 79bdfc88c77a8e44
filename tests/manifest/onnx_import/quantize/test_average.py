"""The constant behind an average, held against onnxruntime on every possible sum."""

from fractions import Fraction
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from manifest.onnx_import.graph import build
from manifest.onnx_import.quantize.average import Factor, factor_for, window_elements


def codes_of_every_sum(n: int, factor: Factor | None, input_exponent: int, output_exponent: int) -> NDArray[np.int8]:
    """What onnxruntime gives for the sums -128 * n .. 127 * n, one channel each."""
    sums = np.arange(-128 * n, 127 * n + 1)
    base, rest = np.divmod(sums, n)
    codes = (base[:, None] + (np.arange(n) < rest[:, None])).astype(np.int8).reshape(1, -1, 1, n)
    scales = {"sx": np.ldexp(np.float32(1), input_exponent), "sy": np.ldexp(np.float32(1), output_exponent)}
    constants = {**scales, "z": np.int8(0), "k": np.float32(1 if factor is None else factor.value)}
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "sx", "z"], ["d"]),
        helper.make_node("GlobalAveragePool", ["d"], ["a"]),
        *([helper.make_node("Mul", ["a", "k"], ["m"])] if factor else []),
        helper.make_node("QuantizeLinear", ["m" if factor else "a", "sy", "z"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", onnx.TensorProto.INT8, codes.shape)],
        [helper.make_tensor_value_info("y", onnx.TensorProto.INT8, (1, codes.shape[1], 1, 1))],
        [numpy_helper.from_array(np.asarray(v), name) for name, v in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    result: NDArray[np.int8] = ort.InferenceSession(model.SerializeToString(), options).run(None, {"x": codes})[0]
    return result.ravel()


def rounded(value: Fraction) -> int:
    return max(-128, min(127, round(value)))


@pytest.mark.parametrize("n", [3, 9, 25, 49])
def test_odd_n_at_equal_scales_needs_no_constant_and_onnxruntime_is_exact(n: int) -> None:
    assert factor_for(n, -6, -6) is None
    expected = [rounded(Fraction(s, n)) for s in range(-128 * n, 127 * n + 1)]
    np.testing.assert_array_equal(codes_of_every_sum(n, None, -6, -6), expected)


@pytest.mark.parametrize("n", [1, 2, 4, 64, 256])
def test_powers_of_two_need_no_constant(n: int) -> None:
    assert factor_for(n, -6, -5) is None


@pytest.mark.parametrize(
    ("n", "step", "pair"),
    [
        (36, 0, (57, 11)),
        (6, 0, (171, 10)),
        (12, -1, (171, 11)),
        (49, 1, (167, 13)),
        (9, 1, (57, 9)),
        (100, 0, (41, 12)),
    ],
)
def test_the_constant_makes_the_average_a_multiplication_and_a_shift_on_every_sum(
    n: int, step: int, pair: tuple[int, int]
) -> None:
    factor = factor_for(n, -6, -6 + step)
    assert factor is not None
    assert (factor.multiplier, factor.shift) == pair
    assert Fraction(factor.value) == Fraction(n * pair[0], 1 << pair[1])
    ratio = Fraction(pair[0], 1 << pair[1]) / Fraction(2) ** step
    expected = [rounded(s * ratio) for s in range(-128 * n, 127 * n + 1)]
    np.testing.assert_array_equal(codes_of_every_sum(n, factor, -6, -6 + step), expected)


@pytest.mark.parametrize("n", [6, 36, 100, 144, 196])
def test_the_constant_stays_within_a_quarter_of_a_code(n: int) -> None:
    factor = factor_for(n, 0, 0)
    assert factor is not None
    assert abs(Fraction(factor.value) - 1) * 128 <= Fraction(1, 4)


def elements(op: str, shape: tuple[int, ...], **attributes: Any) -> int | None:
    node = helper.make_node(op, ["x"], ["y"], **attributes)
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)],
    )
    return window_elements(build(helper.make_model(graph)).nodes[0], shape)


def test_windows_with_one_number_of_elements() -> None:
    assert elements("GlobalAveragePool", (1, 2, 7, 5)) == 35
    assert elements("AveragePool", (1, 2, 6, 6), kernel_shape=[3, 2]) == 6
    assert elements("AveragePool", (1, 2, 6, 6), kernel_shape=[3, 3], pads=[1, 1, 1, 1], count_include_pad=1) == 9
    assert elements("AveragePool", (1, 2, 6, 6), kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1) == 4


def test_windows_with_different_numbers_of_elements() -> None:
    assert elements("AveragePool", (1, 2, 6, 6), kernel_shape=[3, 3], pads=[1, 1, 1, 1]) is None
    assert elements("AveragePool", (1, 2, 5, 5), kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1) is None
    assert elements("AveragePool", (1, 2, 6, 6), kernel_shape=[3, 3], auto_pad="SAME_UPPER") is None
