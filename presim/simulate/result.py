"""What a simulation says: verdict, cause, place, and what would mend it. Frozen values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from numpy.typing import NDArray

Verdict = Literal[
    "completes",
    "completes_leaving",
    "deadlock",
    "starvation",
    "wrong_data",
    "fault",
    "nondeterministic",
    "inconclusive",
]
LeftKind = Literal["tokens", "held", "task"]
FaultKind = Literal[
    "use_after_release",
    "not_held",
    "release_above_held",
    "read_unwritten",
    "write_not_held",
    "kernel",
    "cascade",
    "data",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """An actor that cannot go on.

    Attributes:
        actor: worker, DMA of a fifo, or the host.
        op: what it tries: acquire, send, receive, put, take, push, await.
        fifo: of which fifo.
        side: pool that it waits on.
        step: where in its program, "" for a DMA.
        kind: `full` it needs objects, `free` it needs room.
        have: objects or places that are there.
        need: how many it needs (beyond what it holds).
    """

    actor: str
    op: str
    fifo: str
    side: str
    step: str
    kind: Literal["full", "free"]
    have: int
    need: int

    def line(self) -> str:
        """The wait in words."""
        there = "there" if self.kind == "full" else "free"
        step = f" at step {self.step}" if self.step and self.op != "await" else ""
        words = {
            "send": f"has nothing of fifo {self.fifo!r} to send",
            "receive": f"finds no room for fifo {self.fifo!r} at {self.side.removeprefix(f'{self.fifo}:')}",
            "await": f"awaits {self.need} objects of fifo {self.fifo!r}, {self.have} came",
            "arbitrate": f"does not get {self.fifo}",
            "put": f"puts {self.need} words on cascade {self.fifo!r}, {self.have} fit",
            "take": f"takes a block of cascade {self.fifo!r}, none is there",
        }
        what = words.get(self.op, f"{self.op}s {self.need} of fifo {self.fifo!r}, {self.have} {there}")
        return f"{self.actor} {what}{step}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fix:
    """A pool made deeper, or given objects at the start, which lifts a deadlock; verified by running it.

    Attributes:
        fifo: whose pool.
        side: `produce`, `consume:<actor>`, `shared` or `link`.
        what: `depth` or `init_objects`.
        before: as the design has it.
        after: the least that runs.
        exact: one less was run and does not.
    """

    fifo: str
    side: str
    what: Literal["depth", "init_objects"]
    before: int
    after: int
    exact: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Margin:
    """How much shallower a pool could be: `least` is the least depth that runs, None = not even `depth` does."""

    fifo: str
    side: str
    depth: int
    least: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """Something that is still there when the goal is reached.

    Attributes:
        kind: `tokens` in a pool, `held` by a worker, `task` that the host started and that did not end.
        fifo: of which fifo.
        where: pool or worker.
        counts: after each inference.
        fine: it does not grow: prefetched objects, a window that is kept, the token of a feedback edge.
        why: the judgement in words.
    """

    kind: LeftKind
    fifo: str
    where: str
    counts: tuple[int, ...]
    fine: bool
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A rule of the fifos that a program breaks. `number` counts the objects of the fifo from 0, -1 = none."""

    kind: FaultKind
    actor: str
    step: str
    fifo: str
    number: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Mismatch:
    """The first element that differs from what was expected.

    Attributes:
        where: fifo or host tensor.
        producer: who wrote it.
        inference: 0, 1, 2, ...
        number: of the object within the inference, -1 for a host tensor.
        index: within the object or tensor.
        expected: value.
        got: value.
        different: elements of this object that differ.
        elements: elements of this object that were compared.
        never_written: `got` is the value of memory that nobody wrote.
    """

    where: str
    producer: str
    inference: int
    number: int
    index: tuple[int, ...]
    expected: float
    got: float
    different: int
    elements: int
    never_written: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One of the last things that an actor did."""

    actor: str
    op: str
    fifo: str
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SimResult:
    """What the simulation of one design showed.

    Attributes:
        verdict: see `Verdict`.
        text: the verdict in one line, with the place.
        inferences: that reached their goal.
        cycle: of a deadlock: each waits for the next, the last for the first.
        chain: of a starvation: from the goal to who will never deliver.
        fixes: the smallest change that runs; several belong together.
        alternatives: other single fixes, larger ones last.
        hint: what to do where no depth helps, "" = nothing to say.
        left: tokens, held objects and open tasks.
        fault: of verdict `fault`.
        mismatch: of verdict `wrong_data`.
        compared: elements compared, by fifo or host tensor.
        operations: acquires and releases of workers and DMAs.
        schedules: orders of execution that were tried and agree.
        events: the last events of every actor, unless it completed.
        notes: what a reader has to know.
        outputs: host tensors by inference.
        captured: objects of the fifos that were asked for, one after the other.
    """

    verdict: Verdict
    text: str
    inferences: int = 0
    cycle: tuple[Wait, ...] = ()
    chain: tuple[Wait, ...] = ()
    fixes: tuple[Fix, ...] = ()
    alternatives: tuple[Fix, ...] = ()
    hint: str = ""
    left: tuple[Left, ...] = ()
    fault: Fault | None = None
    mismatch: Mismatch | None = None
    compared: Mapping[str, int] = field(default_factory=dict)
    operations: int = 0
    schedules: int = 0
    events: tuple[Event, ...] = ()
    notes: tuple[str, ...] = ()
    outputs: tuple[Mapping[str, NDArray[Any]], ...] = ()
    captured: Mapping[str, NDArray[Any]] = field(default_factory=dict)

    @property
    def sound(self) -> bool:
        """Whether the design ran to its goal and nothing that it leaves grows."""
        return self.verdict in {"completes", "completes_leaving"} and all(left.fine for left in self.left)


class SimFaultError(Exception):
    """Raised inside the simulated world where a program breaks a rule; becomes the verdict."""

    def __init__(self, fault: Fault) -> None:
        self.fault = fault
        super().__init__(fault.text)


class MismatchError(Exception):
    """Raised inside the simulated world at the first wrong element; becomes the verdict."""

    def __init__(self, mismatch: Mismatch) -> None:
        self.mismatch = mismatch
        super().__init__(mismatch.where)
