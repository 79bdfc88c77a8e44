import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from manifest.onnx_import.graph import build, refusal
from tests.qdq_models import Sketch


def test_domains_are_brought_to_one_spelling() -> None:
    s = Sketch()
    x = s.input("x", (1, 4))
    s.node("QuantizeLinear", [x, s.const(1.0)], "a", domain="com.microsoft")
    s.node("QuantizeLinear", [x, s.const(1.0)], "b", domain="ai.onnx")
    s.node("QGemm", ["a"], "c", domain="com.microsoft")
    s.node("QLinearConv", ["a"], "d", domain="com.microsoft")
    keys = [n.key for n in build(s.proto()).nodes]
    assert keys == [":QuantizeLinear", ":QuantizeLinear", "com.microsoft:QGemm", ":QLinearConv"]


def test_initializers_that_are_inputs_too_are_constants() -> None:
    s = Sketch()
    s.input("x", (1, 4))
    s.input("k", (2,), onnx.TensorProto.INT64)
    s.const([2, 2], np.int64, "k")
    graph = build(s.proto(ir_version=3))
    assert [p.name for p in graph.inputs] == ["x"]
    assert graph.constants["k"].array.tolist() == [2, 2]


def test_ports_tell_fixed_open_and_missing_dimensions() -> None:
    s = Sketch()
    s.input("x", ("N", 3, None))
    s.inputs.append(helper.make_tensor_value_info("free", onnx.TensorProto.FLOAT, None))
    s.input("scalar", ())
    ports = {p.name: p.dims for p in build(s.proto()).inputs}
    assert ports == {"x": ("N", 3, ""), "free": None, "scalar": ()}


def test_attributes_become_python_values() -> None:
    s = Sketch()
    s.nodes.append(
        helper.make_node(
            "Any", ["x"], ["y"], i=3, f=0.5, s="text", ints=[1, 2], t=numpy_helper.from_array(np.array([7], np.int8))
        )
    )
    (node,) = build(s.proto()).nodes
    assert (node.integer("i", 0), node.real("f", 0.0), node.text("s", "")) == (3, 0.5, "text")
    assert node.integers("ints") == (1, 2)
    assert node.attributes["t"].tolist() == [7]
    assert (node.integer("none", 9), node.integers("none"), node.input(5)) == (9, None, "")


def test_consumers_count_every_use_and_producers_name_one_node() -> None:
    s = Sketch()
    s.input("x", (1, 4))
    s.node("Add", ["x", "x"], "y")
    graph = build(s.proto())
    assert len(graph.consumers()["x"]) == 2
    assert graph.producers()["y"].type == "Add"


@pytest.mark.parametrize("element", ["FLOAT", "INT8", "UINT16", "FLOAT16", "INT4"])
def test_element_types_have_numpy_like_names(element: str) -> None:
    s = Sketch()
    s.input("x", (1,), getattr(onnx.TensorProto, element))
    expected = "float32" if element == "FLOAT" else element.lower()
    assert build(s.proto()).inputs[0].dtype == expected


def test_a_refusal_names_node_and_op_type() -> None:
    s = Sketch()
    s.input("x", (1, 4))
    s.node("Conv", ["x"], "y", name="my conv")
    error = refusal(build(s.proto()).nodes[0], "ONNX-X", "is odd", expected="even", got="odd", remedy="fix it")
    assert str(error) == "[ONNX-X] node 'my conv' (Conv): is odd; expected even; got odd; remedy: fix it"
