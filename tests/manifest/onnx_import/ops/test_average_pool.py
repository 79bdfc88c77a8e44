from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from manifest.onnx_import.graph import build
from manifest.onnx_import.ops.average_pool import counts
from tests.qdq_models import Sketch, assert_exact, op_of


def pool(scale: float = 0.5, *, opset: int = 19, shape: tuple[int, ...] = (1, 2, 5, 6), **attributes: Any) -> Sketch:
    s = Sketch(opset)
    x = s.qdq(s.input("x", shape), 0.5, 3, out="a")
    attributes = {"kernel_shape": [2, 2], **attributes}
    s.output(s.qdq(s.node("AveragePool", [x], name="pool", **attributes), scale, -7, out="y"), [None] * 4)
    return s


@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {"strides": [2, 2]},
        {"pads": [0, 0, 1, 1], "count_include_pad": 1},
        {"kernel_shape": [4, 2], "dilations": [1, 2]},
        {"kernel_shape": [1, 1], "strides": [2, 2]},
        {"kernel_shape": [4, 4]},
    ],
)
def test_windows_of_a_power_of_two_equal_onnxruntime(attributes: dict[str, Any]) -> None:
    op = op_of(assert_exact(pool(**attributes)).manifest, "AveragePool")
    assert op.requant is not None
    assert (op.requant.reference, op.requant.target) == ("srs", "srs")
    assert op.requant.multipliers == (1,)


def test_attributes_with_all_defaults() -> None:
    assert dict(op_of(pool().load().manifest, "AveragePool").attributes) == {
        "kernel_shape": (2, 2), "strides": (1, 1), "pads": (0, 0, 0, 0), "dilations": (1, 1), "ceil_mode": 0,
        "count_include_pad": 0, "factor": 1.0,
    }  # fmt: skip


@pytest.mark.parametrize("kernel", [[3, 1], [3, 3], [5, 5]])
def test_odd_windows_have_a_proved_multiplier(kernel: list[int]) -> None:
    op = op_of(assert_exact(pool(kernel_shape=kernel)).manifest, "AveragePool")
    assert op.requant is not None
    assert (op.requant.reference, op.requant.target) == ("rational", "multiplier_shift")
    assert "equals the reference on all" in op.requant.proof
    n = kernel[0] * kernel[1]
    assert op.accumulator is not None
    assert op.accumulator.bound == n * 131


def test_a_window_of_six_has_none() -> None:
    op = op_of(pool(kernel_shape=[2, 3]).load().manifest, "AveragePool")
    assert op.requant is not None
    assert op.requant.proof == ""
    assert abs(Fraction(op.requant.multipliers[0], 2 ** op.requant.shifts[0]) - Fraction(1, 6)) < Fraction(1, 2**33)


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({}, (4,)),
        ({"pads": [1, 1, 1, 1]}, (1, 2, 4)),
        ({"pads": [1, 1, 1, 1], "count_include_pad": 1}, (4,)),
        ({"strides": [2, 2], "ceil_mode": 1}, (2, 4)),
        ({"kernel_shape": [3, 3], "pads": [0, 0, 0, 1]}, (6, 9)),
        ({"strides": [2, 2], "ceil_mode": 1, "count_include_pad": 1}, (2, 4)),
        ({"kernel_shape": [2, 2], "dilations": [2, 2], "pads": [1, 1, 1, 1]}, (1, 2, 4)),
    ],
)
def test_numbers_of_elements_per_window(attributes: dict[str, Any], expected: tuple[int, ...]) -> None:
    node = next(n for n in build(pool(**attributes).proto()).nodes if n.type == "AveragePool")
    assert counts(node, (1, 2, 5, 6)) == expected


def test_windows_of_different_numbers_share_one_unit() -> None:
    """Windows of 1, 2 and 4 elements: sum * (4 / n), divided by 4."""
    op = op_of(assert_exact(pool(pads=[1, 1, 1, 1])).manifest, "AveragePool")
    assert op.requant is not None
    assert (op.requant.multipliers, op.requant.shifts) == ((1,), (2,))
    assert op.accumulator is not None
    assert op.accumulator.bound == 4 * 131


def test_the_factor_of_xint8() -> None:
    """AveragePool 3x3 x 0.984375 = 63/64: sum * 7 / 64."""
    s = Sketch()
    x = s.qdq(s.input("x", (1, 1, 5, 5)), 0.5, 128, np.uint8)
    m = s.node("Mul", [s.node("AveragePool", [x], kernel_shape=[3, 3]), s.const(0.984375)])
    s.output(s.qdq(m, 0.5, 128, np.uint8, out="y"), (1, 1, 3, 3))
    op = op_of(assert_exact(s).manifest, "AveragePool")
    assert op.requant is not None
    assert (op.requant.reference, op.requant.multipliers, op.requant.shifts) == ("srs", (7,), (6,))


def test_of_an_exact_tensor() -> None:
    s = Sketch()
    x = s.qdq(s.input("x", (1, 1, 4, 4)), 0.5)
    c = s.node("Conv", [x, s.weight(np.full((1, 1, 1, 1), 3), 0.25)], "c")
    s.output(s.qdq(s.node("AveragePool", [c], kernel_shape=[2, 2]), 0.5, out="y"), (1, 1, 3, 3))
    op = op_of(assert_exact(s).manifest, "AveragePool")
    assert op.requant is not None
    assert op.requant.shifts == (4,)


def qlinear(shape: tuple[int, ...], **attributes: Any) -> Sketch:
    s = Sketch()
    x = s.q(s.input("x", shape), 0.05, 10, np.uint8, out="xq")
    names = [x, s.const(0.05), s.const(10, np.uint8), s.const(0.04), s.const(3, np.uint8)]
    s.output(s.node("QLinearAveragePool", names, "y", name="q", domain="com.microsoft", **attributes), [None] * 4, 2)
    return s


def test_qlinearaveragepool_has_its_zero_point_inside() -> None:
    op = op_of(assert_exact(qlinear((1, 2, 5, 5), kernel_shape=[2, 2]), target=False).manifest, "AveragePool")
    assert op.requant is not None
    assert (op.origin, op.requant.reference, op.requant.zero_point_inside) == ("qoperator", "scale_f32", True)
    assert op.requant.proof == ""


def test_over_the_whole_image_it_is_qlinearglobalaveragepool() -> None:
    manifest = assert_exact(qlinear((1, 2, 3, 3), kernel_shape=[3, 3]), target=False).manifest
    op = op_of(manifest, "GlobalAveragePool")
    assert op.requant is not None
    assert not op.requant.zero_point_inside
    padded = qlinear((1, 2, 3, 3), kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    assert op_of(assert_exact(padded, target=False).manifest, "AveragePool").requant is not None


def test_qlinearaveragepool_with_included_pads_divides_by_the_whole_window() -> None:
    hanging = {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1, "count_include_pad": 1}
    op = op_of(assert_exact(qlinear((1, 2, 6, 6), **hanging), target=False).manifest, "AveragePool")
    assert op.requant is not None
    assert len(op.requant.multipliers) == len(op.requant.shifts) == 1
