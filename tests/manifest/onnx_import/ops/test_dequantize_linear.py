import numpy as np
import onnx
import pytest

from manifest.errors import RefusedError
from tests.qdq_models import Sketch, assert_exact, op_of, types


def test_it_vanishes() -> None:
    s = Sketch()
    a = s.q(s.input("x", (1, 4)), 0.5, 3, out="q")
    s.output(s.qdq(s.node("Relu", [s.dq(a, 0.5, 3, out="d")]), 0.5, 3, out="y"), (1, 4))
    imported = assert_exact(s)
    assert op_of(imported.manifest, "Relu").inputs == ("q",)
    assert imported.dequantised["d"] == "q"
    assert "d" not in imported.manifest.by_name()


@pytest.mark.parametrize(("scale", "zero"), [(0.25, 3), (0.5, 4)])
def test_another_scale_or_zero_point_reinterprets(scale: float, zero: int) -> None:
    s = Sketch()
    a = s.q(s.input("x", (1, 4)), 0.5, 3, out="q")
    s.output(s.dq(a, scale, zero, out="y"), (1, 4))
    manifest = assert_exact(s).manifest
    assert types(manifest) == ["QuantizeLinear", "Reinterpret", "DequantizeLinear"]
    assert op_of(manifest, "Reinterpret").outputs == ("q#as",)


def test_a_left_out_zero_point_is_zero_and_not_the_producers() -> None:
    s = Sketch()
    a = s.q(s.input("x", (1, 4)), 0.5, 3, out="q")
    s.output(s.node("DequantizeLinear", [a, s.const(0.5)], "y"), (1, 4))
    again = op_of(assert_exact(s).manifest, "Reinterpret")
    assert again.inputs == ("q",)


def test_two_readers_with_two_scales() -> None:
    s = Sketch()
    a = s.q(s.input("x", (1, 4)), 0.5, out="q")
    s.output(s.qdq(s.node("Add", [s.dq(a, 0.5, out="d"), s.dq(a, 0.25, out="e")]), 1.0, out="y"), (1, 4))
    manifest = assert_exact(s).manifest
    assert op_of(manifest, "Add").inputs == ("q", "e")


def test_one_scale_per_channel_on_an_activation_is_refused() -> None:
    s = Sketch()
    x = s.input("x", (1, 2), onnx.TensorProto.INT8)
    d = s.node("DequantizeLinear", [x, s.const([0.5, 0.25]), s.const([0, 0], np.int8)], "y", name="d", axis=1)
    s.output(d, (1, 2))
    with pytest.raises(RefusedError, match=r"node 'd' \(DequantizeLinear\): activation 'x' has one scale per channel"):
        s.load()


def test_scales_computed_at_run_time_are_dynamic_quantization() -> None:
    s = Sketch()
    x = s.input("x", (1, 2), onnx.TensorProto.INT8)
    s.output(s.node("DequantizeLinear", [x, s.input("scale", ())], "y", name="d"), (1, 2))
    with pytest.raises(RefusedError, match=r"computed at run time.*quantize statically"):
        s.load()
