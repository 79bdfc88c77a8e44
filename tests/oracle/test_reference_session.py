import tempfile
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from oracle.reference.session import (
    EXTENDED,
    OFF,
    OnnxruntimeError,
    Session,
    Settings,
    dump_optimised,
    run_onnxruntime,
)


def quantizer(opset: int = 17) -> bytes:
    """x float32 [1, 4] -> QuantizeLinear -> q int8, scale 0.5, zero point 3."""
    graph = helper.make_graph(
        [helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4])],
        [helper.make_tensor_value_info("q", TensorProto.INT8, [1, 4])],
        [
            numpy_helper.from_array(np.array(0.5, np.float32), "s"),
            numpy_helper.from_array(np.array(3, np.int8), "z"),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    return bytes(model.SerializeToString())


def test_all_feeds_are_stacked_in_order() -> None:
    x = np.array([[[0, 0.25, 0.75, -0.25]], [[1, 2, 3, 1e9]]], np.float32)
    result = run_onnxruntime(quantizer(), {"x": x}, ["q"])
    assert result["q"].dtype == np.int8
    assert result["q"].tolist() == [[[3, 3, 5, 3]], [[5, 7, 9, 127]]]


def test_inputs_that_the_graph_lacks_are_ignored() -> None:
    feeds = {"x": np.zeros((1, 1, 4), np.float32), "y": np.zeros((1, 2), np.float32)}
    assert run_onnxruntime(quantizer(), feeds, ["q"])["q"].shape == (1, 1, 4)


@pytest.mark.parametrize("data", [b"", b"not a model", quantizer(opset=8)])
def test_graphs_that_onnxruntime_refuses_are_one_line(data: bytes) -> None:
    with pytest.raises(OnnxruntimeError, match="onnxruntime cannot load the graph") as caught:
        Session(data, OFF)
    assert "\n" not in str(caught.value)


def test_a_feed_of_the_wrong_shape_is_one_line() -> None:
    with pytest.raises(OnnxruntimeError, match="onnxruntime cannot run the graph"):
        run_onnxruntime(quantizer(), {"x": np.zeros((1, 2, 4), np.float32)}, ["q"])


def test_settings_in_words() -> None:
    assert OFF.words() == "ORT_DISABLE_ALL"
    assert EXTENDED.words() == "ORT_ENABLE_EXTENDED + session.qdqisint8allowed=1"
    assert Settings(level="extended", config={"b": "1", "a": "2"}).words() == "ORT_ENABLE_EXTENDED + a=2 + b=1"


def test_a_dump_is_a_graph_and_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    dumped = onnx.load_from_string(dump_optimised(quantizer(), EXTENDED))
    assert [node.op_type for node in dumped.graph.node] == ["QuantizeLinear"]
    assert list(tmp_path.iterdir()) == []
