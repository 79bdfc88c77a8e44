"""Float models quantized on data: structure, exact scales, refusals, accuracy on the corpus."""

import importlib
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from manifest.errors import RefusedError
from manifest.onnx_import.quantize import Quantized, QuantizeOptions, quantize_float
from manifest.onnx_import.quantize.verify import is_power_of_two

Array = NDArray[Any]
RNG = np.random.default_rng(5)


def normal(*shape: int) -> NDArray[np.float32]:
    return RNG.normal(size=shape).astype(np.float32)


IMAGES = {"x": normal(6, 1, 3, 12, 12)}
ROWS = {"x": normal(6, 4, 6)}


def float_model(
    nodes: list[onnx.NodeProto],
    constants: Mapping[str, Any],
    shape: tuple[int | str, ...],
    outputs: Mapping[str, tuple[int, ...]],
    opset: int = 17,
) -> bytes:
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, s) for n, s in outputs.items()],
        [numpy_helper.from_array(np.asarray(a), n) for n, a in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    data: bytes = model.SerializeToString()
    return data


def run(model: bytes, feeds: Mapping[str, Array], outputs: list[str] | None = None) -> list[Array]:
    """Outputs over all feeds at ORT_DISABLE_ALL; inner tensors may be asked for."""
    proto = onnx.ModelProto.FromString(model)
    known = {o.name for o in proto.graph.output}
    proto.graph.output.extend(onnx.ValueInfoProto(name=n) for n in outputs or [] if n not in known)
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = ort.InferenceSession(proto.SerializeToString(), options)
    count = len(next(iter(feeds.values())))
    rows = [session.run(outputs, {k: v[i] for k, v in feeds.items()}) for i in range(count)]
    return [np.stack(values) for values in zip(*rows, strict=True)]


def graph_of(q: Quantized) -> onnx.GraphProto:
    graph: onnx.GraphProto = onnx.ModelProto.FromString(q.model_bytes).graph
    return graph


def types(q: Quantized) -> list[str]:
    return [n.op_type for n in graph_of(q).node if n.op_type != "DequantizeLinear"]


def constants_of(q: Quantized) -> dict[str, Array]:
    return {t.name: numpy_helper.to_array(t) for t in graph_of(q).initializer}


def scale_of(q: Quantized, output: str) -> float:
    """Scale of the Q or DQ node that writes `output`."""
    node = next(n for n in graph_of(q).node if output in n.output)
    return float(constants_of(q)[node.input[1]])


def sqnr(reference: Array, got: Array) -> float:
    return float(10 * np.log10((reference**2).sum() / ((reference - got) ** 2).sum()))


def conv(source: str, weight: str, target: str, **attributes: Any) -> onnx.NodeProto:
    return helper.make_node("Conv", [source, weight], [target], name=f"conv_{target}", **attributes)


def test_every_scale_is_a_power_of_two_and_every_zero_point_is_0() -> None:
    nodes = [conv("x", "w", "c"), helper.make_node("Relu", ["c"], ["y"])]
    q = quantize_float(float_model(nodes, {"w": normal(4, 3, 3, 3)}, (1, 3, 12, 12), {"y": (1, 4, 10, 10)}), IMAGES)
    constants = constants_of(q)
    pairs = [n for n in graph_of(q).node if n.op_type in ("QuantizeLinear", "DequantizeLinear")]
    assert len(pairs) == 5
    for node in pairs:
        assert is_power_of_two(float(constants[node.input[1]]))
        assert constants[node.input[2]] == 0
    onnx.checker.check_model(onnx.ModelProto.FromString(q.model_bytes), full_check=True)


def test_relu_is_in_front_of_the_only_rounding_and_its_tensor_keeps_its_name() -> None:
    nodes = [conv("x", "w", "c"), helper.make_node("Relu", ["c"], ["y"])]
    model = float_model(nodes, {"w": normal(4, 3, 3, 3)}, (1, 3, 12, 12), {"y": (1, 4, 10, 10)})
    q = quantize_float(model, IMAGES)
    assert types(q) == ["QuantizeLinear", "Conv", "Relu", "QuantizeLinear"]
    dequantize = next(n for n in graph_of(q).node if "y" in n.output)
    assert dequantize.input[0] == "y_quantized"
    assert sqnr(run(model, IMAGES)[0], run(q.model_bytes, IMAGES)[0]) > 30


def test_weights_and_bias_are_the_floats_rounded_at_their_scales() -> None:
    weight, bias = normal(5, 6), normal(5)
    node = helper.make_node("Gemm", ["x", "w", "b"], ["y"], alpha=0.5, beta=2.0, transB=1)
    q = quantize_float(float_model([node], {"w": weight, "b": bias}, (4, 6), {"y": (4, 5)}), ROWS)
    constants = constants_of(q)
    sx, sw, sb = (scale_of(q, name) for name in ("x_dequantized", "w_dequantized", "b_dequantized"))
    assert sb == sx * sw
    halved = np.clip(np.rint(weight * np.float32(0.5) / sw), -128, 127)
    np.testing.assert_array_equal(constants["w_quantized"], halved.astype(np.int8))
    assert constants["b_quantized"].dtype == np.int32
    np.testing.assert_array_equal(constants["b_quantized"], np.rint(bias.astype(np.float64) * 2 / sb))
    gemm = next(n for n in graph_of(q).node if n.op_type == "Gemm")
    assert [a.name for a in gemm.attribute] == ["transB"]


@pytest.mark.parametrize("shape", [(), (1,), (1, 5), (5,)])
def test_gemm_bias_becomes_one_value_per_channel(shape: tuple[int, ...]) -> None:
    node = helper.make_node("Gemm", ["x", "w", "b"], ["y"])
    model = float_model([node], {"w": normal(6, 5), "b": normal(*shape)}, (4, 6), {"y": (4, 5)})
    q = quantize_float(model, ROWS)
    assert constants_of(q)["b_quantized"].shape == (5,)
    assert sqnr(run(model, ROWS)[0], run(q.model_bytes, ROWS)[0]) > 30


def test_a_constant_row_behind_a_matmul_is_its_bias() -> None:
    feeds = {"x": normal(5, 2, 4, 6)}
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["m"]),
        helper.make_node("Add", ["m", "b"], ["a"]),
        helper.make_node("Relu", ["a"], ["y"]),
    ]
    model = float_model(nodes, {"w": normal(6, 5), "b": normal(5)}, (2, 4, 6), {"y": (2, 4, 5)})
    q = quantize_float(model, feeds)
    assert types(q) == ["QuantizeLinear", "MatMul", "Add", "Relu", "QuantizeLinear"]
    assert constants_of(q)["b_quantized"].dtype == np.int32
    assert scale_of(q, "b_dequantized") == scale_of(q, "x_dequantized") * scale_of(q, "w_dequantized")
    assert sqnr(run(model, feeds)[0], run(q.model_bytes, feeds)[0]) > 30


def test_an_activation_added_to_a_matmul_is_no_bias() -> None:
    nodes = [helper.make_node("MatMul", ["x", "w"], ["m"]), helper.make_node("Add", ["m", "x"], ["y"])]
    q = quantize_float(float_model(nodes, {"w": normal(6, 6)}, (4, 6), {"y": (4, 6)}), ROWS)
    assert types(q) == ["QuantizeLinear", "MatMul", "QuantizeLinear", "Add", "QuantizeLinear"]


def test_a_bias_that_dwarfs_its_weights_gets_a_coarser_weight_scale() -> None:
    node = helper.make_node("Gemm", ["x", "w", "b"], ["y"])
    model = float_model([node], {"w": normal(6, 6) * 1e-8, "b": 100 * normal(6)}, (4, 6), {"y": (4, 6)})
    q = quantize_float(model, ROWS)
    assert "QUANT-BIAS" in [n.code for n in q.notes]
    assert 2**22 < np.abs(constants_of(q)["b_quantized"]).max() <= 2**23
    assert sqnr(run(model, ROWS)[0], run(q.model_bytes, ROWS)[0]) > 30


def test_ops_that_hand_values_on_keep_the_scale() -> None:
    nodes = [
        conv("x", "w1", "a"),
        conv("x", "w2", "b"),
        helper.make_node("Relu", ["b"], ["r"]),
        helper.make_node("Concat", ["a", "r"], ["c"], axis=1),
        helper.make_node("MaxPool", ["c"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Transpose", ["p"], ["t"], perm=[0, 2, 3, 1]),
        helper.make_node("Flatten", ["t"], ["f"]),
        helper.make_node("Reshape", ["f", "shape"], ["y"]),
    ]
    constants = {"w1": normal(2, 3, 1, 1), "w2": 8 * normal(2, 3, 1, 1), "shape": np.array([6, -1])}
    q = quantize_float(float_model(nodes, constants, (1, 3, 12, 12), {"y": (6, 24)}), IMAGES)
    scales = {scale_of(q, f"{name}_quantized") for name in ("a", "r", "c", "p", "t", "f", "y")}
    assert len(scales) == 1
    codes = run(q.model_bytes, IMAGES, ["f_quantized", "y_quantized"])
    np.testing.assert_array_equal(codes[0].ravel(), codes[1].ravel())


def test_a_result_with_two_readers_is_quantized_before_its_relu() -> None:
    nodes = [
        conv("x", "w", "a"),
        helper.make_node("Relu", ["a"], ["r"]),
        helper.make_node("Add", ["a", "r"], ["s"]),
        helper.make_node("Clip", ["s", "low", "high"], ["y"]),
    ]
    constants = {"w": normal(2, 3, 1, 1), "low": np.float32(-1), "high": np.float32(1)}
    q = quantize_float(float_model(nodes, constants, (1, 3, 12, 12), {"y": (1, 2, 12, 12)}), IMAGES)
    expected = ["QuantizeLinear", "Conv", "QuantizeLinear", "Relu", "QuantizeLinear", "Add", "Clip", "QuantizeLinear"]
    assert types(q) == expected
    assert scale_of(q, "a_quantized") == scale_of(q, "r_quantized")


def test_batch_normalization_identity_and_dropout_are_folded() -> None:
    nodes = [
        conv("x", "w", "a"),
        helper.make_node("BatchNormalization", ["a", "s", "b", "m", "v"], ["n"]),
        helper.make_node("Identity", ["n"], ["i"]),
        helper.make_node("Dropout", ["i"], ["d"]),
        helper.make_node("Relu", ["d"], ["y"]),
    ]
    constants = {"w": normal(2, 3, 1, 1), "s": normal(2), "b": normal(2), "m": normal(2), "v": np.abs(normal(2))}
    model = float_model(nodes, constants, (1, 3, 12, 12), {"y": (1, 2, 12, 12)})
    q = quantize_float(model, IMAGES)
    assert types(q) == ["QuantizeLinear", "Conv", "Relu", "QuantizeLinear"]
    assert sqnr(run(model, IMAGES)[0], run(q.model_bytes, IMAGES)[0]) > 30


def test_batch_normalization_on_its_own_is_a_depthwise_conv() -> None:
    nodes = [
        helper.make_node("BatchNormalization", ["x", "s", "b", "m", "v"], ["n"], name="norm", epsilon=0.25),
        helper.make_node("Relu", ["n"], ["y"]),
    ]
    constants = {"s": normal(3), "b": normal(3), "m": normal(3), "v": np.abs(normal(3))}
    model = float_model(nodes, constants, (1, 3, 12, 12), {"y": (1, 3, 12, 12)})
    q = quantize_float(model, IMAGES)
    assert types(q) == ["QuantizeLinear", "Conv", "Relu", "QuantizeLinear"]
    node = next(n for n in graph_of(q).node if n.op_type == "Conv")
    assert (node.name, node.attribute[0].name, node.attribute[0].i) == ("norm", "group", 3)
    assert sqnr(run(model, IMAGES)[0], run(q.model_bytes, IMAGES)[0]) > 30


def test_normalization_by_constants_is_add_and_mul() -> None:
    nodes = [
        helper.make_node("Sub", ["x", "mean"], ["a"]),
        helper.make_node("Div", ["a", "std"], ["b"]),
        conv("b", "w", "y"),
    ]
    constants = {"mean": normal(1, 3, 1, 1), "std": np.float32(0.25), "w": normal(2, 3, 1, 1)}
    model = float_model(nodes, constants, (1, 3, 12, 12), {"y": (1, 2, 12, 12)})
    q = quantize_float(model, IMAGES)
    assert types(q) == ["QuantizeLinear", "Add", "QuantizeLinear", "Mul", "QuantizeLinear", "Conv", "QuantizeLinear"]
    assert sqnr(run(model, IMAGES)[0], run(q.model_bytes, IMAGES)[0]) > 30


def test_weights_shared_by_two_nodes_are_stored_once() -> None:
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"]),
        helper.make_node("Relu", ["a"], ["r"]),
        helper.make_node("MatMul", ["r", "w"], ["y"]),
    ]
    q = quantize_float(float_model(nodes, {"w": normal(6, 6)}, (4, 6), {"y": (4, 6)}), ROWS)
    assert [name for name in constants_of(q) if name.startswith("w")] == ["w_quantized"]


def test_a_bias_shared_by_two_nodes_is_stored_at_each_ones_scale() -> None:
    nodes = [
        helper.make_node("Gemm", ["x", "w1", "b"], ["a"]),
        helper.make_node("Gemm", ["a", "w2", "b"], ["y"]),
    ]
    constants = {"w1": normal(6, 6), "w2": 30 * normal(6, 6), "b": normal(6), "b_quantized": normal(1)}
    model = float_model(nodes, constants, (4, 6), {"y": (4, 6)})
    q = quantize_float(model, ROWS)
    assert {"b_quantized", "b_quantized_2"} <= set(constants_of(q))
    assert sqnr(run(model, ROWS)[0], run(q.model_bytes, ROWS)[0]) > 30


def test_names_that_the_quantizer_would_use_are_not_taken_twice() -> None:
    nodes = [
        helper.make_node("Gemm", ["x", "w"], ["x_quantized"], name="y_QuantizeLinear"),
        helper.make_node("Relu", ["x_quantized"], ["zero_int8"]),
        helper.make_node("Gemm", ["zero_int8", "w"], ["y"], name="x_dequantized"),
    ]
    model = float_model(nodes, {"w": normal(6, 6)}, (4, 6), {"y": (4, 6)})
    q = quantize_float(model, ROWS)
    assert sqnr(run(model, ROWS)[0], run(q.model_bytes, ROWS)[0]) > 25


def test_average_over_36_gets_the_constant_and_over_9_does_not() -> None:
    def pooled(kernel: int) -> Quantized:
        node = helper.make_node("AveragePool", ["x"], ["y"], kernel_shape=[kernel] * 2, strides=[kernel] * 2)
        size = 12 // kernel
        flat = np.repeat(np.repeat(normal(6, 1, 3, size, size), kernel, 3), kernel, 4)
        return quantize_float(float_model([node], {}, (1, 3, 12, 12), {"y": (1, 3, size, size)}), {"x": flat})

    with_constant, without = pooled(6), pooled(3)
    assert scale_of(with_constant, "x_quantized") == scale_of(with_constant, "y_quantized")
    assert types(with_constant) == ["QuantizeLinear", "AveragePool", "Mul", "QuantizeLinear"]
    assert constants_of(with_constant)["y_factor"] == np.float32(36 * 57 / 2048)
    assert "sum * 57 / 2**11" in next(n.text for n in with_constant.notes if n.code == "QUANT-AVERAGE")
    assert types(without) == ["QuantizeLinear", "AveragePool", "QuantizeLinear"]


@pytest.mark.parametrize("source", [b"", b"\x08\x07"])
def test_bytes_that_are_no_model_are_refused(source: bytes) -> None:
    with pytest.raises(RefusedError, match="ONNX-PARSE"):
        quantize_float(source, IMAGES)


def test_every_op_that_cannot_be_quantized_is_named_in_one_report() -> None:
    nodes = [
        conv("x", "w", "a"),
        helper.make_node("HardSwish", ["a"], ["h"], name="swish"),
        helper.make_node("Mul", ["h", "a"], ["m"], name="gate"),
        helper.make_node("Flatten", ["m"], ["f"]),
        helper.make_node("BatchNormalization", ["f", "s", "s", "s", "v"], ["n"], name="norm"),
        helper.make_node("Softmax", ["n"], ["y"], name="soft"),
    ]
    constants = {"w": normal(2, 3, 1, 1), "s": normal(288), "v": np.abs(normal(288))}
    with pytest.raises(RefusedError) as caught:
        quantize_float(float_model(nodes, constants, (1, 3, 12, 12), {"y": (1, 288)}), IMAGES)
    assert [p.code for p in caught.value.problems] == ["QUANT-OP"] * 4
    text = str(caught.value)
    for name, op in (("swish", "HardSwish"), ("gate", "Mul"), ("norm", "BatchNormalization"), ("soft", "Softmax")):
        assert f"'{name}'" in text
        assert op in text
    assert "remedy: leave it to the host with --host-ops" in text


@pytest.mark.parametrize(
    ("node", "constants", "words"),
    [
        (helper.make_node("Gemm", ["x", "x"], ["y"], transA=1), {}, "computed at run time"),
        (helper.make_node("Gemm", ["x", "w"], ["y"], transA=1), {"w": normal(4, 6)}, "transA"),
        (helper.make_node("MatMul", ["w", "x"], ["y"]), {"w": normal(6, 4)}, "of a constant with an activation"),
        (helper.make_node("Mul", ["x", "w"], ["y"]), {"w": normal(6)}, "one constant number"),
        (helper.make_node("Concat", ["x", "w"], ["y"], axis=0), {"w": normal(2, 6)}, "Concat with a constant"),
        (helper.make_node("MatMul", ["x", "w"], ["y"]), {"w": np.full((6, 6), np.inf, np.float32)}, "NaN or infinite"),
        (helper.make_node("Div", ["x", "w"], ["y"]), {"w": np.zeros(1, np.float32)}, "op Div"),
        (helper.make_node("Div", ["x", "w"], ["y"]), {"w": np.array([1e-40], np.float32)}, "op Div"),
        (helper.make_node("Sub", ["w", "x"], ["y"]), {"w": normal(1)}, "op Sub"),
    ],
)
def test_forms_of_supported_ops_that_are_refused(node: onnx.NodeProto, constants: dict[str, Any], words: str) -> None:
    shapes = {"Gemm": (6, 6), "MatMul": (6, 6) if node.input[0] == "w" else (4, 6), "Concat": (6, 6)}
    model = float_model([node], constants, (4, 6), {"y": shapes.get(node.op_type, (4, 6))})
    with pytest.raises(RefusedError, match=words):
        quantize_float(model, ROWS)


def test_host_ops_stay_in_float_and_what_they_hand_on_too() -> None:
    nodes = [
        helper.make_node("Gemm", ["x", "w"], ["g"]),
        helper.make_node("Softmax", ["g"], ["s"], name="soft"),
        helper.make_node("Reshape", ["s", "shape"], ["y"]),
    ]
    model = float_model(nodes, {"w": normal(6, 6), "shape": np.array([6, 4])}, (4, 6), {"y": (6, 4)})
    q = quantize_float(model, ROWS, options=QuantizeOptions(host_ops=True))
    assert types(q) == ["QuantizeLinear", "Gemm", "QuantizeLinear", "Softmax", "Reshape"]
    assert "'soft'" in next(n.where for n in q.notes if n.code == "QUANT-HOST")


def test_a_host_op_in_the_middle_is_quantized_behind() -> None:
    nodes = [
        helper.make_node("Gemm", ["x", "w"], ["g"]),
        helper.make_node("Tanh", ["g"], ["t"]),
        helper.make_node("Gemm", ["t", "w"], ["y"]),
    ]
    q = quantize_float(
        float_model(nodes, {"w": normal(6, 6)}, (4, 6), {"y": (4, 6)}), ROWS, options=QuantizeOptions(host_ops=True)
    )
    assert types(q) == ["QuantizeLinear", "Gemm", "QuantizeLinear", "Tanh", "QuantizeLinear", "Gemm", "QuantizeLinear"]


def test_open_dimensions_come_from_the_feeds_or_are_refused() -> None:
    node = helper.make_node("Gemm", ["x", "w"], ["y"])
    model = float_model([node], {"w": normal(6, 6)}, ("n", 6), {"y": (4, 6)})
    q = quantize_float(model, ROWS)
    assert [d.dim_value for d in graph_of(q).input[0].type.tensor_type.shape.dim] == [4, 6]
    with pytest.raises(RefusedError, match=r"ONNX-OPEN-DIM.*\[n, 6\]"):
        quantize_float(model, {"z": ROWS["x"]})
    with pytest.raises(RefusedError, match="the shape does not fit the input"):
        quantize_float(model, ROWS, shapes={"x": (4, 7)})


@pytest.mark.parametrize(
    ("feed", "words"),
    [
        (normal(6, 4, 5), "got float32"),
        (normal(6, 4, 6).astype(np.float64), "got float64"),
        (normal(0, 4, 6), r"got float32 \[0, 4, 6\]"),
        (np.full((2, 4, 6), np.nan, np.float32), "not finite"),
    ],
)
def test_feeds_that_do_not_fit_are_refused(feed: Array, words: str) -> None:
    model = float_model([helper.make_node("Gemm", ["x", "w"], ["y"])], {"w": normal(6, 6)}, (4, 6), {"y": (4, 6)})
    with pytest.raises(RefusedError, match=words):
        quantize_float(model, {"x": feed}, shapes={"x": (4, 6)})


def test_values_beyond_every_scale_are_refused_by_tensor() -> None:
    def scaled(by: float) -> bytes:
        nodes = [helper.make_node("Mul", ["x", "k"], ["y"])]
        return float_model(nodes, {"k": np.float32(by)}, (4, 6), {"y": (4, 6)})

    with pytest.raises(RefusedError, match=r"tensor 'y': its values on the data are beyond every scale"):
        quantize_float(scaled(1e30), ROWS)
    with pytest.raises(RefusedError, match=r"tensor 'y': is not finite on the data"):
        quantize_float(scaled(3e38), ROWS)
    assert quantize_float(scaled(1e19), ROWS).model_bytes


@pytest.mark.parametrize(("size", "refused"), [(2**28, False), (2**28 + 1, True)])
def test_values_of_absurd_size_are_refused_before_they_are_computed(
    size: int, refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The model at the limit would need a GiB: its folding is replaced."""

    class FoldedError(Exception):
        pass

    def fold(_: onnx.ModelProto) -> onnx.ModelProto:
        raise FoldedError

    monkeypatch.setattr(importlib.import_module("manifest.onnx_import.quantize.prepare"), "folded", fold)
    nodes = [
        helper.make_node("Expand", ["one", "shape"], ["big"]),
        helper.make_node("ReduceMax", ["big"], ["m"]),
        helper.make_node("Add", ["x", "m"], ["y"]),
    ]
    constants = {"one": np.ones(1, np.float32), "shape": np.array([size])}
    model = float_model(nodes, constants, (4, 6), {"y": (4, 6)})
    if refused:
        with pytest.raises(RefusedError, match=r"QUANT-SIZE.*tensor 'big'"):
            quantize_float(model, ROWS)
    else:
        with pytest.raises(FoldedError):
            quantize_float(model, ROWS)


def test_a_model_that_computes_nothing_is_refused() -> None:
    model = float_model([helper.make_node("Identity", ["x"], ["y"])], {}, (4, 6), {"y": (4, 6)})
    with pytest.raises(RefusedError, match="QUANT"):
        quantize_float(model, ROWS)


def test_data_of_zeros_is_quantized_and_said() -> None:
    nodes = [helper.make_node("Gemm", ["x", "w"], ["y"])]
    q = quantize_float(
        float_model(nodes, {"w": np.zeros((6, 6), np.float32)}, (4, 6), {"y": (4, 6)}), {"x": 0 * ROWS["x"]}
    )
    assert [n.where for n in q.notes if n.code == "QUANT-SILENT"] == ["tensor 'x'", "tensor 'y'"]
    assert not run(q.model_bytes, ROWS)[0].any()


def test_opset_8_with_weights_as_inputs_is_converted() -> None:
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["m"]), helper.make_node("Add", ["m", "b"], ["y"])],
        "g",
        [
            helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, s)
            for n, s in (("x", (4, 6)), ("w", (6, 5)), ("b", (1, 5)))
        ],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, (4, 5))],
        [numpy_helper.from_array(a, n) for n, a in (("w", normal(6, 5)), ("b", normal(1, 5)))],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 8)], ir_version=3).SerializeToString()
    q = quantize_float(model, ROWS)
    proto = onnx.ModelProto.FromString(q.model_bytes)
    assert [(o.domain, o.version) for o in proto.opset_import] == [("", 13)]
    assert [i.name for i in proto.graph.input] == ["x"]
    assert {"QUANT-CONSTANT-INPUTS", "QUANT-OPSET-CONVERTED"} <= {n.code for n in q.notes}
    assert types(q) == ["QuantizeLinear", "MatMul", "Add", "QuantizeLinear"]


def test_the_same_input_gives_the_same_bytes_in_another_process(shared: Path, root: Path) -> None:
    code = (
        "import hashlib, numpy, pathlib, sys\n"
        "from manifest.onnx_import.quantize import quantize_float\n"
        "feeds = numpy.load(sys.argv[2])\n"
        "q = quantize_float(pathlib.Path(sys.argv[1]), {'x': feeds['x']})\n"
        "print(hashlib.sha256(q.model_bytes).hexdigest())\n"
    )
    model = str(shared / "corpus" / "models" / "mnist_resnet.onnx")
    feeds = str(shared / "corpus" / "feeds" / "mnist_resnet.npz")
    digests = {
        subprocess.run(
            [sys.executable, "-c", code, model, feeds],
            cwd=root,
            env={"PYTHONHASHSEED": seed, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(digests) == 1


@pytest.mark.parametrize("choice", ["mse", "range"])
@pytest.mark.parametrize(
    ("name", "key", "float_accuracy"),
    [
        ("digits_cnn", "x", 0.9824),
        ("digits_mlp", "x", 0.932),
        ("mnist_resnet", "x", 0.964),
        ("cntk_mnist", "Input3", None),
    ],
)
def test_corpus_models_keep_their_accuracy(
    shared: Path, name: str, key: str, float_accuracy: float | None, choice: Any
) -> None:
    path = shared / "corpus" / "models" / f"{name}.onnx"
    data = np.load(shared / "corpus" / "feeds" / f"{name}.npz")
    feeds = data["x"] if "x" in data else data[key]
    q = quantize_float(path, {key: feeds}, options=QuantizeOptions(scale_choice=choice))
    judged = data["x_eval"] if float_accuracy is not None else feeds
    got = run(q.model_bytes, {key: judged})[0].reshape(len(judged), -1).argmax(1)
    wanted = run(path.read_bytes(), {key: judged})[0].reshape(len(judged), -1).argmax(1)
    assert (got == wanted).mean() >= 0.98
    if float_accuracy is not None:
        labels = data["y_eval"]
        assert (wanted == labels).mean() == pytest.approx(float_accuracy, abs=5e-4)
        assert (got == labels).mean() >= float_accuracy - 0.01
