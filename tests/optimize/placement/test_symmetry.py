from optimize.placement.clusters import bounds_of, clusters_of
from optimize.placement.geometry import Geometry
from optimize.placement.model import Model
from optimize.placement.symmetry import graph_of, maps
from tests.optimize.placement.rectangles import block, chain, edge, fan, problem


def orbits(geometry: Geometry) -> dict[int, tuple[int, ...]]:
    return dict(graph_of(geometry, tuple(range(len(geometry.blocks)))).orbits())


def test_leaves_trade_places_one_after_the_other() -> None:
    assert orbits(Geometry(fan(3))) == {1: (2, 3), 2: (3,)}


def test_different_sizes_edges_or_anchors_do_not() -> None:
    assert orbits(Geometry(chain([(1, 1)] * 4))) == {}
    blocks = [block("root", 1, 1), block("a", 1, 1), block("b", 2, 1), block("c", 1, 1, anchor=(0, 0))]
    edges = [edge("root", name, exclusive=False) for name in "abc"]
    assert orbits(Geometry(problem(blocks, edges))) == {}
    edges[1] = edge("root", "b")
    same = [block("root", 1, 1), block("a", 1, 1), block("b", 1, 1)]
    assert orbits(Geometry(problem(same, edges[:2]))) == {}


def test_branches_trade_places_as_a_whole() -> None:
    names = ["root", "a", "b", "a1", "a2", "b1", "b2"]
    edges = [edge(s, t, exclusive=False) for s, t in zip(["root", "root", "a", "a", "b", "b"], names[1:], strict=True)]
    found = orbits(Geometry(problem([block(n, 1, 1) for n in names], edges)))
    assert sorted(found.values()) == [(2,), (4,), (6,)]


def test_graphs_that_look_alike() -> None:
    geometry = Geometry(fan(4))
    assert maps(graph_of(geometry, (0, 1, 2)), graph_of(geometry, (0, 3, 4)), {})
    assert not maps(graph_of(geometry, (0, 1, 2)), graph_of(geometry, (1, 2, 3)), {})
    assert not maps(graph_of(geometry, (0, 1, 2)), graph_of(geometry, (0, 1)), {})


def test_parts_are_fans_and_smaller_than_the_whole() -> None:
    assert clusters_of(Geometry(chain([(1, 1)] * 9, columns=20))) == ()
    names = [f"n{i}" for i in range(8)]
    pairs = [(0, 1), (0, 2), (0, 3), (3, 4), (4, 5), (4, 6), (4, 7)]
    edges = [edge(names[s], names[t], exclusive=False) for s, t in pairs]
    geometry = Geometry(problem([block(n, 1, 1) for n in names], edges))
    assert clusters_of(geometry) == (
        (0, 1, 2, 3),
        (4, 5, 6, 7),
        (0, 1, 2, 3, 4),
        (3, 4, 5, 6, 7),
        (0, 3, 4, 5, 6, 7),
    )


def test_parts_that_look_alike_are_proved_once_and_without_time_not_at_all() -> None:
    names = ["root", *"abc", *(f"{p}{i}" for p in "abc" for i in range(3))]
    pairs = [("root", p) for p in "abc"] + [(p, f"{p}{i}") for p in "abc" for i in range(3)]
    edges = [edge(s, t, exclusive=False) for s, t in pairs]
    geometry = Geometry(problem([block(n, 1, 1) for n in names], edges, columns=12, rows=4))
    asked = []

    def prove(model: Model) -> int | None:
        asked.append(len(model.x))
        return 100 * len(asked)

    found = bounds_of(geometry, prove)
    small = [bound for bound in found if len(bound.blocks) == 4 and 0 not in bound.blocks]
    assert {bound.blocks for bound in small} == {(1, 4, 5, 6), (2, 7, 8, 9), (3, 10, 11, 12)}
    assert len({(bound.rows, bound.cost) for bound in small}) == 2
    assert len(asked) < len(found)
    assert bounds_of(geometry, lambda _: None) == ()
