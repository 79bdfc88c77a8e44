import numpy as np
import pytest

from manifest.errors import RefusedError
from manifest.onnx_import.graph import Constant, Graph, Node
from manifest.onnx_import.quant import (
    check_axis,
    dequantize_array,
    exponent_of,
    per_tensor,
    quantization,
    quantize_array,
    read,
)


@pytest.mark.parametrize(
    ("scale", "exponent"), [(1.0, 0), (0.5, -1), (2.0**-126, -126), (256.0, 8), (0.3, None), (0.75, None)]
)
def test_exponents_are_exact(scale: float, exponent: int | None) -> None:
    assert exponent_of(scale) == exponent


def test_exponents_are_known_for_all_channels_or_for_none() -> None:
    assert quantization((0.5, 2.0), (0, 0), 1).exponents == (-1, 1)
    assert quantization((0.5, 0.3), (0, 0), 1).exponents is None


def test_one_scale_has_no_axis() -> None:
    assert quantization((0.5,), (0,), 1).axis is None


@pytest.mark.parametrize(
    ("value", "code"),
    [(0.5, 3), (1.5, 5), (2.5, 5), (-0.5, 3), (np.nan, -128), (np.inf, 127), (-np.inf, -128), (1e30, 127), (-0.0, 3)],
)
def test_quantize_rounds_half_even_and_adds_the_zero_point_after_it(value: float, code: int) -> None:
    got = quantize_array(np.array([value], np.float32), per_tensor(1.0, 3), "int8")
    assert got.tolist() == [code]


def test_quantize_divides_in_float32() -> None:
    """0.15 / 0.1 in float32 is 1.5 (rounds to 2), while the reciprocal 10 * 0.15 would be 1.5000001."""
    values = np.array([0.15, 0.25, 0.35], np.float32)
    expected = np.rint(values / np.float32(0.1)).astype(np.int8)
    assert quantize_array(values, per_tensor(0.1), "int8").tolist() == expected.tolist()


def test_dequantize_per_channel() -> None:
    got = dequantize_array(np.array([[1, 2], [3, 4]], np.uint8), quantization((0.5, 2.0), (1, 2), 1))
    assert got.dtype == np.float32
    assert got.tolist() == [[0.0, 0.0], [1.0, 4.0]]


def graph_with(**constants: object) -> Graph:
    held = {name: Constant(array=np.asarray(value), origin=name) for name, value in constants.items()}
    return Graph(nodes=(), constants=held, inputs=(), outputs=(), opsets={"": 21})


def node(*inputs: str) -> Node:
    return Node(
        index=0, name="n", key=":DequantizeLinear", domain="", type="DequantizeLinear", inputs=inputs, outputs=("y",)
    )


def test_a_missing_zero_point_is_zero_of_the_code_type() -> None:
    graph = graph_with(s=np.float32(0.5))
    assert read(graph, node("x", "s"), 1, 2, "int8", axis=1, rank=2) == (per_tensor(0.5), "int8")
    assert read(graph, node("x", "s"), 1, 2, None, axis=1, rank=2)[1] == "uint8"


def test_scale_of_shape_one_and_scalar_mean_the_same() -> None:
    graph = graph_with(s=np.float32(0.5), s1=np.array([0.5], np.float32), z=np.uint8(7), z1=np.array([7], np.uint8))
    scalar = read(graph, node("x", "s", "z1"), 1, 2, None, axis=1, rank=2)
    vector = read(graph, node("x", "s1", "z"), 1, 2, None, axis=1, rank=2)
    assert scalar == vector == (per_tensor(0.5, 7), "uint8")


def test_a_negative_axis_is_counted_from_the_end() -> None:
    graph = graph_with(s=np.array([1, 2], np.float32))
    assert read(graph, node("x", "s"), 1, 2, "int8", axis=-1, rank=3)[0].axis == 2


@pytest.mark.parametrize(
    ("constants", "inputs", "message"),
    [
        ({"s": np.float32(0)}, ("x", "s"), "scale; expected finite and > 0"),
        ({"s": np.float32(np.inf)}, ("x", "s"), "expected finite"),
        ({"s": np.float64(1)}, ("x", "s"), "expected float32; got float64"),
        ({}, ("x", "s"), "scale 's' is computed at run time"),
        ({"s": np.float32(1), "z": np.float32(0)}, ("x", "s", "z"), "unsupported quantized type"),
        ({"s": np.ones(3, np.float32), "z": np.zeros(2, np.int8)}, ("x", "s", "z"), "expected 3 zero points; got 2"),
    ],
)
def test_what_cannot_be_read_is_refused(constants: dict[str, object], inputs: tuple[str, ...], message: str) -> None:
    with pytest.raises(RefusedError, match=message):
        read(graph_with(**constants), node(*inputs), 1, 2, "int8", axis=1, rank=2)


def test_scales_have_to_fit_the_axis() -> None:
    check_axis(node("x"), quantization((1.0, 2.0), (0, 0), 1), (3, 2))
    with pytest.raises(RefusedError, match=r"do not fit axis 0 \(size 3\)"):
        check_axis(node("x"), quantization((1.0, 2.0), (0, 0), 0), (3, 2))
