from typing import Any

import numpy as np
import onnx
import pytest

from manifest.errors import RefusedError
from manifest.opset import OPSET
from oracle.run import Oracle
from tests.qdq_models import Sketch, feeds_for, op_of, types


def tail(
    op_type: str, *, opset: int = 17, shape: tuple[int, ...] = (2, 4), elem_type: int = 1, **attributes: Any
) -> Sketch:
    s = Sketch(opset)
    x = s.qdq(s.input("x", (2, 4)), 0.5, out="a")
    s.output(s.node(op_type, [x], "y", name="tail", **attributes), shape, elem_type)
    return s


def test_a_float_tail_is_refused_with_the_option_as_remedy() -> None:
    with pytest.raises(RefusedError, match=r"node 'tail' \(Softmax\): Softmax is not supported: .*--host-ops"):
        tail("Softmax").load()


def test_a_float_tail_runs_on_the_host_when_asked() -> None:
    manifest = tail("Softmax").load(host_ops=True).manifest
    assert [(op.type, op.where) for op in manifest.ops] == [
        ("QuantizeLinear", "host"),
        ("DequantizeLinear", "host"),
        ("Softmax", "host"),
    ]
    softmax = op_of(manifest, "Softmax")
    assert (softmax.inputs, softmax.outputs, dict(softmax.attributes)) == (("a",), ("y",), {"axis": -1})
    assert manifest.tensor("a").dtype == "float32"
    (note,) = [n for n in manifest.notes if n.code == "HOST-OP"]
    assert note.where == "tail"
    assert "tolerance" in note.text


def test_a_middle_op_reads_and_writes_quantised_tensors() -> None:
    s = Sketch()
    x = s.qdq(s.input("x", (1, 4)), 0.5, out="a")
    y = s.qdq(s.node("Sigmoid", [x], "sig"), 2.0**-8, 0, np.uint8, out="b")
    s.output(s.qdq(s.node("MatMul", [y, s.weight(np.eye(4) * 3, 0.5)]), 0.25, out="y"), (1, 4))
    imported = s.load(host_ops=True)
    assert types(imported.manifest) == [
        "QuantizeLinear", "DequantizeLinear", "Sigmoid", "QuantizeLinear", "MatMul", "DequantizeLinear",
    ]  # fmt: skip
    assert [op.where for op in imported.manifest.ops][4] == "npu"
    feeds = feeds_for(imported)
    got = Oracle(imported.manifest, imported.arrays).run(feeds, keep="all")["b.q"]
    codes = np.clip(np.rint(feeds["x"] / np.float32(0.5)), -128, 127)
    expected = np.clip(np.rint(256 / (1 + np.exp(-codes * 0.5))), 0, 255)
    assert np.abs(got - expected).max() <= 1


def test_an_exact_tensor_is_rounded_to_float32_for_the_host() -> None:
    s = Sketch()
    x = s.qdq(s.input("x", (1, 4)), 0.5)
    m = s.node("MatMul", [x, s.weight(np.eye(4), 0.5)], "m", name="mm")
    s.output(s.node("Softmax", [m], "y"), (1, 4))
    manifest = s.load(host_ops=True).manifest
    assert op_of(manifest, "Softmax").inputs == ("m#float",)
    assert (manifest.tensor("m").dtype, manifest.tensor("m#float").dtype) == ("exact", "float32")


def test_a_value_read_by_host_and_npu_is_dequantised_once() -> None:
    s = Sketch()
    x = s.qdq(s.input("x", (1, 4)), 0.5, out="a")
    s.output(s.node("Sigmoid", [x], "y"), (1, 4))
    s.output(s.node("Tanh", [x], "z"), (1, 4))
    s.output(s.qdq(s.node("Relu", [x]), 0.25, out="w"), (1, 4))
    manifest = s.load(host_ops=True).manifest
    assert types(manifest).count("DequantizeLinear") == 2
    assert op_of(manifest, "Relu").inputs == ("a.q",)


def test_relu_and_pools_on_floats_are_host_ops_too() -> None:
    s = Sketch()
    x = s.node("Sigmoid", [s.qdq(s.input("x", (1, 1, 4, 4)), 0.5)], "sig")
    p = s.node("MaxPool", [s.node("Relu", [x], name="r")], name="p", kernel_shape=[2, 2])
    s.output(s.node("Reshape", [p, s.const([1, 9], np.int64)], "y"), (1, 9))
    manifest = s.load(host_ops=True).manifest
    assert all(op.where == "host" for op in manifest.ops)
    assert {n.where for n in manifest.notes if n.code == "HOST-OP"} == {"sig.node", "r", "p"}
    assert op_of(manifest, "MaxPool").attributes["strides"] == (1, 1)


def test_a_product_of_two_activations_runs_on_the_host() -> None:
    s = Sketch()
    x = s.qdq(s.input("x", (1, 4)), 0.5)
    y = s.qdq(s.input("u", (1, 4)), 0.25)
    s.output(s.qdq(s.node("Relu", [s.node("Mul", [x, y], name="m")]), 0.5, out="y"), (1, 4))
    with pytest.raises(RefusedError, match=r"node 'm' \(Mul\): Mul of two activations is not supported"):
        s.load()
    manifest = s.load(host_ops=True).manifest
    assert types(manifest)[-4:] == ["Mul", "Relu", "QuantizeLinear", "DequantizeLinear"]


def test_a_layer_on_floats_is_refused_even_with_host_ops() -> None:
    s = Sketch()
    x = s.node("Sigmoid", [s.qdq(s.input("x", (1, 4)), 0.5)], "sig")
    s.output(s.qdq(s.node("MatMul", [x, s.weight(np.eye(4), 0.5)], name="mm"), 0.5, out="y"), (1, 4))
    with pytest.raises(RefusedError, match="input 'sig' of MatMul is float and not quantised"):
        s.load(host_ops=True)


@pytest.mark.parametrize(
    ("attributes", "opset", "shape"),
    [
        ({"axes": [1], "keepdims": 0}, 13, (2,)),
        ({"axes": [-1]}, 13, (2, 1)),
        ({}, 13, (1, 1)),
        ({"keepdims": 0}, 13, ()),
    ],
)
def test_shapes_of_reductions(attributes: dict[str, Any], opset: int, shape: tuple[int, ...]) -> None:
    manifest = tail("ReduceMean", opset=opset, shape=shape, **attributes).load(host_ops=True).manifest
    assert manifest.tensor("y").shape == shape


def test_axes_as_input_from_opset_18_on() -> None:
    s = Sketch(18)
    x = s.qdq(s.input("x", (2, 4)), 0.5)
    s.output(s.node("ReduceMax", [x, s.const([1], np.int64, "axes")], "y", keepdims=0), (2,))
    manifest = s.load(host_ops=True).manifest
    assert manifest.tensor("y").shape == (2,)
    assert (manifest.tensor("axes").dtype, manifest.tensor("axes").role) == ("int64", "constant")


def test_argmax_gives_int64() -> None:
    manifest = tail("ArgMax", shape=(2, 1), elem_type=onnx.TensorProto.INT64, axis=1).load(host_ops=True).manifest
    assert (manifest.tensor("y").dtype, manifest.tensor("y").shape) == ("int64", (2, 1))


def test_defaults_of_the_schema_are_filled_in() -> None:
    manifest = tail("LeakyRelu").load(host_ops=True).manifest
    assert op_of(manifest, "LeakyRelu").attributes["alpha"] == pytest.approx(0.01)


@pytest.mark.parametrize("key", [k for k, row in OPSET.items() if row.host and k.startswith(":")])
def test_every_op_of_the_host_list_is_imported(key: str) -> None:
    op_type = key[1:]
    opset = {"Gelu": 20, "ReduceMax": 13, "ReduceMean": 13, "ReduceSum": 11}.get(op_type, 17)
    s = Sketch(opset)
    x = s.qdq(s.input("x", (2, 4)), 0.5)
    inputs = [x, s.const(np.full((4,), 2.0))] if op_type in ("Sub", "Div", "Pow") else [x]
    reduced = op_type.startswith(("Reduce", "ArgMax"))
    shape = ((1, 4) if op_type == "ArgMax" else (1, 1)) if reduced else (2, 4)
    s.output(s.node(op_type, inputs, "y"), shape, 7 if op_type == "ArgMax" else 1)
    imported = s.load(host_ops=True)
    assert op_of(imported.manifest, op_type).where == "host"
    got = Oracle(imported.manifest, imported.arrays).run(feeds_for(imported))["y"]
    assert got.shape == (4, *shape)
