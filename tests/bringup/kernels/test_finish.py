"""Packed multipliers, shifts and digits: same results as the planned ones, or a refusal."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from bringup.kernels import finish
from bringup.kernels import gemm as emitter
from bringup.kernels.elementwise import ROUNDINGS
from bringup.kernels.model import Row
from manifest.errors import RefusedError
from oracle.fixedpoint import saturate_cast, srs
from tests.bringup.kernels.draws import Finish, Vector, gemm

Array = NDArray[Any]
ROW = gemm(Vector(), Finish(), 1).row
ENDS = np.array([-(1 << 31), -(1 << 31) + 1, -1, 0, 1, (1 << 31) - 1], dtype=object)


def codes(values: Array, multiplier: int, shift: int, rounding: str, saturation: str) -> Array:
    """8-bit codes by definition; products and shifts of any size."""
    products = values * multiplier << max(0, -shift)
    beyond = max(0, shift - 60)
    # Below the 60th bit only whether there is a rest counts.
    kept = np.array([(p >> beyond) | int(p & ((1 << beyond) - 1) != 0) for p in products], dtype=object)
    limit = (1 << 61) - 1
    if saturation == "none":
        kept = np.array([(int(k) + limit + 1) % (2 * limit + 2) - limit - 1 for k in kept], dtype=object)
    kept = np.clip(kept, -limit, limit)
    return saturate_cast(srs(kept, min(max(shift, 0), 60), rounding), 8, saturation=saturation)


@given(
    multiplier=st.one_of(
        st.integers(1 << 30, (1 << 31) - 1), st.integers(-64, 64), st.integers(0, 40).map(lambda k: 1 << k)
    ),
    shift=st.one_of(st.integers(-40, 59), st.integers(60, 120)),
    values=st.lists(st.integers(-(1 << 31), (1 << 31) - 1), min_size=1, max_size=8),
    rounding=st.sampled_from(sorted(ROUNDINGS)),
    saturation=st.sampled_from(["none", "saturate", "symmetric"]),
)
def test_a_normal_pair_gives_the_same_codes(
    multiplier: int, shift: int, values: list[int], rounding: str, saturation: str
) -> None:
    row = replace(ROW, rounding=rounding, saturation=saturation)
    try:
        pair = finish.normal_pair(row, multiplier, shift)
    except RefusedError:
        assume(False)
    assert 0 <= pair[1] <= 59
    assert abs(pair[0]) < 1 << 31
    given_values = np.concatenate([np.array(values, dtype=object), ENDS])
    got = codes(given_values, *pair, rounding, saturation)
    np.testing.assert_array_equal(got, codes(given_values, multiplier, shift, rounding, saturation))


@pytest.mark.parametrize("shift", [60, 61, 62])
def test_what_no_unit_shifts_is_refused(shift: int) -> None:
    with pytest.raises(RefusedError, match=f"shift {shift}"):
        finish.normal_pair(ROW, (1 << 30) + 1, shift)
    assert finish.normal_pair(ROW, 1 << 30, shift) == (1 << (30 - (shift - 59)), 59)


def test_a_zero_point_inside_has_to_fit_the_products() -> None:
    attributes = {**ROW.attributes, "zero_point_inside": 1, "y_zero_point": -128}
    row = replace(ROW, attributes=attributes)
    assert finish.normal_pair(row, (1 << 30) + 1, 54) == ((1 << 30) + 1, 54)
    with pytest.raises(RefusedError, match="shift of 55"):
        finish.normal_pair(row, (1 << 30) + 1, 55)


def test_the_sign_is_left_of_a_far_shift() -> None:
    assert finish.normal_pair(ROW, (1 << 30) + 1, 63) == (1, 33)
    assert finish.normal_pair(ROW, -(1 << 30) - 1, 99) == (-1, 33)


def test_an_unknown_saturation_refuses_what_only_saturates() -> None:
    assert finish.normal_pair(ROW, 3, -40) == ((1 << 31) - 1, 0)
    with pytest.raises(RefusedError, match="not known"):
        finish.normal_pair(replace(ROW, saturation=""), 3, -40)


@given(st.lists(st.integers(-(1 << 31), (1 << 31) - 1), min_size=8, max_size=8), st.sampled_from(["int8", "uint8"]))
def test_digits_hold_the_number(values: list[int], dtype: str) -> None:
    tile = finish.tiles(np.array(values), dtype, np.arange(8)).reshape(8, 8).astype(np.int64)
    found = sum(tile[digit] << (6 * digit) for digit in range(6))
    np.testing.assert_array_equal(np.asarray(found).astype(np.uint32), np.array(values).astype(np.uint32))
    np.testing.assert_array_equal(tile[6], np.arange(8))
    assert not tile[7].any()
    assert np.abs(tile).max() < 64


def test_packed_lanes_keep_channels_apart() -> None:
    one = gemm(Vector(outputs=11), Finish(shift=(30, 40)), 4)
    packed = finish.pack_lanes(one.row, one.arrays)
    assert {n: a.shape for n, a in packed.items()} == {"bias": (16,), "requant": (2, 2, 8)}
    flat = packed["requant"].swapaxes(0, 1).reshape(2, -1)
    np.testing.assert_array_equal(flat[1][:11], one.arrays["requant"][1])
    np.testing.assert_array_equal(flat[:, 11:], np.repeat(flat[:, 10:11], 5, 1))
    np.testing.assert_array_equal(packed["bias"], [*one.arrays["bias"], *[0] * 5])


def test_one_pair_for_all_stays_one_pair() -> None:
    one = gemm(Vector(outputs=11), Finish(uniform=True), 4)
    assert finish.pack_lanes(one.row, one.arrays)["requant"].shape == (2, 1)
    assert finish.pack_tiles(one.row, one.arrays, "int8")["requant"].shape == (2, 1)


def test_modes_are_set_only_where_the_kernel_says_so() -> None:
    text = emitter.source(ROW).text
    assert "aie::set_rounding(aie::rounding_mode::conv_even);" in text
    assert "aie::set_saturation(aie::saturation_mode::saturate);" in text
    bare: Row = replace(ROW, rounding="", saturation="")
    assert "set_" not in emitter.source(bare).text


@pytest.mark.parametrize(
    ("dtype", "zero_point", "expected"),
    [
        ("int8", 127, False),
        ("uint8", 255, False),
        ("int16", 0, False),
        ("int16", -1, True),
        ("uint16", 32768, False),
        ("uint16", 32767, True),
    ],
)
def test_codes_are_split_where_16_bits_do_not_hold_them(dtype: str, zero_point: int, expected: bool) -> None:
    assert finish.splits(dtype, zero_point) is expected
