"""Rounding, saturation and width of accumulators, against exact rationals."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from oracle.fixedpoint import ROUNDINGS
from presim.kernels.finish import biased, expect, finished, magnitude, product, scaled, split, wrapped
from tests.oracle.naive_base import rounded
from tests.oracle.naive_base import wrapped as low_bits
from tests.presim.kernels.driver import Tile

RANGES = {"int8": (-128, 127), "uint8": (0, 255), "int16": (-32768, 32767)}
MULTIPLIERS = st.one_of(st.just(1), st.integers(1, 2**31 - 1), st.integers(0, 60).map(lambda k: 1 << k))


def tile(**changes: Any) -> Tile:
    attributes: dict[str, Any] = {
        "finish": "round",
        "out_dtype": "int8",
        "out_channels": 1,
        "y_zero_point": 0,
        "qmin": -128,
        "qmax": 127,
        "zero_point_inside": 0,
        "acc_bits": 32,
        "acc_shift": (0,),
    }
    modes = {k: changes.pop(k) for k in ("rounding", "saturation") if k in changes}
    return Tile(attributes={**attributes, **changes}, **modes)


@given(
    value=st.integers(-(2**63), 2**63 - 1),
    multiplier=MULTIPLIERS,
    shift=st.integers(-70, 130),
    rounding=st.sampled_from(ROUNDINGS),
    inside=st.integers(-128, 255),
)
@example(value=3, multiplier=1, shift=1, rounding="conv_even", inside=0)
@example(value=0, multiplier=1, shift=-1, rounding="conv_even", inside=2)
@example(value=1 << 62, multiplier=1, shift=63, rounding="conv_even", inside=0)
@example(value=-1, multiplier=1, shift=100, rounding="floor", inside=0)
def test_scaled_is_exact_for_any_size(value: int, multiplier: int, shift: int, rounding: str, inside: int) -> None:
    got = scaled(np.array([value]), np.array([multiplier]), np.array([shift]), rounding, inside)
    assert int(got[0]) == rounded(Fraction(value * multiplier) * Fraction(2) ** -shift + inside, rounding)


@given(
    value=st.integers(-(2**31), 2**31 - 1),
    shift=st.integers(-4, 30),
    rounding=st.sampled_from(ROUNDINGS),
    saturation=st.sampled_from(["none", "saturate", "symmetric"]),
    data=st.data(),
)
def test_a_code_follows_the_modes_of_the_tile(
    value: int, shift: int, rounding: str, saturation: str, data: st.DataObject
) -> None:
    dtype = data.draw(st.sampled_from(sorted(RANGES)))
    low, high = RANGES[dtype]
    zero_point = data.draw(st.integers(max(low, -128), 127))
    qmin = data.draw(st.integers(low, high))
    qmax = data.draw(st.integers(qmin, high))
    context = tile(
        out_dtype=dtype, y_zero_point=zero_point, qmin=qmin, qmax=qmax, rounding=rounding, saturation=saturation
    )
    code = rounded(value * Fraction(2) ** -shift, rounding) + zero_point
    if saturation == "none":
        code = (code - low) % (high - low + 1) + low
    elif saturation == "symmetric" and low < 0:
        code = min(max(code, -high), high)
    got = finished(context, np.array([value]), np.array([1]), np.array([shift]))
    assert got.dtype == dtype
    assert int(got[0]) == min(max(code, qmin), qmax)


def test_a_tile_in_its_default_modes_gives_other_codes() -> None:
    values = np.array([300 << 4, 24, -8])
    one, shift = np.array([1]), np.array([4])
    np.testing.assert_array_equal(finished(tile(), values, one, shift), [127, 2, 0])
    forgot = tile(rounding="floor", saturation="none")
    np.testing.assert_array_equal(finished(forgot, values, one, shift), [300 - 256, 1, -1])


@pytest.mark.parametrize(("kind", "expected"), [("clamp", [-100, 7, 100]), ("exact", [-300, 7, 300])])
def test_codes_that_pass_are_clamped_and_exact_values_are_not(kind: str, expected: list[int]) -> None:
    context = tile(finish=kind, out_dtype="int16", qmin=-100, qmax=100)
    np.testing.assert_array_equal(finished(context, np.array([-300, 7, 300])), expected)


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=4), st.sampled_from([32, 64]))
def test_accumulators_keep_their_low_bits(values: list[int], bits: int) -> None:
    got = wrapped(np.array(values, np.int64), bits)
    assert got.tolist() == [low_bits(v, bits) for v in values]


@given(
    st.integers(-(2**31), 2**31 - 1), st.integers(-(2**31), 2**31 - 1), st.integers(0, 20), st.sampled_from([32, 64])
)
def test_the_bias_is_added_behind_the_promotion_and_wraps(acc: int, bias: int, shift: int, bits: int) -> None:
    context = tile(acc_bits=bits, acc_shift=(0, shift))
    got = biased(context, np.array([[5], [acc]]), np.array([1, bias]), slice(0, 2), (-1, 1))
    assert got.tolist() == [[6], [low_bits((acc << shift) + bias, bits)]]


def test_promotion_and_bias_of_streamed_channels_are_those_behind_the_offset() -> None:
    context = tile(acc_shift=(0, 1, 2))
    got = biased(context, np.array([[3], [3]]), np.array([10, 20, 30]), slice(1, 3), (-1, 1))
    assert got.tolist() == [[26], [42]]


@given(st.data())
def test_products_are_exact_whatever_their_size(data: st.DataObject) -> None:
    most = data.draw(st.sampled_from([127, 2**16, 2**30]))
    terms = data.draw(st.integers(1, 6))
    numbers = st.integers(-most, most)
    left = data.draw(st.lists(numbers, min_size=terms, max_size=terms))
    right = data.draw(st.lists(numbers, min_size=terms, max_size=terms))
    got = product(np.array([left]), np.array(right)[:, np.newaxis], terms=terms)
    assert int(got[0, 0]) == low_bits(sum(a * b for a, b in zip(left, right, strict=True)), 64)


def test_magnitude_knows_the_lowest_integer() -> None:
    assert magnitude(np.array([np.iinfo(np.int64).min])) == 2**63
    assert magnitude(np.zeros(0, np.int64)) == 0


def test_arguments_are_counted() -> None:
    assert split(["x", "w", "y"], 1) == (["x"], ["w"], ["y"])
    assert split(["w", "y"], 1) == ([], ["w"], ["y"])
    with pytest.raises(ValueError, match="expected at least 3 arguments, got 2"):
        split(["w", "y"], 2)
    expect("things", 2, 2)
    with pytest.raises(ValueError, match="things: expected 2, got 3"):
        expect("things", 3, 2)
