from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from manifest.errors import RefusedError
from manifest.onnx_import.inspect import inspect_model
from tests.onnx_models import linear_model, model, node, tensor, value


def test_float_model(tmp_path: Path) -> None:
    made = model(
        [
            node("Relu", ["x"], ["a"]),
            node("Gelu", ["a"], ["b"], domain="com.microsoft"),
            node("Add", ["b", "k"], ["y"]),
        ],
        [tensor("k", [1.0] * 4)],
        inputs=[value("x", ("batch", None, 4)), value("k", (4,))],
        imports={"com.microsoft": 1},
    )
    (tmp_path / "m.onnx").write_bytes(made.SerializeToString())
    summary = inspect_model(tmp_path / "m.onnx")
    assert not summary.is_quantized
    assert summary.inputs == (("x", "float32", ("batch", "?", 4)),)
    assert summary.ops == Counter({":Relu": 1, "com.microsoft:Gelu": 1, ":Add": 1})
    assert summary.opset == 13


def test_problems_of_a_float_model_are_raised_those_of_a_quantised_one_are_left(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(model([node("Add", ["x", "ghost"], ["y"])]).SerializeToString())
    with pytest.raises(RefusedError, match="ghost"):
        inspect_model(path)
    path.write_bytes(linear_model(weight_scale=0.0).SerializeToString())
    assert inspect_model(path).is_quantized


@pytest.mark.parametrize(
    ("op_type", "domain", "expected"),
    [
        ("QuantizeLinear", "", True),
        ("DequantizeLinear", "com.microsoft", True),
        ("QLinearConv", "", True),
        ("QLinearAdd", "com.microsoft", True),
        ("QGemm", "com.microsoft", True),
        ("MatMulInteger", "", True),
        ("Quant", "qonnx.custom_op.general", True),
        ("Conv", "", False),
    ],
)
def test_what_counts_as_quantised(tmp_path: Path, op_type: str, domain: str, expected: bool) -> None:
    made = model([node(op_type, ["x", "k"], ["y"], domain=domain)], imports={domain: 1} if domain else None)
    made.graph.input[0].CopyFrom(value("x", (1, 1, 4, 4)))
    made.graph.initializer.append(tensor("k", np.ones((1, 1, 1, 1))))
    (tmp_path / "m.onnx").write_bytes(made.SerializeToString())
    assert inspect_model(tmp_path / "m.onnx").is_quantized is expected


def test_corpus_names_say_what_is_quantised(shared: Path) -> None:
    for path in sorted((shared / "corpus" / "models").glob("*.onnx")):
        if path.stem == "eltwise_bad_opset":
            continue
        quantised = any(word in path.name for word in (".qdq_", ".qop_", ".quark_", "_qcdq", "_qonnx"))
        assert inspect_model(path).is_quantized is quantised, path.name
