"""The file of dataflow topologies: cases by name, read strictly.

A node is a list of `[times, [steps]]`, run in order, once. A step `[w, edge, n]` puts n tokens one after the other,
`[r, edge, n]` takes n, each freeing its place at once, `[p, edge, n]` waits until n are there and frees none. An edge
has a depth and tokens at the start.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from manifest.errors import Problem, RefusedError

StepKind = Literal["w", "r", "p"]

MAX_BYTES: Final = 64 * 1024 * 1024
CASE_KEYS: Final = ("nodes", "edges", "verdict_class", "least_depth_that_runs")
REMARK_KEYS: Final = ("case", "vary", "verdict", "simulated", "text")
"""Keys of a case that are for its reader alone."""

EDGE_KEYS: Final = ("depth", "init")


@dataclass(frozen=True, slots=True)
class TopologyStep:
    """`w` put, `r` take, `p` wait for a window."""

    kind: StepKind
    edge: str
    count: int


Block = tuple[int, tuple[TopologyStep, ...]]
"""(times, steps)."""


@dataclass(frozen=True, slots=True)
class Edge:
    """A fifo: places, and tokens at the start."""

    depth: int
    init: int


@dataclass(frozen=True, slots=True)
class Topology:
    """A case: nodes with their blocks (times, steps), edges, and what a file says about it (None = nothing)."""

    case: str
    nodes: Mapping[str, tuple[Block, ...]]
    edges: Mapping[str, Edge]
    expected: str | None
    expected_depths: Mapping[str, int] | None


def read_topologies(text: bytes, where: str) -> tuple[Topology, ...]:
    """Cases of a file, in its order.

    Args:
        text: JSON, an object of cases by name.
        where: name of the file for messages.

    Raises:
        RefusedError: it is no such file; names the first fault.
    """
    try:
        content = json.loads(text, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise _refused(where, f"is no JSON of topologies: {error}") from error
    if not isinstance(content, dict):
        raise _refused(where, "expected an object of cases by name", got=type(content).__name__)
    return tuple(_Reader(where, name).case(value) for name, value in content.items())


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = [name for name, _ in pairs]
    twice = next((n for n in names if names.count(n) > 1), None) if len(set(names)) < len(names) else None
    if twice is not None:
        msg = f"name {twice!r} stands twice in one object"
        raise ValueError(msg)
    return dict(pairs)


def _refused(where: str, what: str, *, expected: str = "", got: str = "") -> RefusedError:
    return RefusedError((Problem(code="TOPOLOGY-FORMAT", where=where, what=what, expected=expected, got=got),))


class _Reader:
    """Reads one case, and says where it is wrong."""

    def __init__(self, where: str, case: str) -> None:
        self.where = where
        self.name = case

    def wrong(self, got: Any, what: str, expected: str) -> RefusedError:
        return _refused(f"{self.where}: case {self.name!r}", what, expected=expected, got=repr(got)[:80])

    def case(self, value: Any) -> Topology:
        if not isinstance(value, dict):
            raise self.wrong(value, "is no topology", "an object with nodes and edges")
        self.known(value, (*CASE_KEYS, *REMARK_KEYS), "")
        for part in ("nodes", "edges"):
            if not isinstance(value.get(part), dict):
                raise self.wrong(value.get(part), part, "an object")
        edges = {name: self.edge(name, edge) for name, edge in value["edges"].items()}
        nodes = {name: self.node(name, blocks, edges) for name, blocks in value["nodes"].items()}
        expected, depths = value.get("verdict_class"), value.get("least_depth_that_runs")
        if expected is not None and not isinstance(expected, str):
            raise self.wrong(expected, "verdict_class", "a verdict")
        if depths is not None:
            if not isinstance(depths, dict):
                raise self.wrong(depths, "least_depth_that_runs", "an object of depths by edge")
            for name, depth in depths.items():
                self.whole(depth, f"least_depth_that_runs: {name!r}", 1)
        return Topology(self.name, nodes, edges, expected, depths)

    def known(self, value: Mapping[str, Any], keys: Sequence[str], place: str) -> None:
        """Refuse a key that means nothing: it may be a slip of one that does."""
        unknown = next((key for key in value if key not in keys), None)
        if unknown is not None:
            raise self.wrong(unknown, f"{place}no such key: {unknown!r}", ", ".join(keys))

    def edge(self, name: str, value: Any) -> Edge:
        if not isinstance(value, dict):
            raise self.wrong(value, f"edge {name!r}", "an object with a depth")
        self.known(value, EDGE_KEYS, f"edge {name!r}: ")
        return Edge(
            self.whole(value.get("depth"), f"edge {name!r}: depth", 1),
            self.whole(value.get("init", 0), f"edge {name!r}: init", 0),
        )

    def node(self, name: str, value: Any, edges: Mapping[str, Edge]) -> tuple[Block, ...]:
        if not isinstance(value, list):
            raise self.wrong(value, f"node {name!r}", "a list of [times, steps]")
        blocks = []
        for index, block in enumerate(value):
            place = f"node {name!r} block {index}"
            if not isinstance(block, list) or len(block) != 2 or not isinstance(block[1], list):
                raise self.wrong(block, place, "[times, [steps]]")
            times = self.whole(block[0], f"{place}: times", 0)
            blocks.append(
                (times, tuple(self.step(step, f"{place} step {i}", edges) for i, step in enumerate(block[1])))
            )
        return tuple(blocks)

    def step(self, value: Any, place: str, edges: Mapping[str, Edge]) -> TopologyStep:
        if not isinstance(value, list) or len(value) != 3 or value[0] not in ("w", "r", "p"):
            raise self.wrong(value, place, '["w" | "r" | "p", edge, n]')
        if not isinstance(value[1], str) or value[1] not in edges:
            raise self.wrong(value[1], f"{place}: edge", "the name of an edge")
        return TopologyStep(value[0], value[1], self.whole(value[2], f"{place}: n", 0))

    def whole(self, value: Any, place: str, least: int) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise self.wrong(value, place, f"a whole number from {least}")
        return value
