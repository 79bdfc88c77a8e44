"""Solutions against every placement counted through; limits, reproducibility."""

from fractions import Fraction

import pytest

from optimize.placement.legality import cost_of, violations
from optimize.placement.problem import Placement, Problem
from optimize.placement.solve import Solution, solve
from tests.optimize.placement.rectangles import block, chain, cheapest, edge, fan, problem, some_problem


def solved(of: Problem, **options: object) -> Solution:
    given = {"deterministic_limit": 5.0, "wall_limit_s": 300.0, "steps": 60, **options}
    return solve(of, **given)  # type: ignore[arg-type]


def require_right(of: Problem) -> None:
    """The solution of a small problem is proved, and that of counting through."""
    best = cheapest(of)
    found = solved(of)
    if best is None:
        assert found.status == "infeasible"
        assert (found.cost, found.bound, found.placement, found.gap) == (None, None, None, None)
        return
    assert found.status == "optimal"
    assert found.placement is not None
    assert violations(of, found.placement) == ()
    assert found.cost == cost_of(of, found.placement) == found.bound == best
    assert found.gap == 0
    assert found.reproducible


@pytest.mark.parametrize("seed", range(40))
def test_random_problems_as_counted_through(seed: int) -> None:
    require_right(some_problem(seed))


@pytest.mark.parametrize(
    "of",
    [
        chain([(2, 1)] * 3, columns=6, rows=1),
        chain([(2, 1)] * 3, columns=6, rows=1, direct=False),
        chain([(2, 1)] * 3, columns=5, rows=2),
        chain([(1, 2), (1, 1), (2, 1)], columns=4, rows=2),
        fan(3, columns=4, rows=3),
        fan(3, columns=3, rows=3),
        problem([block("a", 1, 1), block("b", 1, 1)], columns=2, rows=1),
        problem([block("a", 1, 1), block("b", 1, 1)], columns=3, rows=1),
    ],
)
def test_shapes_as_counted_through(of: Problem) -> None:
    require_right(of)


def test_a_row_of_touching_blocks_is_proved_without_the_solver() -> None:
    found = solved(chain([(2, 2)] * 4, columns=10, rows=4), steps=3000)
    assert found.status == "optimal"
    assert found.cost == 3
    assert "counting" in found.note


def test_infeasible_by_the_solver_where_counting_does_not_say() -> None:
    """Two blocks of three columns in five by two: the tiles are enough, two rows hold one each, anchors cross them."""
    blocks = [block("a", 3, 1, anchor=(1, 0)), block("b", 1, 2)]
    found = solved(problem(blocks, columns=5, rows=2))
    assert (found.status, found.placement) == ("infeasible", None)
    assert found.note == "by CP-SAT"
    assert solved(problem(blocks, columns=6, rows=2)).status == "optimal"


def test_infeasible_by_counting_says_why() -> None:
    found = solved(problem([block("a", 2, 1), block("b", 2, 1)], columns=4, rows=1))
    assert found.status == "infeasible"
    assert found.note.startswith("by counting: tiles with what has to be free between blocks: need 6")


HARD = chain([(3, 1), (2, 2), (1, 1), (2, 1), (3, 2), (1, 2), (2, 2), (3, 1)], columns=9, rows=4)


def test_two_runs_are_the_same() -> None:
    one, two = (solved(HARD, deterministic_limit=0.3, steps=900) for _ in range(2))
    assert (one.status, one.cost, one.bound, one.placement) == (two.status, two.cost, two.bound, two.placement)
    assert one.reproducible
    assert two.reproducible


def test_a_limit_in_units_leaves_a_gap_that_is_said() -> None:
    found = solved(HARD, deterministic_limit=0.01, steps=900)
    assert found.status == "feasible"
    assert found.cost is not None
    assert found.bound is not None
    assert found.gap == pytest.approx(float((found.cost - found.bound) / found.cost))
    assert found.cost > found.bound
    assert found.reproducible


def test_what_the_wall_clock_cuts_is_not_reproducible() -> None:
    found = solved(HARD, deterministic_limit=50.0, wall_limit_s=0.0, steps=900)
    assert found.status == "feasible"
    assert not found.reproducible
    assert found.note.endswith("not reproducible: cut by the wall clock")
    assert found.placement is not None
    assert violations(HARD, found.placement) == ()


def test_unknown_where_no_placement_was_found_in_time() -> None:
    found = solved(HARD, deterministic_limit=50.0, wall_limit_s=0.0, steps=0)
    assert (found.status, found.cost, found.placement, found.gap) == ("unknown", None, None, None)
    assert found.bound is not None


def test_hints_are_used_where_they_are_legal() -> None:
    of = chain([(1, 1), (1, 1)], columns=4, rows=2)
    wrong = Placement(spots=((0, 0), (0, 0)))
    dear = Placement(spots=((0, 1), (3, 0)))
    assert solved(of, hints=(wrong, dear)).cost == 1
    best = solved(of, hints=(Placement(spots=((0, 0), (1, 0))),), steps=0)
    assert best.cost == 1
    assert best.placement == Placement(spots=((0, 0), (1, 0)))


def test_gap_of_a_cost_of_nothing() -> None:
    found = solved(problem([block("a", 1, 1)]))
    assert (found.status, found.cost, found.gap) == ("optimal", Fraction(0), 0.0)


@pytest.mark.slow
def test_the_order_of_blocks_that_can_trade_places_loses_no_optimum() -> None:
    blocks = [block("root", 1, 1), *(block(f"b{i}", 1, 1) for i in range(2)), block("end", 1, 1)]
    edges = [edge("root", f"b{i}", exclusive=False) for i in range(2)]
    edges += [edge(f"b{i}", "end") for i in range(2)]
    require_right(problem(blocks, edges, columns=5, rows=2))
