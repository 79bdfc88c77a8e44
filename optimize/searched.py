"""What a search of a dispatch works with and what it finds: frozen values."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from manifest.device import Device
from manifest.model import Dispatch, Manifest
from optimize.bounds import Whole
from optimize.pareto import Triple
from presim.design import Design
from presim.directives import Directives
from presim.timing import Calibration, Timing

Goal = Literal["latency", "throughput", "tiles"]
GOALS: Final[tuple[Goal, ...]] = ("latency", "throughput", "tiles")


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchContext:
    """What a search works with.

    Attributes:
        manifest: that holds the dispatch.
        dispatch: what is searched.
        device: the array.
        calibration: of the timing model.
        directives: of the person; never overridden.
        plan: a planned and placed design of directives, or RefusedError.
        time: its times, of several inferences in a row.
        rank: ops of a design, the one that contributes most first; None = by ablation.
    """

    manifest: Manifest
    dispatch: Dispatch
    device: Device
    calibration: Calibration
    directives: Directives
    plan: Callable[[Directives], Design]
    time: Callable[[Design], Timing]
    rank: Callable[[Design], Sequence[str]] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One design that was looked at.

    Attributes:
        name: of it.
        changed: what is different from what the planner decides, in words.
        group: op that it works on, "" = all together.
        directives: that make it.
        bound: at least what it takes.
        design: None where it was not planned or refused.
        tiles: cores; of the bound where there is no design.
        interval_cycles: simulated; 0 where there is no design.
        latency_cycles: simulated.
        accepted: on the front.
        reason: why not, "" where it is.
        turn: of the search op by op, each with a ranking of its own; 0 = all ops together.
        rank: of the group in that ranking, 1 = contributes most.
    """

    name: str
    changed: str
    group: str
    directives: Directives
    bound: Whole
    design: Design | None
    tiles: int
    interval_cycles: int
    latency_cycles: int
    accepted: bool
    reason: str
    turn: int = 0
    rank: int = 0

    @property
    def triple(self) -> Triple:
        """(tiles, interval, latency)."""
        return self.tiles, self.interval_cycles, self.latency_cycles


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """What was found.

    Attributes:
        candidates: all, in the order in which they were looked at, the planner's own first.
        front: those that no other one beats, by tiles.
        best: of the front, for the goal; None = none fits.
        ranking: ops of the planner's own design, the one that contributes most first.
        plans: that were made.
        space: combinations of all choices.
        complete: every combination was planned or is beaten by its bounds.
    """

    candidates: tuple[Candidate, ...]
    front: tuple[Candidate, ...]
    best: Candidate | None
    ranking: tuple[str, ...]
    plans: int
    space: int
    complete: bool


def goal_key(goal: Goal, triple: Triple) -> Triple:
    """The order of designs for a goal."""
    tiles, interval, latency = triple
    return {
        "latency": (latency, interval, tiles),
        "throughput": (interval, tiles, latency),
        "tiles": (tiles, interval, latency),
    }[goal]
