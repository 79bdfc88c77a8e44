import numpy as np
import pytest
from onnx import helper

from manifest.errors import RefusedError
from tests.qdq_models import Sketch, assert_exact, op_of, types


@pytest.mark.parametrize("op_type", ["Identity", "Dropout"])
def test_aliases_leave_no_op(op_type: str) -> None:
    s = Sketch()
    x = s.node(op_type, [s.qdq(s.input("x", (1, 4)), 0.5, out="a")], "same")
    s.output(s.qdq(s.node("Relu", [x]), 0.5, out="y"), (1, 4))
    imported = assert_exact(s)
    assert types(imported.manifest) == ["QuantizeLinear", "Relu", "DequantizeLinear"]
    assert op_of(imported.manifest, "Relu").inputs == ("a.q",)
    assert imported.dequantised["same"] == "a.q"


def test_identity_of_a_float_input() -> None:
    s = Sketch()
    s.output(s.qdq(s.node("Identity", [s.input("x", (1, 4))]), 0.5, out="y"), (1, 4))
    assert op_of(assert_exact(s).manifest, "QuantizeLinear").inputs == ("x",)


def test_a_float_input_as_output() -> None:
    s = Sketch()
    x = s.input("x", (1, 4))
    s.output(s.qdq(x, 0.5, out="y"), (1, 4))
    s.output(s.node("Identity", [x], "z"), (1, 4))
    manifest = assert_exact(s).manifest
    copy = op_of(manifest, "Reshape")
    assert (copy.inputs, copy.outputs, copy.where) == (("x",), ("z",), "host")


def test_a_used_mask_or_training_mode_is_refused() -> None:
    for masked in (True, False):
        s = Sketch()
        x = s.qdq(s.input("x", (1, 4)), 0.5)
        extra = [] if masked else ["", s.const(True, np.bool_)]
        s.nodes.append(helper.make_node("Dropout", [x, *extra], ["d", "mask"] if masked else ["d"], "drop"))
        s.output(s.qdq("d", 0.5, out="y"), (1, 4))
        if masked:
            s.output("mask", (1, 4), 9)
        with pytest.raises(RefusedError, match=r"node 'drop' \(Dropout\): training mode or a used mask"):
            s.load()


def test_an_unused_mask_is_no_reason() -> None:
    s = Sketch()
    x = s.qdq(s.input("x", (1, 4)), 0.5)
    s.nodes.append(helper.make_node("Dropout", [x], ["d", "mask"], "drop"))
    s.output(s.qdq("d", 0.5, out="y"), (1, 4))
    assert len(assert_exact(s).manifest.ops) == 3
