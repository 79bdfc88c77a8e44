"""Grouping by place and choosing cuts: pure graph code against brute force."""

from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manifest.model import Op, Where
from phases.baseline.partition import Graph, best_cuts, boundaries, live_at, segments


def op(name: str, reads: str, where: Where = "npu") -> Op:
    return Op(name=name, type="Relu", inputs=tuple(reads.split()), outputs=(f"{name}o",), where=where)


def graph(*ops: Op, outputs: str = "", uncuttable: str = "", constants: str = "") -> Graph:
    return Graph(
        ops=ops,
        outputs=frozenset(outputs.split()),
        uncuttable=frozenset(uncuttable.split()),
        constants=frozenset(constants.split()),
    )


def shape(g: Graph, inputs: str = "x") -> list[tuple[str, str]]:
    return [(where, " ".join(o.name for o in ops)) for where, ops in segments(g, inputs.split())]


def test_edges_on_the_host_and_one_run_on_the_array() -> None:
    g = graph(op("q", "x", "host"), op("a", "qo"), op("b", "ao"), op("d", "bo", "host"), outputs="do")
    assert shape(g) == [("host", "q"), ("npu", "a b"), ("host", "d")]


def test_host_ops_between_are_gathered_so_that_the_place_changes_least() -> None:
    g = graph(
        op("q1", "x", "host"), op("a", "q1o"), op("d1", "ao", "host"), op("q2", "y", "host"), op("b", "q2o ao"),
        op("d2", "bo", "host"), outputs="d1o d2o",
    )  # fmt: skip
    assert shape(g, "x y") == [("host", "q1 q2"), ("npu", "a b"), ("host", "d1 d2")]


def test_a_host_op_in_the_middle_splits() -> None:
    g = graph(op("a", "x"), op("h", "ao", "host"), op("b", "ho ao"), op("c", "ao"))
    assert shape(g) == [("npu", "a c"), ("host", "h"), ("npu", "b")]


def test_starting_on_the_array_is_chosen_where_it_saves_a_change() -> None:
    g = graph(op("h", "x", "host"), op("a", "x"), op("h2", "ao ho", "host"))
    assert shape(g) == [("npu", "a"), ("host", "h h2")]


def test_an_input_that_nothing_makes_is_a_defect() -> None:
    with pytest.raises(ValueError, match="'a': an input is never made"):
        segments(graph(op("a", "nothing")), ["x"])


def test_constants_are_no_inputs() -> None:
    g = graph(op("a", "x w x"), constants="w")
    assert g.reads(g.ops[0]) == ("x",)
    assert g.entering(g.ops) == ("x",)


def test_live_tensors_and_places_to_cut() -> None:
    ops = (op("a", "x"), op("b", "ao"), op("c", "bo"), op("d", "co ao"), op("e", "do"))
    g = graph(*ops, outputs="eo", uncuttable="bo")
    assert live_at(g, ops) == [("ao",), ("ao", "bo"), ("ao", "co"), ("do",)]
    assert boundaries(g, ops) == (1, 3, 4)
    assert g.leaving(ops[:2]) == ("ao", "bo")
    assert g.entering(ops[2:]) == ("bo", "ao")
    assert g.leaving(ops[4:]) == ("eo",)


def cost_of(cuts: tuple[int, ...], costs: dict[int, tuple[int, int]]) -> tuple[int, int, int]:
    return len(cuts) + 1, sum(costs[c][0] > 1 for c in cuts), sum(costs[c][1] for c in cuts)


@given(st.data())
def test_cuts_are_the_best_of_all_that_fit(data: st.DataObject) -> None:
    """Against every subset of the places; a run between neighbouring places may always stand alone."""
    n = data.draw(st.integers(1, 8))
    size = data.draw(st.lists(st.integers(1, 9), min_size=n, max_size=n))
    limit = data.draw(st.integers(1, 20))
    allowed = [p for p in range(1, n) if data.draw(st.booleans())]
    costs = {p: (data.draw(st.integers(1, 3)), data.draw(st.integers(1, 50))) for p in allowed}
    stops = [0, *allowed, n]

    def holds(a: int, b: int) -> bool:
        return sum(size[a:b]) <= limit or stops.index(b) == stops.index(a) + 1

    def feasible(cuts: tuple[int, ...]) -> bool:
        ends = [0, *cuts, n]
        return all(holds(a, b) for a, b in pairwise(ends))

    choices = [c for k in range(len(allowed) + 1) for c in combinations(allowed, k) if feasible(c)]
    got = tuple(best_cuts(n, allowed, costs, lambda a: ((b, sum(size[a:b]) <= limit) for b in range(a + 1, n + 1))))
    assert feasible(got)
    assert cost_of(got, costs) == min(cost_of(c, costs) for c in choices)
