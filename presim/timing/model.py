"""What the timing model says. Everything is predicted."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Something that an actor did, in cycles from the start."""

    actor: str
    what: str
    begin: float
    end: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ActorTime:
    """Cycles of a worker or a DMA over all inferences.

    Attributes:
        actor: name.
        kind: worker, or where the stream ends: `on_chip`, `shim`.
        place: tile in words.
        busy: computing or moving.
        locks: acquiring and releasing without waiting.
        stall: waiting.
        stalled_on: the fifo that it waited for longest, "" = none.
        moved_bytes: of a DMA.
        macs: of a worker.
    """

    actor: str
    kind: Literal["worker", "on_chip", "shim"]
    place: str
    busy: float
    locks: float
    stall: float
    stalled_on: str
    moved_bytes: int = 0
    macs: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Predicted times of a design.

    Attributes:
        design: dispatch.
        inferences: run back to back with their inputs there from the start.
        finished: cycle at which the last output of each inference is in external memory.
        actors: workers and DMAs.
        spans: what they did, for the trace; at most `predict.MAX_SPANS`, whole inferences from the first.
        clock_mhz: of the array, None = not published.
    """

    design: str
    inferences: int
    finished: tuple[float, ...]
    actors: tuple[ActorTime, ...]
    spans: tuple[Span, ...]
    clock_mhz: int | None

    @property
    def latency_cycles(self) -> float:
        """From the start to the last output of the first inference."""
        return self.finished[0]

    @property
    def interval_cycles(self) -> float:
        """Cycles per inference once the pipeline is full; the latency where there was only one inference."""
        if self.inferences == 1:
            return self.finished[0]
        return (self.finished[-1] - self.finished[0]) / (self.inferences - 1)
