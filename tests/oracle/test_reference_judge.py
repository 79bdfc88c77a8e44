"""The rules by which a difference is explained, on both sides of each limit."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracle.evidence import Mismatch
from oracle.reference.exact import Term
from oracle.reference.judge import exact_text, is_float_noise, is_near_tie
from oracle.reference.sample import code_of
from oracle.reference.tally import Judged, Tallies, Tally

HALF = Fraction(1, 2)
MILLIONTH = Fraction(1, 10**6)


def term(value: Fraction, size: Fraction | None = None, count: int = 1) -> Term:
    return Term(value=value, size=abs(value) if size is None else size, count=count)


@pytest.mark.parametrize("sign", [1, -1])
def test_a_tie_is_near_up_to_a_millionth_of_the_terms(sign: int) -> None:
    size = Fraction(1000)
    at, beyond = size * MILLIONTH, size * MILLIONTH * Fraction(1000001, 1000000)
    assert is_near_tie(term(10 + HALF + sign * at, size), 10, 11)
    assert not is_near_tie(term(10 + HALF + sign * beyond, size), 10, 11)


def test_without_cancellation_the_value_itself_is_the_measure() -> None:
    tie = Fraction(100) + HALF
    assert is_near_tie(term(tie + tie * MILLIONTH * Fraction(99, 100)), 100, 101)
    assert not is_near_tie(term(tie + tie * MILLIONTH * Fraction(101, 100)), 100, 101)


@pytest.mark.parametrize(("expected", "got"), [(10, 11), (11, 10)])
def test_both_orders_of_the_adjacent_codes(expected: int, got: int) -> None:
    assert is_near_tie(term(10 + HALF), expected, got)


@pytest.mark.parametrize(("expected", "got"), [(9, 10), (11, 12), (10, 12), (9, 11), (10, 10)])
def test_other_codes_are_no_tie(expected: int, got: int) -> None:
    assert not is_near_tie(term(10 + HALF), expected, got)


def test_negative_values_have_their_ties_below_zero() -> None:
    assert is_near_tie(term(-10 - HALF), -11, -10)
    assert not is_near_tie(term(-10 - HALF), -10, -9)


def test_float_noise_up_to_the_bound_of_recursive_summation() -> None:
    size, count = Fraction(2**20), 60
    bound = (count + 4) * size / 2**24
    assert bound == 4
    assert is_float_noise(term(Fraction(100), size, count), 104)
    assert is_float_noise(term(100 + HALF, size, count), 105)
    assert not is_float_noise(term(100 + HALF - MILLIONTH, size, count), 105)
    assert not is_float_noise(term(Fraction(100), size, count), 105)


@given(st.fractions(min_value=-300, max_value=300), st.integers(-5, 5))
def test_code_is_half_even_then_zero_point_then_clamp(value: Fraction, zero: int) -> None:
    low = value.numerator // value.denominator
    rest = value - low
    rounded = low + (1 if rest > HALF or (rest == HALF and low % 2) else 0)
    assert code_of(value, zero, (-128, 127)) == max(-128, min(127, rounded + zero))


def test_exact_value_is_shown_with_its_zero_point_and_ties_are_marked() -> None:
    assert exact_text(term(2 + HALF), 3) == "5.5 (tie)"
    assert exact_text(term(Fraction(9, 4)), -3) == "-0.75"
    assert exact_text(None, 3) == "none"


def mismatch(cause: str) -> Mismatch:
    return Mismatch(index=(0,), expected="1", got="2", exact="1.5", cause=cause)


def test_tally_adds_up_and_prefers_the_first_unexplained() -> None:
    tally = Tally("t", "op", "Conv")
    tally.add(Judged(elements=10, near_ties=2, first=mismatch("tie")))
    tally.add(Judged(elements=10, near_ties=1, reference_inexact=1, unexplained=3, first=mismatch("wrong")))
    tally.add(Judged(elements=10, unexplained=1, first=mismatch("later")))
    row = tally.row()
    assert (row.elements, row.near_ties, row.reference_inexact, row.unexplained) == (30, 3, 1, 4)
    assert row.mismatches == 8
    assert row.first is not None
    assert row.first.cause == "wrong"


def test_tallies_keep_the_order_of_first_sight() -> None:
    tallies = Tallies()
    for name in ("b", "a", "b"):
        tallies.add(name, "op", "Add", Judged(elements=1))
    assert [(row.tensor, row.elements) for row in tallies.table()] == [("b", 2), ("a", 1)]
