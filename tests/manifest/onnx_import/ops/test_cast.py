import numpy as np
import onnx
import pytest

from manifest.errors import RefusedError
from manifest.onnx_import.graph import Node
from manifest.onnx_import.ops.cast import cast_array
from tests.qdq_models import Sketch, array_of, assert_exact, types


def test_to_the_same_type_is_an_alias() -> None:
    s = Sketch()
    x = s.node("Cast", [s.qdq(s.input("x", (1, 4)), 0.5)], to=onnx.TensorProto.FLOAT)
    s.output(s.qdq(s.node("Relu", [x]), 0.5, out="y"), (1, 4))
    assert types(assert_exact(s).manifest) == ["QuantizeLinear", "Relu", "DequantizeLinear"]


def test_of_an_activation_to_another_type_is_refused() -> None:
    s = Sketch()
    q = s.q(s.input("x", (1, 4)), 0.5)
    s.output(s.node("Cast", [q], "y", name="cast", to=onnx.TensorProto.INT32), (1, 4), onnx.TensorProto.INT32)
    with pytest.raises(RefusedError, match=r"node 'cast' \(Cast\): Cast of an activation .*expected int8; got int32"):
        s.load()


def test_of_a_constant_is_folded() -> None:
    s = Sketch()
    codes = s.node("Cast", [s.const([[1.0, -2.0], [3.0, 4.0]])], "codes", to=onnx.TensorProto.INT8)
    m = s.node("MatMul", [s.qdq(s.input("x", (1, 2)), 0.5), s.dq(codes, 0.5)])
    s.output(s.qdq(m, 0.5, out="y"), (1, 2))
    assert array_of(assert_exact(s), "codes").dtype == np.int8


@pytest.mark.parametrize(
    ("to", "values", "expected"),
    [("INT64", [1.9, -1.9], [1, -1]), ("FLOAT", [1, 2], [1.0, 2.0]), ("BOOL", [0, 3], [False, True])],
)
def test_floats_are_truncated(to: str, values: list[float], expected: list[float]) -> None:
    number = getattr(onnx.TensorProto, to)
    node = Node(
        index=0, name="n", key=":Cast", domain="", type="Cast", inputs=("x",), outputs=("y",), attributes={"to": number}
    )
    assert cast_array(node, np.array(values)).tolist() == expected


def test_other_types_are_refused() -> None:
    node = Node(
        index=0, name="n", key=":Cast", domain="", type="Cast", inputs=("x",), outputs=("y",), attributes={"to": 10}
    )
    with pytest.raises(RefusedError, match="Cast of a constant to float16 is not supported"):
        cast_array(node, np.ones(2))
