from typing import Any

import numpy as np
import onnx
import pytest

from manifest.errors import RefusedError
from tests.qdq_models import Sketch, assert_exact, op_of, types


def clip(low: Any, high: Any, *, scale: float = 0.5, layer: bool = False) -> Sketch:
    s = Sketch()
    x = s.qdq(s.input("x", (1, 4)), 0.5, 3, out="a")
    c = s.node(
        "Clip", [x, "" if low is None else s.const(low), "" if high is None else s.const(high)], "c", name="clip"
    )
    if layer:
        c = s.node("Reshape", [c, s.const([2, 2], np.int64)])
    s.output(s.qdq(c, scale, 1, out="y"), (2, 2) if layer else (1, 4))
    return s


@pytest.mark.parametrize(
    ("low", "high"),
    [(-1.0, 6.0), (None, 2.3), (0.3, None), (None, None), (-np.inf, 2.3), (-1000.0, 1000.0), (5.0, 2.0)],
)
@pytest.mark.parametrize("scale", [0.5, 0.25, 0.3])
def test_between_dequantize_and_quantize(low: Any, high: Any, scale: float) -> None:
    op = op_of(assert_exact(clip(low, high, scale=scale)).manifest, "Clip")
    assert set(op.attributes) == {"minimum", "maximum"}


@pytest.mark.parametrize(("low", "high"), [(-0.7, 0.9), (-0.7, None), (None, 0.9)])
def test_a_multiplier_that_is_proved_with_the_limits_on_codes_alone(low: Any, high: Any) -> None:
    s = Sketch()
    x = s.qdq(s.input("x", (1, 64)), 0.14181096851825714, 127, np.uint8, out="a")
    bounds = ["" if end is None else s.const(end) for end in (low, high)]
    c = s.node("Clip", [x, *bounds], "c", name="clip")
    s.output(s.qdq(c, 0.017631743103265762, 127, np.uint8, out="y"), (1, 64))
    requant = op_of(assert_exact(s, count=16).manifest, "Clip").requant
    assert requant is not None
    assert requant.proof


def test_the_bounds_are_folded_into_the_range_of_codes() -> None:
    requant = op_of(clip(-1.0, 6.3).load().manifest, "Clip").requant
    assert requant is not None
    assert (requant.qmin, requant.qmax) == (-1, 14)  # rint(-2) + 1, rint(12.6) + 1


def test_bounds_on_codes_keep_integers_where_nothing_quantizes() -> None:
    manifest = assert_exact(clip(-1.0, 6.0, layer=True)).manifest
    assert manifest.tensor("c").dtype == "int8"
    requant = op_of(manifest, "Clip").requant
    assert requant is not None
    assert (requant.reference, requant.qmin, requant.qmax) == ("identity", 1, 15)


def test_bounds_between_codes_make_the_result_exact() -> None:
    manifest = assert_exact(clip(-0.3, 6.1, layer=True)).manifest
    assert manifest.tensor("c").dtype == "exact"
    assert types(manifest) == ["QuantizeLinear", "Clip", "Reshape", "DequantizeLinear"]


@pytest.mark.parametrize(("low", "high"), [(-90.0, -70.0), (None, -65.75), (70.0, 80.0), (62.5, None)])
def test_bounds_past_the_far_end_of_the_codes_make_the_result_exact(low: Any, high: Any) -> None:
    manifest = assert_exact(clip(low, high, layer=True)).manifest  # codes mean -65.5 to 62
    assert manifest.tensor("c").dtype == "exact"


@pytest.mark.parametrize(("low", "high"), [(-90.0, -65.5), (-65.5, 62.0), (62.0, 70.0), (-90.0, 70.0)])
def test_bounds_at_the_ends_of_the_codes_keep_integers(low: Any, high: Any) -> None:
    assert assert_exact(clip(low, high, layer=True)).manifest.tensor("c").dtype == "int8"


def test_on_codes_of_a_qcdq_file() -> None:
    s = Sketch()
    q = s.q(s.input("x", (1, 4)), 0.125, out="q")
    c = s.node("Clip", [q, s.const(-8, np.int8), s.const(7, np.int8)], "c")
    m = s.node("MatMul", [s.dq(c, 0.125), s.weight(np.eye(4) * 100, 0.5)])
    s.output(s.qdq(m, 0.5, out="y"), (1, 4))
    manifest = assert_exact(s).manifest
    op = op_of(manifest, "Clip")
    assert (dict(op.attributes), op.inputs, op.outputs) == ({"qmin": -8, "qmax": 7}, ("q",), ("c",))
    assert manifest.tensor("c").quant == manifest.tensor("q").quant
    accumulator = op_of(manifest, "MatMul").accumulator
    assert accumulator is not None
    assert accumulator.bound == 800


def test_one_bound_on_codes() -> None:
    s = Sketch()
    q = s.q(s.input("x", (1, 4)), 0.125)
    s.output(s.node("Clip", [q, s.const(-100, np.int8)], "y"), (1, 4), onnx.TensorProto.INT8)
    assert dict(op_of(assert_exact(s).manifest, "Clip").attributes) == {"qmin": -100, "qmax": 127}


def test_bounds_computed_at_run_time_are_refused() -> None:
    s = Sketch()
    x = s.qdq(s.input("x", (1, 4)), 0.5)
    bound = s.qdq(s.input("b", ()), 0.5)
    s.output(s.qdq(s.node("Clip", [x, bound], name="clip"), 0.5, out="y"), (1, 4))
    with pytest.raises(RefusedError, match=r"node 'clip' \(Clip\): bounds are computed at run time"):
        s.load()


@pytest.mark.parametrize("bounds", [(np.nan, 1.0), (np.inf, None), (None, -np.inf)])
@pytest.mark.parametrize("layer", [False, True])
def test_bounds_that_leave_no_finite_value_are_refused(bounds: tuple[Any, Any], layer: bool) -> None:
    with pytest.raises(RefusedError, match="bounds are computed at run time, NaN or leave nothing"):
        clip(*bounds, layer=layer).load()


@pytest.mark.parametrize(("low", "high"), [(None, 6.1), (-0.3, None), (-3.4028234663852886e38, 6.1)])
def test_one_bound_between_codes_makes_the_result_exact(low: Any, high: Any) -> None:
    manifest = assert_exact(clip(low, high, layer=True)).manifest
    assert manifest.tensor("c").dtype == "exact"
