"""Bounds and infeasibility by counting: never against what counting every placement through says."""

from dataclasses import replace

import pytest

from optimize.placement.counting import edge_floor, floor_of, impossible, row_demand, row_floor
from optimize.placement.geometry import Geometry
from optimize.placement.problem import Problem
from tests.optimize.placement.rectangles import block, chain, cheapest, edge, fan, problem, some_problem


def reason(of: Problem) -> str:
    return impossible(Geometry(of))


@pytest.mark.parametrize("seed", range(60))
def test_counting_is_never_wrong(seed: int) -> None:
    of = some_problem(seed)
    best = cheapest(of)
    if best is None:
        return
    assert reason(of) == ""
    assert floor_of(Geometry(of)) <= best


@pytest.mark.parametrize(
    ("of", "text"),
    [
        (problem([block("a", 7, 1)]), "block 'a' of 7 by 1 in a grid of 6 by 3"),
        (problem([block("a", 1, 4)]), "block 'a' of 1 by 4 in a grid of 6 by 3"),
        (problem([block("a", 2, 1, anchor=(5, 0))]), "the anchor of block 'a' puts it outside the grid"),
        (
            problem([block("a", 1, 1, anchor=(0, 0)), block("b", 1, 1, anchor=(1, 0))]),
            "the anchors of 'a' and 'b' are in conflict",
        ),
        (problem([block(f"n{i}", 4, 2, left=0) for i in range(3)]), "tiles: need 24, have 18"),
        (chain([(2, 3)] * 3, direct=False), "need 27 at least, have 21"),
    ],
)
def test_why_nothing_is_legal(of: Problem, text: str) -> None:
    assert text in reason(of)
    assert cheapest(of) is None


@pytest.mark.parametrize(
    "of",
    [
        problem([block("a", 6, 3)]),
        problem([block("a", 2, 1, anchor=(4, 2))]),
        problem([block("a", 1, 1, anchor=(0, 0)), block("b", 1, 1, anchor=(2, 0))]),
        chain([(2, 3)] * 3),
        chain([(2, 3)] * 2, columns=5, direct=False),
    ],
)
def test_the_other_side_of_each_limit(of: Problem) -> None:
    assert reason(of) == ""
    assert cheapest(of) is not None


def test_demand_of_rows_counts_gaps_and_what_touching_saves() -> None:
    assert row_demand(Geometry(chain([(2, 3)] * 3, direct=False))) == (27, 21)
    assert row_demand(Geometry(chain([(2, 3)] * 3))) == (21, 21)


def test_the_cheapest_place_of_an_edge() -> None:
    flat = Geometry(chain([(2, 1), (2, 1)]))
    assert edge_floor(flat, 0, 1) == flat.scale
    looped = Geometry(problem([block("a", 3, 1)], [edge("a", "a")]))
    assert edge_floor(looped, 0, 0) == 2 * looped.scale
    assert floor_of(looped) == 2
    dear = chain([(2, 1), (2, 1)], direct=False)
    dear = replace(dear, rules=replace(dear.rules, row_step=dear.rules.row_step * 5))
    assert edge_floor(Geometry(dear), 0, 1) == 2 * Geometry(dear).scale


def test_rows_have_to_be_filled() -> None:
    """Four blocks of two columns with a gap: two to a row of five, so two of them lie higher."""
    assert row_floor(Geometry(chain([(2, 1)] * 4, columns=5, direct=False))) == 2
    assert row_floor(Geometry(chain([(2, 1)] * 4, columns=11, direct=False))) == 0


def test_fans_are_bound_by_their_edges_at_least() -> None:
    of = fan(3, columns=4)
    best = cheapest(of)
    assert best is not None
    assert 3 <= floor_of(Geometry(of)) <= best
