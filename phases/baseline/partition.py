"""From a graph to dispatches: which ops run on the array or the host, in which order, and where to cut.

Pure graph code: it knows no bytes but what `measure` and `live_bytes` tell it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from manifest.model import Manifest, Op, Where


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """Ops with the tensors that move between them.

    Attributes:
        ops: in a topological order.
        constants: tensors that never move.
        outputs: graph outputs.
        uncuttable: tensors at which no dispatch on the array may end (unrounded values).
    """

    ops: tuple[Op, ...]
    constants: frozenset[str]
    outputs: frozenset[str]
    uncuttable: frozenset[str]

    def reads(self, op: Op) -> tuple[str, ...]:
        """Tensors that an op reads, without constants, each once."""
        return tuple(dict.fromkeys(n for n in op.inputs if n and n not in self.constants))

    def entering(self, ops: Sequence[Op]) -> tuple[str, ...]:
        """Tensors that a run of ops reads and does not make, in order of first use."""
        made = {n for op in ops for n in op.outputs}
        return tuple(dict.fromkeys(n for op in ops for n in self.reads(op) if n not in made))

    def leaving(self, ops: Sequence[Op]) -> tuple[str, ...]:
        """Tensors that a run of ops makes and that the graph or another op reads, in order of making."""
        inside = {op.name for op in ops}
        read = {n for op in self.ops if op.name not in inside for n in self.reads(op)} | self.outputs
        return tuple(n for op in ops for n in op.outputs if n in read)


def graph_of(manifest: Manifest) -> Graph:
    """The graph of a manifest; unrounded values are not handed on."""
    return Graph(
        ops=manifest.ops,
        constants=frozenset(t.name for t in manifest.tensors if t.array is not None),
        outputs=frozenset(manifest.model.outputs),
        uncuttable=frozenset(t.name for t in manifest.tensors if t.dtype == "exact"),
    )


def segments(graph: Graph, inputs: Sequence[str]) -> tuple[tuple[Where, tuple[Op, ...]], ...]:
    """Maximal runs of ops on the host or the array, in an order with as few changes of place as possible.

    Args:
        graph: the ops.
        inputs: graph inputs.
    """
    starts: tuple[Where, Where] = ("host", "npu")
    return min((tuple(_alternate(graph, inputs, first)) for first in starts), key=len)


def _alternate(graph: Graph, inputs: Sequence[str], first: Where) -> Iterator[tuple[Where, tuple[Op, ...]]]:
    """Take turns, each time every op of one place that has its inputs, until none is left."""
    known = set(inputs)
    left = list(graph.ops)
    where = first
    while left:
        taken = []
        for op in left:
            if op.where == where and known.issuperset(graph.reads(op)):
                taken.append(op)
                known.update(op.outputs)
        if taken:
            yield where, tuple(taken)
            names = {op.name for op in taken}
            left = [op for op in left if op.name not in names]
        elif not any(known.issuperset(graph.reads(op)) for op in left):
            msg = f"op {left[0].name!r}: an input is never made"
            raise ValueError(msg)
        where = "host" if where == "npu" else "npu"


def live_at(graph: Graph, ops: Sequence[Op]) -> list[tuple[str, ...]]:
    """Per position 1..n-1 of a run of ops: the tensors made before it and read at or after it."""
    last = {n: i for i, op in enumerate(ops) for n in graph.reads(op)}
    made = {n: i for i, op in enumerate(ops) for n in op.outputs}
    live: list[list[str]] = [[] for _ in ops]
    for name, at in made.items():
        for position in range(at + 1, last.get(name, at) + 1):
            live[position].append(name)
    return [tuple(names) for names in live[1:]]


def boundaries(graph: Graph, ops: Sequence[Op]) -> tuple[int, ...]:
    """Positions 1..n-1 at which a run of ops may be cut: only rounded tensors are handed on."""
    live = live_at(graph, ops)
    return tuple(p for p, names in enumerate(live, start=1) if not graph.uncuttable.intersection(names))


Fits = Callable[[int], Iterator[tuple[int, bool]]]
"""From a start position: (end position, does it fit) for growing ends, until no larger end can fit."""


def best_cuts(count: int, allowed: Sequence[int], cut_cost: Mapping[int, tuple[int, int]], fits: Fits) -> list[int]:
    """Positions at which to cut: as few dispatches as possible, then as few cuts with several live tensors, then bytes.

    A run between two neighbouring positions that does not fit alone becomes a dispatch of its own.

    Args:
        count: number of ops.
        allowed: positions at which a cut is possible, ascending.
        cut_cost: (live tensors, their bytes) per position.
        fits: what fits from a start.
    """
    stops = [0, *allowed, count]
    best: dict[int, tuple[tuple[int, int, int], int]] = {0: ((0, 0, 0), 0)}
    for index, start in enumerate(stops[:-1]):
        so_far = best[start][0]
        reach = {end for end, ok in fits(start) if ok} & set(stops)
        for end in sorted(reach | {stops[index + 1]}):
            live, size = (0, 0) if end == count else cut_cost[end]
            cost = (so_far[0] + 1, so_far[1] + (live > 1), so_far[2] + size)
            if end not in best or cost < best[end][0]:
                best[end] = (cost, start)
    cuts = []
    position = best[count][1]
    while position:
        cuts.append(position)
        position = best[position][1]
    return cuts[::-1]
