from typing import Any

import numpy as np
import pytest
from onnx import helper

from manifest.errors import RefusedError
from tests.qdq_models import Sketch, assert_exact, op_of


def pool(scale: float = 0.5, zero: int = 3, *, shape: tuple[int, ...] = (1, 2, 5, 6), **attributes: Any) -> Sketch:
    s = Sketch()
    x = s.qdq(s.input("x", shape), 0.5, 3, out="a")
    attributes = {"kernel_shape": [2, 2], **attributes}
    s.output(s.qdq(s.node("MaxPool", [x], name="pool", **attributes), scale, zero, out="y"), [None] * 4)
    return s


@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {"strides": [2, 2]},
        {"strides": [2, 2], "ceil_mode": 1},
        {"pads": [1, 0, 0, 1]},
        {"dilations": [2, 1]},
        {"kernel_shape": [1, 1], "strides": [2, 2]},
        {"auto_pad": "SAME_UPPER", "strides": [2, 2]},
    ],
)
def test_windows_equal_onnxruntime(attributes: dict[str, Any]) -> None:
    op = op_of(assert_exact(pool(**attributes)).manifest, "MaxPool")
    assert op.requant is not None
    assert op.requant.reference == op.requant.target == "identity"


def test_attributes_with_all_defaults() -> None:
    assert dict(op_of(pool().load().manifest, "MaxPool").attributes) == {
        "kernel_shape": (2, 2), "strides": (1, 1), "pads": (0, 0, 0, 0), "dilations": (1, 1), "ceil_mode": 0,
    }  # fmt: skip


def test_another_output_scale_is_a_requantization_that_is_proved() -> None:
    op = op_of(pool(0.7, 9).load().manifest, "MaxPool")
    assert op.requant is not None
    assert (op.requant.reference, op.requant.target) == ("rational", "multiplier_shift")
    assert "all 256 sums" in op.requant.proof
    ratio = 0.5 / float(np.float32(0.7))
    for code in range(-128, 128):
        exact = np.rint((code - 3) * ratio)
        scaled = (code - 3) * op.requant.multipliers[0] / 2 ** op.requant.shifts[0]
        assert np.clip(np.rint(scaled) + 9, -128, 127) == np.clip(exact + 9, -128, 127)


def test_on_codes_the_quantization_passes_through() -> None:
    s = Sketch()
    q = s.q(s.input("x", (1, 1, 4, 4)), 0.5, 3, out="q")
    p = s.node("MaxPool", [q], "p", kernel_shape=[2, 2])
    s.output(s.dq(p, 0.5, 3, out="y"), (1, 1, 3, 3))
    manifest = assert_exact(s).manifest
    assert manifest.tensor("p").quant == manifest.tensor("q").quant
    assert manifest.tensor("p").onnx_dtype == "int8"


def test_without_a_quantize_behind_it_values_stay_integers() -> None:
    s = Sketch()
    x = s.qdq(s.input("x", (1, 1, 4, 4)), 0.5, 3, out="a")
    p = s.node("MaxPool", [x], "p", kernel_shape=[2, 2])
    c = s.node("Conv", [p, s.weight(np.ones((1, 1, 1, 1)), 0.5)])
    s.output(s.qdq(c, 0.5, out="y"), (1, 1, 3, 3))
    tensor = assert_exact(s).manifest.tensor("p")
    assert (tensor.dtype, tensor.onnx_dtype) == ("int8", "float32")


def test_relu_behind_it_is_fused() -> None:
    s = Sketch()
    x = s.qdq(s.input("x", (1, 1, 4, 4)), 0.5, 3, out="a")
    r = s.node("Relu", [s.node("MaxPool", [x], kernel_shape=[2, 2])])
    s.output(s.qdq(r, 0.5, 3, out="y"), (1, 1, 3, 3))
    requant = op_of(assert_exact(s).manifest, "MaxPool").requant
    assert requant is not None
    assert (requant.reference, requant.qmin) == ("identity", 3)


def test_of_an_exact_tensor_with_one_scale_per_channel() -> None:
    s = Sketch()
    x = s.qdq(s.input("x", (1, 1, 4, 4)), 0.5)
    c = s.node("Conv", [x, s.weight([[[[3]]], [[[5]]]], [0.25, 0.5], axis=0)], "c")
    s.output(s.qdq(s.node("MaxPool", [c], kernel_shape=[2, 2]), 0.5, out="y"), (1, 2, 3, 3))
    requant = op_of(assert_exact(s).manifest, "MaxPool").requant
    assert requant is not None
    assert requant.shifts == (2, 1)


def test_pooling_over_the_axis_of_the_scales_is_refused() -> None:
    s = Sketch()
    x = s.qdq(s.input("x", (1, 1, 2, 2)), 0.5)
    m = s.node("MatMul", [x, s.weight(np.eye(2) * 3, [0.25, 0.5], axis=1)])
    s.output(s.qdq(s.node("MaxPool", [m], name="pool", kernel_shape=[2, 2]), 0.5, out="y"), (1, 1, 1, 1))
    with pytest.raises(RefusedError, match=r"node 'pool' \(MaxPool\): scales per channel do not survive"):
        s.load()


def test_used_indices_are_refused() -> None:
    s = pool()
    s.nodes[2].output.append("indices")
    assert_exact(s)
    s.output("indices", [None] * 4, 7)
    with pytest.raises(RefusedError, match="the Indices output 'indices' is not supported"):
        s.load()


def test_one_dimensional_pools_are_refused() -> None:
    s = Sketch()
    x = s.qdq(s.input("x", (1, 2, 5)), 0.5)
    s.nodes.append(helper.make_node("MaxPool", [x], ["p"], "pool", kernel_shape=[2]))
    s.output(s.qdq("p", 0.5, out="y"), (1, 2, 4))
    with pytest.raises(RefusedError, match=r"node 'pool' \(MaxPool\): 1-D MaxPool is not supported"):
        s.load()
