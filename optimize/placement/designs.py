"""Place a planned design: what `presim.place` finds, and what CP-SAT finds by the same price, whichever is better.

Why both: the constructive placer is quick and mostly right; a model proves that it is, or finds what it missed. Both go
through the same steps afterwards (direct fifos, memory and shim tiles, static checks), so the price of the model only
has to rank spots of workers. What comes back is never worse than the constructive placement.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

from ortools.sat.python import cp_model

from manifest.device import Device
from manifest.errors import RefusedError
from optimize.placement.cores import Cores
from optimize.placement.problem import Placement
from optimize.placement.solve import WORKERS, Clock, Solution, Status, run, solver_of
from presim.design import Design, Endpoint, Tile
from presim.directives import Directives
from presim.place import CODES, place
from presim.place.bins import place_bins
from presim.place.grid import Grid, grid_of
from presim.place.layout import Layout
from presim.place.nets import nets_of
from presim.place.pins import pins_of
from presim.place.sharing import share
from presim.place.units import Spot, units_of
from presim.pools import may_share, shares_memory
from presim.static import check_design

MOST_WORKERS: Final = 96
"""More than these are left to the constructive placer: the model would find nothing in its time."""

UNITS: Final = 4.0
WALL_S: Final = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What the solver may use: see `place_design`."""

    clock: Clock
    workers: int
    seed: int


def place_design(
    design: Design,
    device: Device,
    directives: Directives | None = None,
    *,
    deterministic_limit: float = UNITS,
    wall_limit_s: float = WALL_S,
    workers: int = WORKERS,
    seed: int = 0,
) -> tuple[Design, Solution]:
    """Place a planned design; its note says whether the model found something better.

    Args:
        design: planned; what has a tile already keeps it.
        device: that it is for.
        directives: pins of the first worker of an op; None = none.
        deterministic_limit: units of the solver.
        wall_limit_s: guard; a result that it cuts short is not reproducible.
        workers: of the solver, they take turns.
        seed: of the solver.

    Returns:
        The placed design, and what is known of the price of its cores (`presim.place.layout`): cost, bound and status;
        `placement` has the tile of every worker.

    Raises:
        RefusedError: neither placer finds a place for everything; that of the constructive placer.
    """
    asked = directives or Directives()
    clock = Clock(deterministic_limit, wall_limit_s)
    refusal: RefusedError | None = None
    made: Design | None = None
    try:
        made = place(design, device, asked)
    except RefusedError as error:
        if not _about_tiles(error):
            raise
        refusal = error
    case = _Case(design, device, asked)
    limits = Limits(clock=clock, workers=workers, seed=seed)
    if len(design.workers) > MOST_WORKERS:
        if made is None:
            raise refusal or _unplaced(design)
        note = f"constructive: more than {MOST_WORKERS} workers"
        return made, case.solution(made, None, clock, note, exact=False)
    return _better(case, made, refusal, limits)


def _unplaced(design: Design) -> RuntimeError:
    return RuntimeError(f"no placement and no refusal of dispatch {design.dispatch!r}")


def _about_tiles(error: RefusedError) -> bool:
    """Whether other tiles might do: pins, structure and the number of cores are wrong wherever workers are."""
    return {problem.code for problem in error.problems} <= {*CODES.values()} - {"PLACE-TILES", "PLACE-MEMTILE"}


def _better(
    case: "_Case", made: Design | None, refusal: RefusedError | None, limits: Limits
) -> tuple[Design, Solution]:
    cores = Cores(case.nets, case.units, case.grid, case.fixed, case.wishes)
    if made is not None:
        cores.hint(case.spots(made))
    clock = limits.clock
    solver = solver_of(clock, clock.units, limits.workers, limits.seed)
    status = run(solver, cores.model, clock)
    exact = status == cp_model.OPTIMAL
    bound = None if status == cp_model.INFEASIBLE else Fraction(round(solver.best_objective_bound))
    found = None
    if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        found = case.finished(cores.spots(solver))
    if found is not None and (made is None or quality(found) < quality(made)):
        note = "by CP-SAT" if made is None else f"by CP-SAT: {_words(found)}; constructive: {_words(made)}"
        return found, case.solution(found, bound, clock, note, exact=exact)
    if made is None:
        raise refusal or _unplaced(case.design)
    return made, case.solution(
        made, bound, clock, f"constructive, CP-SAT found nothing better: {_words(made)}", exact=exact
    )


def quality(design: Design) -> tuple[int, int]:
    """(fifos by DMA that could have been direct, tiles that objects pass) of a placed design; less is better."""
    lost = hops = 0
    for fifo in design.fifos:
        if shares_memory(fifo):
            continue
        if may_share(fifo) and fifo.producer.actor != fifo.consumers[0].actor:
            lost += 1
        hops += sum(_way(fifo.producer.tile, end.tile) for end in fifo.consumers)
    return lost, hops


def _way(one: Tile | None, other: Tile | None) -> int:
    if one is None or other is None:
        return 0
    return abs(one.column - other.column) + abs(one.row - other.row)


def _words(design: Design) -> str:
    lost, hops = quality(design)
    return f"{lost} fifos not direct that could be, {hops} tiles of way"


class _Case:
    """A design with what placers see of it."""

    def __init__(self, design: Design, device: Device, directives: Directives) -> None:
        self.design = design
        self.device = device
        self.grid: Grid = grid_of(device)
        pins = pins_of(design, directives, self.grid)
        numbers = {worker.name: i for i, worker in enumerate(design.workers)}
        self.fixed = {numbers[name]: (tile.column, tile.row) for name, tile in pins.fixed.items()}
        self.wishes = {numbers[name]: (tile.column, tile.row) for name, tile in pins.wished.items()}
        self.notes = tuple(f"placement of {op!r} not used: it has no core in this dispatch" for op in pins.unused)
        self.nets = nets_of(design, device)
        self.units = units_of(design)

    def spots(self, placed: Design) -> tuple[Spot, ...]:
        """Tiles of the workers."""
        return tuple((w.tile.column, w.tile.row) for w in placed.workers if w.tile is not None)

    def price(self, spots: Sequence[Spot]) -> int:
        """Price of spots, by the constructive placer."""
        layout = Layout(self.nets, self.grid, self.wishes)
        layout.restore(spots)
        return layout.total()

    def finished(self, spots: Sequence[Spot]) -> Design | None:
        """The design with workers on spots and everything else where it fits; None where a check fails."""
        tiles = {
            worker.name: Tile(column=column, row=row)
            for worker, (column, row) in zip(self.design.workers, spots, strict=True)
        }
        try:
            placed = share(with_workers(self.design, tiles), self.design, self.device, self.grid)
            placed = place_bins(placed, self.device, self.grid)
        except RefusedError:
            return None
        for checked in check_design(placed, self.device):
            if checked.rule in CODES and any(finding.severity == "error" for finding in checked.findings):
                return None
        return replace(placed, notes=(*placed.notes, *self.notes))

    def solution(self, placed: Design, bound: Fraction | None, clock: Clock, note: str, *, exact: bool) -> Solution:
        """What is known of the spots of a placed design."""
        spots = self.spots(placed)
        cost = Fraction(self.price(spots))
        status: Status = "optimal" if exact and cost == bound else "feasible"
        return Solution(
            status=status,
            cost=cost,
            bound=bound,
            placement=Placement(spots=spots),
            reproducible=not clock.cut,
            seconds=clock.seconds,
            note=f"{note}; not reproducible: cut by the wall clock" if clock.cut else note,
        )


def with_workers(design: Design, tiles: dict[str, Tile]) -> Design:
    """A design with workers, and their ends of fifos, on tiles."""

    def placed(end: Endpoint) -> Endpoint:
        return replace(end, tile=tiles[end.actor]) if end.kind == "worker" else end

    fifos = tuple(
        replace(fifo, producer=placed(fifo.producer), consumers=tuple(placed(end) for end in fifo.consumers))
        for fifo in design.fifos
    )
    workers = tuple(replace(worker, tile=tiles[worker.name]) for worker in design.workers)
    return replace(design, workers=workers, fifos=fifos)
