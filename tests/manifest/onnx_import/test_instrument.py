from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx.reference import ReferenceEvaluator

from manifest.onnx_import.instrument import expose, extract, quantized_outputs, raise_opset
from manifest.onnx_import.load import load_model
from tests.onnx_models import Array, linear_model, model, node, qdq_pair, tensor

T = onnx.TensorProto
FILES = ("digits_cnn.qdq_u8s8_pc", "digits_cnn.quark_a8w8", "mnist_resnet.quark_xint8", "digits_cnn.qop_u8s8_pt")


def run(model_bytes: bytes, feeds: Mapping[str, Any]) -> dict[str, Array]:
    """All outputs by name, optimisation off."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model_bytes, options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, dict(feeds)), strict=True))


def corpus_bytes(shared: Path, stem: str) -> bytes:
    return bytes(load_model(shared / "corpus" / "models" / f"{stem}.onnx").SerializeToString())


def random_feeds(model_bytes: bytes) -> dict[str, Array]:
    graph = onnx.load_from_string(model_bytes).graph
    names = {t.name for t in graph.initializer}
    rng = np.random.default_rng(3)
    feeds: dict[str, Array] = {}
    for item in graph.input:
        if item.name not in names:
            shape = [dim.dim_value or 1 for dim in item.type.tensor_type.shape.dim]
            feeds[item.name] = rng.random(shape, dtype=np.float32)
    return feeds


# --- which tensors


def test_quantized_outputs_in_graph_order_without_constants() -> None:
    nodes = [
        *qdq_pair("x", "a"),
        node("QuantizeLinear", ["wf", "s", "z"], ["w"]),
        node("DequantizeLinear", ["w", "s", "z"], ["wd"]),
        node("MatMul", ["a", "wd"], ["m"]),
        *qdq_pair("m", "y", domain="com.microsoft"),
    ]
    initializers = [tensor("s", 0.5), tensor("z", 0, np.int8), tensor("wf", np.ones((4, 4)))]
    data = model(nodes, initializers, imports={"com.microsoft": 1}).SerializeToString()
    assert quantized_outputs(data) == ("a_q", "y_q")
    assert quantized_outputs(data, constants=True) == ("a_q", "w", "y_q")


def test_quantized_outputs_of_qoperator_nodes(shared: Path) -> None:
    data = corpus_bytes(shared, "digits_cnn.qop_u8s8_pt")
    made = onnx.load_from_string(data).graph.node
    expected = [
        n.output[0] for n in made if n.op_type.startswith("QLinear") or n.op_type in ("QGemm", "QuantizeLinear")
    ]
    assert list(quantized_outputs(data)) == expected
    assert len(expected) > 4


@pytest.mark.parametrize(("names", "quantised"), [(9, True), (8, False), (6, False)])
def test_qgemm_without_output_zero_point_makes_floats(names: int, quantised: bool) -> None:
    every = ["x", "s", "z", "w", "s", "z", "", "s", "z"]
    made = model([node("QGemm", every[:names], ["y"], domain="com.microsoft")])
    assert quantized_outputs(made.SerializeToString()) == (("y",) if quantised else ())


# --- expose


def test_expose_adds_outputs_behind_the_own_ones_once() -> None:
    data = expose(linear_model().SerializeToString(), ["y_q", "a_q", "m", "y_q", "y"])
    feed = {"x": np.array([[0.5, -0.25, 1.0, 0.1]], np.float32)}
    got = run(data, feed)
    assert list(got) == ["y", "y_q", "a_q", "m"]
    assert got["a_q"].tolist() == [[130, 127, 132, 128]]
    assert got["a_q"].dtype == np.uint8
    assert expose(data, ["y_q"]) == data


def test_expose_refuses_unknown_tensors() -> None:
    with pytest.raises(KeyError, match="ghost"):
        expose(linear_model().SerializeToString(), ["ghost"])


@pytest.mark.parametrize("stem", FILES)
def test_exposing_changes_no_number_of_a_corpus_model(shared: Path, stem: str) -> None:
    data = corpus_bytes(shared, stem)
    feeds = random_feeds(data)
    names = quantized_outputs(data)
    plain, exposed = run(data, feeds), run(expose(data, names), feeds)
    assert set(exposed) == {*plain, *names}
    for name, array in plain.items():
        assert np.array_equal(array, exposed[name])


# --- extract


@pytest.mark.parametrize("stem", FILES)
def test_every_consecutive_pair_of_quantised_tensors_can_be_cut_out(shared: Path, stem: str) -> None:
    data = corpus_bytes(shared, stem)
    names = quantized_outputs(data)
    whole = run(expose(data, names), random_feeds(data))
    types = {name: (onnx.helper.np_dtype_to_tensor_dtype(whole[name].dtype), whole[name].shape) for name in names}
    for index in range(1, len(names)):
        part = extract(data, names[:index], [names[index]], types)
        inputs = [item.name for item in onnx.load_from_string(part).graph.input]
        assert inputs
        got = run(part, {name: whole[name] for name in inputs})
        assert list(got) == [names[index]]
        assert np.array_equal(got[names[index]], whole[names[index]])


def test_extract_between_float_tensors_and_several_outputs() -> None:
    data = linear_model().SerializeToString()
    part = extract(data, ["a"], ["y", "m"], {"a": (T.FLOAT, (1, 4))})
    graph = onnx.load_from_string(part).graph
    assert [n.op_type for n in graph.node] == ["DequantizeLinear", "MatMul", "QuantizeLinear", "DequantizeLinear"]
    assert sorted(t.name for t in graph.initializer) == ["sy", "w", "ws", "z"]
    got = run(part, {"a": np.ones((1, 4), np.float32)})
    assert list(got) == ["y", "m"]
    assert got["m"].tolist() == [[-3.0, -1.0, 1.0]]


def test_extract_says_what_is_missing() -> None:
    data = linear_model().SerializeToString()
    with pytest.raises(KeyError, match="ghost"):
        extract(data, ["a"], ["ghost"], {})
    with pytest.raises(KeyError, match="a_q"):
        extract(data, ["a_q"], ["y"], {})
    with pytest.raises(ValueError, match="graph inputs"):
        extract(data, ["y_q"], ["m"], {"y_q": (T.UINT8, (1, 3))})


# --- raise_opset


@pytest.mark.parametrize("stem", [*FILES, "cntk_mnist.quark_a8w8", "cntk_mnist.qdq_s8s8_pt", "cntk_mnist", "resblock"])
def test_raised_opset_keeps_every_number(shared: Path, stem: str) -> None:
    data = corpus_bytes(shared, stem)
    feeds = random_feeds(data)
    names = quantized_outputs(data)
    raised = raise_opset(data, 21)
    assert [e.version for e in onnx.load_from_string(raised).opset_import if e.domain == ""] == [21]
    before, after = run(expose(data, names), feeds), run(expose(raised, names), feeds)
    assert list(before) == list(after)
    for name, array in before.items():
        assert np.array_equal(array, after[name])
        assert array.dtype == after[name].dtype


def test_raised_opset_runs_in_onnx_reference() -> None:
    raised = raise_opset(linear_model(opset=10, domain="com.microsoft", ir_version=3).SerializeToString(), 21)
    feed = {"x": np.array([[0.5, -0.25, 1.0, 0.1]], np.float32)}
    (got,) = ReferenceEvaluator(onnx.load_from_string(raised)).run(None, feed)
    assert np.array_equal(got, run(raised, feed)["y"])


def test_opset_that_is_there_already_is_left() -> None:
    made = linear_model(opset=21, ir_version=10)
    assert raise_opset(made.SerializeToString(), 21) == made.SerializeToString(deterministic=True)
    assert raise_opset(made.SerializeToString(), 13) == made.SerializeToString(deterministic=True)
