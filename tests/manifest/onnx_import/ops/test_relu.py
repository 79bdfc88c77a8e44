import numpy as np
import onnx
import pytest

from tests.qdq_models import Sketch, assert_exact, op_of, types


@pytest.mark.parametrize("zero", [-128, -5, 0, 9])
def test_between_dequantize_and_quantize_of_one_scale(zero: int) -> None:
    s = Sketch()
    x = s.qdq(s.input("x", (1, 8)), 0.5, zero, out="a")
    s.output(s.qdq(s.node("Relu", [x], name="relu"), 0.5, zero, out="y"), (1, 8))
    op = op_of(assert_exact(s).manifest, "Relu")
    assert dict(op.attributes) == {}
    assert op.activation is None
    assert op.requant is not None
    assert (op.requant.reference, op.requant.qmin, op.requant.qmax) == ("identity", zero, 127)


def test_with_another_output_quantization() -> None:
    s = Sketch()
    x = s.qdq(s.input("x", (1, 8)), 0.5, 3, out="a")
    s.output(s.qdq(s.node("Relu", [x], name="relu"), 0.25, 100, np.uint8, out="y"), (1, 8))
    op = op_of(assert_exact(s).manifest, "Relu")
    assert op.requant is not None
    assert (op.requant.reference, op.requant.shifts, op.requant.qmin) == ("srs", (-1,), 100)


def test_without_a_quantize_behind_it_codes_stay() -> None:
    s = Sketch()
    x = s.qdq(s.input("x", (1, 4)), 0.5, 3, out="a")
    r = s.node("Relu", [x], "r")
    s.output(s.qdq(s.node("MatMul", [r, s.weight(np.eye(4), 0.5)]), 0.5, out="y"), (1, 4))
    manifest = assert_exact(s).manifest
    op = op_of(manifest, "Relu")
    assert op.requant is not None
    assert (op.requant.reference, op.requant.qmin) == ("identity", 3)
    assert manifest.tensor("r").quant == manifest.tensor("a.q").quant
    accumulator = op_of(manifest, "MatMul").accumulator
    assert accumulator is not None
    assert accumulator.bound == 124


def test_on_codes_it_is_a_clip_at_code_zero() -> None:
    """Between Q and DQ a Relu works on the integers, whatever their zero point."""
    s = Sketch(14)
    q = s.q(s.input("x", (1, 8)), 0.5, 5)
    s.output(s.node("Relu", [q], "y"), (1, 8), onnx.TensorProto.INT8)
    op = op_of(assert_exact(s).manifest, "Clip")
    assert dict(op.attributes) == {"qmin": 0, "qmax": 127}


def test_two_in_a_row() -> None:
    s = Sketch()
    x = s.qdq(s.input("x", (1, 8)), 0.5, 3)
    s.output(s.qdq(s.node("Relu", [s.node("Relu", [x])]), 0.5, 3, out="y"), (1, 8))
    assert types(assert_exact(s).manifest) == ["QuantizeLinear", "Relu", "DequantizeLinear"]


def test_int16() -> None:
    s = Sketch(21)
    x = s.qdq(s.input("x", (1, 8)), 2.0**-9, 7, np.int16)
    s.output(s.qdq(s.node("Relu", [x]), 2.0**-8, -9, np.int16, out="y"), (1, 8))
    op = op_of(assert_exact(s).manifest, "Relu")
    assert op.requant is not None
    assert op.requant.qmin == -9
