"""Old opsets: onnxruntime writes an axis into graphs that have none, and the comparison runs all the same."""

from typing import Any

import numpy as np
import pytest

from manifest.onnx_import import Imported
from manifest.onnx_import.instrument import opset_of
from oracle.reference import compare_model, level_disagreement
from oracle.reference.newer_opset import in_newer_opset
from oracle.reference.session import OnnxruntimeError
from tests.qdq_models import Sketch

MICROSOFT = "com.microsoft"


def old(op: str, *, opset: int = 11, act: Any = np.uint8) -> Imported:
    """x -> Q/DQ -> Conv or Gemm with weights per channel and a float bias -> Q/DQ -> y, all scales odd."""
    rng = np.random.default_rng(0)
    s = Sketch(opset)
    shape, form, axis = ((1, 2, 5, 5), (3, 2, 3, 3), 0) if op == "Conv" else ((1, 8), (8, 3), 1)

    def qdq(value: str, scale: float, zero: int, out: str) -> str:
        numbers = [s.const(scale), s.const(zero, act)]
        codes = s.node("QuantizeLinear", [value, *numbers], f"{out}.q", domain=MICROSOFT)
        return s.node("DequantizeLinear", [codes, *numbers], out, domain=MICROSOFT)

    weight = s.node(
        "DequantizeLinear",
        [
            s.const(rng.integers(-127, 128, form), np.int8, "w"),
            s.const(0.003 + 0.001 * rng.random(3)),
            s.const(np.zeros(3), np.int8),
        ],
        "wd",
        domain=MICROSOFT,
        axis=axis,
    )
    x = qdq(s.input("x", shape), 0.0173, 7, "a")
    made = s.node(op, [x, weight, s.const(rng.normal(size=3), name="b")], "made", name="op")
    qdq(made, 0.0211, 3, "y")
    s.output("y", (1, 3, 3, 3) if op == "Conv" else (1, 3))
    return s.load()


def feeds(imported: Imported) -> dict[str, np.ndarray]:
    shape = imported.manifest.tensor("x").shape
    return {"x": (np.random.default_rng(1).random((5, *shape)) * 4).astype(np.float32)}


@pytest.mark.parametrize("act", [np.uint8, np.int8])
@pytest.mark.parametrize("op", ["Conv", "Gemm"])
@pytest.mark.parametrize("opset", [11, 12])
def test_weights_per_channel_and_a_float_bias_are_compared_in_old_opsets(op: str, opset: int, act: Any) -> None:
    imported = old(op, opset=opset, act=act)
    dump, file_op = compare_model(imported.model_bytes, imported.manifest, imported.arrays, feeds(imported))
    for c in (dump, file_op):
        assert (c.why_not, c.unexplained, c.required) == ("", 0, True)
        assert len(c.tensors) == c.tensors_expected
        assert c.elements > 0
    assert "made of the file in opset 13" in dump.reference
    assert dump.mismatches == 0
    levels = level_disagreement(imported.model_bytes, imported.manifest, feeds(imported))
    assert levels is not None
    assert levels.elements > 0


def test_a_file_that_loads_stays_in_its_opset() -> None:
    imported = old("Conv", opset=13)
    dump, _ = compare_model(imported.model_bytes, imported.manifest, imported.arrays, feeds(imported))
    assert (dump.why_not, dump.unexplained) == ("", 0)
    assert "opset" not in dump.reference


def refusing(below: int) -> Any:
    def load(data: bytes) -> int:
        if opset_of(data) < below:
            msg = "no"
            raise OnnxruntimeError(msg)
        return opset_of(data)

    return load


def test_only_what_is_refused_is_raised_and_only_once() -> None:
    data = old("Gemm").model_bytes
    assert in_newer_opset(data, opset_of) == (11, "")
    assert in_newer_opset(data, refusing(13))[0] == 13
    with pytest.raises(OnnxruntimeError, match="no"):
        in_newer_opset(data, refusing(14))


def test_a_refusal_in_a_new_opset_is_passed_on() -> None:
    with pytest.raises(OnnxruntimeError, match="no"):
        in_newer_opset(old("Gemm", opset=13).model_bytes, refusing(14))


def test_a_file_that_cannot_be_converted_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(data: bytes, to: int) -> bytes:
        raise RuntimeError(len(data), to)

    monkeypatch.setattr("oracle.reference.newer_opset.raise_opset", refuse)
    imported = old("Gemm")
    dump, file_op = compare_model(imported.model_bytes, imported.manifest, imported.arrays, feeds(imported))
    assert "cannot convert" in dump.why_not
    assert (dump.required, dump.elements) == (True, 0)
    assert file_op.elements > 0
