import math

import numpy as np
import pytest

from manifest.onnx_import.fuse import Bounds
from tests.qdq_models import Sketch, assert_exact, linear, op_of, types


def conv_then(*ops: str) -> Sketch:
    s = Sketch()
    v = s.qdq(s.input("x", (1, 2, 4, 4)), 0.25)
    v = s.node("Conv", [v, s.weight(np.arange(4).reshape(2, 2, 1, 1) - 2, 0.5)], "c", name="conv")
    for op in ops:
        v = s.node(op, [v], name=f"{op.lower()}_node")
    s.output(s.qdq(v, 0.25, out="y"), (1, 2, 4, 4))
    return s


def test_producer_relu_and_quantize_are_one_op_named_after_the_producer() -> None:
    manifest = assert_exact(conv_then("Relu")).manifest
    assert types(manifest) == ["QuantizeLinear", "Conv", "DequantizeLinear"]
    conv = op_of(manifest, "Conv")
    assert (conv.name, conv.outputs) == ("conv", ("y.q",))
    assert conv.nodes == ("conv", "relu_node", "y.q.node")
    assert conv.activation is not None
    assert (conv.activation.type, conv.activation.minimum, conv.activation.maximum) == ("Relu", 0.0, None)
    assert conv.requant is not None
    assert (conv.requant.qmin, conv.requant.qmax) == (0, 127)


def test_a_second_reader_keeps_the_producer_exact() -> None:
    s = conv_then()
    s.output(s.qdq(s.node("Relu", ["c"], "r", name="relu"), 0.5, out="z"), (1, 2, 4, 4))
    manifest = assert_exact(s).manifest
    conv = op_of(manifest, "Conv")
    assert (conv.outputs, conv.requant) == (("c",), None)
    assert manifest.tensor("c").dtype == "exact"
    assert manifest.tensor("c").role == "accumulator"
    assert [op.name for op in manifest.ops if "c" in op.inputs] == ["y.q.node", "relu"]


def test_a_graph_output_keeps_the_producer_exact_under_a_fresh_name() -> None:
    s = conv_then()
    s.output("c", (1, 2, 4, 4))
    manifest = assert_exact(s).manifest
    assert op_of(manifest, "Conv").outputs == ("c#exact",)
    assert (manifest.tensor("c").dtype, manifest.tensor("c").role) == ("float32", "output")


def test_relu_without_a_rounding_behind_it_is_an_op() -> None:
    s = Sketch()
    v = s.qdq(s.input("x", (1, 4)), 0.25)
    g = s.node("Gemm", [v, s.weight(np.eye(4), 0.5)], "g", name="gemm")
    s.output(s.node("Relu", [g], "y"), (1, 4))
    manifest = assert_exact(s).manifest
    assert types(manifest) == ["QuantizeLinear", "Gemm", "Relu", "DequantizeLinear"]
    assert op_of(manifest, "Gemm").activation is None


@pytest.mark.parametrize("opset", [10, 11, 13, 17])
def test_clip_has_attributes_before_opset_11_and_inputs_after(opset: int) -> None:
    s = Sketch(opset)
    v = s.qdq(s.input("x", (1, 4)), 0.25)
    m = s.node("MatMul", [v, s.weight(np.eye(4) * 9, 0.5)])
    if opset < 11:
        c = s.node("Clip", [m], name="clip", min=-1.0, max=6.0)
    else:
        c = s.node("Clip", [m, s.const(-1.0), s.const(6.0)], name="clip")
    s.output(s.qdq(c, 0.25, 10, np.uint8, out="y"), (1, 4))
    matmul = op_of(assert_exact(s).manifest, "MatMul")
    assert matmul.activation is not None
    assert (matmul.activation.type, matmul.activation.minimum, matmul.activation.maximum) == ("Clip", -1.0, 6.0)
    assert matmul.requant is not None
    assert (matmul.requant.qmin, matmul.requant.qmax) == (6, 34)


def test_one_sided_clip_leaves_the_other_end_to_the_type() -> None:
    s = Sketch()
    v = s.qdq(s.input("x", (1, 4)), 0.25)
    m = s.node("MatMul", [v, s.weight(np.eye(4) * 9, 0.5)])
    s.output(s.qdq(s.node("Clip", [m, "", s.const(2.0)]), 0.25, out="y"), (1, 4))
    matmul = op_of(assert_exact(s).manifest, "MatMul")
    assert matmul.activation is not None
    assert (matmul.activation.minimum, matmul.activation.maximum) == (None, 2.0)
    assert matmul.requant is not None
    assert (matmul.requant.qmin, matmul.requant.qmax) == (-128, 8)


def test_clamps_compose_from_the_inside_out() -> None:
    assert Bounds().then(0.0, math.inf).then(-1.0, 6.0) == Bounds(low=0.0, high=6.0)
    assert Bounds(low=0.0, high=6.0).then(7.0, 9.0) == Bounds(low=7.0, high=7.0)
    assert Bounds(low=0.0, high=6.0).then(-3.0, -1.0) == Bounds(low=-1.0, high=-1.0)
    assert Bounds(low=0.0).then(5.0, 2.0) == Bounds(low=2.0, high=2.0)


def test_relu_and_clip_in_a_row_are_one_activation() -> None:
    s = Sketch()
    m = s.node("MatMul", [s.qdq(s.input("x", (1, 4)), 0.25), s.weight(np.eye(4) * 9, 0.5)])
    c = s.node("Clip", [s.node("Relu", [m]), s.const(-2.0), s.const(3.0)])
    s.output(s.qdq(c, 0.25, out="y"), (1, 4))
    activation = op_of(assert_exact(s).manifest, "MatMul").activation
    assert activation is not None
    assert (activation.type, activation.minimum, activation.maximum) == ("Clip", 0.0, 3.0)


@pytest.mark.parametrize("shape", [(4,), (1, 4), (), (1,), (1, 1)])
def test_a_constant_added_behind_matmul_is_its_bias(shape: tuple[int, ...]) -> None:
    s = Sketch()
    m = s.node("MatMul", [s.qdq(s.input("x", (2, 4)), 0.25), s.weight(np.eye(4) * 9, 0.5)], name="mm")
    bias = s.dq(s.const(np.full(shape, 5), np.int32, name="b"), 0.125, 0, np.int32)
    s.output(s.qdq(s.node("Add", [bias, m], name="add"), 0.25, out="y"), (2, 4))
    imported = assert_exact(s)
    matmul = op_of(imported.manifest, "MatMul")
    assert matmul.nodes == ("mm", "add", "y.q.node")
    assert matmul.inputs[2] == "b"
    assert imported.manifest.tensor("b").shape == (4,)
    assert matmul.bias is not None
    assert matmul.bias.kind == "accumulator"


@pytest.mark.parametrize("shape", [(2, 1), (2, 4), (1, 1, 4), (3, 2, 4)])
def test_a_constant_of_another_shape_is_added_by_an_op_of_its_own(shape: tuple[int, ...]) -> None:
    s = Sketch()
    m = s.node("MatMul", [s.qdq(s.input("x", (2, 4)), 0.25), s.weight(np.eye(4) * 9, 0.5)], name="mm")
    a = s.node("Add", [m, s.weight(np.full(shape, 5), 0.125)], name="add")
    out = tuple(np.broadcast_shapes(shape, (2, 4)))
    s.output(s.qdq(a, 0.25, out="y"), out)
    assert types(assert_exact(s).manifest) == ["QuantizeLinear", "MatMul", "Add", "DequantizeLinear"]


def test_a_gemm_with_a_bias_takes_no_second_one() -> None:
    s = Sketch()
    v = s.qdq(s.input("x", (1, 4)), 0.25)
    g = s.node("Gemm", [v, s.weight(np.eye(4) * 9, 0.5), s.weight([1, 2, 3, 4], 0.125)], name="gemm")
    s.output(s.qdq(s.node("Add", [g, s.weight([4, 3, 2, 1], 0.125)]), 0.25, out="y"), (1, 4))
    assert types(assert_exact(s).manifest) == ["QuantizeLinear", "Gemm", "Add", "DequantizeLinear"]


def test_conv_and_add_along_the_channels_is_a_bias_and_along_the_width_is_not() -> None:
    for shape, expected in (((2, 1, 1), 3), ((4,), 4)):
        s = Sketch()
        v = s.qdq(s.input("x", (1, 2, 4, 4)), 0.25)
        c = s.node("Conv", [v, s.weight(np.ones((2, 2, 1, 1)), 0.5)])
        add = s.node("Add", [c, s.weight(np.arange(np.prod(shape)).reshape(shape), 0.125)])
        s.output(s.qdq(add, 0.25, out="y"), (1, 2, 4, 4))
        assert len(assert_exact(s).manifest.ops) == expected


def test_a_constant_behind_an_average_is_its_factor() -> None:
    s = Sketch()
    v = s.qdq(s.input("x", (1, 2, 7, 7)), 0.25, 128, np.uint8)
    g = s.node("GlobalAveragePool", [v], name="gap")
    s.output(s.qdq(s.node("Mul", [g, s.const(1.0048828125)], name="mul"), 0.25, 128, np.uint8, out="y"), (1, 2, 1, 1))
    pool = op_of(assert_exact(s).manifest, "GlobalAveragePool")
    assert pool.attributes["factor"] == 1.0048828125
    assert pool.nodes == ("gap", "mul", "y.q.node")
    assert pool.requant is not None
    assert (pool.requant.multipliers, pool.requant.shifts) == ((21,), (10,))


@pytest.mark.parametrize("factor", [-1.0, 0.0])
def test_a_factor_that_is_not_positive_is_not_fused(factor: float) -> None:
    s = Sketch()
    v = s.qdq(s.input("x", (1, 2, 4, 4)), 0.25)
    g = s.node("Mul", [s.node("GlobalAveragePool", [v]), s.const(factor)])
    s.output(s.qdq(g, 0.25, out="y"), (1, 2, 1, 1))
    assert types(assert_exact(s).manifest)[1:3] == ["GlobalAveragePool", "Mul"]


def test_the_scale_input_of_a_quantize_does_not_count_as_its_data() -> None:
    """A constant that happens to be a node's only reader's scale must not be taken for a chain."""
    manifest = assert_exact(linear(np.eye(4) * 5)).manifest
    assert types(manifest) == ["QuantizeLinear", "Gemm", "DequantizeLinear"]
