"""Place the blocks of a problem: what counting says, a packing to begin with, then CP-SAT; with cost, bound and gap.

Reproducible: the solver stops after a number of its own deterministic units, its workers take turns, their number and
the seed are fixed. The wall clock is only a guard; what it cuts short says so.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal

from ortools.sat.python import cp_model

from optimize.placement.clusters import bounds_of, clusters_of
from optimize.placement.counting import floor_of, impossible
from optimize.placement.geometry import Geometry
from optimize.placement.legality import cost_of, violations
from optimize.placement.model import Model
from optimize.placement.packing import STEPS, pack
from optimize.placement.problem import Placement, Problem

Status = Literal["optimal", "feasible", "infeasible", "unknown"]

WORKERS: Final = 2
CORE: Final = ("core",)
BOTH: Final = ("core", "default_lp")
"""Searches of the solver that prove: chains want the relaxation, fans and residuals the cores. Each of these two proves
what the other does not in a fraction of the time; with all eight of the solver each gets little of the limit."""

IMPROVEMENT: Final = ("default_lp",)
"""What runs beside the large neighbourhoods, when a proof was not reached."""

NEIGHBOURHOODS: Final = ("*lns*", "rins*", "rens*", "feasibility_pump", "ls*", "fj*", "fs_random*")
"""Heuristics of the solver: left out of proofs, they take turns with them."""

IMPROVEMENT_SHARE: Final = {CORE: 0.1, BOTH: 0.5}
"""Part of the deterministic limit that is kept for better placements where there is no proof: chains are proved soon or
not at all, fans late."""

FIRST_SHARE: Final = 0.11
"""Part in which a problem with fans is tried with both searches before the cores go on alone."""

CLUSTER_SHARE: Final = 0.4
"""Part of the deterministic limit that bounds on parts may take."""

CLUSTER_LIMIT: Final = 2.0
"""Deterministic units for one part."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Solution:
    """What is known of a problem.

    Attributes:
        status: optimal = nothing is cheaper; feasible = legal, perhaps not the cheapest; infeasible = nothing is legal;
            unknown = neither a placement nor a proof that there is none.
        cost: of the placement, None where there is none.
        bound: every placement costs at least as much; None where nothing is legal.
        placement: legal, checked by code of its own; None where there is none.
        reproducible: the same call gives the same placement and bound: the wall clock cut nothing short.
        seconds: of the wall clock.
        note: how it was found out, in words.
    """

    status: Status
    cost: Fraction | None = None
    bound: Fraction | None = None
    placement: Placement | None = None
    reproducible: bool = True
    seconds: float = 0.0
    note: str = ""

    @property
    def gap(self) -> float | None:
        """(cost - bound) / cost, 0 where it is proved; None without a placement."""
        if self.cost is None or self.bound is None:
            return None
        return float((self.cost - self.bound) / self.cost) if self.cost else 0.0


class Clock:
    """What is left of the limits of one call; mutable, owned by it."""

    def __init__(self, deterministic_limit: float, wall_limit_s: float) -> None:
        self.begin = time.monotonic()
        self.units = deterministic_limit
        self.wall_limit_s = wall_limit_s
        self.cut = False

    @property
    def seconds(self) -> float:
        """Since the call began."""
        return time.monotonic() - self.begin


def solver_of(
    clock: Clock, units: float, workers: int, seed: int, searches: tuple[str, ...] = BOTH
) -> cp_model.CpSolver:
    """A solver whose result depends on nothing but its model and these numbers, within what is left of the clock."""
    solver = cp_model.CpSolver()
    parameters = solver.parameters
    parameters.num_workers = workers
    parameters.interleave_search = True
    parameters.random_seed = seed
    parameters.max_deterministic_time = max(units, 0.01)
    parameters.max_time_in_seconds = max(clock.wall_limit_s - clock.seconds, 0.01)
    parameters.subsolvers.extend(searches)
    if searches != IMPROVEMENT:
        parameters.ignore_subsolvers.extend(NEIGHBOURHOODS)
    return solver


def run(solver: cp_model.CpSolver, model: cp_model.CpModel, clock: Clock) -> cp_model.CpSolverStatus:
    """Solve, and take what it took from the clock."""
    status = solver.solve(model)
    used = solver.response_proto.deterministic_time
    clock.units -= used
    if status not in (cp_model.OPTIMAL, cp_model.INFEASIBLE) and used < solver.parameters.max_deterministic_time:
        clock.cut = True
    return status


def solve(
    problem: Problem,
    *,
    deterministic_limit: float,
    wall_limit_s: float,
    workers: int = WORKERS,
    seed: int = 0,
    hints: Sequence[Placement] = (),
    steps: int = STEPS,
) -> Solution:
    """Place a problem.

    Args:
        problem: blocks, edges, grid.
        deterministic_limit: units of the solver for all of it, about a second each on one free core.
        wall_limit_s: guard; a result that it cuts short is not reproducible.
        workers: of the solver, they take turns.
        seed: of the solver and of the local search.
        hints: placements that may be good; those that are not legal are left out.
        steps: of the local search, for each block.
    """
    clock = Clock(deterministic_limit, wall_limit_s)
    geometry = Geometry(problem)
    reason = impossible(geometry)
    if reason:
        return Solution(status="infeasible", seconds=clock.seconds, note=f"by counting: {reason}")
    floor = floor_of(geometry)
    known = _beginning(geometry, hints, seed, steps, floor)
    return _Call(geometry, clock, workers, seed).solution(known, floor)


def _beginning(
    geometry: Geometry, hints: Sequence[Placement], seed: int, steps: int, floor: Fraction
) -> Placement | None:
    """The cheapest legal placement at hand."""
    packed = pack(geometry, seed, steps, int(floor * geometry.scale))
    found = [*hints, *([] if packed is None else [Placement(spots=packed)])]
    legal = [placement for placement in found if not violations(geometry.problem, placement)]
    return min(legal, key=lambda placement: cost_of(geometry.problem, placement), default=None)


class _Call:
    """One call of `solve` after the counting."""

    def __init__(self, geometry: Geometry, clock: Clock, workers: int, seed: int) -> None:
        self.geometry = geometry
        self.clock = clock
        self.workers = workers
        self.seed = seed
        self.for_parts = CLUSTER_SHARE * clock.units
        self.searches = CORE if clusters_of(geometry) else BOTH
        self.first = FIRST_SHARE * clock.units
        self.for_improvement = IMPROVEMENT_SHARE[self.searches] * clock.units

    def solution(self, known: Placement | None, floor: Fraction) -> Solution:
        if known is not None and cost_of(self.geometry.problem, known) == floor:
            return self.result(known, floor, "optimal", "a packing reaches the bound by counting")
        bounds = bounds_of(self.geometry, self.prove)
        for units, searches in self.stages():
            model = Model(self.geometry, bounds)
            model.at_least(int(floor * self.geometry.scale))
            if known is not None:
                model.hint(known.spots)
            solver = solver_of(self.clock, units, self.workers, self.seed, searches)
            status = run(solver, model.model, self.clock)
            if status == cp_model.INFEASIBLE:
                return self.nothing(known)
            floor = max(floor, Fraction(round(solver.best_objective_bound), self.geometry.scale))
            known = self.better(known, status, model, solver)
            if known is not None and cost_of(self.geometry.problem, known) == floor:
                return self.result(known, floor, "optimal", "by CP-SAT")
        if known is None:
            return self.result(None, floor, "unknown", "limit reached")
        return self.result(known, floor, "feasible", "by CP-SAT")

    def stages(self) -> Iterator[tuple[float, tuple[str, ...]]]:
        """Units and searches, one after the other; each begins with what the one before it found."""
        if self.searches == CORE:
            yield self.first, BOTH
        yield self.clock.units - self.for_improvement, self.searches
        yield self.clock.units, IMPROVEMENT

    def nothing(self, known: Placement | None) -> Solution:
        """The model has no solution."""
        if known is not None:
            msg = f"the model finds nothing legal in {self.geometry.problem.name!r}, a packing did"
            raise RuntimeError(msg)
        return self.result(None, None, "infeasible", "by CP-SAT")

    def better(
        self, known: Placement | None, status: object, model: Model, solver: cp_model.CpSolver
    ) -> Placement | None:
        """The cheaper of what is known and what was found."""
        if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            return known
        found = self.placement(model, solver)
        if known is None or cost_of(self.geometry.problem, found) < cost_of(self.geometry.problem, known):
            return found
        return known

    def placement(self, model: Model, solver: cp_model.CpSolver) -> Placement:
        spots = tuple((solver.value(x), solver.value(y)) for x, y in zip(model.x, model.y, strict=True))
        found = Placement(spots=spots)
        wrong = violations(self.geometry.problem, found)
        if wrong:
            msg = f"the model placed {self.geometry.problem.name!r} against the rules: {wrong[0]}"
            raise RuntimeError(msg)
        return found

    def prove(self, model: Model) -> int | None:
        """Bound on a part within the limits."""
        if self.for_parts <= 0 or self.clock.cut:
            return None
        solver = solver_of(self.clock, min(CLUSTER_LIMIT, self.for_parts), self.workers, self.seed, CORE)
        before = self.clock.units
        status = run(solver, model.model, self.clock)
        self.for_parts -= before - self.clock.units
        return None if status == cp_model.INFEASIBLE else round(solver.best_objective_bound)

    def result(self, placement: Placement | None, bound: Fraction | None, status: Status, note: str) -> Solution:
        cost = None if placement is None else cost_of(self.geometry.problem, placement)
        return Solution(
            status=status,
            cost=cost,
            bound=cost if status == "optimal" else bound,
            placement=placement,
            reproducible=not self.clock.cut,
            seconds=self.clock.seconds,
            note=f"{note}, not reproducible: cut by the wall clock" if self.clock.cut else note,
        )
