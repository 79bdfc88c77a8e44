"""Dataflow topologies: plain nodes and edges, judged by the same engine as designs."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from presim.simulate.build import Changes
from presim.simulate.diagnose import Diagnosis, diagnose
from presim.simulate.engine import Engine, Need
from presim.simulate.fixes import Allowance, search
from presim.simulate.lane import Lane
from presim.simulate.result import Wait
from presim.simulate.worker import (
    NO_LOOP,
    Enter,
    GiveBack,
    HoldEmpty,
    HoldFull,
    Instruction,
    Next,
    Port,
    Restart,
    Worker,
)
from presim.topology_file import Block, Topology, TopologyStep

TopologyVerdict = Literal["runs", "runs_leaving_tokens", "deadlock", "rejected", "inconclusive"]

MAX_STEPS: Final = 20_000_000
FIX_RUNS: Final = 400
SEARCH: Final = 2
"""All runs that look for the smallest change may take so many times the instructions of one run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What is said about a case.

    Attributes:
        case: its name.
        verdict: see `TopologyVerdict`.
        cycle: (node, step, edge, have, need), each waits for the next.
        edge: the edge to deepen, None = no single one helps.
        least_depth: its least depth that runs, verified.
        left: tokens by edge.
        reason: in words.
    """

    case: str
    verdict: TopologyVerdict
    cycle: tuple[tuple[str, str, str, int, int], ...] = ()
    edge: str | None = None
    least_depth: int | None = None
    left: Mapping[str, int]
    reason: str = ""

    def line(self) -> str:
        """One line of JSON."""
        return json.dumps(
            {
                "case": self.case,
                "verdict": self.verdict,
                "cycle": [list(w) for w in self.cycle],
                "edge": self.edge,
                "least_depth": self.least_depth,
                "left": dict(self.left),
                "reason": self.reason,
            }
        )


@dataclass(slots=True)
class _Use:
    """How a case uses an edge: nodes that put and take, tokens in all, and the most a reader has to see at once."""

    writers: list[str]
    readers: list[str]
    puts: int = 0
    takes: int = 0
    window: int = 0
    reach: int = 0


def _uses(topology: Topology) -> dict[str, _Use]:
    uses = {name: _Use([], []) for name in topology.edges}
    for node, blocks in topology.nodes.items():
        for times, steps in blocks:
            for step in steps if times else ():
                if step.count:
                    ends = uses[step.edge].writers if step.kind == "w" else uses[step.edge].readers
                    if node not in ends:
                        ends.append(node)
            _count(uses, times, steps)
    return uses


def _count(uses: Mapping[str, _Use], times: int, steps: Sequence[TopologyStep]) -> None:
    """Add a block to the counts; a window reaches past what was taken before it, the most in the last round."""
    if not times:
        return
    before = {edge: use.takes for edge, use in uses.items()}
    once = {edge: sum(s.count for s in steps if s.kind == "r" and s.edge == edge) for edge in uses}
    inside = dict.fromkeys(uses, 0)
    for step in steps:
        use = uses[step.edge]
        if step.kind == "w":
            use.puts += times * step.count
        elif step.kind == "r":
            inside[step.edge] += step.count
        else:
            use.window = max(use.window, step.count)
            taken = before[step.edge] + (times - 1) * once[step.edge] + inside[step.edge]
            use.reach = max(use.reach, taken + step.count)
    for edge, use in uses.items():
        use.takes += times * once[edge]
        use.reach = max(use.reach, use.takes)


def _faults(topology: Topology, uses: Mapping[str, _Use]) -> Iterator[str]:
    """What is wrong whatever the order: no depth helps."""
    for name, use in uses.items():
        edge = topology.edges[name]
        if len(use.readers) > 1:
            yield f"edge {name!r} has {len(use.readers)} readers ({', '.join(use.readers)}); a broadcast is needed"
        if len(use.writers) > 1:
            yield f"edge {name!r} has {len(use.writers)} writers ({', '.join(use.writers)}), expected one"
        if edge.init > edge.depth:
            yield f"edge {name!r} starts with {edge.init} tokens and has places for {edge.depth}"
        if use.window > edge.depth:
            yield f"edge {name!r}: a window of {use.window} is above its depth {edge.depth}"
        sent = edge.init + use.puts
        if use.reach > sent:
            whose = "" if use.writers else ", and no node puts any"
            yield f"edge {name!r}: {sent} tokens are sent, {use.reach} are wanted{whose}"


class _Window(HoldFull):
    """Wait until as many tokens are there; those that were waited for before count."""

    __slots__ = ()

    def needs(self, worker: Worker) -> list[Need]:
        """See `Instruction.needs`."""
        lane = self.port.lane
        have = lane.published - lane.freed
        return [Need(lane, "full", "window", worker.where(self), have, self.count, self.count)]


class _Net:
    """A topology as workers and lanes; new for every run."""

    def __init__(self, topology: Topology, changes: Changes | None = None) -> None:
        changes = changes or Changes()
        self.lanes = {}
        for name, edge in topology.edges.items():
            initial = changes.initials.get(name, edge.init)
            self.lanes[name] = Lane(name, name, changes.depths.get(name, edge.depth), ring=1, initial=initial)
        self.nodes = tuple(self._node(name, blocks) for name, blocks in topology.nodes.items())

    def _node(self, name: str, blocks: Sequence[Block]) -> Worker:
        node = Worker(name, while_true=False, log_events=0)
        code: list[Instruction] = []
        ports: dict[tuple[str, bool], Port] = {}
        loops = 0
        for index, (times, steps) in enumerate(blocks):
            if not any(step.count for step in steps):
                continue
            enter = Enter(((index, loops),), loops, times)
            outer = loops
            loops += 1
            code.append(enter)
            body = len(code)
            for at, step in enumerate(steps):
                place = ((index, outer), (at, NO_LOOP))
                port = self._port(node, ports, step.edge, fills=step.kind == "w")
                if step.kind == "p":
                    code.append(_Window(place, port, step.count))
                    continue
                again = Enter(place, loops, step.count)
                hold = HoldEmpty if port.fills else HoldFull
                code += [again, hold(place, port, 1), GiveBack(place, port, 1)]
                code.append(Next(place, loops, step.count, len(code) - 2))
                again.beyond = len(code)
                loops += 1
            code.append(Next(((index, outer),), outer, times, body))
            enter.beyond = len(code)
        node.code = [*code, Restart(((len(blocks), NO_LOOP),))]
        node.counters = [0] * loops
        return node

    def _port(self, node: Worker, ports: dict[tuple[str, bool], Port], edge: str, *, fills: bool) -> Port:
        if (edge, fills) not in ports:
            lane = self.lanes[edge]
            if fills:
                lane.filler = node
            else:
                lane.drainer = node
            ports[edge, fills] = Port(edge, lane, fills=fills, opaque=True)
        return ports[edge, fills]

    def run(self, max_steps: int, allowance: Allowance | None = None) -> bool | None:
        """True all nodes end, False they cannot, None the bound or that of the allowance came first."""
        engine = Engine(self.nodes, max_steps=max_steps if allowance is None else min(max_steps, allowance.left))
        outcome = engine.run()
        if allowance is not None:
            allowance.spend(engine.steps)
        return None if outcome == "bound" else all(node.done for node in self.nodes)

    def left(self) -> dict[str, int]:
        """Tokens by edge, where there are any."""
        counts = {name: lane.published - lane.freed for name, lane in self.lanes.items()}
        return {name: count for name, count in counts.items() if count}


def judge_topology(topology: Topology, *, max_steps: int = MAX_STEPS) -> Judgement:
    """Say what a topology does.

    Args:
        topology: a case.
        max_steps: instructions of one run; beyond it the verdict is `inconclusive`. The search for the smallest change
            of a deadlock ends after `SEARCH` times as many; the verdict stands without it.
    """
    uses = _uses(topology)
    faults = list(_faults(topology, uses))
    net = _Net(topology)
    if faults:
        return Judgement(case=topology.case, verdict="rejected", left={}, reason="; ".join(faults))
    outcome = net.run(max_steps)
    left = net.left()
    if outcome is None:
        reason = f"{max_steps} instructions were not enough to tell; raise --max-steps"
        return Judgement(case=topology.case, verdict="inconclusive", left=left, reason=reason)
    if outcome:
        more = {name: count for name, count in left.items() if count != topology.edges[name].init}
        verdict: TopologyVerdict = "runs_leaving_tokens" if more else "runs"
        return Judgement(case=topology.case, verdict=verdict, left=left, reason=_left_text(more))
    return _dead(topology, net, uses, max_steps)


def _left_text(left: Mapping[str, int]) -> str:
    return "; ".join(f"edge {name!r} keeps {count} tokens that nobody takes" for name, count in left.items())


def _dead(topology: Topology, net: _Net, uses: Mapping[str, _Use], max_steps: int) -> Judgement:
    found: Diagnosis = diagnose([node for node in net.nodes if not node.done])
    depths = {name: edge.depth for name, edge in topology.edges.items()}

    most = {name: topology.edges[name].init + use.puts for name, use in uses.items()}
    allowance = Allowance(SEARCH * max_steps, least=sum(len(node.code) for node in net.nodes))

    def trial(changes: Changes) -> bool | None:
        return _Net(topology, changes).run(max_steps, allowance) if allowance.left > 0 else None

    fixed = search(
        trial,
        depths=depths,
        crowded=found.crowded,
        starved=found.starved,
        most=most,
        unlimited=trial(Changes(depths={name: max(depths[name], count) for name, count in most.items()})),
        runs=FIX_RUNS,
    )
    edge, least, reason = None, None, ""
    if fixed.singles:
        ((name, depth),) = fixed.singles[0].after.items()
        if fixed.singles[0].exact:
            edge, least, reason = name, depth, f"edge {name!r} needs depth {depth} (it has {depths[name]})"
        else:
            reason = f"depth {depth} of edge {name!r} lets it run, a smaller one may too"
    elif fixed.joint is not None:
        reason = "no single edge helps; together: " + ", ".join(f"{e} {d}" for e, d in fixed.joint.after.items())
    elif fixed.initial is not None:
        ((start, count),) = fixed.initial.after.items()
        reason = f"no depth helps: edge {start!r} needs {count} token{'s' if count > 1 else ''} at the start"
    elif fixed.any_depth is False:
        reason = "no depth helps: every node of the cycle waits for the next to begin"
    if fixed.exhausted:
        reason = f"{reason}; the search was cut short, raise --max-steps".removeprefix("; ")
    waits = found.cycle or found.chain
    return Judgement(
        case=topology.case,
        verdict="deadlock",
        cycle=tuple(_wait(w) for w in waits),
        edge=edge,
        least_depth=least,
        left=net.left(),
        reason=reason or found.reason,
    )


def _wait(wait: Wait) -> tuple[str, str, str, int, int]:
    kind = "w" if wait.kind == "free" else "p" if wait.op == "window" else "r"
    return (wait.actor, kind, wait.fifo, wait.have, wait.need)


def difference(topology: Topology, judgement: Judgement) -> str:
    """What a judgement and the file's own verdict do not agree on, "" = nothing, or the file says none."""
    if topology.expected is not None and topology.expected != judgement.verdict:
        return f"case {topology.case!r}: expected {topology.expected}, got {judgement.verdict}"
    depths = topology.expected_depths
    found = {} if judgement.edge is None else {judgement.edge: judgement.least_depth}
    if depths is not None and judgement.verdict == "deadlock" and found != depths:
        return f"case {topology.case!r}: expected least depths {dict(depths)}, got {found}"
    return ""
