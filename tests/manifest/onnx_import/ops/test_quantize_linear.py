import numpy as np
import onnx
import pytest

from manifest.errors import RefusedError
from tests.qdq_models import Sketch, assert_exact, op_of, types


@pytest.mark.parametrize("domain", ["", "com.microsoft"])
@pytest.mark.parametrize(("dtype", "zero"), [(np.int8, -3), (np.uint8, 128)])
def test_of_a_float_input(domain: str, dtype: type, zero: int) -> None:
    s = Sketch()
    q = s.q(s.input("x", (1, 8)), 0.3, zero, dtype, out="q", domain=domain)
    s.output(s.dq(q, 0.3, zero, dtype, out="y", domain=domain), (1, 8))
    manifest = assert_exact(s).manifest
    op = op_of(manifest, "QuantizeLinear")
    assert (op.where, op.requant, op.outputs) == ("host", None, ("q",))
    quant = manifest.tensor("q").quant
    assert quant is not None
    assert (quant.scales, quant.zero_points) == ((float(np.float32(0.3)),), (zero,))


def test_without_a_zero_point_codes_are_uint8() -> None:
    s = Sketch()
    q = s.node("QuantizeLinear", [s.input("x", (1, 8)), s.const(0.5)], "q")
    s.output(s.node("DequantizeLinear", [q, s.const(0.5)], "y"), (1, 8))
    assert assert_exact(s).manifest.tensor("q").dtype == "uint8"


@pytest.mark.parametrize(
    ("element_type", "dtype"),
    [
        (onnx.TensorProto.INT8, "int8"),
        (onnx.TensorProto.UINT8, "uint8"),
        (onnx.TensorProto.INT16, "int16"),
        (onnx.TensorProto.UINT16, "uint16"),
    ],
)
def test_without_a_zero_point_the_output_type_may_be_stated(element_type: int, dtype: str) -> None:
    s = Sketch(21)
    x, scale = s.input("x", (1, 8)), s.const(0.5)
    q = s.node("QuantizeLinear", [x, scale], "q", output_dtype=element_type)
    d = s.node("DequantizeLinear", [q, scale], "d")
    r = s.node("QuantizeLinear", [s.node("Relu", [d]), scale], "r", output_dtype=element_type)
    s.output(s.node("DequantizeLinear", [r, scale], "y"), (1, 8))
    manifest = assert_exact(s).manifest
    assert (manifest.tensor("q").dtype, manifest.tensor("r").dtype) == (dtype, dtype)


def test_the_stated_type_counts_for_constants() -> None:
    s = Sketch(21)
    x = s.qdq(s.input("x", (1, 4)), 0.5)
    scale = s.const(0.125)
    w = s.node("QuantizeLinear", [s.const(np.linspace(-8, 8, 16).reshape(4, 4)), scale], output_dtype=3)
    g = s.node("Gemm", [x, s.node("DequantizeLinear", [w, scale], "w")])
    s.output(s.qdq(g, 0.5, out="y"), (1, 4))
    imported = assert_exact(s)
    assert imported.manifest.tensor(op_of(imported.manifest, "Gemm").inputs[1]).dtype == "int8"


def test_double_quantization_is_a_requantization_of_its_own() -> None:
    s = Sketch()
    v = s.qdq(s.qdq(s.input("x", (1, 8)), 0.5, 2, out="a"), 0.1, -1, out="y")
    s.output(v, (1, 8))
    manifest = assert_exact(s).manifest
    assert types(manifest) == ["QuantizeLinear", "QuantizeLinear", "DequantizeLinear"]
    op = manifest.ops[1]
    assert (op.inputs, op.outputs, op.where) == (("a.q",), ("y.q",), "npu")
    assert op.requant is not None
    assert op.requant.target == "multiplier_shift"
    assert (op.requant.multipliers, op.requant.shifts) == ((5,), (0,))


def test_double_quantization_of_one_scale_is_an_identity() -> None:
    s = Sketch()
    s.output(s.qdq(s.qdq(s.input("x", (1, 8)), 0.5, 2), 0.5, 2, out="y"), (1, 8))
    requant = assert_exact(s).manifest.ops[1].requant
    assert requant is not None
    assert requant.reference == "identity"


def test_the_same_scale_with_another_zero_point_is_a_shift_of_nothing() -> None:
    s = Sketch()
    s.output(s.qdq(s.qdq(s.input("x", (1, 8)), 0.5, 128, np.uint8), 0.5, 0, out="y"), (1, 8))
    requant = assert_exact(s).manifest.ops[1].requant
    assert requant is not None
    assert (requant.reference, requant.multipliers, requant.shifts) == ("srs", (1,), (0,))


def test_of_an_exact_tensor() -> None:
    s = Sketch()
    x = s.qdq(s.input("x", (1, 4)), 0.5)
    m = s.node("MatMul", [x, s.weight(np.eye(4) * 3, 0.25)], "m")
    s.output(s.qdq(m, 0.5, out="y"), (1, 4))
    s.output(s.qdq(m, 0.25, out="z"), (1, 4))
    manifest = assert_exact(s).manifest
    shifts = [op.requant.shifts for op in manifest.ops if op.type == "QuantizeLinear" and op.requant]
    assert shifts == [(2,), (1,)]


def test_one_scale_per_channel_on_an_activation_is_refused() -> None:
    s = Sketch()
    q = s.node(
        "QuantizeLinear", [s.input("x", (1, 2)), s.const([0.5, 0.25]), s.const([0, 0], np.int8)], name="q", axis=1
    )
    s.output(s.node("DequantizeLinear", [q, s.const(0.5), s.const(0, np.int8)], "y"), (1, 2))
    with pytest.raises(RefusedError, match=r"node 'q' \(QuantizeLinear\): activation .* has one scale per channel"):
        s.load()


def test_codes_as_graph_output() -> None:
    s = Sketch()
    s.output(s.q(s.input("x", (1, 8)), 0.5, out="y"), (1, 8), onnx.TensorProto.INT8)
    manifest = assert_exact(s).manifest
    assert types(manifest) == ["QuantizeLinear"]
    assert manifest.tensor("y").role == "output"


def test_int16_in_the_contrib_domain_under_an_old_opset() -> None:
    s = Sketch(13)
    q = s.q(s.input("x", (1, 8)), 2.0**-9, -7, np.int16, out="q", domain="com.microsoft")
    s.output(s.dq(q, 2.0**-9, -7, np.int16, out="y", domain="com.microsoft"), (1, 8))
    assert assert_exact(s).manifest.tensor("q").dtype == "int16"
