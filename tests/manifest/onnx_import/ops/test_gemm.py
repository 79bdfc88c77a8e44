from typing import Any

import numpy as np
import pytest
from onnx import numpy_helper

from manifest.errors import RefusedError
from tests.qdq_models import Sketch, array_of, assert_exact, linear, op_of

WEIGHT = np.array([[1, -2, 3], [4, 5, -6], [7, 8, 9], [-10, 11, 12]])


@pytest.mark.parametrize("trans_a", [0, 1])
@pytest.mark.parametrize("trans_b", [0, 1])
@pytest.mark.parametrize("per_channel", [False, True])
def test_transposed_operands_equal_onnxruntime(trans_a: int, trans_b: int, per_channel: bool) -> None:
    s = Sketch()
    x = s.qdq(s.input("x", (4, 2) if trans_a else (2, 4)), 0.25, 128, np.uint8)
    scale = [0.25, 0.5, 1.0] if per_channel else 0.5
    attributes: dict[str, Any] = {"axis": 0 if trans_b else 1} if per_channel else {}
    w = s.weight(WEIGHT.T if trans_b else WEIGHT, scale, **attributes)
    s.output(s.qdq(s.node("Gemm", [x, w], transA=trans_a, transB=trans_b), 4.0, out="y"), (2, 3))
    op = op_of(assert_exact(s).manifest, "Gemm")
    assert dict(op.attributes) == {"transA": trans_a, "transB": trans_b, "alpha": 1.0, "beta": 1.0}
    assert op.requant is not None
    assert op.requant.shifts == ((6, 5, 4) if per_channel else (5,))


@pytest.mark.parametrize("shape", [(3,), (1, 3), (1,), (), (1, 1)])
def test_biases_of_every_shape_become_one_value_per_channel(shape: tuple[int, ...]) -> None:
    s = Sketch()
    values = np.resize([7, -8, 9], shape)
    imported = assert_exact(linear(WEIGHT, bias=s.weight(values, 0.125, dtype=np.int32, name="b"), sketch=s))
    expected = np.broadcast_to(values.reshape(-1), 3) if values.size == 1 else values.reshape(-1)
    assert array_of(imported, "b").tolist() == expected.tolist()
    assert imported.manifest.tensor("b").dtype == "int32"
    assert op_of(imported.manifest, "Gemm").bias is not None


@pytest.mark.parametrize("shape", [(2, 3), (2, 1)])
def test_a_bias_that_varies_along_the_rows_is_refused(shape: tuple[int, ...]) -> None:
    s = Sketch()
    x = s.qdq(s.input("x", (2, 4)), 0.5)
    b = s.weight(np.ones(shape), 0.125)
    s.output(s.qdq(s.node("Gemm", [x, s.weight(WEIGHT, 0.25), b], name="g"), 1.0, out="y"), (2, 3))
    with pytest.raises(
        RefusedError, match=r"node 'g' \(Gemm\): bias of Gemm does not add one value per output channel"
    ):
        s.load()


def test_a_bias_with_a_zero_point_loses_it() -> None:
    s = Sketch()
    bias = s.weight([10, 20, 30], 0.125, 5, np.uint8, name="b")
    imported = assert_exact(linear(WEIGHT, bias=bias, sketch=s))
    assert array_of(imported, "b").tolist() == [5, 15, 25]
    quant = imported.manifest.tensor("b").quant
    assert quant is not None
    assert quant.zero_points == (0,)


@pytest.mark.parametrize(("alpha", "beta"), [(0.5, 1.0), (1.0, 2.0), (2.0, 0.25), (4.0, 0.0), (1.0, -1.0)])
def test_alpha_and_beta_are_exact(alpha: float, beta: float) -> None:
    s = Sketch()
    bias = s.weight([50, -60, 70], 0.125, name="b")
    options = {"alpha": alpha, "beta": beta}
    imported = assert_exact(linear(WEIGHT, bias=bias, sketch=s, options=options), target=beta > 0)
    op = op_of(imported.manifest, "Gemm")
    assert op.inputs[2] == ("b" if beta else "")
    assert op.requant is not None
    assert op.requant.shifts == (3 - int(np.log2(alpha)),)
    if beta > 0:
        assert op.bias is not None
        ratio = int(np.log2(beta / alpha))
        assert (op.bias.kind, op.bias.shifts) == (("shifted", (ratio,)) if ratio else ("accumulator", ()))


@pytest.mark.parametrize("alpha", [0.0, -1.0])
def test_alpha_has_to_be_positive(alpha: float) -> None:
    with pytest.raises(RefusedError, match=r"node 'gemm' \(Gemm\): alpha of Gemm; expected > 0"):
        linear(WEIGHT, options={"alpha": alpha}).load()


def test_a_bias_computed_at_run_time_is_refused() -> None:
    s = Sketch()
    bias = s.qdq(s.input("k", (3,)), 0.5)
    with pytest.raises(RefusedError, match=r"node 'gemm' \(Gemm\): bias 'v_1' is computed at run time"):
        linear(WEIGHT, bias=bias, sketch=s).load()


def qgemm(*, output: bool = True, alpha: float = 1.0, trans_b: int = 0) -> Sketch:
    s = Sketch()
    x = s.q(s.input("x", (2, 4)), 0.1, 7, np.uint8, out="xq")
    w = s.const(WEIGHT.T if trans_b else WEIGHT, np.int8, "w")
    names = [x, s.const(0.1), s.const(7, np.uint8), w, s.const([0.02, 0.03, 0.04]), s.const([0] * 3, np.int8)]
    names.append(s.const([500, -600, 7], np.int32, "b"))
    if output:
        names += [s.const(0.3), s.const(100, np.uint8)]
    y = s.node("QGemm", names, "y", name="qg", domain="com.microsoft", alpha=alpha, transB=trans_b)
    s.output(y, (2, 3), 2 if output else 1)
    return s


@pytest.mark.parametrize("alpha", [1.0, 0.7])
@pytest.mark.parametrize("trans_b", [0, 1])
def test_qgemm_is_a_gemm_with_the_kernels_formula(alpha: float, trans_b: int) -> None:
    op = op_of(assert_exact(qgemm(alpha=alpha, trans_b=trans_b), target=False).manifest, "Gemm")
    assert (op.origin, op.inputs) == ("qoperator", ("xq", "w", "b"))
    assert op.bias is not None
    assert op.bias.kind == "accumulator"
    assert op.requant is not None
    assert op.requant.reference == "scale_f32"
    f32 = np.float32
    expected = [float(f32(f32(f32(alpha) * f32(0.1)) * f32(w)) / f32(0.3)) for w in (0.02, 0.03, 0.04)]
    got = [m / 2.0**s for m, s in zip(op.requant.multipliers, op.requant.shifts, strict=True)]
    assert got == expected


def test_qgemm_without_an_output_scale_stays_exact() -> None:
    manifest = assert_exact(qgemm(output=False)).manifest
    gemm = op_of(manifest, "Gemm")
    assert (gemm.outputs, gemm.requant, gemm.origin) == (("y#exact",), None, "qoperator")
    assert manifest.tensor("y").dtype == "float32"


def test_an_accumulator_that_may_wrap_is_noted() -> None:
    s = qgemm()
    s.initializers[-3].CopyFrom(numpy_helper.from_array(np.array([2**31 - 1] * 3, np.int32), "b"))
    imported = s.load()
    (note,) = [n for n in imported.manifest.notes if n.code == "ACC-WRAP"]
    assert note.where == "qg"
    accumulator = op_of(imported.manifest, "Gemm").accumulator
    assert accumulator is not None
    assert accumulator.bits == 64


def test_a_qgemm_reading_another_scale_than_its_producer_wrote() -> None:
    s = qgemm()
    s.nodes[0].input[1] = s.const(0.2)
    manifest = assert_exact(s, target=False).manifest
    again = op_of(manifest, "Reinterpret")
    assert again.inputs == ("xq",)
    assert op_of(manifest, "Gemm").inputs[0] == again.outputs[0] == "xq#as"


def test_matrices_only() -> None:
    s = Sketch()
    x = s.qdq(s.input("x", (2, 4)), 0.5)
    s.output(s.qdq(s.node("Gemm", [x, s.weight(np.ones((3, 2)), 0.5)], name="g"), 1.0, out="y"), (2, 2))
    with pytest.raises(RefusedError, match=r"node 'g' \(Gemm\): Gemm shapes do not fit"):
        s.load()


def fused(kind: str) -> Any:
    s = Sketch()
    x = s.qdq(s.input("x", (1, 4)), 0.5)
    g = s.node("FusedGemm", [x, s.weight(WEIGHT, 0.25)], domain="com.microsoft", activation=kind)
    s.output(s.qdq(g, 1.0, 10, np.uint8, out="y"), (1, 3))
    return s


def test_fusedgemm_brings_its_activation() -> None:
    op = op_of(fused("Relu").load().manifest, "Gemm")
    assert op.requant is not None
    assert (op.requant.qmin, op.requant.qmax) == (10, 255)
    plain = op_of(fused("").load().manifest, "Gemm")
    assert plain.activation is None
    with pytest.raises(RefusedError, match="activation 'Elu' is not supported"):
        fused("Elu").load()
