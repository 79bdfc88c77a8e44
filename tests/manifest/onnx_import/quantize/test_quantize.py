"""Float models quantized on data: structure, exact scales, what is folded and rewritten."""

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from manifest.onnx_import import import_bytes
from manifest.onnx_import.quantize import Quantized, QuantizeOptions, quantize_float
from manifest.onnx_import.quantize.verify import is_power_of_two
from tests.quantizing import IMAGES, ROWS, constants_of, conv, float_model, graph_of, normal, run, scale_of, sqnr, types


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


@pytest.mark.parametrize("op_type", ["Identity", "Dropout"])
@pytest.mark.parametrize("opset", [9, 13, 21])
@pytest.mark.parametrize("place", ["input", "inside", "output", "branch"])
def test_identity_and_dropout_pass_values_on_wherever_they_stand(op_type: str, opset: int, place: str) -> None:
    made = {
        "input": [("x", "i"), ("i", "y")],
        "inside": [("x", "m"), ("m", "i"), ("i", "y")],
        "output": [("x", "m"), ("m", "y")],
        "branch": [("x", "m"), ("m", "i"), ("m", "y")],
    }[place]
    nodes = []
    for source, target in made:
        if target == "i" or (place == "output" and target == "y"):
            nodes.append(helper.make_node(op_type, [source], [target]))
        else:
            nodes.append(helper.make_node("MatMul", [source, "w"], [target]))
    outputs = {"y": (4, 6), "i": (4, 6)} if place == "branch" else {"y": (4, 6)}
    model = float_model(nodes, {"w": normal(6, 6)}, (4, 6), outputs, opset)
    q = quantize_float(model, ROWS)
    for before, after in zip(run(model, ROWS), run(q.model_bytes, ROWS), strict=True):
        assert sqnr(before, after) > 30
    import_bytes(q.model_bytes)


def test_inputs_that_nothing_needs_are_left_out() -> None:
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"]), helper.make_node("Relu", ["u"], ["dead"])]
    made = onnx.ModelProto.FromString(float_model(nodes, {"w": normal(6, 6)}, (4, 6), {"y": (4, 6)}))
    made.graph.input.extend(helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, ["N", 2]) for n in "uv")
    q = quantize_float(made.SerializeToString(), {**ROWS, "u": normal(6, 3, 2)}, shapes={"x": (4, 6), "v": (1, 2)})
    assert [value.name for value in graph_of(q).input] == ["x"]
    assert [n.where for n in q.notes if n.code == "INPUT-UNUSED"] == ["u", "v"]
    assert types(q) == ["QuantizeLinear", "MatMul", "QuantizeLinear"]
