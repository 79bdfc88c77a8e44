"""Cuts that the planner takes: against every way to cut, and with steps that it takes no way."""

from collections.abc import Iterator
from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phases.baseline.cutting import MOST_ASKED, planned_cuts

pytestmark = pytest.mark.property


@st.composite
def lines(draw: st.DrawFn) -> tuple[list[int], list[int], int, int, list[int], dict[int, tuple[int, int]]]:
    """Two sizes per op, a bound of each (the quick budget's and the planner's), places to cut and their cost."""
    count = draw(st.integers(1, 9))
    sizes = [draw(st.lists(st.integers(1, 5), min_size=count, max_size=count)) for _ in range(2)]
    allowed = sorted(draw(st.sets(st.integers(1, count - 1)))) if count > 1 else []
    cost = {p: (draw(st.integers(1, 2)), draw(st.integers(1, 9))) for p in allowed}
    return sizes[0], sizes[1], draw(st.integers(4, 20)), draw(st.integers(1, 20)), allowed, cost


@given(lines())
def test_cuts_are_the_best_of_all_that_both_take(
    line: tuple[list[int], list[int], int, int, list[int], dict[int, tuple[int, int]]],
) -> None:
    quick, slow, room, most, allowed, cost = line
    count = len(quick)
    stops = [0, *allowed, count]
    hopeless = {a for a, b in pairwise(stops) if sum(slow[a:b]) > most}

    def fits(start: int) -> Iterator[tuple[int, bool]]:
        return ((end, sum(quick[start:end]) <= room) for end in range(start + 1, count + 1))

    def good(cuts: tuple[int, ...]) -> bool:
        for a, b in pairwise([0, *cuts, count]):
            alone = not any(a < s < b for s in stops)
            taken = any(a <= h < b for h in hopeless) or sum(slow[a:b]) <= most
            if not alone and (sum(quick[a:b]) > room or not taken):
                return False
        return True

    def price(cuts: tuple[int, ...]) -> tuple[int, int, int]:
        return len(cuts), sum(cost[c][0] > 1 for c in cuts), sum(cost[c][1] for c in cuts)

    got = tuple(planned_cuts(count, allowed, cost, fits, lambda a, b: sum(slow[a:b]) > most))
    assert good(got)
    ways = [c for n in range(len(allowed) + 1) for c in combinations(allowed, n) if good(c)]
    assert price(got) == min(map(price, ways))


@pytest.mark.parametrize(("most", "expected"), [(12, []), (11, [6]), (6, [6]), (5, [3, 8])])
def test_one_unit_beyond_is_cut_at_the_cheapest_place(most: int, expected: list[int]) -> None:
    cost = {p: (1, {6: 1, 3: 2, 8: 2}.get(p, 9)) for p in range(1, 12)}

    def fits(start: int) -> Iterator[tuple[int, bool]]:
        return ((end, True) for end in range(start + 1, 13))

    assert planned_cuts(12, range(1, 12), cost, fits, lambda a, b: b - a > most) == expected


def test_a_step_that_the_planner_takes_no_way_is_not_cut_around() -> None:
    def refuses(start: int, end: int) -> bool:
        return start <= 3 < end

    cuts = planned_cuts(6, range(1, 6), dict.fromkeys(range(1, 6), (1, 1)), lambda a: iter([(6, True)]), refuses)
    assert cuts == []


@pytest.mark.parametrize("room", [200, 30])
def test_long_chains_ask_the_planner_seldom_and_are_cut_as_rarely_as_can_be(room: int) -> None:
    count, asked = 200, []

    def refuses(start: int, end: int) -> bool:
        asked.append((start, end))
        return end - start > 40

    def fits(start: int) -> Iterator[tuple[int, bool]]:
        return ((end, end - start <= room) for end in range(start + 1, count + 1))

    cuts = planned_cuts(count, range(1, count), dict.fromkeys(range(1, count), (1, 1)), fits, refuses)
    assert len(cuts) == -(-count // min(40, room)) - 1
    assert max(b - a for a, b in pairwise([0, *cuts, count])) <= min(40, room)
    assert len([r for r in asked if r[1] - r[0] > 1]) < MOST_ASKED + 60
