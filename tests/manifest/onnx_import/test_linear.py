"""What Conv, Gemm and MatMul share; the ops' own files are tested under ops/."""

import numpy as np
import pytest

from manifest.errors import RefusedError
from tests.qdq_models import Sketch, array_of, assert_exact, linear, op_of

WEIGHT = np.array([[1, -2], [3, 4]])


def test_a_bias_of_another_scale_is_noted() -> None:
    s = Sketch()
    manifest = linear(WEIGHT, bias=s.weight([1, 2], 0.3, name="b"), sketch=s).load().manifest
    (note,) = [n for n in manifest.notes if n.code == "BIAS-RESCALED"]
    assert note.where == "gemm"
    assert "'b'" in note.text
    bias = op_of(manifest, "Gemm").bias
    assert bias is not None
    assert bias.kind == "rescaled"


def test_a_bias_beyond_int32_is_noted() -> None:
    s = Sketch()
    imported = linear(WEIGHT, bias=s.const([1e12, 0.0], np.float32, "b"), sketch=s).load()
    assert "BIAS-SATURATED" in {n.code for n in imported.manifest.notes}
    bias = op_of(imported.manifest, "Gemm").bias
    assert bias is not None
    assert imported.arrays[bias.target_array or ""].tolist() == [2**31 - 1, 0]


def test_a_float_bias_is_no_reason_for_a_note() -> None:
    s = Sketch()
    manifest = linear(WEIGHT, bias=s.const([0.5, 0.0], np.float32, "b"), sketch=s).load().manifest
    assert not [n for n in manifest.notes if n.code.startswith("BIAS")]


@pytest.mark.parametrize("dtype", [np.int64, np.int32])
def test_an_integer_bias_without_a_scale_is_refused(dtype: type) -> None:
    s = Sketch()
    with pytest.raises(RefusedError, match=r"bias 'b'; expected float32 or a DequantizeLinear"):
        linear(WEIGHT, bias=s.const([1, 2], dtype, "b"), sketch=s).load()


def test_int32_weights_are_refused() -> None:
    s = Sketch()
    x = s.qdq(s.input("x", (1, 2)), 0.5)
    m = s.node("MatMul", [x, s.weight(WEIGHT, 0.5, dtype=np.int32)], name="mm")
    s.output(s.qdq(m, 0.5, out="y"), (1, 2))
    with pytest.raises(
        RefusedError, match="weight of MatMul 'mm' has an unsupported type; expected int8, uint8, int16"
    ):
        s.load()


def test_int16_weights_are_taken() -> None:
    s = Sketch(21)
    x = s.qdq(s.input("x", (1, 2)), 0.5)
    m = s.node("MatMul", [x, s.weight(WEIGHT * 1000, 2.0**-9, dtype=np.int16, name="w")])
    s.output(s.qdq(m, 0.5, out="y"), (1, 2))
    assert array_of(assert_exact(s), "w").dtype == np.int16


def test_one_weight_read_by_two_layers_is_stored_once() -> None:
    s = Sketch()
    w = s.weight(np.eye(2) * 3, 0.5, name="w")
    first = s.qdq(s.node("MatMul", [s.qdq(s.input("x", (1, 2)), 0.5), w]), 0.5)
    s.output(s.qdq(s.node("MatMul", [first, w]), 0.5, out="y"), (1, 2))
    imported = assert_exact(s)
    assert [t.name for t in imported.manifest.tensors if t.role == "weight"] == ["w"]
    assert len(imported.arrays) == 1


def test_an_exact_result_keeps_one_unit_per_channel() -> None:
    """The next op is told one shift per channel, as the layer would have been."""
    s = Sketch()
    x = s.qdq(s.input("x", (1, 2)), 0.5)
    m = s.node("MatMul", [x, s.weight(WEIGHT, [0.25, 0.5], axis=1)], "m")
    s.output(s.qdq(m, 1.0, out="y"), (1, 2))
    s.output(s.qdq(m, 2.0, out="z"), (1, 2))
    manifest = assert_exact(s).manifest
    shifts = [op.requant.shifts for op in manifest.ops if op.type == "QuantizeLinear" and op.requant]
    assert shifts == [(3, 2), (4, 3)]
