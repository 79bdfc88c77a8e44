from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.bringup.aie_api_host import host_api as api
from tests.bringup.aie_api_host.host_api import Array, Probe, of_type, round_exact, saturate, srs_exact

# Rounding of v / 4, from the definitions of the modes (UG1603), ties at v = -14, -10, -6, -2, 2, 6, 10, 14.
VALUES = (-14, -10, -7, -6, -5, -2, -1, 1, 2, 3, 5, 6, 7, 10, 14)
GOLDEN = {
    api.FLOOR: (-4, -3, -2, -2, -2, -1, -1, 0, 0, 0, 1, 1, 1, 2, 3),
    api.CEIL: (-3, -2, -1, -1, -1, 0, 0, 1, 1, 1, 2, 2, 2, 3, 4),
    api.POS_INF: (-3, -2, -2, -1, -1, 0, 0, 0, 1, 1, 1, 2, 2, 3, 4),
    api.NEG_INF: (-4, -3, -2, -2, -1, -1, 0, 0, 0, 1, 1, 1, 2, 2, 3),
    api.SYM_INF: (-4, -3, -2, -2, -1, -1, 0, 0, 1, 1, 1, 2, 2, 3, 4),
    api.SYM_ZERO: (-3, -2, -2, -1, -1, 0, 0, 0, 0, 1, 1, 1, 2, 2, 3),
    api.EVEN: (-4, -2, -2, -2, -1, 0, 0, 0, 0, 1, 1, 2, 2, 2, 4),
    api.ODD: (-3, -3, -2, -1, -1, -1, 0, 0, 1, 1, 1, 1, 2, 3, 3),
    api.SYM_FLOOR: (-3, -2, -1, -1, -1, 0, 0, 0, 0, 0, 1, 1, 1, 2, 3),
    api.SYM_CEIL: (-4, -3, -2, -2, -2, -1, -1, 1, 1, 1, 2, 2, 2, 3, 4),
}


def srs(probe: Probe, lanes: list[int], shift: int, dtype: type, *, bits: int = 64, sign: int = -1) -> list[int]:
    values = np.resize(np.array(lanes, np.int64), api.LANES)
    out: Array = np.zeros(api.LANES, dtype)
    probe.call("probe_srs", api.TYPES.index(dtype), bits, sign, values, shift, out)
    return [int(v) for v in out[: len(lanes)]]


@pytest.mark.parametrize("mode", api.ROUNDINGS)
def test_golden_vectors(probe: Probe, mode: int) -> None:
    probe.modes(mode)
    assert tuple(srs(probe, list(VALUES), 2, np.int32, bits=32)) == GOLDEN[mode]
    assert tuple(round_exact(Fraction(v, 4), mode) for v in VALUES) == GOLDEN[mode]


def test_the_golden_vectors_tell_all_modes_apart() -> None:
    assert len(set(GOLDEN.values())) == len(api.ROUNDINGS) == len(GOLDEN)


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("dtype", api.TYPES)
@given(data=st.data())
@settings(max_examples=25)
def test_srs_matches_exact_rationals(probe_path: Path, bits: int, dtype: type, data: st.DataObject) -> None:
    probe = Probe(probe_path)
    limit = 1 << (bits - 1)
    around = st.integers(-limit, limit - 1) | st.integers(-300, 300) | st.sampled_from((-limit, limit - 1))
    shift = data.draw(st.integers(0, 59) | st.sampled_from((0, 1, 8, 31, 32, 59, -1)))
    lanes = data.draw(st.lists(around, min_size=16, max_size=16))
    rounding, saturation = data.draw(st.sampled_from(api.ROUNDINGS)), data.draw(st.sampled_from(api.SATURATIONS))
    probe.modes(rounding, saturation)
    info = np.iinfo(dtype)
    want = [srs_exact(v, shift, info.bits, bool(info.min < 0), (rounding, saturation)) for v in lanes]
    assert srs(probe, lanes, shift, dtype, bits=bits) == want


@given(
    value=st.integers(-(1 << 40), 1 << 40),
    shift=st.integers(1, 40),
    rounding=st.sampled_from(api.ROUNDINGS),
    offset=st.sampled_from((-1, 0, 1)),
)
@example(value=1, shift=1, rounding=api.EVEN, offset=0)
@example(value=-3, shift=4, rounding=api.ODD, offset=0)
def test_srs_beside_and_on_ties(probe_path: Path, value: int, shift: int, rounding: int, offset: int) -> None:
    probe = Probe(probe_path)
    probe.modes(rounding)
    lane = of_type((value << shift) + (1 << (shift - 1)) + offset, np.int64)
    want = srs_exact(lane, shift, 32, True, (rounding, api.NONE))
    assert srs(probe, [lane], shift, np.int32) == [want]


@pytest.mark.parametrize(
    ("dtype", "mode", "low", "high"),
    [
        (np.int8, api.SATURATE, -128, 127),
        (np.int8, api.SYMMETRIC, -127, 127),
        (np.uint8, api.SATURATE, 0, 255),
        (np.uint8, api.SYMMETRIC, 0, 255),
        (np.int16, api.SATURATE, -32768, 32767),
        (np.int16, api.SYMMETRIC, -32767, 32767),
        (np.int32, api.SYMMETRIC, -(2**31) + 1, 2**31 - 1),
    ],
)
def test_saturation_on_both_sides_of_the_limits(probe: Probe, dtype: type, mode: int, low: int, high: int) -> None:
    probe.modes(api.FLOOR, mode)
    assert srs(probe, [low - 1, low, low + 1, high - 1, high, high + 1], 0, dtype) == [
        low,
        low,
        low + 1,
        high - 1,
        high,
        high,
    ]


def test_without_saturation_the_low_bits_are_kept(probe: Probe) -> None:
    assert srs(probe, [128, 255, 256, -129], 0, np.int8, bits=32) == [-128, -1, 0, 127]
    assert srs(probe, [-1, 256, 511], 0, np.uint8, bits=32) == [255, 0, 255]


def test_rounding_comes_before_saturation(probe: Probe) -> None:
    probe.modes(api.POS_INF, api.SATURATE)
    assert srs(probe, [255, 254], 1, np.int8, bits=32) == [127, 127]
    probe.modes(api.POS_INF, api.NONE)
    assert srs(probe, [255], 1, np.int8, bits=32) == [-128]


def test_the_sign_of_the_result_can_be_chosen_at_run_time(probe: Probe) -> None:
    probe.modes(api.FLOOR, api.SATURATE)
    assert srs(probe, [200, -3], 0, np.int8, bits=32, sign=0) == [of_type(200, np.int8), 0]
    assert srs(probe, [200, -3], 0, np.uint8, bits=32, sign=1) == [127, of_type(-3, np.uint8)]


@pytest.mark.parametrize(("bits", "dtype"), list(product([32, 64], api.TYPES)))
@given(data=st.data())
@settings(max_examples=15)
def test_ups_matches_exact_integers(probe_path: Path, bits: int, dtype: type, data: st.DataObject) -> None:
    probe = Probe(probe_path)
    info = np.iinfo(dtype)
    lanes = data.draw(st.lists(st.integers(int(info.min), int(info.max)), min_size=16, max_size=16))
    shift, mode = data.draw(st.integers(0, 59)), data.draw(st.sampled_from(api.SATURATIONS))
    probe.modes(api.FLOOR, mode)
    out = np.zeros(16, np.int64)
    probe.call("probe_ups", api.TYPES.index(dtype), bits, np.array(lanes, dtype), shift, out)
    assert out.tolist() == [saturate(v << shift, bits, True, mode) for v in lanes]


def bf16_exact(value: float, mode: int) -> Fraction:
    """A finite float to 8 significant bits, exactly."""
    exact = Fraction(value)
    if exact == 0:
        return exact
    exponent = 0
    while abs(exact) >= Fraction(2) ** (exponent + 1):
        exponent += 1
    while abs(exact) < Fraction(2) ** exponent:
        exponent -= 1
    ulp = Fraction(2) ** (exponent - 7)
    return round_exact(exact / ulp, mode) * ulp


@given(
    values=st.lists(st.floats(2.0**-30, 2.0**30, width=32), min_size=16, max_size=16),
    negative=st.booleans(),
    rounding=st.sampled_from(api.ROUNDINGS),
)
@example(values=[1.00390625] * 8 + [1.01171875] * 8, negative=True, rounding=api.EVEN)  # ties
def test_bfloat16_in_every_rounding_mode(probe_path: Path, values: list[float], negative: bool, rounding: int) -> None:
    probe = Probe(probe_path)
    probe.modes(rounding)
    lanes = np.array(values, np.float32) * np.float32(-1 if negative else 1)
    out = np.zeros(16, np.uint16)
    probe.call("probe_bf16", lanes, out)
    got = (out.astype(np.uint32) << 16).view(np.float32)
    assert [Fraction(float(v)) for v in got] == [bf16_exact(float(v), rounding) for v in lanes]


def test_bfloat16_of_what_is_not_finite(probe: Probe) -> None:
    lanes = np.zeros(16, np.float32)
    lanes[:3] = np.inf, -np.inf, np.nan
    out = np.zeros(16, np.uint16)
    probe.call("probe_bf16", lanes, out)
    got = (out.astype(np.uint32) << 16).view(np.float32)
    assert got[0] == np.inf
    assert got[1] == -np.inf
    assert np.isnan(got[2])
