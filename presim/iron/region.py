"""Nodes of a traced core function into steps of a design.

Acquires, releases and kernel calls with plain scalars become steps. What stands between them as plain Python (elements
read, computed, written, loops of those, calls whose scalars are computed) becomes one kernel of type `traced`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from presim.design import Acquire, Argument, Call, Kernel, Loop, Release, Side, Step
from presim.iron.buffer import BaseKernel, is_static
from presim.iron.errors import UnsupportedError
from presim.iron.expr import Tree, counters_of, scalar_text, temps_of, tree_of
from presim.iron.trace import (
    AcquireNode,
    CallNode,
    IfNode,
    LoadNode,
    LoopNode,
    Memory,
    Node,
    ReleaseNode,
    StoreNode,
    UnsetNode,
    WaitNode,
)
from presim.iron.traced import TracedKernel

MOST_TRIPS = 1 << 31


@dataclass(frozen=True, slots=True)
class Wait:
    """A worker that waits until a barrier is `value`; `kept` = it takes the value off the barrier itself."""

    barrier: str
    worker: str
    value: int
    kept: bool


@dataclass(slots=True)
class Rows:
    """Kernels that the programs need, and the fifos in which tokens of barriers come.

    Attributes:
        externals: kernels in C++, by symbol.
        traced: kernels of plain Python, by symbol.
        waits: waits for barriers by the name of the fifo of their tokens.
    """

    externals: dict[str, BaseKernel] = field(default_factory=dict)
    traced: dict[str, TracedKernel] = field(default_factory=dict)
    waits: dict[str, Wait] = field(default_factory=dict)

    def kernels(self) -> tuple[Kernel, ...]:
        """Rows of the design."""
        names = [(n, "external") for n in self.externals] + [(n, "traced") for n in self.traced]
        return tuple(Kernel(name=n, op="", type=t, rounding="", saturation="") for n, t in names)


class Lowering:
    """Lowers the program of one worker.

    Args:
        worker: its name.
        both: fifos of which it has both ends.
        rows: collects kernels.
    """

    def __init__(self, worker: str, both: frozenset[str], rows: Rows) -> None:
        self.worker = worker
        self.both = both
        self.rows = rows
        self.loads: dict[int, LoadNode] = {}
        self.written: set[str] = set()
        self.unset: set[str] = set()

    def program(self, nodes: Sequence[Node]) -> tuple[Step, ...]:
        """Steps of the whole program."""
        self._survey(nodes)
        return self._body(nodes)

    def _survey(self, nodes: Sequence[Node]) -> None:
        """Note every load, and the buffers that something writes."""
        for node in nodes:
            if isinstance(node, LoadNode):
                self.loads[node.temp] = node
            elif isinstance(node, StoreNode):
                self.written.add(node.memory.name)
            elif isinstance(node, CallNode):
                self.written.update(a.name for a in node.arguments if isinstance(a, Memory) and a.kind == "buffer")
            elif isinstance(node, LoopNode):
                self._survey(node.body)
            elif isinstance(node, IfNode):
                self._survey((*node.then, *node.other))
            elif isinstance(node, UnsetNode):
                self.unset.add(node.barrier)

    def _body(self, nodes: Sequence[Node]) -> tuple[Step, ...]:
        steps: list[Step] = []
        plain: list[Node] = []
        for node in nodes:
            if is_plain(node):
                plain.append(node)
                continue
            steps += self._region(plain)
            plain = []
            steps += self._steps(node)
        return (*steps, *self._region(plain))

    def _steps(self, node: Node) -> tuple[Step, ...]:
        if isinstance(node, AcquireNode):
            return (Acquire(fifo=node.fifo, count=node.count, side=self._side(node.fifo, node.side)),)
        if isinstance(node, ReleaseNode):
            return (Release(fifo=node.fifo, count=node.count, side=self._side(node.fifo, node.side)),)
        if isinstance(node, LoopNode):
            return (Loop(times=node.times, body=self._body(node.body), counter=node.counter),)
        if isinstance(node, WaitNode):
            return self._wait(node)
        if isinstance(node, UnsetNode):
            return self._unset(node)
        assert isinstance(node, CallNode)
        return (self._call(node),)

    def _side(self, fifo: str, side: Side) -> Side:
        return side if fifo in self.both else ""

    def _wait(self, node: WaitNode) -> tuple[Step, ...]:
        """A wait takes a token; it goes back at once unless the core itself takes the value off the barrier."""
        name = self._token(node.barrier, node.value)
        kept = node.barrier in self.unset
        self.rows.waits[name] = Wait(node.barrier, self.worker, node.value, kept)
        taken = Acquire(fifo=name, count=1)
        return (taken,) if kept else (taken, Release(fifo=name, count=1))

    def _token(self, barrier: str, value: int) -> str:
        return f"{barrier}={value}>{self.worker}"

    def _unset(self, node: UnsetNode) -> tuple[Step, ...]:
        name = self._token(node.barrier, node.value)
        if name not in self.rows.waits:
            msg = f"worker {self.worker!r}: release_with_value({node.value}) of a barrier without a wait for that value"
            raise UnsupportedError(msg)
        return (Release(fifo=name, count=1),)

    def _argument(self, memory: Memory) -> Argument:
        if memory.kind == "buffer":
            return Argument(kind="buffer", name=memory.name)
        return Argument(kind="fifo", name=memory.name, index=memory.index, side=self._side(memory.name, memory.side))

    def _call(self, node: CallNode) -> Call:
        self.rows.externals.setdefault(node.kernel.name, node.kernel)
        numbers = [scalar_text(a) for a in node.arguments if not isinstance(a, Memory)]
        return Call(
            kernel=node.kernel.name,
            arguments=tuple(self._argument(a) for a in node.arguments if isinstance(a, Memory)),
            scalars=tuple((f"s{i}", n) for i, n in enumerate(numbers) if n is not None),
        )

    def _region(self, nodes: Sequence[Node]) -> list[Step]:
        """One traced kernel for plain nodes that come one after the other; none where they do nothing."""
        if not any(_acts(n) for n in nodes):
            return []
        region = _Region(self)
        statements = region.statements(nodes)
        outside = sorted(region.counters - region.inside)
        symbol = f"{self.worker}.traced{sum(n.startswith(f'{self.worker}.traced') for n in self.rows.traced)}"
        self.rows.traced[symbol] = TracedKernel(
            symbol=symbol,
            parameters=tuple((m.type.dtype, m.type.shape, m in region.stored) for m in region.memories),
            counters=tuple(outside),
            statements=tuple(statements),
        )
        return [
            Call(
                kernel=symbol,
                arguments=tuple(self._argument(m) for m in region.memories),
                scalars=tuple((f"s{i}", f"@{name}") for i, name in enumerate(outside)),
            )
        ]


class _Region:
    """Statements of one traced kernel."""

    def __init__(self, lowering: Lowering) -> None:
        self.lowering = lowering
        self.memories: list[Memory] = []
        self.stored: set[Memory] = set()
        self.counters: set[str] = set()
        self.inside: set[str] = set()
        self.known: set[int] = set()

    def statements(self, nodes: Iterable[Node]) -> list[Any]:
        found: list[Any] = []
        for node in nodes:
            found += self._statement(node)
        return found

    def _statement(self, node: Node) -> list[Any]:
        if isinstance(node, LoadNode):
            before = [s for i in node.index for s in self._needed(i)]
            self.known.add(node.temp)
            return [*before, ["load", node.temp, self._parameter(node.memory), self._trees(node.index)]]
        if isinstance(node, StoreNode):
            before = [s for t in (*node.index, node.value) for s in self._needed(t)]
            self.stored.add(node.memory)
            index = self._trees(node.index)
            return [*before, ["store", self._parameter(node.memory), index, self._tree(node.value)]]
        if isinstance(node, LoopNode):
            if node.times > MOST_TRIPS:
                msg = f"worker {self.lowering.worker!r}: an endless loop that acquires nothing"
                raise UnsupportedError(msg)
            self.inside.add(node.counter)
            return [["loop", node.counter, node.times, self.statements(node.body)]]
        if isinstance(node, IfNode):
            before = self._needed(node.condition)
            branches = [self.statements(node.then), self.statements(node.other)]
            return [*before, ["if", self._tree(node.condition), *branches]]
        assert isinstance(node, CallNode)
        return self._call(node)

    def _call(self, node: CallNode) -> list[Any]:
        self.lowering.rows.externals.setdefault(node.kernel.name, node.kernel)
        before: list[Any] = []
        arguments: list[Any] = []
        for argument in node.arguments:
            if isinstance(argument, Memory):
                self.stored.add(argument)
                arguments.append(["memory", self._parameter(argument)])
                continue
            tree, _ = tree_of(argument)
            before += self._needed(tree)
            arguments.append(["number", self._tree(tree)])
        return [*before, ["call", node.kernel.name, arguments]]

    def _needed(self, tree: Tree) -> list[Any]:
        """Loads again what was read before this region, where that is still the same."""
        found: list[Any] = []
        for temp in sorted(temps_of(tree) - self.known):
            load = self.lowering.loads[temp]
            name = load.memory.name
            if load.memory.kind != "buffer" or name in self.lowering.written:
                msg = (
                    f"worker {self.lowering.worker!r}: an element of {name!r} is read before an acquire or release and"
                    " used behind it; the simulator follows that for buffers that nothing writes"
                )
                raise UnsupportedError(msg)
            found += self._statement(load)
        return found

    def _parameter(self, memory: Memory) -> int:
        if memory not in self.memories:
            self.memories.append(memory)
        return self.memories.index(memory)

    def _trees(self, trees: Sequence[Tree]) -> list[Any]:
        return [self._tree(t) for t in trees]

    def _tree(self, tree: Tree) -> Any:
        self.counters |= counters_of(tree)
        return tree


def is_plain(node: Node) -> bool:
    """Whether a node belongs into a traced kernel."""
    if isinstance(node, LoadNode | StoreNode | IfNode):
        return True
    if isinstance(node, CallNode):
        return not all(isinstance(a, Memory) or is_static(a) for a in node.arguments)
    if isinstance(node, LoopNode):
        return bool(node.body) and all(_fits(n) for n in node.body) and any(is_plain(n) for n in node.body)
    return False


def _fits(node: Node) -> bool:
    """Whether a node may stand in a traced loop, calls with plain scalars too."""
    if isinstance(node, LoopNode):
        return all(_fits(n) for n in node.body)
    return isinstance(node, LoadNode | StoreNode | CallNode | IfNode)


def _acts(node: Node) -> bool:
    """Whether a node has an effect; a load alone has none."""
    if isinstance(node, LoopNode):
        return any(_acts(n) for n in node.body)
    if isinstance(node, IfNode):
        return any(_acts(n) for n in (*node.then, *node.other))
    return isinstance(node, StoreNode | CallNode)
