"""Reshape, Squeeze, Unsqueeze, Flatten and Transpose."""

from typing import Any

import numpy as np
import pytest

from manifest.errors import RefusedError
from manifest.model import AttributeValue
from tests.qdq_models import Sketch, assert_exact, op_of

Case = tuple[str, list[Any], dict[str, Any], tuple[int, ...], str, dict[str, AttributeValue]]
CASES: list[Case] = [
    ("Reshape", [[0, -1]], {}, (2, 12), "Reshape", {"shape": (2, 12)}),
    ("Reshape", [[4, 3, 2]], {}, (4, 3, 2), "Reshape", {"shape": (4, 3, 2)}),
    ("Flatten", [], {}, (2, 12), "Flatten", {"axis": 1}),
    ("Flatten", [], {"axis": -1}, (6, 4), "Flatten", {"axis": 2}),
    ("Flatten", [], {"axis": 0}, (1, 24), "Flatten", {"axis": 0}),
    ("Transpose", [], {}, (4, 3, 2), "Transpose", {"perm": (2, 1, 0)}),
    ("Transpose", [], {"perm": [0, 2, 1]}, (2, 4, 3), "Transpose", {"perm": (0, 2, 1)}),
    ("Unsqueeze", [[0, -1]], {}, (1, 2, 3, 4, 1), "Reshape", {"shape": (1, 2, 3, 4, 1)}),
]


def layout(op_type: str, inputs: list[Any], attributes: dict[str, Any], place: str) -> Sketch:
    """The op on codes, on a value whose codes stay, in front of another scale, or on an exact tensor."""
    s = Sketch()
    x = s.input("x", (2, 3, 4))
    given = [s.const(i, np.int64) for i in inputs]
    if place == "codes":
        out = s.dq(s.node(op_type, [s.q(x, 0.5, 3), *given], "moved", **attributes), 0.5, 3)
    elif place == "exact":
        m = s.node("MatMul", [s.qdq(x, 0.5, 3), s.weight(np.eye(4) * 5, 0.25)])
        out = s.node(op_type, [m, *given], "moved", **attributes)
    else:
        out = s.node(op_type, [s.qdq(x, 0.5, 3), *given], "moved", **attributes)
    if place in ("codes", "value"):
        out = s.node("Mul", [out, s.const(1.0)])
    s.output(s.qdq(out, 0.25, -5, out="y"))
    return s


@pytest.mark.parametrize("place", ["codes", "value", "scale", "exact"])
@pytest.mark.parametrize("case", CASES)
def test_layout_ops_everywhere(case: Case, place: str) -> None:
    op_type, inputs, attributes, shape, kind, expected = case
    manifest = assert_exact(layout(op_type, inputs, attributes, place)).manifest
    op = op_of(manifest, kind)
    assert dict(op.attributes) == expected
    tensor = manifest.tensor(op.outputs[0])
    assert tensor.shape == shape
    if place == "codes":
        assert (tensor.name, tensor.dtype, tensor.onnx_dtype) == ("moved", "int8", "int8")
    elif place == "value":
        assert (tensor.name, tensor.dtype, tensor.onnx_dtype) == ("moved", "int8", "float32")
        assert op.requant is not None
        assert op.requant.target == "identity"
    else:
        assert tensor.name == "y.q"
        assert op.requant is not None
        assert op.requant.shifts == ((-1,) if place == "scale" else (1,))


@pytest.mark.parametrize(("opset", "as_input"), [(11, False), (13, True)])
def test_squeeze_axes_are_an_attribute_before_opset_13(opset: int, as_input: bool) -> None:
    s = Sketch(opset)
    x = s.qdq(s.input("x", (1, 3, 1)), 0.5)
    v = s.node("Squeeze", [x, s.const([-1], np.int64)]) if as_input else s.node("Squeeze", [x], axes=[-1])
    s.output(s.qdq(s.node("Relu", [v]), 0.5, out="y"), (1, 3))
    assert op_of(assert_exact(s).manifest, "Reshape").attributes == {"shape": (1, 3)}


def test_squeeze_without_axes_drops_all_of_size_one() -> None:
    s = Sketch()
    s.output(s.qdq(s.node("Squeeze", [s.qdq(s.input("x", (1, 3, 1)), 0.5)]), 0.5, out="y"), (3,))
    assert op_of(assert_exact(s).manifest, "Reshape").attributes == {"shape": (3,)}


def channels(op_type: str, inputs: list[Any], attributes: dict[str, Any]) -> Sketch:
    """A Conv with one scale per channel, the layout op, then QuantizeLinear."""
    s = Sketch()
    x = s.qdq(s.input("x", (1, 2, 2, 2)), 0.5)
    c = s.node("Conv", [x, s.weight(np.arange(4).reshape(2, 2, 1, 1) + 1, [0.25, 0.5], axis=0)])
    v = s.node(op_type, [c, *(s.const(i, np.int64) for i in inputs)], name="layout", **attributes)
    s.output(s.qdq(v, 0.5, out="y"))
    return s


@pytest.mark.parametrize(
    ("op_type", "inputs", "attributes"),
    [("Transpose", [], {"perm": [0, 2, 3, 1]}), ("Reshape", [[1, 2, 4]], {}), ("Unsqueeze", [[0]], {})],
)
def test_scales_per_channel_follow_their_axis(op_type: str, inputs: list[Any], attributes: dict[str, Any]) -> None:
    kind = "Transpose" if op_type == "Transpose" else "Reshape"
    requant = op_of(assert_exact(channels(op_type, inputs, attributes)).manifest, kind).requant
    assert requant is not None
    assert requant.shifts == (2, 1)


@pytest.mark.parametrize(("op_type", "inputs", "attributes"), [("Flatten", [], {}), ("Reshape", [[1, 4, 2]], {})])
def test_mixing_channels_of_own_scales_is_refused(op_type: str, inputs: list[Any], attributes: dict[str, Any]) -> None:
    with pytest.raises(
        RefusedError, match=rf"node 'layout' \({op_type}\): scales per channel do not survive this node"
    ):
        channels(op_type, inputs, attributes).load()
