import pytest

from optimize.placement.geometry import Geometry
from optimize.placement.legality import violations
from optimize.placement.packing import near_offsets, order_of, pack, shelves
from optimize.placement.problem import Placement
from tests.optimize.placement.rectangles import block, chain, edge, fan, problem


def test_a_chain_fills_rows_from_the_west() -> None:
    assert shelves(Geometry(chain([(2, 1)] * 4, columns=5))) == [(0, 0), (2, 0), (0, 1), (2, 1)]
    assert shelves(Geometry(chain([(2, 1)] * 3, columns=5, direct=False))) == [(0, 0), (3, 0), (0, 1)]


def test_anchors_hold() -> None:
    of = problem([block("a", 1, 1, anchor=(3, 2)), block("b", 1, 1)], [edge("a", "b")])
    assert shelves(Geometry(of))[0] == (3, 2)
    found = pack(Geometry(of), 0, 600)
    assert found is not None
    assert found[0] == (3, 2)
    assert violations(of, Placement(spots=found)) == ()


def test_loops_are_cut() -> None:
    of = problem([block("a", 1, 1), block("b", 1, 1)], [edge("a", "b"), edge("b", "a"), edge("a", "a")])
    assert order_of(Geometry(of)) == [0, 1]


def test_branches_come_one_after_the_other() -> None:
    of = problem([block(n, 1, 1) for n in "abcde"], [edge("a", "b"), edge("b", "c"), edge("a", "d"), edge("d", "e")])
    order = order_of(Geometry(of))
    assert order[0] == 0
    assert abs(order.index(1) - order.index(2)) == 1
    assert abs(order.index(3) - order.index(4)) == 1


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_what_is_returned_is_legal_and_the_same_every_time(seed: int) -> None:
    of = fan(6, columns=8, rows=4)
    found = pack(Geometry(of), seed, 1500)
    assert found is not None
    assert violations(of, Placement(spots=found)) == ()
    assert found == pack(Geometry(of), seed, 1500)


def test_conflicts_are_passed_through_but_not_returned() -> None:
    """The rows overlap at first; there is no room for all of it, or just enough."""
    tight = chain([(1, 2), (2, 1), (1, 1), (2, 1)], columns=4, rows=2)
    assert violations(tight, Placement(spots=tuple(shelves(Geometry(tight)))))
    found = pack(Geometry(tight), 0, 6000)
    assert found is None or violations(tight, Placement(spots=found)) == ()
    full = chain([(2, 1)] * 3, columns=4, rows=1, direct=False)
    assert pack(Geometry(full), 0, 300) is None


def test_the_search_ends_at_the_floor() -> None:
    of = Geometry(chain([(1, 1), (1, 1)], direct=False))
    first = pack(of, 0, 3000, 10**9)
    assert first == tuple(shelves(of))


def test_offsets_of_a_neighbour_are_legal_and_the_cheapest_first() -> None:
    geometry = Geometry(chain([(2, 1), (2, 1)]))
    offsets = near_offsets(geometry, 0, 1)
    assert offsets[0] == (2, 0)
    assert all(not geometry.conflict(0, (0, 0), 1, offset) for offset in offsets)
    assert near_offsets(geometry, 1, 0)[0] == (-2, 0)
