from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manifest.model import Requantization
from manifest.onnx_import import requantize
from manifest.onnx_import.quant import per_tensor
from manifest.onnx_import.requantize import (
    ALIGN_ERROR,
    MAX_ENUMERATED,
    Output,
    Sums,
    aligned,
    dyadic,
    enumerated,
    multiplier_shift,
    per_channel,
    round_half_even,
    search,
    shift_of,
)

RATIOS = st.fractions(min_value=Fraction(1, 10**9), max_value=10**6)


def output(scale: float = 1.0, zero: int = 0, low: int = -128, high: int = 127) -> Output:
    return Output(quant=per_tensor(scale, zero), dtype="int8", qmin=low, qmax=high)


def srs(value: int, multiplier: int, shift: int) -> int:
    return round(Fraction(value * multiplier) / Fraction(2) ** shift)


@given(ratio=RATIOS)
def test_the_multiplier_is_normalised_and_nearest(ratio: Fraction) -> None:
    multiplier, shift = multiplier_shift(ratio)
    assert 1 << 30 <= multiplier < 1 << 31
    assert abs(Fraction(multiplier) / Fraction(2) ** shift - ratio) <= ratio / 2**30


@pytest.mark.parametrize(
    ("ratio", "expected"),
    [
        (Fraction(1), (1 << 30, 30)),
        (Fraction(1, 3), (1431655765, 32)),
        (Fraction(2**31 - 1), (2**31 - 1, 0)),
        (Fraction(2**32 - 1), (1 << 30, -2)),  # rounds up to 2**32
        (Fraction(3, 2), (3 << 29, 30)),
    ],
)
def test_multipliers_by_hand(ratio: Fraction, expected: tuple[int, int]) -> None:
    assert multiplier_shift(ratio) == expected


@pytest.mark.parametrize(
    ("ratio", "expected"),
    [
        (Fraction(1), (1, 0)),
        (Fraction(21, 1024), (21, 10)),
        (Fraction(8), (1, -3)),
        (Fraction(12), (3, -2)),
        (Fraction(1, 3), None),
        (Fraction(5, 48), None),
    ],
)
def test_dyadic_ratios(ratio: Fraction, expected: tuple[int, int] | None) -> None:
    assert dyadic(ratio) == expected
    if expected is not None:
        assert Fraction(expected[0]) / Fraction(2) ** expected[1] == ratio


@pytest.mark.parametrize(("ratio", "expected"), [(Fraction(1, 256), 8), (Fraction(4), -2), (Fraction(3, 4), None)])
def test_shift_of_powers_of_two_only(ratio: Fraction, expected: int | None) -> None:
    assert shift_of(ratio) == expected


@given(values=st.lists(st.integers(-(2**20), 2**20), min_size=1, max_size=20), ratio=RATIOS)
def test_rounding_equals_exact_rationals(values: list[int], ratio: Fraction) -> None:
    got = round_half_even(np.array(values, np.int64), ratio)
    assert got is not None
    assert got.tolist() == [round(v * ratio) for v in values]


def test_ties_go_to_even_and_not_up() -> None:
    got = round_half_even(np.array([-3, -1, 1, 3, 5], np.int64), Fraction(1, 2))
    assert got is not None
    assert got.tolist() == [-2, 0, 0, 2, 2]


def test_powers_of_two_per_channel_become_shifts() -> None:
    made = per_channel([Fraction(1, 256), Fraction(1, 16), Fraction(2)], output(), "srs")
    assert (made.target, made.multipliers, made.shifts) == ("srs", (1, 1, 1), (8, 4, -1))


def test_one_channel_beside_a_power_of_two_makes_all_multipliers() -> None:
    made = per_channel([Fraction(1, 256), Fraction(1, 257)], output(), "rational")
    assert made.target == "multiplier_shift"
    assert made.multipliers == (1 << 30, multiplier_shift(Fraction(1, 257))[0])
    assert made.shifts == (38, multiplier_shift(Fraction(1, 257))[1])


def test_add_aligns_powers_of_two_on_the_finer_operand() -> None:
    made = aligned([Fraction(1, 2**15), Fraction(1)], output(), "srs")
    assert (made.target, made.multipliers, made.shifts) == ("srs", (1, 1 << 15), (15,))


def test_add_that_only_shifts_left_needs_no_shift() -> None:
    made = aligned([Fraction(2), Fraction(8)], output(), "srs")
    assert (made.multipliers, made.shifts) == ((2, 8), (0,))


def test_add_of_other_scales_shares_one_shift() -> None:
    ratios = [Fraction(5, 6), Fraction(1, 2)]
    made = aligned(ratios, output(), "rational")
    assert made.target == "multiplier_shift"
    assert len(made.shifts) == 1
    assert 1 << 30 <= made.multipliers[0] < 1 << 31
    for ratio, multiplier in zip(ratios, made.multipliers, strict=True):
        assert abs(Fraction(multiplier, 1 << made.shifts[0]) - ratio) <= Fraction(1, 1 << (made.shifts[0] + 1))


def error(made: Requantization, ratios: list[Fraction], sizes: list[int]) -> Fraction:
    """What the rounded multipliers add to the largest sum, in output codes."""
    one = Fraction(1, 1 << made.shifts[0])
    return sum((abs(m * one - r) * n for m, r, n in zip(made.multipliers, ratios, sizes, strict=True)), Fraction(0))


FINE = [Fraction(1, 3 * 2**30), Fraction(2, 3)]


@pytest.mark.parametrize("size", [1 << 20, 1 << 30, 1 << 40])
def test_a_fine_unit_gets_the_bits_that_its_size_asks_for(size: int) -> None:
    made = aligned(FINE, output(), "rational", sizes=[size, 1 << 8])
    assert error(made, FINE, [size, 1 << 8]) <= ALIGN_ERROR
    assert sum(m * n for m, n in zip(made.multipliers, [size, 1 << 8], strict=True)) <= 1 << 62


def test_one_bit_less_would_not_do() -> None:
    sizes = [1 << 30, 1 << 8]
    made = aligned(FINE, output(), "rational", sizes=sizes)
    assert made.shifts[0] > aligned(FINE, output(), "rational").shifts[0]
    coarser = replace(made, shifts=(made.shifts[0] - 1,))
    coarser = replace(coarser, multipliers=tuple(round(r * (1 << coarser.shifts[0])) for r in FINE))
    assert error(coarser, FINE, sizes) > ALIGN_ERROR


@pytest.mark.parametrize("sizes", [None, [1 << 8, 1 << 8], [1 << 16, 1 << 16]])
def test_codes_need_no_more_than_31_bits(sizes: list[int] | None) -> None:
    assert max(aligned(FINE, output(), "rational", sizes=sizes).multipliers).bit_length() == 31


def test_where_62_bits_do_not_suffice_the_best_within_them_is_taken() -> None:
    sizes = [1 << 56, 1 << 16]
    made = aligned(FINE, output(), "rational", sizes=sizes)
    coarse = aligned(FINE, output(), "rational")
    assert ALIGN_ERROR < error(made, FINE, sizes) < error(coarse, FINE, sizes)
    assert sum(m * n for m, n in zip(made.multipliers, sizes, strict=True)) <= 1 << 62


def sums_of(elements: int, *, low: int = -128, high: int = 127, over: Fraction = Fraction(1)) -> Sums:
    return Sums(low=low * elements, high=high * elements, ratio=over / elements)


@pytest.mark.parametrize("elements", [3, 9, 49])
def test_averages_of_odd_size_have_a_multiplier(elements: int) -> None:
    sums = sums_of(elements)
    found = search(sums, output())
    assert found is not None
    multiplier, shift, proof = found
    assert str(sums.count) in proof
    for value in range(sums.low, sums.high + 1):
        assert srs(value, multiplier, shift) == round(Fraction(value, elements)), value


@pytest.mark.parametrize("elements", [3, 9, 49])
def test_the_multiplier_found_is_the_smallest(elements: int) -> None:
    found = search(sums_of(elements), output())
    assert found is not None
    wrong = [
        (multiplier, shift)
        for shift in range(found[1] + 1)
        for multiplier in range(max(1, (1 << shift) // elements - 1), (1 << shift) // elements + 3)
        if (shift, multiplier) < (found[1], found[0])
        and all(srs(v, multiplier, shift) == round(Fraction(v, elements)) for v in (-elements * 128, elements * 127, 1))
        and all(
            srs(v, multiplier, shift) == round(Fraction(v, elements)) for v in range(-elements * 128, elements * 127)
        )
    ]
    assert wrong == []


@pytest.mark.parametrize("elements", [6, 12, 36])
def test_ties_on_both_sides_have_no_multiplier(elements: int) -> None:
    """18/36 = 0.5 goes down to 0 and 54/36 = 1.5 up to 2: no approximation of 1/36 does both."""
    assert search(sums_of(elements), output()) is None
    made = enumerated(sums_of(elements), output(), "rational")
    assert made.proof == ""
    assert (made.multipliers[0], made.shifts[0]) == multiplier_shift(Fraction(1, elements))


def test_saturation_may_hide_the_ties() -> None:
    """With codes 0 and 1 alone, 54/36 = 1.5 is saturated and only 0.5 is a tie."""
    assert search(sums_of(36, low=0), output(low=0, high=1)) is not None


def test_an_exact_ratio_is_taken_as_it_is() -> None:
    made = enumerated(sums_of(49, over=Fraction(1029, 1024)), output(), "srs")
    assert (made.target, made.multipliers, made.shifts) == ("srs", (21,), (10,))
    assert made.proof == "exact: the ratio is 21 / 2**10"


def test_too_many_sums_are_not_enumerated() -> None:
    most = Sums(low=0, high=MAX_ENUMERATED - 1, ratio=Fraction(1, 3))
    assert search(most, output(low=-128, high=127)) is not None
    assert search(Sums(low=0, high=MAX_ENUMERATED, ratio=Fraction(1, 3)), output()) is None


def test_weighted_windows_are_enumerated_on_their_common_unit() -> None:
    """Windows of 4 and 6 elements: sums times 3 and times 2, divided by 12."""
    sums = Sums(low=-12 * 4, high=12 * 3, ratio=Fraction(1, 12), steps=(2, 3))
    values = sums.values().tolist()
    assert values == sorted({3 * s for s in range(-16, 13)} | {2 * s for s in range(-24, 19)})


def test_another_reference_replaces_the_rational_one() -> None:
    """A reference that rounds halves up gets a multiplier just above 1/2, which the exact one does not have."""
    sums = sums_of(2, low=0)
    found = search(sums, output(), lambda values, _: (values + 1) // 2)
    assert found is not None
    assert Fraction(found[0], 1 << found[1]) > Fraction(1, 2)
    assert all(srs(v, *found[:2]) == (v + 1) // 2 for v in range(sums.low, sums.high + 1))
    assert search(sums, output()) != found


def test_a_reference_that_is_no_function_of_the_sum_is_not_proved() -> None:
    made = enumerated(sums_of(9), output(), "scale_f32", expected=None, inside=True)
    assert made.proof == ""
    assert made.zero_point_inside


STEPS = st.lists(st.integers(1, 40), min_size=1, max_size=12, unique=True).map(lambda s: tuple(sorted(s)))


@given(low=st.integers(-500, 0), high=st.integers(0, 500), steps=STEPS)
def test_different_sums_are_counted_without_listing_them(low: int, high: int, steps: tuple[int, ...]) -> None:
    sums = Sums(low=low, high=high, ratio=Fraction(1), steps=steps)
    assert sums.distinct == sums.values().size == len({v for s in steps for v in range(-(-low // s) * s, high + 1, s)})


def searched_in_all(sums: Sums, target: Output) -> tuple[int, int] | None:
    """The search as it is defined: every sum is looked at."""
    values = sums.values().tolist()
    low, high = target.qmin - target.zero_point, target.qmax - target.zero_point
    wanted = [max(low, min(high, round(v * sums.ratio))) for v in values]
    for shift in range(47):
        floor = sums.ratio * (1 << shift) // 1
        if floor >= 1 << 31:
            return None
        for multiplier in (floor, floor + 1):
            if multiplier and [max(low, min(high, srs(v, multiplier, shift))) for v in values] == wanted:
                return int(multiplier), shift
    return None


@settings(max_examples=60, deadline=None)
@given(
    reach=st.tuples(st.integers(-60, 0), st.integers(1, 60)),
    over=st.sampled_from([1, 2, 3, 6, 7, 9, 36, 49]),
    scale=st.sampled_from([Fraction(1), Fraction(1, 2), Fraction(float(np.float32(1.287))), Fraction(5, 4)]),
    steps=st.sampled_from([(1,), (1, 2), (2, 3), (4, 6, 9)]),
    zero=st.integers(-20, 20),
)
def test_the_search_beside_ties_finds_what_a_search_in_all_sums_finds(
    reach: tuple[int, int], over: int, scale: Fraction, steps: tuple[int, ...], zero: int
) -> None:
    sums = Sums(low=reach[0] * over, high=reach[1] * over, ratio=scale / over, steps=steps)
    target = output(zero=zero)
    found = search(sums, target)
    assert (None if found is None else found[:2]) == searched_in_all(sums, target)
    if found is not None:
        assert f"on all {sums.values().size} sums" in found[2]


def test_sixteen_bits_are_searched_beside_ties_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """65,536 codes have 65,535 ties; the sums of 63 elements are 4 million."""
    looked: list[int] = []
    known = requantize.round_half_even

    def counting(values: np.ndarray, ratio: Fraction) -> np.ndarray | None:
        looked.append(values.size)
        return known(values, ratio)

    monkeypatch.setattr(requantize, "round_half_even", counting)
    target = Output(quant=per_tensor(1.0, 30000), dtype="uint16", qmin=0, qmax=65535)
    sums = Sums(low=-30000 * 49, high=35535 * 49, ratio=Fraction(1, 49))
    found = search(sums, target)
    assert found is not None
    assert found[:2] == (1369569, 26)
    assert f"on all {65535 * 49 + 1} sums" in found[2]
    assert looked
    assert max(looked) <= 3 * 65535 + 2
