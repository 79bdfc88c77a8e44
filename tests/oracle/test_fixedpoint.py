"""Fixed-point primitives against exact rationals, the manuals' definitions and published golden vectors."""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from oracle.fixedpoint import (
    ROUNDINGS,
    SATURATIONS,
    dequantize_linear,
    exponent_of,
    fma32,
    integer_range,
    multiplier_shift_of,
    quantize_linear,
    requant_rational,
    requant_scale_f32,
    saturate_cast,
    shift_round_saturate,
    srs,
    to_float32,
    wrap,
)
from tests.oracle.naive_base import float32_of, rounded

INT62 = st.integers(-(2**62), 2**62)

GOLDEN_VALUES = (-14, -10, -7, -6, -5, -2, -1, 1, 2, 3, 5, 6, 7, 10, 14)
GOLDEN = {
    "floor": (-4, -3, -2, -2, -2, -1, -1, 0, 0, 0, 1, 1, 1, 2, 3),
    "ceil": (-3, -2, -1, -1, -1, 0, 0, 1, 1, 1, 2, 2, 2, 3, 4),
    "pos_inf": (-3, -2, -2, -1, -1, 0, 0, 0, 1, 1, 1, 2, 2, 3, 4),
    "neg_inf": (-4, -3, -2, -2, -1, -1, 0, 0, 0, 1, 1, 1, 2, 2, 3),
    "sym_inf": (-4, -3, -2, -2, -1, -1, 0, 0, 1, 1, 1, 2, 2, 3, 4),
    "sym_zero": (-3, -2, -2, -1, -1, 0, 0, 0, 0, 1, 1, 1, 2, 2, 3),
    "conv_even": (-4, -2, -2, -2, -1, 0, 0, 0, 0, 1, 1, 2, 2, 2, 4),
    "conv_odd": (-3, -3, -2, -1, -1, -1, 0, 0, 1, 1, 1, 1, 2, 3, 3),
    "sym_floor": (-3, -2, -1, -1, -1, 0, 0, 0, 0, 0, 1, 1, 1, 2, 3),
    "sym_ceil": (-4, -3, -2, -2, -2, -1, -1, 1, 1, 1, 2, 2, 2, 3, 4),
}


@pytest.mark.parametrize("mode", ROUNDINGS)
def test_srs_golden_vectors_at_shift_2(mode: str) -> None:
    np.testing.assert_array_equal(srs(np.array(GOLDEN_VALUES), 2, mode), GOLDEN[mode])


def test_every_mode_differs_from_every_other_on_the_golden_values() -> None:
    assert len(set(GOLDEN.values())) == len(ROUNDINGS)


@pytest.mark.parametrize("mode", ROUNDINGS)
@given(acc=st.lists(st.one_of(INT62, st.integers(-200, 200)), min_size=1, max_size=8), shift=st.integers(0, 126))
@example(acc=[3 << 14, -(3 << 14), 1 << 14, -(1 << 14)], shift=15)
@example(acc=[2**62, -(2**62)], shift=62)
@example(acc=[2**62, -(2**62), 1, 0], shift=63)
@example(acc=[2**62, -(2**62), 1, 0], shift=126)
@example(acc=[5, -5], shift=0)
def test_srs_matches_exact_rationals(mode: str, acc: list[int], shift: int) -> None:
    want = [rounded(Fraction(a, 1 << shift), mode) for a in acc]
    assert srs(np.array(acc), shift, mode).tolist() == want


@given(acc=st.integers(-1000, 1000), shift=st.integers(0, 40))
def test_srs_negative_shift_multiplies(acc: int, shift: int) -> None:
    assert srs(acc, -shift).item() == acc * 2**shift


def test_srs_takes_one_shift_per_channel() -> None:
    got = srs(np.array([[6, 10], [6, 10]]), np.array([[2], [-1]]))
    np.testing.assert_array_equal(got, [[2, 2], [12, 20]])


@pytest.mark.parametrize(
    ("acc", "shift", "mode", "match"),
    [
        (1, 127, "floor", "-62..126"),
        (1, -63, "floor", "-62..126"),
        (2**62 + 1, 1, "floor", r"2\*\*62"),
        (-(2**62) - 1, 1, "floor", r"2\*\*62"),
        (2**40, -23, "floor", "left shift"),
        (1, 1, "half_up", "rounding"),
    ],
)
def test_srs_refuses_what_it_cannot_compute(acc: int, shift: int, mode: str, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        srs(acc, shift, mode)


def test_srs_left_shift_up_to_the_limit_passes() -> None:
    assert srs(2**40, -22).item() == 2**62
    assert srs(-(2**40), -22).item() == -(2**62)


@pytest.mark.parametrize("signed", [True, False])
@pytest.mark.parametrize("saturation", SATURATIONS)
@given(value=st.integers(-(2**40), 2**40), bits=st.integers(1, 32))
@example(value=-128, bits=8)
@example(value=127, bits=8)
@example(value=128, bits=8)
@example(value=256, bits=8)
def test_saturate_cast_matches_the_definition(signed: bool, saturation: str, value: int, bits: int) -> None:
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    if saturation == "none":
        want = (value - low) % 2**bits + low
    else:
        low += int(signed and saturation == "symmetric")
        want = min(max(value, low), high)
    assert saturate_cast(value, bits, signed=signed, saturation=saturation).item() == want


def test_symmetric_saturation_leaves_out_minus_128_and_unsigned_saturates_below_zero() -> None:
    assert saturate_cast([-200, 200], 8, saturation="symmetric").tolist() == [-127, 127]
    assert saturate_cast([-200, 300], 8, signed=False).tolist() == [0, 255]


@pytest.mark.parametrize(("bits", "saturation"), [(0, "none"), (65, "saturate"), (8, "clamp")])
def test_saturate_cast_refuses_unknown_modes_and_widths(bits: int, saturation: str) -> None:
    with pytest.raises(ValueError, match=r"bits|saturation"):
        saturate_cast(1, bits, saturation=saturation)


@given(value=st.integers(-(2**70), 2**70), bits=st.integers(1, 63))
@example(value=2**31, bits=32)
@example(value=127 * 127 + 2**31 - 1, bits=32)
def test_wrap_keeps_the_low_bits(value: int, bits: int) -> None:
    want = (value + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1)
    assert wrap(np.array([value], dtype=object), bits).tolist() == [want]
    if abs(value) < 2**62:
        assert wrap(value, bits).item() == want


def test_int32_accumulator_of_onnxruntime_wraps() -> None:
    assert wrap(127 * 127 + 2**31 - 1, 32).item() == -2147467520


@given(acc=st.integers(-(2**40), 2**40), shift=st.integers(0, 40), mode=st.sampled_from(ROUNDINGS))
@example(acc=3 << 14, shift=15, mode="conv_even")
def test_shift_round_saturate_rounds_before_it_saturates(acc: int, shift: int, mode: str) -> None:
    want = max(-128, min(127, rounded(Fraction(acc, 1 << shift), mode)))
    assert shift_round_saturate(acc, shift, 8, rounding=mode).item() == want


def test_ties_go_to_even_not_up() -> None:
    assert srs(np.array([1, 3, 5, -1, -3, -5]), 1).tolist() == [0, 2, 2, 0, -2, -2]
    assert requant_rational(np.array([1, 3, 5, -1, -3, -5]), Fraction(1, 2), qmin=-9, qmax=9).tolist() == [
        0,
        2,
        2,
        0,
        -2,
        -2,
    ]
    assert requant_scale_f32(np.array([1, 3, 5, -1, -3, -5]), np.float32(0.5), qmin=-9, qmax=9).tolist() == [
        0,
        2,
        2,
        0,
        -2,
        -2,
    ]
    assert quantize_linear(np.array([0.5, 1.5, 2.5, -0.5, -1.5]), 1.0, 0, qmin=-9, qmax=9).tolist() == [0, 2, 2, 0, -2]


RATIOS = st.one_of(
    st.fractions(min_value=Fraction(1, 10**6), max_value=4, max_denominator=10**6),
    st.tuples(st.integers(1, 2**48), st.integers(20, 80)).map(lambda p: Fraction(p[0], 2 ** p[1])),
    st.tuples(st.integers(1, 2**48), st.integers(1, 2**24), st.integers(0, 40)).map(
        lambda p: Fraction(p[0], p[1] << p[2])
    ),
    st.sampled_from([Fraction(1, 2), Fraction(1, 6), Fraction(3, 2), Fraction(1, 4), Fraction(7, 10)]),
)


def _code(value: Fraction, z: int, qmin: int, qmax: int, *, inside: bool) -> int:
    return min(max(round(value + z) if inside else round(value) + z, qmin), qmax)


@given(
    acc=st.lists(st.one_of(INT62, st.integers(-(2**20), 2**20)), min_size=1, max_size=6),
    ratio=RATIOS,
    offset=st.one_of(st.just(Fraction(0)), st.fractions(-300, 300, max_denominator=1000)),
    z=st.integers(-128, 127),
    inside=st.booleans(),
)
@example(acc=[3, 9, 15, -3], ratio=Fraction(1, 6), offset=Fraction(0), z=1, inside=True)
@example(acc=[2**62, -(2**62)], ratio=Fraction(1, 2**60), offset=Fraction(1, 2), z=0, inside=False)
@example(acc=[2**53 + 1], ratio=Fraction(1, 2), offset=Fraction(0), z=0, inside=False)
def test_requant_rational_is_exact(acc: list[int], ratio: Fraction, offset: Fraction, z: int, inside: bool) -> None:
    want = [_code(a * ratio + offset, z, -128, 127, inside=inside) for a in acc]
    options: dict[str, Any] = {"qmin": -128, "qmax": 127, "zero_point": z, "zero_point_inside": inside}
    assert requant_rational(np.array(acc), ratio, offset=offset, **options).tolist() == want
    big = np.array(acc, dtype=object)
    assert requant_rational(big, ratio, offset=offset, **options).tolist() == want


@given(st.data())
def test_requant_rational_at_ties_and_one_part_in_2_to_90_beside_them(data: st.DataObject) -> None:
    code, acc = data.draw(st.integers(-100, 100)), data.draw(st.integers(1, 2**31))
    tie = (code + Fraction(1, 2)) / acc
    for nudge in (0, 1, -1):
        ratio = tie * (1 + Fraction(nudge, 2**90))
        got = requant_rational(np.array([acc]), ratio, qmin=-128, qmax=127).item()
        assert got == round(acc * ratio)


def test_requant_rational_per_channel() -> None:
    acc = np.array([[1, 3], [1, 3]])
    got = requant_rational(acc, [Fraction(1, 2), Fraction(3, 2)], qmin=-9, qmax=9, zero_point=[0, 1], axis=0)
    assert got.tolist() == [[0, 2], [3, 5]]
    with pytest.raises(ValueError, match="expected 2, got 3"):
        requant_rational(acc, [Fraction(1)] * 3, qmin=-9, qmax=9, axis=0)


def test_zero_point_inside_and_outside_differ_on_ties_for_odd_points() -> None:
    inside = requant_rational(np.array([1]), Fraction(1, 2), qmin=-9, qmax=9, zero_point=1, zero_point_inside=True)
    outside = requant_rational(np.array([1]), Fraction(1, 2), qmin=-9, qmax=9, zero_point=1)
    assert (inside.item(), outside.item()) == (2, 1)


@given(
    acc=st.lists(st.integers(-(2**33), 2**33), min_size=1, max_size=6),
    multiplier=st.floats(2.0**-20, 1.0, width=32),
    z=st.integers(-128, 127),
)
@example(acc=[2**24 + 1, 2**31, -(2**31) - 1], multiplier=2.0**-17, z=3)
def test_requant_scale_f32_matches_the_kernel_formula(acc: list[int], multiplier: float, z: int) -> None:
    want = []
    for a in acc:
        value = np.float32((a + 2**31) % 2**32 - 2**31) * np.float32(multiplier)
        want.append(round(min(max(float(value), -128 - z), 127 - z)) + z)
    got = requant_scale_f32(np.array(acc), np.float32(multiplier), qmin=-128, qmax=127, zero_point=z)
    assert got.tolist() == want


@pytest.mark.parametrize(("ratio", "want"), [(Fraction(1), (2**30, 30)), (Fraction(1, 3), (1431655765, 32))])
def test_multiplier_shift_of_known_ratios(ratio: Fraction, want: tuple[int, int]) -> None:
    assert multiplier_shift_of(ratio) == want


@given(ratio=st.one_of(RATIOS, st.fractions(1, 10**12)), bits=st.integers(2, 62))
@example(ratio=Fraction(2**31 - 1, 2**31), bits=15)
@example(ratio=1 - Fraction(1, 2**40), bits=31)
def test_multiplier_shift_of_is_the_nearest_in_range(ratio: Fraction, bits: int) -> None:
    multiplier, shift = multiplier_shift_of(ratio, bits)
    assert 2 ** (bits - 1) <= multiplier < 2**bits
    step = Fraction(2) ** -shift
    assert abs(multiplier * step - ratio) <= step / 2


def test_multiplier_shift_of_refuses_zero_and_less() -> None:
    with pytest.raises(ValueError, match="positive"):
        multiplier_shift_of(Fraction(0))


@pytest.mark.parametrize(
    ("scale", "want"),
    [(1.0, 0), (0.5, -1), (2.0**-149, -149), (2.0**127, 127), (3.0, None), (0.1, None), (0.0, None), (-1.0, None)],
)
def test_exponent_of(scale: float, want: int | None) -> None:
    assert exponent_of(scale) == want


def test_exponent_of_infinity_and_nan_is_none() -> None:
    assert exponent_of(math.inf) is None
    assert exponent_of(math.nan) is None
    assert exponent_of(np.nextafter(0.5, 1.0)) is None


FLOATS = st.floats(width=32, allow_nan=False, allow_infinity=False, min_value=-(2.0**60), max_value=2.0**60)


@given(a=FLOATS, b=FLOATS, c=FLOATS)
@example(a=1 + 2.0**-23, b=1 + 2.0**-23, c=-1.0)
@example(a=1 + 2.0**-12, b=1 + 2.0**-12, c=2.0**-80)
@example(a=4097.0, b=4097.0, c=2.0**-126)
@example(a=0.0, b=1.0, c=0.0)
def test_fma32_rounds_once(a: float, b: float, c: float) -> None:
    want = float32_of(Fraction(a) * Fraction(b) + Fraction(c))
    got = fma32(a, b, c)
    assert got.dtype == np.float32
    assert float(got) == float(want)


def test_fma32_differs_from_a_product_and_a_sum() -> None:
    a = np.float32(1 + 2.0**-12)
    assert float(fma32(a, a, np.float32(-1))) != float(a * a - np.float32(1))


def test_fma32_passes_infinities_and_nans_on() -> None:
    assert np.isinf(fma32(np.inf, 1.0, 1.0))
    assert np.isnan(fma32(np.inf, 0.0, 1.0))
    np.testing.assert_array_equal(fma32([1.0, 2.0], 3.0, [1.0, 1.0]), np.array([4, 7], np.float32))


@given(
    st.one_of(
        st.fractions(), st.fractions(-1, 1).map(lambda f: f / 2**140), st.integers(-(2**130), 2**130).map(Fraction)
    )
)
@example(Fraction(2**24 + 1))
@example(Fraction(2**24 + 3))
@example(1 + Fraction(1, 2**24) + Fraction(1, 2**80))
@example(Fraction(1, 2**150))
@example(Fraction(3, 2**150))
@example(Fraction(1, 2**150) + Fraction(1, 2**190))
@example(Fraction(0))
def test_to_float32_is_the_nearest(value: Fraction) -> None:
    got = to_float32(value)
    if abs(value) >= 2**128 - 2**103:
        assert got == math.copysign(math.inf, value)
    else:
        assert float(got) == float(float32_of(value))


SPECIALS: Sequence[tuple[float, int]] = (
    (math.nan, -128),
    (math.inf, 127),
    (-math.inf, -128),
    (3.4e38, 127),
    (-3.4e38, -128),
    (-0.0, 5),
)


@pytest.mark.parametrize(("value", "want"), SPECIALS)
def test_quantize_linear_of_special_values(value: float, want: int) -> None:
    for count in (1, 40):  # vector body and tail
        got = quantize_linear(np.full(count, value, np.float32), np.float32(2.0**-30), 5, qmin=-128, qmax=127)
        assert got.tolist() == [want] * count


@given(
    x=st.floats(-1000, 1000, width=32),
    scale=st.floats(2.0**-8, 8, width=32),
    z=st.integers(0, 255),
)
@example(x=0.25, scale=0.1, z=3)
def test_quantize_linear_divides_in_float32_and_adds_the_zero_point_last(x: float, scale: float, z: int) -> None:
    want = min(max(round(float(np.float32(x) / np.float32(scale))) + z, 0), 255)
    assert quantize_linear(x, scale, z, qmin=0, qmax=255).item() == want


def test_quantize_linear_along_an_axis() -> None:
    got = quantize_linear(np.ones((2, 3)), [1.0, 0.5, 0.25], [0, 1, 2], qmin=-128, qmax=127, axis=1)
    assert got.tolist() == [[1, 3, 6], [1, 3, 6]]


@given(q=st.integers(-(2**31), 2**31 - 1), scale=st.floats(2.0**-30, 1.0, width=32), z=st.sampled_from([0, 128, -3]))
@example(q=2**24 + 1, scale=1.0, z=0)
def test_dequantize_linear_rounds_the_code_then_the_product(q: int, scale: float, z: int) -> None:
    got = dequantize_linear(np.array([q]), np.float32(scale), z)
    assert got.dtype == np.float32
    assert float(got[0]) == float(np.float32(q - z) * np.float32(scale))


def test_dequantize_linear_along_an_axis() -> None:
    got = dequantize_linear(np.array([[1, 2], [3, 4]]), [1.0, 2.0], [1, 0], axis=0)
    np.testing.assert_array_equal(got, np.array([[0, 1], [6, 8]], np.float32))


@pytest.mark.parametrize(
    ("bits", "signed", "symmetric", "want"),
    [
        (8, True, False, (-128, 127)),
        (8, True, True, (-127, 127)),
        (8, False, True, (0, 255)),
        (1, True, False, (-1, 0)),
    ],
)
def test_integer_range(bits: int, signed: bool, symmetric: bool, want: tuple[int, int]) -> None:
    assert integer_range(bits, signed=signed, symmetric=symmetric) == want
