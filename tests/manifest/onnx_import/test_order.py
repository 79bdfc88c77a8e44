from hypothesis import given
from hypothesis import strategies as st

from manifest.onnx_import.order import sort_nodes, topological_order
from tests.onnx_models import model, node


def test_sorted_nodes_stay_where_they_are() -> None:
    graph = model([node("Relu", ["x"], ["a"]), node("Relu", ["a"], ["b"]), node("Relu", ["x"], ["y"])]).graph
    assert topological_order(graph.node) == ([0, 1, 2], [])
    assert sort_nodes(graph) is False


def test_user_before_producer_is_moved_behind_it() -> None:
    graph = model([node("Relu", ["b"], ["y"]), node("Relu", ["a"], ["b"]), node("Relu", ["x"], ["a"])]).graph
    assert sort_nodes(graph) is True
    assert [n.output[0] for n in graph.node] == ["a", "b", "y"]


def test_cycle_is_named_in_data_flow_and_leaves_the_graph_alone() -> None:
    nodes = [
        node("Relu", ["x"], ["ok"], "fine"),
        node("Add", ["ok", "c"], ["a"], "first"),
        node("Relu", ["a"], ["b"], "second"),
        node("Relu", ["b"], ["c"], "third"),
        node("Relu", ["c"], ["y"], "behind"),
    ]
    graph = model(nodes).graph
    order, cycle = topological_order(graph.node)
    assert order == [0]
    names = [graph.node[i].name for i in cycle]
    assert sorted(names) == ["first", "second", "third"]
    start = names.index("first")
    assert names[start:] + names[:start] == ["first", "second", "third"]
    assert sort_nodes(graph) is False


def test_node_that_reads_itself_is_a_cycle() -> None:
    assert topological_order(model([node("Add", ["x", "y"], ["y"])]).graph.node) == ([], [0])


@given(st.data(), st.integers(1, 12))
def test_any_shuffled_dag_comes_out_with_producers_first(data: st.DataObject, count: int) -> None:
    nodes = []
    for index in range(count):
        sources = data.draw(st.lists(st.integers(0, index - 1), max_size=3)) if index else []
        nodes.append(node("Sum", ["x", *(f"t{s}" for s in sources)], [f"t{index}"]))
    shuffled = data.draw(st.permutations(nodes))
    graph = model(shuffled).graph
    sort_nodes(graph)
    seen = {"x"}
    for item in graph.node:
        assert set(item.input) <= seen
        seen.update(item.output)
    assert len(seen) == count + 1
