from typing import Any

import numpy as np
import pytest

from manifest.errors import RefusedError
from tests.qdq_models import Sketch, assert_exact, op_of


def pool(size: int, *, scale: float = 0.5, dtype: Any = np.int8, opset: int = 13, x_scale: float = 0.5) -> Sketch:
    s = Sketch(opset)
    x = s.qdq(s.input("x", (2, 3, size, size)), x_scale, 3, dtype, out="a")
    s.output(s.qdq(s.node("GlobalAveragePool", [x], name="gap"), scale, 1, dtype, out="y"), (2, 3, 1, 1))
    return s


@pytest.mark.parametrize(("size", "shift"), [(1, 0), (2, 2), (4, 4), (8, 6)])
def test_images_of_a_power_of_two_are_shifts(size: int, shift: int) -> None:
    op = op_of(assert_exact(pool(size)).manifest, "GlobalAveragePool")
    assert op.attributes == {"factor": 1.0}
    assert op.requant is not None
    if size > 1:
        assert (op.requant.reference, op.requant.target, op.requant.shifts) == ("srs", "srs", (shift,))


@pytest.mark.parametrize("size", [3, 5, 7])
def test_odd_images_have_a_proved_multiplier(size: int) -> None:
    requant = op_of(assert_exact(pool(size)).manifest, "GlobalAveragePool").requant
    assert requant is not None
    assert f"all {size * size * 255 + 1} sums" in requant.proof


def test_six_by_six_has_none() -> None:
    requant = op_of(pool(6).load().manifest, "GlobalAveragePool").requant
    assert requant is not None
    assert (requant.target, requant.proof) == ("multiplier_shift", "")


def test_int16_sums_are_enumerated_up_to_four_million() -> None:
    requant = op_of(
        pool(7, dtype=np.int16, opset=21, x_scale=2.0**-8, scale=2.0**-8).load().manifest, "GlobalAveragePool"
    ).requant
    assert requant is not None
    assert f"all {49 * 65535 + 1} sums" in requant.proof
    more = op_of(
        pool(9, dtype=np.int16, opset=21, x_scale=2.0**-8, scale=2.0**-8).load().manifest, "GlobalAveragePool"
    ).requant
    assert more is not None
    assert more.proof == ""


def test_a_narrow_input_has_fewer_sums() -> None:
    s = Sketch()
    x = s.qdq(s.node("Relu", [s.qdq(s.input("x", (1, 1, 3, 3)), 0.5)]), 0.5)
    s.output(s.qdq(s.node("GlobalAveragePool", [x]), 0.5, out="y"), (1, 1, 1, 1))
    requant = op_of(s.load().manifest, "GlobalAveragePool").requant
    assert requant is not None
    assert f"all {9 * 127 + 1} sums" in requant.proof


def test_other_ranks_are_refused() -> None:
    s = Sketch()
    x = s.qdq(s.input("x", (2, 3, 5)), 0.5)
    s.output(s.qdq(s.node("GlobalAveragePool", [x], name="gap"), 0.5, out="y"), (2, 3, 1))
    with pytest.raises(RefusedError, match=r"node 'gap' \(GlobalAveragePool\): 1-D GlobalAveragePool is not supported"):
        s.load()


def qlinear(*, channels_last: int = 0, y_scale: float = 0.043) -> Sketch:
    s = Sketch()
    x = s.q(s.input("x", (1, 3, 7, 7)), 0.05, 10, np.uint8, out="xq")
    names = [x, s.const(0.05), s.const(10, np.uint8), s.const(y_scale), s.const(3, np.uint8)]
    y = s.node("QLinearGlobalAveragePool", names, "y", name="q", domain="com.microsoft", channels_last=channels_last)
    s.output(y, (1, 3, 1, 1), 2)
    return s


def test_qlinearglobalaveragepool_is_proved_against_the_kernels_formula() -> None:
    op = op_of(assert_exact(qlinear()).manifest, "GlobalAveragePool")
    assert op.requant is not None
    assert (op.origin, op.requant.reference, op.requant.zero_point_inside) == ("qoperator", "scale_f32", False)
    f32 = np.float32
    multiplier = f32(0.05) / f32(f32(0.043) * f32(49))
    sums = np.arange(-10 * 49, 245 * 49 + 1)
    expected = np.clip(np.rint(sums.astype(f32) * multiplier) + 3, 0, 255)
    scaled = sums * op.requant.multipliers[0] / 2.0 ** op.requant.shifts[0]
    np.testing.assert_array_equal(np.clip(np.rint(scaled) + 3, 0, 255), expected)
    assert "all" in op.requant.proof


def test_scales_that_make_exact_ties_have_no_proof() -> None:
    """5 / 196 of the sum: at 98, 294, ... the kernel's float32 product decides, up for one and down for another."""
    requant = op_of(assert_exact(qlinear(y_scale=0.04), target=False).manifest, "GlobalAveragePool").requant
    assert requant is not None
    assert (requant.target, requant.proof) == ("multiplier_shift", "")


def test_channels_last_is_refused() -> None:
    with pytest.raises(RefusedError, match="channels_last is not supported; expected NCHW"):
        qlinear(channels_last=1).load()
