"""The check of the written model finds what is wrong with a model that was tampered with."""

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from manifest.errors import RefusedError
from manifest.onnx_import.quantize import quantize_float
from manifest.onnx_import.quantize.verify import is_power_of_two, verify

FEEDS = {"x": np.random.default_rng(2).normal(size=(3, 4, 6)).astype(np.float32)}


def quantized() -> onnx.ModelProto:
    weights = np.random.default_rng(3).normal(size=(6, 6)).astype(np.float32)
    graph = helper.make_graph(
        [helper.make_node("Gemm", ["x", "w", "b"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, (4, 6))],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, (4, 6))],
        [numpy_helper.from_array(weights, "w"), numpy_helper.from_array(weights[0], "b")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    ready: onnx.ModelProto = onnx.ModelProto.FromString(quantize_float(model.SerializeToString(), FEEDS).model_bytes)
    return ready


def replace(model: onnx.ModelProto, name: str, change: Callable[[NDArray[Any]], NDArray[Any]]) -> None:
    tensor = next(t for t in model.graph.initializer if t.name == name)
    tensor.CopyFrom(numpy_helper.from_array(change(numpy_helper.to_array(tensor)), name))


def scale_name(model: onnx.ModelProto, output: str) -> str:
    return next(str(n.input[1]) for n in model.graph.node if output in n.output)


def test_what_the_quantizer_writes_passes() -> None:
    verify(quantized().SerializeToString(), FEEDS)


def test_a_scale_one_bit_off_a_power_of_two_is_found() -> None:
    model = quantized()
    replace(model, scale_name(model, "w_dequantized"), lambda s: np.nextafter(s, np.float32(1)))
    with pytest.raises(RefusedError, match="scale is not one power of two"):
        verify(model.SerializeToString(), FEEDS)


def test_a_bias_at_another_power_of_two_is_found() -> None:
    model = quantized()
    replace(model, scale_name(model, "b_dequantized"), lambda s: s * np.float32(2))
    with pytest.raises(RefusedError, match="bias scale is not input scale times weight scale"):
        verify(model.SerializeToString(), FEEDS)


def test_a_zero_point_is_found() -> None:
    model = quantized()
    replace(model, "zero_int8", lambda z: z + np.int8(1))
    with pytest.raises(RefusedError, match="zero point is not 0"):
        verify(model.SerializeToString(), FEEDS)


def test_an_invalid_graph_is_found() -> None:
    model = quantized()
    model.graph.node[0].op_type = "NoSuchOp"
    with pytest.raises(RefusedError, match="the quantized model is invalid"):
        verify(model.SerializeToString(), FEEDS)


@pytest.mark.parametrize("scale", [0.0, -0.5, 3.0, float("inf"), float("nan"), 0.1])
def test_scales_that_are_no_power_of_two(scale: float) -> None:
    assert not is_power_of_two(scale)


def test_scales_that_are() -> None:
    assert all(is_power_of_two(2.0**k) for k in range(-126, 128))
