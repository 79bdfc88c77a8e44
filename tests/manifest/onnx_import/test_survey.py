import numpy as np
import pytest

from manifest.errors import RefusedError
from manifest.onnx_import import import_bytes
from tests.qdq_models import Sketch, linear


def test_a_float_model_says_what_phase_1_needs_and_lists_its_ops() -> None:
    s = Sketch()
    c = s.node("Relu", [s.node("Conv", [s.input("x", (1, 1, 4, 4)), s.const(np.ones((1, 1, 3, 3)))])])
    s.output(s.node("Relu", [c], "y"), (1, 1, 2, 2))
    with pytest.raises(RefusedError) as error:
        s.load()
    (problem,) = error.value.problems
    assert problem.code == "ONNX-FLOAT"
    assert problem.got == "Conv, Relu x2"
    assert "--data" in problem.remedy


def test_a_float_model_with_an_unsupported_op_reports_both() -> None:
    s = Sketch()
    s.output(s.node("LRN", [s.input("x", (1, 1, 4, 4))], "y", size=3), (1, 1, 4, 4))
    with pytest.raises(RefusedError) as error:
        s.load()
    assert [p.code for p in error.value.problems] == ["ONNX-FLOAT", "ONNX-OP-UNSUPPORTED"]


def qoperator(s: Sketch, x: str) -> str:
    one, zero = s.const(1.0), s.const(0, np.int8)
    w = s.const(np.eye(2) * 3, np.int8)
    return s.node("QLinearMatMul", [x, one, zero, w, one, zero, one, zero])


def test_formats() -> None:
    assert linear(np.eye(2) * 3).load().manifest.model.format == "qdq"
    s = Sketch()
    s.output(qoperator(s, s.q(s.input("x", (1, 2)), 1.0)), (1, 2), 3)
    assert s.load().manifest.model.format == "qoperator"
    mixed = Sketch()
    v = mixed.dq(qoperator(mixed, mixed.q(mixed.input("x", (1, 2)), 1.0)), 1.0)
    m = mixed.node("MatMul", [v, mixed.weight(np.eye(2) * 3, 0.3)])
    mixed.output(mixed.qdq(m, 0.5, out="y"), (1, 2))
    assert mixed.load().manifest.model.format == "mixed"


def test_qoperator_files_may_move_values_between_dequantize_and_quantize() -> None:
    s = Sketch()
    v = s.dq(qoperator(s, s.q(s.input("x", (1, 2)), 1.0)), 1.0)
    s.output(s.q(s.node("Reshape", [v, s.const([2, 1], np.int64)]), 1.0, out="y"), (2, 1), 3)
    assert s.load().manifest.model.format == "qoperator"


def test_unused_opset_imports_are_a_note() -> None:
    proto = linear(np.eye(2) * 3).proto()
    for domain in ("com.amd.quark", "org.pytorch.aten"):
        entry = proto.opset_import.add()
        entry.domain, entry.version = domain, 1
    notes = [n for n in import_bytes(proto.SerializeToString()).manifest.notes if n.code == "OPSET-UNUSED"]
    assert [n.text for n in notes] == ["unused opset imports ignored: com.amd.quark, org.pytorch.aten"]
