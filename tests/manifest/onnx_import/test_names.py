import numpy as np
import pytest

from manifest.onnx_import.names import Names
from tests.qdq_models import Sketch, op_of


@pytest.mark.parametrize(
    ("taken", "expected"),
    [(set(), "b#as"), ({"b#as"}, "b#as2"), ({"b#as", "b#as2"}, "b#as3"), ({"b#as2"}, "b#as")],
)
def test_a_fresh_name_is_none_of_those_taken(taken: set[str], expected: str) -> None:
    assert Names(taken).fresh("b", "as") == expected


def test_a_fresh_name_is_taken_afterwards() -> None:
    names = Names(())
    assert [names.fresh("b", "x"), names.fresh("b", "x")] == ["b#x", "b#x2"]


def test_invented_names_avoid_tensors_nodes_and_initializers() -> None:
    """Two QLinear layers share bias `b` with different scales, and `b#bias` is already a tensor's name."""
    s = Sketch()
    one = s.const(1.0)
    zero = s.const(0, np.int8)
    half = s.const(0.5)
    bias = s.const([3, 4], np.int32, name="b")
    w1 = s.const([[1, 2], [3, 4]], np.int8, name="w1")
    x = s.node("QuantizeLinear", [s.input("x", (1, 2)), one, zero], "b#bias")
    first = s.node("QGemm", [x, one, zero, w1, one, zero, bias, one, zero], "m", domain="com.microsoft")
    second = s.node("QGemm", [first, one, zero, w1, half, zero, bias, one, zero], "y", domain="com.microsoft")
    s.output(second, (1, 2), 3)
    made = s.load()
    biases = [op.inputs[2] for op in made.manifest.ops if op.type == "Gemm"]
    assert biases == ["b", "b#bias2"]
    scales = [made.manifest.tensor(n).quant for n in biases]
    assert [q.scales for q in scales if q] == [(1.0,), (0.5,)]
    weights = [op.inputs[1] for op in made.manifest.ops if op.type == "Gemm"]
    assert len(set(weights)) == 2
    assert made.manifest.tensor("b#bias").dtype == "int8"


def test_two_layers_with_one_bias_and_a_tensor_called_b0() -> None:
    s = Sketch()
    bias = s.dq(s.const([5, -6], np.int32, name="b"), 0.125, 0, np.int32)
    x = s.qdq(s.input("x", (1, 2, 3, 3)), 0.5)
    w = s.weight(np.ones((2, 2, 1, 1)), 0.25, name="w")
    first = s.node("Conv", [x, w, bias], "b0", name="first")
    second = s.node("Conv", [s.qdq(first, 0.5), w, bias], "b1", name="second")
    s.output(s.qdq(second, 1.0, out="y"), (1, 2, 3, 3))
    manifest = s.load().manifest
    convs = [op for op in manifest.ops if op.type == "Conv"]
    assert [c.inputs[1:] for c in convs] == [("w", "b"), ("w", "b")]


def test_nodes_without_a_name_are_called_after_their_output() -> None:
    s = Sketch()
    x = s.qdq(s.input("x", (1, 4)), 0.5)
    a = s.node("Relu", [x], "a")
    s.output(s.qdq(a, 0.5, out="y"), (1, 4))
    for node in s.nodes:
        node.name = ""
    names = [op.name for op in s.load().manifest.ops]
    assert len(set(names)) == len(names)
    assert names[1] == "a#Relu"


def test_a_model_without_any_clash_keeps_all_names() -> None:
    s = Sketch()
    s.output(
        s.qdq(s.node("Relu", [s.qdq(s.input("x", (1, 4)), 0.5, out="a")], "r", name="relu"), 0.25, out="y"), (1, 4)
    )
    manifest = s.load().manifest
    assert op_of(manifest, "Relu").outputs == ("y.q",)
    assert not any("#" in t.name for t in manifest.tensors)
