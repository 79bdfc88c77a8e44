"""Search for a better spread of one dispatch: what to try, in which order, and what was found.

Three steps, each until the budget of plans is used up. First all ops together: for falling cycles between inferences,
the fewest cores with which the bounds of every op allow it. Then one op after the other, the one that contributes most
by ablation first. Last, where the space is small, every combination that is left. A candidate whose bounds are beaten
by a design that was found already is not planned. Everything is counted in plans, so the same arguments give the same
result on any machine.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from math import ceil
from typing import Final

from manifest.errors import RefusedError
from optimize.ablation import ablate, ranked
from optimize.bounds import Whole, whole_of
from optimize.candidates import Choice, Space, space_of
from optimize.pareto import front_of
from optimize.searched import GOALS, Candidate, Goal, SearchContext, SearchResult, goal_key
from presim.design import Design
from presim.directives import Directives

__all__ = ["GOALS", "Candidate", "Goal", "SearchContext", "SearchResult", "goal_key", "search"]

FULL: Final = 4096
"""Combinations up to which every one is looked at."""

ALTERNATIVES: Final = 4
"""Choices of one op that are tried in a row."""

RANKED_WORKERS: Final = 96
"""Workers up to which a design that was found is ranked anew; for a larger one that of the planner's design holds."""

RANKINGS: Final = 4
"""Designs whose ops are ranked by ablation."""

Assignment = tuple[int, ...]
"""Number of the choice of every op, in the order of the space."""


def search(context: SearchContext, goal: Goal, max_tiles: int | None, budget: int) -> SearchResult:
    """Search one dispatch.

    Args:
        context: see there.
        goal: what counts first.
        max_tiles: cores that a design may have; None = all of the device.
        budget: plans, at least 1.

    Raises:
        RefusedError: an op fits no way, or the device lacks figures that times need.
    """
    if budget < 1:
        msg = f"budget: expected at least 1 plan, got {budget}"
        raise ValueError(msg)
    space = space_of(
        context.manifest,
        context.dispatch,
        context.device,
        context.calibration,
        context.directives,
        max_tiles=max_tiles,
    )
    return _Search(context, space, goal, max_tiles, budget).run()


@dataclass(slots=True)
class _Search:
    context: SearchContext
    space: Space
    goal: Goal
    max_tiles: int | None
    budget: int
    ops: tuple[str, ...] = ()
    plans: int = 0
    rankings: int = 0
    ranking: tuple[str, ...] = ()
    rows: list[Candidate] = field(default_factory=list)
    seen: dict[Assignment, Candidate | None] = field(default_factory=dict)

    def run(self) -> SearchResult:
        """All steps."""
        self.ops = tuple(self.space.choices)
        start = (0,) * len(self.ops)
        self.look(start, "", given=True)
        first = self.seen[start]
        self.ranking = self.rank(first.design) if first is not None and first.design is not None else ()
        for assignment in self.together():
            self.look(assignment, "")
        self.one_by_one()
        complete = self.space.size <= FULL and self.everything()
        found = [row for row in self.rows if row.design is not None and self.fits(row.tiles)]
        front = front_of(found, lambda row: row.triple)
        names = {row.name for row in front}
        rows = tuple(_settled(row, names, found) for row in self.rows)
        kept = {row.name: row for row in rows}
        front = tuple(kept[row.name] for row in front)
        best = min(front, key=lambda row: goal_key(self.goal, row.triple), default=None)
        return SearchResult(
            candidates=rows,
            front=front,
            best=best,
            ranking=self.ranking,
            plans=self.plans,
            space=self.space.size,
            complete=complete,
        )

    @property
    def over(self) -> bool:
        """Whether the budget is used up."""
        return self.plans >= self.budget

    def fits(self, tiles: int) -> bool:
        """Whether so many cores are allowed."""
        return self.max_tiles is None or tiles <= self.max_tiles

    def rank(self, design: Design) -> tuple[str, ...]:
        """Ops by what they contribute to the goal."""
        if self.context.rank is not None:
            return tuple(self.context.rank(design))
        rows = ablate(design, self.context.device, self.context.calibration, inferences=2, kinds=("op",))
        return ranked(rows, "latency" if self.goal == "latency" else "interval")

    def chosen(self, assignment: Assignment) -> Mapping[str, Choice]:
        """The choice of every op."""
        return {op: self.space.choices[op][i] for op, i in zip(self.ops, assignment, strict=True)}

    def bound(self, assignment: Assignment) -> Whole:
        """At least what a combination takes."""
        return whole_of(self.space.graph, {op: c.bound for op, c in self.chosen(assignment).items()})

    def look(self, assignment: Assignment, group: str, *, given: bool = False, rank: int = 0) -> Candidate | None:
        """Plan and time a combination unless it is known, beaten, too large, or the budget is used up."""
        if assignment in self.seen or self.over:
            return self.seen.get(assignment)
        bound = self.bound(assignment)
        chosen = self.chosen(assignment)
        words = [f"{op}: {chosen[op].words}" for op, i in zip(self.ops, assignment, strict=True) if i]
        row = Candidate(
            name=f"c{len(self.rows):03}",
            changed="; ".join(words) or "nothing: as the planner decides",
            group=group,
            directives=self.directives(chosen),
            bound=bound,
            design=None,
            tiles=bound.tiles,
            interval_cycles=0,
            latency_cycles=0,
            accepted=False,
            reason="" if given else self.beaten(bound),
            turn=self.rankings if rank else 0,
            rank=rank,
        )
        if not row.reason:
            row = self.planned(row)
        self.rows.append(row)
        self.seen[assignment] = row
        return row

    def directives(self, chosen: Mapping[str, Choice]) -> Directives:
        """The directives of a combination; those of the person where nothing was chosen."""
        by_op = dict(self.context.directives.by_op)
        by_op |= {op: c.directive for op, c in chosen.items() if c.directive != self.context.directives.of(op)}
        return Directives(by_op=by_op)

    def beaten(self, bound: Whole) -> str:
        """Why a combination needs no plan, "" where it does."""
        most = self.context.device.core_tiles.value
        for have, what in ((self.max_tiles, "allowed"), (most, "on the array")):
            if have is not None and bound.tiles > have:
                return f"needs {bound.tiles} core tiles, {have} are {what}"
        for row in self.rows:
            if row.design is not None and all(x <= y for x, y in zip(row.triple, bound.triple, strict=True)):
                least = f"{bound.tiles} tiles, interval {ceil(bound.interval)}, latency {ceil(bound.latency)}"
                return f"not planned: at least {least}, no better than {row.name}"
        return ""

    def planned(self, row: Candidate) -> Candidate:
        """A candidate with its design and times, or with why there is none."""
        self.plans += 1
        try:
            design = self.context.plan(row.directives)
            timing = self.context.time(design)
        except RefusedError as error:
            return replace(row, reason=f"refused: {error.problems[0].line()}")
        tiles = len(design.workers)
        reason = "" if self.fits(tiles) else f"needs {tiles} core tiles, {self.max_tiles} are allowed"
        return replace(
            row,
            design=design,
            tiles=tiles,
            interval_cycles=ceil(timing.interval_cycles),
            latency_cycles=ceil(timing.latency_cycles),
            reason=reason,
        )

    def together(self) -> Sequence[Assignment]:
        """Combinations of all ops for falling intervals, each with the fewest cores; what the goal wants first.

        Among choices of as many cores some are quick to their first object and some to their last: both are tried.
        """
        found = dict.fromkeys(a for by_first in (True, False) for a in self.falling(by_first=by_first))
        steps = sorted(
            (a for a in found if not self.too_large(a)),
            key=lambda a: (-self.bound(a).interval, self.bound(a).triple, a),
        )
        most = max(2, self.budget // 2)
        if len(steps) > most:
            steps = [steps[round(i * (len(steps) - 1) / (most - 1))] for i in range(most)]
        return steps if self.goal == "tiles" else steps[::-1]

    def too_large(self, assignment: Assignment) -> bool:
        tiles, most = self.bound(assignment).tiles, self.context.device.core_tiles.value
        return not self.fits(tiles) or (most is not None and tiles > most)

    def falling(self, *, by_first: bool) -> Iterator[Assignment]:
        """Combinations for falling intervals, until an op cannot follow or the array is full."""
        target: float | None = None
        while (picked := self.cheapest(target, by_first=by_first)) is not None:
            yield picked
            if self.too_large(picked):
                return
            target = max((c.bound.interval for c in self.chosen(picked).values()), default=0.0)

    def cheapest(self, below: float | None, *, by_first: bool) -> Assignment | None:
        """For every op its choice of the fewest cores with an interval below a target; None = there is none."""
        picked = []
        for found in self.space.choices.values():
            usable = [i for i, c in enumerate(found) if below is None or c.bound.interval < below]
            if not usable:
                return None
            picked.append(min(usable, key=lambda i: (*_price(found[i], by_first=by_first), i)))
        return tuple(picked) if picked else None

    def weight(self, choice: Choice) -> tuple[float, float]:
        """What counts among choices of the same number of cores."""
        bound = choice.bound
        return (bound.first, bound.interval) if self.goal == "latency" else (bound.interval, bound.first)

    def one_by_one(self) -> None:
        """Change one op after the other, the one that contributes most first, as long as that helps."""
        while not self.over and self.rankings < RANKINGS:
            current = self.best()
            if current is None:
                return
            self.rankings += 1
            assignment, row = current
            if row.design is None:
                return
            anew = len(row.design.workers) <= RANKED_WORKERS or not self.ranking
            order = enumerate(self.rank(row.design) if anew else self.ranking, 1)
            if not any(self.improves(assignment, row, op, rank) for rank, op in order):
                return

    def best(self) -> tuple[Assignment, Candidate] | None:
        """The best combination so far."""
        found = [(a, r) for a, r in self.seen.items() if r is not None and r.design is not None and self.fits(r.tiles)]
        return min(found, key=lambda item: goal_key(self.goal, item[1].triple), default=None)

    def improves(self, assignment: Assignment, current: Candidate, op: str, rank: int) -> bool:
        """Try other choices of one op; whether one is better for the goal."""
        if op not in self.ops:
            return False
        place = self.ops.index(op)
        for index in self.alternatives(op, assignment[place]):
            row = self.look((*assignment[:place], index, *assignment[place + 1 :]), op, rank=rank)
            done = row is not None and row.design is not None and self.fits(row.tiles)
            if row is not None and done and goal_key(self.goal, row.triple) < goal_key(self.goal, current.triple):
                return True
        return False

    def alternatives(self, op: str, now: int) -> Sequence[int]:
        """Choices of an op that may be better for the goal, the most promising first."""
        found = self.space.choices[op]
        here = found[now].bound
        usable = [i for i, c in enumerate(found) if i != now and self.promises(c, found[now])]
        if self.goal == "tiles":
            usable.sort(key=lambda i: (found[i].bound.workers, found[i].bound.interval, i))
        else:
            usable.sort(key=lambda i: (*self.weight(found[i]), found[i].bound.workers, i))
        near = [i for i in usable if found[i].bound.workers <= max(2 * here.workers, 4)]
        return list(dict.fromkeys([*near[: ALTERNATIVES // 2], *usable[: ALTERNATIVES // 2]]))

    def promises(self, other: Choice, now: Choice) -> bool:
        """Whether a choice has a better bound for the goal."""
        a, b = other.bound, now.bound
        if a == b and self.goal != "tiles":
            return _depth(other) > _depth(now)
        if self.goal == "tiles":
            return a.workers < b.workers
        if self.goal == "latency":
            return a.interval + a.first < b.interval + b.first
        return a.interval < b.interval

    def everything(self) -> bool:
        """Every combination that is left, by its bounds; whether the budget was enough."""
        left = [a for a in product(*(range(len(c)) for c in self.space.choices.values())) if a not in self.seen]
        left.sort(key=lambda a: (goal_key(self.goal, self.bound(a).triple), a))
        for assignment in left:
            self.look(assignment, "")
        return all(assignment in self.seen for assignment in left)


def _price(choice: Choice, *, by_first: bool) -> tuple[float, ...]:
    """What a choice costs: cores, then cycles, then how little it keeps where paths meet."""
    bound = choice.bound
    cycles = (bound.first, bound.interval) if by_first else (bound.interval, bound.first)
    return bound.workers, *cycles, -_depth(choice)


def _depth(choice: Choice) -> int:
    """Objects that are kept; 0 = as the planner decides."""
    return choice.directive.depth or 0


def _settled(row: Candidate, front: set[str], found: Sequence[Candidate]) -> Candidate:
    """A candidate with whether it is on the front, and which one beats it."""
    if row.name in front:
        return replace(row, accepted=True)
    if row.reason:
        return row
    better = next(
        o for o in found if o.name in front and all(x <= y for x, y in zip(o.triple, row.triple, strict=True))
    )
    return replace(row, reason=f"beaten by {better.name} ({better.tiles} tiles, interval {better.interval_cycles})")
