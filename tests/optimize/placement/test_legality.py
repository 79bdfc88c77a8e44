"""Every rule from both sides, and the cost as the benchmark has it."""

from dataclasses import replace
from fractions import Fraction

import pytest

from optimize.placement.geometry import Geometry
from optimize.placement.legality import cost_of, violations
from optimize.placement.problem import Block, Edge, Face, Keepout, Placement, Problem
from tests.optimize.placement.rectangles import block, chain, edge, problem, some_problem

Spot = tuple[int, int]


def wrong(of: Problem, *spots: Spot) -> tuple[str, ...]:
    return violations(of, Placement(spots=spots))


ONE = problem([block("a", 2, 2)], columns=5, rows=4)


@pytest.mark.parametrize(
    ("spot", "legal"),
    [((0, 0), True), ((3, 2), True), ((4, 2), False), ((3, 3), False), ((-1, 0), False), ((0, -1), False)],
)
def test_inside_the_grid(spot: Spot, legal: bool) -> None:
    found = wrong(ONE, spot)
    assert (found == ()) is legal
    assert legal or found == (f"'a' at {spot} is not inside the grid",)


def test_a_block_in_column_0_needs_nothing_free_west_of_it() -> None:
    assert wrong(problem([block("a", 1, 1, left=3)], columns=1, rows=1), (0, 0)) == ()


def test_footprints_may_not_overlap_even_where_one_feeds_the_other() -> None:
    of = chain([(2, 1), (2, 1)])
    assert wrong(of, (0, 0), (1, 0)) == ("'n0' and 'n1' overlap",)
    assert wrong(of, (0, 0), (0, 1)) == ()


def test_a_keepout_stays_free_of_blocks_and_of_keepouts() -> None:
    two = problem([block("a", 1, 1), block("b", 1, 1)])
    text = ("'a' and 'b': one takes tiles that the other keeps free",)
    assert wrong(two, (0, 0), (1, 0)) == text
    assert wrong(two, (0, 0), (2, 0)) == ()
    assert wrong(two, (0, 0), (1, 1)) == ()
    both = problem([replace(block("a", 1, 1), keepout=Keepout(right=1)), block("b", 1, 1)])
    assert wrong(both, (0, 0), (2, 0)) == text
    assert wrong(both, (0, 0), (3, 0)) == ()


@pytest.mark.parametrize(("side", "near", "far"), [("top", (0, 1), (0, 2)), ("bottom", (0, 1), (0, 2))])
def test_keepouts_in_rows(side: str, near: Spot, far: Spot) -> None:
    """`top` keeps rows below the first one free, `bottom` rows above the last one."""
    low = block("low", 1, 1, left=0)
    high = block("high", 1, 1, left=0)
    if side == "top":
        high = replace(high, keepout=Keepout(top=1))
    else:
        low = replace(low, keepout=Keepout(bottom=1))
    of = problem([low, high])
    assert len(wrong(of, (0, 0), near)) == 1
    assert wrong(of, (0, 0), far) == ()
    turned = problem([high, low])
    assert wrong(turned, (0, 0), (0, 1)) == ()


def pair(one: Block, two: Block, joined: Edge) -> Problem:
    return problem([one, two], [joined], columns=8, rows=4)


A, B = block("a", 2, 2), block("b", 2, 2)
UPPER = replace(A, output_face=Face(side="right", start=1, end=1))


@pytest.mark.parametrize(
    ("of", "spots", "legal"),
    [
        (pair(A, B, edge("a", "b")), ((0, 0), (2, 0)), True),
        (pair(A, B, edge("a", "b")), ((0, 0), (2, 1)), False),
        (pair(A, B, edge("a", "b")), ((2, 0), (0, 0)), False),
        (pair(A, B, edge("b", "a")), ((0, 0), (2, 0)), False),
        (pair(A, B, edge("a", "b", direct=False)), ((0, 0), (2, 0)), False),
        (pair(A, B, edge("a", "b", exclusive=False)), ((0, 0), (2, 0)), False),
        (pair(A, block("b", 2, 1), edge("a", "b")), ((0, 0), (2, 0)), False),
        (pair(A, replace(B, input_face=Face(side="top", start=0, end=1)), edge("a", "b")), ((0, 0), (2, 0)), False),
        (pair(replace(A, output_face=Face(side="left", start=0, end=1)), B, edge("a", "b")), ((0, 0), (2, 0)), False),
        (pair(replace(A, output_face=Face(side="right", start=0, end=0)), B, edge("a", "b")), ((0, 0), (2, 0)), False),
        (pair(UPPER, block("b", 2, 1), edge("a", "b")), ((0, 0), (2, 1)), True),
        (pair(UPPER, block("b", 2, 1), edge("a", "b")), ((0, 0), (2, 0)), False),
    ],
)  # fmt: skip
def test_a_consumer_may_touch_its_producer(of: Problem, spots: tuple[Spot, Spot], legal: bool) -> None:
    assert (wrong(of, *spots) == ()) is legal


def test_anchors() -> None:
    of = problem([block("a", 1, 1, anchor=(2, 1))])
    assert wrong(of, (2, 1)) == ()
    assert wrong(of, (2, 0)) == ("'a' at (2, 0), its anchor is (2, 1)",)


def test_every_fault_is_named_and_a_place_for_every_block_asked_for() -> None:
    of = problem([block("a", 1, 1), block("b", 1, 1), block("c", 1, 1)])
    assert len(wrong(of, (0, 0), (0, 0), (9, 0))) == 2
    assert wrong(of, (0, 0)) == ("1 places for 3 blocks",)


@pytest.mark.parametrize(
    ("there", "cost"),
    [
        ((2, 0), Fraction(1)),
        ((4, 0), Fraction(3)),
        ((1, 2), 1 + Fraction(2, 20)),
        ((0, 2), 2 + Fraction(2, 20)),
        ((3, 3), 4 + Fraction(3, 20)),
    ],
)
def test_cost_counts_columns_and_rows_between_faces_and_the_rows_of_blocks(there: Spot, cost: Fraction) -> None:
    of = pair(A, block("b", 2, 1), edge("a", "b"))
    assert cost_of(of, Placement(spots=((0, 0), there))) == cost


def test_prices_of_rows_are_those_of_the_problem() -> None:
    of = pair(A, B, edge("a", "b"))
    dear = replace(of, rules=replace(of.rules, row_step=Fraction(3), height=Fraction(1, 2)))
    assert cost_of(dear, Placement(spots=((0, 0), (1, 2)))) == 3 + 1


@pytest.mark.parametrize("seed", range(25))
def test_geometry_agrees_on_conflicts_and_costs(seed: int) -> None:
    """What searches and what checks are written apart; both sides see conflicts, touching blocks and costs alike."""
    of = some_problem(seed)
    geometry = Geometry(of)
    columns, rows = of.rules.columns, of.rules.rows
    places = [(x, y) for x in range(columns) for y in range(rows)]
    here = Placement(spots=tuple(places[(3 * i + seed) % len(places)] for i in range(len(of.blocks))))
    assert Fraction(geometry.cost(here.spots), geometry.scale) == cost_of(of, here)
    edges = tuple(e for e in of.edges if {e.source, e.target} <= {"n0", "n1"})
    two = replace(of, blocks=tuple(replace(b, anchor=None) for b in of.blocks[:2]), edges=edges)
    for at in places:
        for there in places:
            texts = [t for t in wrong(two, at, there) if "inside" not in t]
            assert geometry.conflict(0, at, 1, there) is bool(texts)
