"""Who waits for whom when nothing moves: a cycle, or a chain to somebody who will never deliver."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from presim.simulate.engine import Actor, Need
from presim.simulate.host import Host
from presim.simulate.result import Wait


@dataclass(frozen=True, slots=True)
class Edge:
    """An actor, what it needs, and who would have to act; `reason` says why that one never will, "" = it might."""

    actor: Actor
    need: Need
    partner: Actor | None
    reason: str

    def wait(self) -> Wait:
        """The edge as it is reported."""
        lane = self.need.lane
        return Wait(
            actor=self.actor.name,
            op=self.need.op,
            fifo=lane.fifo,
            side=lane.pool,
            step=self.need.step,
            kind=self.need.kind,
            have=self.need.have,
            need=self.need.need,
        )


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What holds up the goal.

    Attributes:
        cycle: each waits for the next, the last for the first; () = none.
        chain: from the goal to somebody who will never deliver; () = none.
        reason: why that one never will.
        crowded: pools on which somebody in the way waits for room, those of the cycle first.
        starved: pools of a cycle in which all wait for objects, so that a first one could start it; () = no such cycle.
    """

    cycle: tuple[Wait, ...]
    chain: tuple[Wait, ...]
    reason: str
    crowded: tuple[str, ...]
    starved: tuple[str, ...]


def edges_of(actor: Actor) -> list[Edge]:
    """What an actor waits for, and on whom."""
    return [_edge(actor, need) for need in actor.needs()]


def _edge(actor: Actor, need: Need) -> Edge:
    lane = need.lane
    if need.want > lane.depth:
        return Edge(actor, need, actor, "")
    partner: Any = lane.filler if need.kind == "full" else lane.drainer
    if partner is None:
        what = "fills" if need.kind == "full" else "drains"
        return Edge(actor, need, None, f"nothing {what} pool {lane.pool!r}")
    if isinstance(partner, Host) and not partner.supplies(lane.fifo):
        return Edge(actor, need, partner, partner.refusal(lane.fifo))
    reason = partner.idle_reason()
    return Edge(actor, need, partner, f"{partner.name}: {reason}" if reason else "")


def stuck(actors: Iterable[Actor]) -> set[int]:
    """Actors (by id) that can never go on, whatever the others do: for the time when some still run.

    The largest set in which each waits for something that only a member of the set, or nobody, could bring.
    """
    waits = {id(a): edges_of(a) for a in actors if not a.queued and not a.done}
    members = {key for key, edges in waits.items() if edges}
    while True:
        free = {
            key
            for key in members
            if not any(e.reason or e.partner is None or id(e.partner) in members for e in waits[key])
        }
        if not free:
            return members
        members -= free


def diagnose(starts: Sequence[Actor]) -> Diagnosis:
    """Follow the waits from the actors that the goal needs.

    Args:
        starts: actors that did not reach the goal.
    """
    graph = _closure(starts)
    cycle = _cycle(starts, graph)
    chain, reason = _chain(starts, graph)
    crowded = [e.need.lane.pool for e in cycle if e.need.kind == "free"]
    crowded += [e.need.lane.pool for edges in graph.values() for e in edges if e.need.kind == "free"]
    crowded += [e.need.lane.pool for edges in graph.values() for e in edges if e.partner is e.actor]
    tokenless = all(e.need.kind == "full" and not isinstance(e.actor, Host) for e in cycle)
    starved = [e.need.lane.pool for e in cycle] if tokenless else []
    return Diagnosis(
        cycle=tuple(e.wait() for e in cycle),
        chain=tuple(e.wait() for e in chain),
        reason=reason,
        crowded=tuple(dict.fromkeys(crowded)),
        starved=tuple(dict.fromkeys(starved)),
    )


def _closure(starts: Sequence[Actor]) -> dict[int, list[Edge]]:
    graph: dict[int, list[Edge]] = {}
    todo = list(starts)
    while todo:
        actor = todo.pop(0)
        if id(actor) in graph:
            continue
        graph[id(actor)] = edges = edges_of(actor)
        todo += [e.partner for e in edges if e.partner is not None and not e.reason]
    return graph


def _cycle(starts: Sequence[Actor], graph: dict[int, list[Edge]]) -> list[Edge]:
    """The first cycle that a depth-first walk meets."""
    finished: set[int] = set()
    for start in starts:
        path: list[Edge] = []
        at = [id(start)]
        choices = [iter(graph[id(start)])]
        while choices:
            edge = next(choices[-1], None)
            if edge is None:
                finished.add(at.pop())
                choices.pop()
                if path:
                    path.pop()
                continue
            if edge.partner is None or edge.reason or id(edge.partner) in finished:
                continue
            path.append(edge)
            if id(edge.partner) in at:
                return path[at.index(id(edge.partner)) :]
            at.append(id(edge.partner))
            choices.append(iter(graph[id(edge.partner)]))
    return []


def _chain(starts: Sequence[Actor], graph: dict[int, list[Edge]]) -> tuple[list[Edge], str]:
    """The shortest chain to somebody who never delivers, and why not."""
    before: dict[int, Edge | None] = {id(s): None for s in starts}
    todo = list(starts)
    while todo:
        actor = todo.pop(0)
        for edge in graph[id(actor)]:
            if edge.reason:
                return [*_back(edge, before), edge], edge.reason
            if edge.partner is not None and id(edge.partner) not in before:
                before[id(edge.partner)] = edge
                todo.append(edge.partner)
    return [], ""


def _back(edge: Edge, before: dict[int, Edge | None]) -> list[Edge]:
    path: list[Edge] = []
    step = before[id(edge.actor)]
    while step is not None:
        path.insert(0, step)
        step = before[id(step.actor)]
    return path
