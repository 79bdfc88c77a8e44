from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

from manifest.errors import RefusedError
from manifest.onnx_import.load import load_model
from manifest.onnx_import.strip import strip_quantization
from tests.onnx_models import Array, linear_model, model, node, qdq_pair, tensor, value

T = onnx.TensorProto


def run(model_bytes: bytes, feeds: Mapping[str, Any]) -> list[Array]:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model_bytes, options, providers=["CPUExecutionProvider"])
    return list(session.run(None, dict(feeds)))


def stripped(made: onnx.ModelProto) -> tuple[bytes, list[str]]:
    data = strip_quantization(made.SerializeToString()).model_bytes
    graph = onnx.load_from_string(data).graph
    onnx.checker.check_model(onnx.load_from_string(data))
    return data, [n.op_type for n in graph.node]


X = np.array([[0.3, -0.7, 1.1, 2.6]], np.float32)


def test_pairs_vanish_and_weights_become_floats() -> None:
    data, ops = stripped(linear_model(weight_scale=[0.5, 1.0, 2.0], weight_axis=1))
    assert ops == ["MatMul", "Identity"]
    weights = (np.arange(12).reshape(4, 3) - 6).astype(np.float32) * np.array([0.5, 1, 2], np.float32)
    assert np.array_equal(run(data, {"x": X})[0], X @ weights)


@pytest.mark.parametrize(
    ("zero_point", "kind", "relu"), [(0, np.uint8, True), (1, np.uint8, False), (-128, np.int8, True)]
)
def test_relu_that_the_q_took_over_comes_back(zero_point: int, kind: Any, relu: bool) -> None:
    made = model(qdq_pair("x", "y"), [tensor("s", 0.5), tensor("z", zero_point, kind)])
    data, ops = stripped(made)
    assert ("Relu" in ops) is relu
    assert np.array_equal(run(data, {"x": X})[0], np.maximum(X, 0) if relu else X)


@pytest.mark.parametrize(("scale", "limit"), [(6 / 255, True), (6 / 255 * 1.0019, True), (6 / 255 * 1.01, False)])
def test_relu6_is_known_by_its_range(scale: float, limit: bool) -> None:
    data, ops = stripped(model(qdq_pair("x", "y"), [tensor("s", scale), tensor("z", 0, np.uint8)]))
    assert ("Min" in ops) is limit
    got = run(data, {"x": np.array([[-1, 2, 6, 9]], np.float32)})[0]
    assert got.tolist() == [[0, 2, 6, 6 if limit else 9]]


def test_clip_of_codes_is_dropped_and_layout_stays() -> None:
    nodes = [
        node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        node("Clip", ["q", "lo", "hi"], ["c"]),
        node("Transpose", ["c"], ["t"], perm=[1, 0]),
        node("DequantizeLinear", ["t", "s", "z"], ["y"]),
    ]
    ends = [tensor("lo", -8, np.int8), tensor("hi", 7, np.int8)]
    made = model(nodes, [tensor("s", 0.5), tensor("z", 0, np.int8), *ends], outputs=[value("y", (4, 1))], opset=13)
    data, ops = stripped(made)
    assert ops == ["Transpose", "Identity"]
    assert np.array_equal(run(data, {"x": X * 100})[0], X.T * 100)


def test_codes_read_with_another_scale_are_scaled() -> None:
    nodes = [
        node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        node("DequantizeLinear", ["q", "s2", "z2"], ["y"]),
    ]
    initializers = [tensor("s", 0.5), tensor("z", 3, np.uint8), tensor("s2", 2.0), tensor("z2", 1, np.uint8)]
    data, _ = stripped(model(nodes, initializers))
    assert np.array_equal(run(data, {"x": X})[0], X * 4 + 4)


def test_output_of_codes_becomes_a_float_of_the_same_name() -> None:
    made = model(
        [node("QuantizeLinear", ["x", "s", "z"], ["y"])],
        [tensor("s", 0.5), tensor("z", 3, np.uint8)],
        outputs=[value("y", (1, 4), T.UINT8)],
    )
    data, _ = stripped(made)
    assert onnx.load_from_string(data).graph.output[0].type.tensor_type.elem_type == T.FLOAT
    assert np.array_equal(run(data, {"x": X})[0], X)


def test_weights_quantised_inside_the_file_keep_their_floats() -> None:
    weights = np.array([[0.375], [-0.125], [0.0625], [5.0]], np.float32)
    nodes = [*qdq_pair("wf", "wd", zero_point=""), node("MatMul", ["x", "wd"], ["y"])]
    data, ops = stripped(model(nodes, [tensor("wf", weights), tensor("s", 0.5)], outputs=[value("y", (1, 1))]))
    assert ops == ["MatMul"]
    feed = np.array([[1, 2, 4, -3]], np.float32)
    assert run(data, {"x": feed})[0].tolist() == [[float((feed @ weights)[0, 0])]]


def test_integer_graph_input_stays_quantised() -> None:
    made = model([node("DequantizeLinear", ["x", "s"], ["y"])], [tensor("s", 0.5)], inputs=[value("x", (1, 4), T.INT8)])
    data, ops = stripped(made)
    assert ops == ["DequantizeLinear"]
    assert run(data, {"x": np.array([[1, 2, 3, -4]], np.int8)})[0].tolist() == [[0.5, 1, 1.5, -2]]


def test_refusals_name_the_node() -> None:
    scales = ["s", "z", "s", "z"]
    integer = model([node("QLinearSigmoid", ["x", *scales], ["y"], "lut", domain="com.microsoft")], [tensor("s", 0.5)])
    with pytest.raises(RefusedError, match="QLinearSigmoid"):
        strip_quantization(integer.SerializeToString())
    bad = model(
        [
            node("QuantizeLinear", ["x", "s"], ["q"]),
            node("BitShift", ["q", "one"], ["b"], "shift", direction="LEFT"),
            node("DequantizeLinear", ["b", "s"], ["y"]),
        ],
        [tensor("s", 0.5), tensor("one", 1, np.uint8)],
    )
    with pytest.raises(RefusedError, match="'shift'"):
        strip_quantization(bad.SerializeToString())


@pytest.mark.parametrize(
    ("stem", "variant", "least_db"),
    [
        ("digits_cnn", "qdq_u8s8_pc", 40),
        ("digits_cnn", "qdq_s8s8_sym", 40),
        ("digits_cnn", "quark_s8s8_aaws", 35),
        ("digits_cnn", "quark_xint8", 35),
        ("mnist_resnet", "quark_a8w8", 40),
        ("cntk_mnist", "quark_a8w8", 35),
        ("digits_mlp", "qop_s8s8_pc", 40),
        ("digits_cnn", "qop_u8s8_pt", 35),
        ("mnist_resnet", "qop_u8u8_pt", 35),
        ("mnist_resnet", "qop_s8s8_pc", 35),
        ("rapidocr_cls", "qdq_u8s8_pc", 100),
    ],
)
def test_float_meaning_of_a_corpus_model_is_its_float_original(
    shared: Path, stem: str, variant: str, least_db: float
) -> None:
    """Weights differ by their quantization only; where the file keeps float weights the two are the same model."""
    models = shared / "corpus" / "models"
    data = strip_quantization(load_model(models / f"{stem}.{variant}.onnx").SerializeToString()).model_bytes
    original = load_model(models / f"{stem}.onnx").SerializeToString()
    graph = onnx.load_from_string(data).graph
    assert not any(n.op_type == "QuantizeLinear" for n in graph.node)
    (name,) = [item.name for item in graph.input]
    feed = np.load(shared / "corpus" / "feeds" / f"{ {'rapidocr_cls': 'cls'}.get(stem, stem) }.npz")
    samples = (feed[name] if name in feed else feed["x"])[:3]
    own = np.stack([run(data, {name: sample})[0] for sample in samples]).astype(np.float64)
    true = np.stack([run(original, {name: sample})[0] for sample in samples]).astype(np.float64)
    noise = float(((own - true) ** 2).sum())
    assert 10 * np.log10(float((true**2).sum()) / max(noise, 1e-300)) >= least_db


def test_codes_are_paired_with_the_float_behind_the_clip_that_the_q_took_over() -> None:
    made = model(qdq_pair("x", "y"), [tensor("s", 0.5), tensor("z", 0, np.uint8)])
    meaning = strip_quantization(made.SerializeToString())
    (name,) = meaning.floats.values()
    (relu,) = [n for n in onnx.load_from_string(meaning.model_bytes).graph.node if n.op_type == "Relu"]
    assert name == relu.output[0]


@pytest.mark.parametrize("opset", [10, 13])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("rounded", [True, False])
def test_qgemm_with_and_without_bias_whose_alpha_scales_it_too(opset: int, bias: bool, rounded: bool) -> None:
    weights = np.arange(-6, 6).reshape(4, 3).astype(np.int8)
    inputs = ["x_q", "s", "z", "w", "ws", "wz", "b" if bias else "", *(["sy", "z"] if rounded else [])]
    made = model(
        [
            node("QuantizeLinear", ["x", "s", "z"], ["x_q"]),
            node("QGemm", inputs, ["g"], "g", domain="com.microsoft", alpha=0.5),
            node("DequantizeLinear", ["g", "sy", "z"], ["y"]) if rounded else node("Identity", ["g"], ["y"]),
        ],
        [
            tensor("s", 0.125),
            tensor("z", 3, np.uint8),
            tensor("sy", 0.5),
            tensor("w", weights, np.int8),
            tensor("ws", 0.25),
            tensor("wz", 0, np.int8),
            tensor("b", [40, -80, 16], np.int32),
        ],
        outputs=[value("y", (1, 3))],
        opset=opset,
        imports={"com.microsoft": 1},
    )
    data, _ = stripped(made)
    expected = 0.5 * (X @ (weights * np.float32(0.25)) + (np.array([40, -80, 16]) * 0.125 * 0.25 if bias else 0))
    np.testing.assert_allclose(run(data, {"x": X})[0], expected, rtol=1e-6)
