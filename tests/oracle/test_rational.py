"""Exact rounding of integer x rational + rational, also where float64 cannot decide."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracle.rational import AffineRounder, divide_half_even, exact_bits, is_dyadic


@given(st.lists(st.integers(-(2**60), 2**60), min_size=1, max_size=5), st.integers(1, 2**60))
def test_divide_half_even_matches_fractions(numerators: list[int], denominator: int) -> None:
    want = [round(Fraction(n, denominator)) for n in numerators]
    assert divide_half_even(np.array(numerators), denominator).tolist() == want
    assert divide_half_even(np.array(numerators, dtype=object), denominator).tolist() == want


@pytest.mark.parametrize(("numerator", "want"), [(1, 0), (3, 2), (5, 2), (-1, 0), (-3, -2), (-5, -2)])
def test_divide_half_even_at_ties(numerator: int, want: int) -> None:
    assert divide_half_even(np.array([numerator]), 2).tolist() == [want]


@pytest.mark.parametrize(("value", "want"), [(Fraction(3, 8), True), (Fraction(5), True), (Fraction(1, 6), False)])
def test_is_dyadic(value: Fraction, want: bool) -> None:
    assert is_dyadic(value) is want


@pytest.mark.parametrize(
    ("ratio", "offset", "bound", "want"),
    [
        (Fraction(1, 4), Fraction(0), 2**24, 24),
        (Fraction(1, 4), Fraction(0), 2**24 + 1, 25),
        (Fraction(3, 4), Fraction(0), 2**22, 24),
        (Fraction(1, 4), Fraction(1, 8), 2**22, 24),
        (Fraction(1, 3), Fraction(0), 2, None),
        (Fraction(1), Fraction(1, 3), 2, None),
        (Fraction(1, 2**101), Fraction(0), 2, 25),
    ],
)
def test_exact_bits_on_both_sides_of_the_limits(
    ratio: Fraction, offset: Fraction, bound: int, want: int | None
) -> None:
    assert exact_bits([ratio], [offset], bound) == want


@given(st.data())
def test_rounder_per_channel_at_and_beside_ties(data: st.DataObject) -> None:
    """Values on ties, and as near as 2**-80 to them, in every dtype that carries them."""
    ratios, offsets, rows = [], [], []
    for _ in range(3):
        p, q = data.draw(st.integers(1, 2**30)), data.draw(st.integers(1, 2**30))
        nudge = data.draw(st.sampled_from([0, 1, -1]))
        ratios.append(Fraction(p, q) * (1 + Fraction(nudge, 2**80)))
        offsets.append(Fraction(data.draw(st.integers(-5, 5)), 2))
        rows.append([data.draw(st.integers(-3, 3)) * q, data.draw(st.integers(-(2**20), 2**20))])
    bound = max(abs(v) for row in rows for v in row)
    want = [[round(v * r + o) for v in row] for row, r, o in zip(rows, ratios, offsets, strict=True)]
    for dtype in (np.float64, np.int64, object):
        values = np.array(rows, dtype=dtype)
        rounder = AffineRounder(ratios, offsets, bound=bound, rank=2, axis=0)
        assert rounder(values).astype(object).tolist() == [[float(w) for w in row] for row in want]


def test_a_tie_that_float64_cannot_see_is_decided_by_integers() -> None:
    third = Fraction(1, 6)  # 3 / 6 is a tie, and 1 / 6 has no float
    rounder = AffineRounder([third], [Fraction(0)], bound=100, rank=1, axis=None)
    assert rounder(np.array([3, 9, 15, -3, -9])).tolist() == [0, 2, 2, 0, -2]
    above = AffineRounder([third + Fraction(1, 2**90)], [Fraction(0)], bound=100, rank=1, axis=None)
    assert above(np.array([3, 9, 15, -3, -9])).tolist() == [1, 2, 3, -1, -2]


def test_no_values_give_no_results() -> None:
    rounder = AffineRounder([Fraction(1, 3)], [Fraction(0)], bound=1, rank=2, axis=None)
    assert rounder(np.zeros((0, 2), np.float32)).shape == (0, 2)


def test_the_input_is_left_alone() -> None:
    values = np.array([1.0, 2.0, 3.0])
    AffineRounder([Fraction(1, 3)], [Fraction(1)], bound=3, rank=1, axis=None)(values)
    assert values.tolist() == [1.0, 2.0, 3.0]
