"""Topological order of a graph's nodes.

Why: Quark appends nodes behind their users and onnxruntime loads such files; everything after the importer wants
producers first. The order is stable: where the file's order will do, it is kept.
"""

import heapq
from collections.abc import Sequence

import onnx


def topological_order(nodes: Sequence[onnx.NodeProto]) -> tuple[list[int], list[int]]:
    """Positions of `nodes`, producers first, and the positions of those that wait for each other.

    Inputs that no node produces count as present. Of several producers of one name the first counts.

    Returns:
        (order, cycle): `order` leaves out the nodes on or behind a cycle; `cycle` holds one cycle's nodes in
        their data flow, and is empty for a graph without cycles.
    """
    producer: dict[str, int] = {}
    for index, node in enumerate(nodes):
        for name in node.output:
            if name:
                producer.setdefault(name, index)
    needs = [{producer[name] for name in node.input if name in producer} for node in nodes]
    users: list[list[int]] = [[] for _ in nodes]
    for index, sources in enumerate(needs):
        for source in sources:
            users[source].append(index)
    missing = [len(sources) for sources in needs]
    ready = [index for index, count in enumerate(missing) if count == 0]
    order: list[int] = []
    while ready:
        index = heapq.heappop(ready)
        order.append(index)
        for user in users[index]:
            missing[user] -= 1
            if missing[user] == 0:
                heapq.heappush(ready, user)
    return order, _one_cycle(needs, set(order))


def _one_cycle(needs: list[set[int]], done: set[int]) -> list[int]:
    """Follow producers from a node that never became ready until one repeats."""
    start = next((index for index in range(len(needs)) if index not in done), None)
    if start is None:
        return []
    seen: dict[int, int] = {}
    path: list[int] = []
    index = start
    while index not in seen:
        seen[index] = len(path)
        path.append(index)
        index = min(source for source in needs[index] if source not in done)
    return path[seen[index] :][::-1]


def sort_nodes(graph: onnx.GraphProto) -> bool:
    """Sort `graph.node` in place; True if that moved a node. A graph with a cycle is left as it is."""
    order, cycle = topological_order(graph.node)
    if cycle or order == list(range(len(order))):
        return False
    nodes = [onnx.NodeProto.FromString(graph.node[index].SerializeToString()) for index in order]
    del graph.node[:]
    graph.node.extend(nodes)
    return True
