import numpy as np
import onnx
import pytest

from manifest.errors import RefusedError
from tests.qdq_models import Sketch, assert_exact, op_of, types


def test_a_float_input_is_quantised_on_the_host_and_an_output_dequantised() -> None:
    s = Sketch()
    s.output(s.qdq(s.node("Relu", [s.qdq(s.input("x", (1, 4)), 0.5, out="a")]), 0.25, out="y"), (1, 4))
    manifest = assert_exact(s).manifest
    assert [(op.type, op.where, op.inputs, op.outputs) for op in manifest.ops] == [
        ("QuantizeLinear", "host", ("x",), ("a.q",)),
        ("Relu", "npu", ("a.q",), ("y.q",)),
        ("DequantizeLinear", "host", ("y.q",), ("y",)),
    ]
    assert [(t.name, t.dtype, t.onnx_dtype, t.role) for t in manifest.tensors] == [
        ("a.q", "int8", "int8", "activation"),
        ("x", "float32", "float32", "input"),
        ("y", "float32", "float32", "output"),
        ("y.q", "int8", "int8", "activation"),
    ]


def test_dequantised_names_say_which_codes_they_are() -> None:
    s = Sketch()
    x = s.qdq(s.input("x", (1, 4)), 0.5, out="a")
    r = s.node("Reshape", [s.node("Identity", [x], "same"), s.const([2, 2], np.int64)], "r")
    s.output(s.qdq(r, 0.5, out="y"), (2, 2))
    assert assert_exact(s).dequantised == {"a": "a.q", "same": "a.q", "y": "y.q"}


def test_two_outputs_from_one_tensor() -> None:
    s = Sketch()
    codes = s.q(s.input("x", (1, 4)), 0.5, out="q")
    s.output(s.dq(codes, 0.5, out="y"), (1, 4))
    s.output(s.dq(codes, 0.5, out="z"), (1, 4))
    s.output("q", (1, 4), onnx.TensorProto.INT8)
    manifest = assert_exact(s).manifest
    assert manifest.model.outputs == ("y", "z", "q")
    assert [op.inputs for op in manifest.ops if op.type == "DequantizeLinear"] == [("q",), ("q",)]
    assert (manifest.tensor("q").role, manifest.tensor("q").dtype) == ("output", "int8")


def test_an_output_that_renames_codes_is_a_copy() -> None:
    s = Sketch()
    s.output(s.node("Identity", [s.q(s.input("x", (1, 4)), 0.5, out="q")], "y"), (1, 4), onnx.TensorProto.INT8)
    manifest = assert_exact(s).manifest
    copy = op_of(manifest, "Reinterpret")
    assert (copy.inputs, copy.outputs) == (("q",), ("y",))
    assert manifest.tensor("y").quant == manifest.tensor("q").quant


def test_a_layout_op_in_front_of_a_float_output_stays_on_integers() -> None:
    s = Sketch()
    x = s.qdq(s.input("x", (1, 4)), 0.5, out="a")
    s.output(s.node("Reshape", [x, s.const([2, 2], np.int64)], "y"), (2, 2))
    manifest = assert_exact(s).manifest
    assert types(manifest) == ["QuantizeLinear", "Reshape", "DequantizeLinear"]
    assert op_of(manifest, "Reshape").outputs == ("y#codes",)
    codes = manifest.tensor("y#codes")
    assert (codes.dtype, codes.onnx_dtype) == ("int8", "float32")


def test_another_scale_behind_the_codes_is_a_reinterpretation() -> None:
    s = Sketch()
    codes = s.q(s.input("x", (1, 4)), 0.5, out="q")
    s.output(s.qdq(s.node("Relu", [s.dq(codes, 0.25, 3, out="d")]), 0.25, out="y"), (1, 4))
    manifest = assert_exact(s).manifest
    again = op_of(manifest, "Reinterpret")
    assert (again.inputs, again.outputs) == (("q",), ("d",))
    quant = manifest.tensor("d").quant
    assert quant is not None
    assert (quant.scales, quant.zero_points) == ((0.25,), (3,))
    assert again.requant is not None
    assert again.requant.reference == again.requant.target == "identity"


@pytest.mark.parametrize("element", ["UINT8", "INT8"])
def test_an_integer_input_takes_the_quantization_of_its_reader(element: str) -> None:
    dtype = np.uint8 if element == "UINT8" else np.int8
    s = Sketch()
    x = s.input("x", (1, 1, 4, 4), getattr(onnx.TensorProto, element))
    p = s.node("MaxPool", [x], kernel_shape=[2, 2])
    s.output(s.qdq(s.node("Relu", [s.dq(p, 0.5, 7, dtype)]), 0.25, out="y"), (1, 1, 3, 3))
    manifest = assert_exact(s).manifest
    tensor = manifest.tensor("x")
    assert tensor.quant is not None
    assert (tensor.dtype, tensor.quant.scales, tensor.quant.zero_points) == (element.lower(), (0.5,), (7,))


def test_an_integer_input_without_a_scale_is_refused() -> None:
    s = Sketch()
    x = s.input("x", (1, 1, 4, 4), onnx.TensorProto.INT8)
    s.output(s.node("MaxPool", [x], "y", kernel_shape=[2, 2]), (1, 1, 3, 3), onnx.TensorProto.INT8)
    s.output(s.qdq(s.input("f", (1, 4)), 0.5, out="g"), (1, 4))
    with pytest.raises(RefusedError, match="graph input 'x': no reader states the scale of this int8 input"):
        s.load()


@pytest.mark.parametrize("element", ["DOUBLE", "INT32", "BOOL"])
def test_inputs_of_other_types_are_refused(element: str) -> None:
    s = Sketch()
    s.input("x", (1, 4), getattr(onnx.TensorProto, element))
    s.output(s.node("Identity", ["x"], "y"), (1, 4), getattr(onnx.TensorProto, element))
    s.output(s.qdq(s.input("f", (1, 4)), 0.5, out="g"), (1, 4))
    with pytest.raises(RefusedError, match=f"graph input 'x': type {element.lower()} is not supported"):
        s.load()


def test_an_initializer_as_graph_output_is_refused() -> None:
    s = Sketch()
    s.output(s.qdq(s.input("x", (1, 4)), 0.5, out="y"), (1, 4))
    s.output(s.const([1.0], np.float32, "k"), (1,))
    with pytest.raises(RefusedError, match=r"'k'"):
        s.load()


@pytest.mark.parametrize(("op_type", "shape"), [("Conv", (1, 1, 3, 3)), ("Gemm", (1, 3)), ("MatMul", (1, 3))])
def test_a_float_input_straight_into_a_layer_is_refused(op_type: str, shape: tuple[int, ...]) -> None:
    s = Sketch()
    x = s.input("x", shape)
    w = s.weight(np.ones((1, 1, 1, 1) if op_type == "Conv" else (3, 2)), 0.5)
    s.output(s.qdq(s.node(op_type, [x, w], name="layer"), 0.5, out="y"), (1, 1, 3, 3) if op_type == "Conv" else (1, 2))
    with pytest.raises(
        RefusedError, match=rf"node 'layer' \({op_type}\): input 'x' of {op_type} is float and not quantised"
    ):
        s.load()


def test_an_unquantised_activation_names_both_nodes() -> None:
    s = Sketch()
    x = s.qdq(s.input("x", (1, 3)), 0.5)
    first = s.node("MatMul", [x, s.weight(np.eye(3), 0.5)], name="first")
    second = s.node("Relu", [first], name="relu")
    third = s.node("MatMul", [second, s.weight(np.eye(3), 0.5)], name="second")
    s.output(s.qdq(third, 0.5, out="y"), (1, 3))
    with pytest.raises(RefusedError, match=r"activation between Relu 'relu' and 'second' \(MatMul\) is not quantised"):
        s.load()


def test_layout_of_a_float_input_is_done_on_the_host_without_asking() -> None:
    s = Sketch()
    t = s.node("Transpose", [s.input("x", (1, 4, 4, 2))], perm=[0, 3, 1, 2])
    s.output(s.qdq(s.node("Relu", [s.qdq(t, 0.5)]), 0.5, out="y"), (1, 2, 4, 4))
    manifest = assert_exact(s).manifest
    assert [(op.type, op.where) for op in manifest.ops][:2] == [("Transpose", "host"), ("QuantizeLinear", "host")]


def test_a_dropped_node_leaves_no_trace_in_what_follows() -> None:
    """Problems are collected: two refused nodes and what depends on them give two lines."""
    s = Sketch()
    x = s.qdq(s.input("x", (1, 3)), 0.5)
    bad = s.qdq(s.node("MatMul", [x, s.const(np.eye(3))], name="a"), 0.5)
    s.output(s.qdq(s.node("Relu", [bad]), 0.5, out="y"), (1, 3))
    s.output(s.qdq(s.node("MatMul", [x, s.const(np.eye(3))], name="b"), 0.5, out="z"), (1, 3))
    with pytest.raises(RefusedError) as error:
        s.load()
    assert [p.where for p in error.value.problems] == ["node 'a' (MatMul)", "node 'b' (MatMul)"]


@pytest.mark.parametrize("element", ["FLOAT", "UINT8"])
def test_an_output_of_another_declared_type_is_refused(element: str) -> None:
    s = Sketch()
    s.output(s.q(s.input("x", (1, 4)), 0.5, out="y"), (1, 4), getattr(onnx.TensorProto, element))
    with pytest.raises(RefusedError, match="graph output 'y': declared type and computed type differ; expected int8"):
        s.load()


def test_a_zero_point_of_another_type_than_its_codes_is_refused() -> None:
    s = Sketch()
    one, unsigned, signed = s.const(1.0), s.const(0, np.uint8), s.const(0, np.int8)
    x = s.node("QuantizeLinear", [s.input("x", (1, 2)), one, unsigned])
    w = s.const(np.eye(2), np.int8)
    y = s.node("QLinearMatMul", [x, one, signed, w, one, signed, one, unsigned], name="q")
    s.output(s.node("DequantizeLinear", [y, one, unsigned], "y"), (1, 2))
    with pytest.raises(RefusedError, match="zero point"):
        s.load()
