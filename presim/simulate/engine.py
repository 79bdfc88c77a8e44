"""The scheduler: actors that run until they cannot, in an order that a seed decides.

Why actors are state machines, and not greenlets or generators: position and held objects of every actor are plain
values that a verdict can print, no thread of control has to be torn down when the world is frozen, and no dependency
is needed. Figures: docs/why/simulator.md.
"""

import random
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from presim.simulate.lane import Lane
from presim.simulate.result import Event

QUANTUM: Final = 256
"""Instructions that an actor runs before others get their turn."""

Outcome = Literal["goal", "fixpoint", "bound"]


@dataclass(frozen=True, slots=True)
class Need:
    """What an actor waits for at a lane: `want` in all, `need` beyond what it holds, `have` of it there."""

    lane: Lane
    kind: Literal["full", "free"]
    op: str
    step: str
    have: int
    need: int
    want: int


class Actor:
    """Something that runs until it is blocked, done, or its turn is over."""

    __slots__ = ("done", "log", "name", "operations", "queue", "queued")

    def __init__(self, name: str, log_events: int = 16) -> None:
        self.name = name
        self.queue: list[Actor] | deque[Actor] = []
        self.queued = False
        self.done = False
        self.operations = 0
        self.log: deque[tuple[str, str, int]] = deque(maxlen=log_events)

    def wake(self) -> None:
        """Put it among the actors that may go on."""
        if not self.queued:
            self.queued = True
            self.queue.append(self)

    def run(self, budget: int) -> int:
        """Run at most `budget` instructions; returns those left: 0 = it could go on."""
        raise NotImplementedError

    def needs(self) -> list[Need]:
        """What it waits for, everything that is missing; () where it is done or idle."""
        raise NotImplementedError

    def idle_reason(self) -> str:
        """Why it will never do anything again, "" where it might."""
        return "it has ended" if self.done else ""

    def events(self) -> list[Event]:
        """What it did last, oldest first."""
        return [Event(actor=self.name, op=op, fifo=fifo, number=number) for op, fifo, number in self.log]


class Goal:
    """Set by the actor that knows when the run has shown what it should."""

    __slots__ = ("reached",)

    def __init__(self) -> None:
        self.reached = False


class Engine:
    """Runs actors to a goal, to a fixpoint or to a bound.

    Args:
        actors: in the order in which they start.
        max_steps: bound of instructions over all runs; 0 or more.
        seed: None = round-robin; else who is next and for how long is drawn at random.
    """

    def __init__(self, actors: Iterable[Actor], *, max_steps: int, seed: int | None = None) -> None:
        self.actors: Sequence[Actor] = tuple(actors)
        self.steps = 0
        self.max_steps = max_steps
        self.random = None if seed is None else random.Random(seed)
        self.queue: list[Actor] | deque[Actor] = deque() if self.random is None else []
        for actor in self.actors:
            actor.queue = self.queue
            actor.wake()

    def run(self, goal: Goal | None = None, *, limit: int | None = None) -> Outcome:
        """Run until the goal is reached, nobody can go on, or the bound is met.

        Args:
            goal: checked after every turn; None = run to the fixpoint.
            limit: instructions for this run, beside the bound of all.
        """
        bound = self.max_steps if limit is None else min(self.max_steps, self.steps + limit)
        while self.queue:
            if self.steps >= bound:
                return "bound"
            actor, budget = self._next(bound - self.steps)
            actor.queued = False
            rest = actor.run(budget)
            self.steps += budget - rest + 1
            if rest == 0 and not actor.done:
                actor.wake()
            if goal is not None and goal.reached:
                return "goal"
        return "fixpoint"

    def _next(self, left: int) -> tuple[Actor, int]:
        """Who runs next, and for how many instructions."""
        if self.random is None or isinstance(self.queue, deque):
            actor: Actor = self.queue.popleft() if isinstance(self.queue, deque) else self.queue.pop(0)
            return actor, min(QUANTUM, left)
        queue = self.queue
        at = self.random.randrange(len(queue))
        queue[at], queue[-1] = queue[-1], queue[at]
        return queue.pop(), min(self.random.choice((1, 1, 2, 3, 5, 8, QUANTUM)), left)

    @property
    def operations(self) -> int:
        """Acquires and releases of all actors so far."""
        return sum(actor.operations for actor in self.actors)
