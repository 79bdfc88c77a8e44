"""Where workers are during the search, and what that costs.

A fifo that could be direct and is not costs most after a core without enough DMA channels; then the ways count, in
tiles. The price of a move is that of the pairs and cores that it touches.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from presim.place.grid import Grid
from presim.place.nets import Nets, Pair
from presim.place.units import Spot, Unit

LOST_DIRECT: Final = 40
"""A fifo by DMA between two workers that could share a memory, in half tiles of way."""

LACKING_CHANNEL: Final = 100_000
STEP: Final = 2
NEIGHBOURS: Final = 4
WISH: Final = 3


class Layout:
    """Spots of workers; mutable, owned by one search."""

    def __init__(self, nets: Nets, grid: Grid, wishes: Mapping[int, Spot]) -> None:
        self.nets = nets
        self.grid = grid
        self.wishes = wishes
        self.at: list[Spot | None] = [None] * len(nets.workers)
        self.owner: dict[Spot, int] = {}
        self.pairs: list[list[Pair]] = [[] for _ in nets.workers]
        for pair in nets.pairs:
            self.pairs[pair.producer].append(pair)
            self.pairs[pair.consumer].append(pair)
        self.touching: dict[Unit, tuple[tuple[Pair, ...], tuple[int, ...]]] = {}
        self.may_lack = [self.lacking_at_worst(worker) for worker in range(len(nets.workers))]
        self.host = {column: grid.to_host(column) for column in range(grid.columns)}

    def put(self, unit: Unit, path: Iterable[Spot]) -> None:
        """Place the workers of a unit."""
        for worker, spot in zip(unit, path, strict=True):
            self.at[worker] = spot
            self.owner[spot] = worker

    def lift(self, unit: Unit) -> None:
        """Take the workers of a unit away."""
        for worker in unit:
            spot = self.at[worker]
            if spot is not None:
                del self.owner[spot]
                self.at[worker] = None

    def spots(self) -> list[Spot]:
        """Spots by worker number; all are placed."""
        return [spot for spot in self.at if spot is not None]

    def restore(self, spots: Sequence[Spot]) -> None:
        """Put every worker where it was."""
        self.at = list(spots)
        self.owner = {spot: worker for worker, spot in enumerate(spots)}

    def lost(self) -> bool:
        """Whether a fifo that could be direct is not."""
        return any(pair.direct and self.pair_cost(pair) for pair in self.nets.pairs)

    def cost(self, workers: Unit) -> int:
        """Price of everything that the spots of `workers` decide; what has no spot yet costs nothing."""
        pairs, judged = self.touched(workers)
        total = sum([self.pair_cost(pair) for pair in pairs])
        total += sum([self.own_cost(worker) for worker in workers])
        return total + sum([self.lacking(worker) for worker in judged])

    def touched(self, workers: Unit) -> tuple[tuple[Pair, ...], tuple[int, ...]]:
        """Pairs of some workers, and the workers whose channels their spots decide."""
        found = self.touching.get(workers)
        if found is None:
            pairs = tuple(dict.fromkeys(pair for worker in workers for pair in self.pairs[worker]))
            partners = (w for pair in pairs if pair.direct for w in (pair.producer, pair.consumer))
            judged = dict.fromkeys((*workers, *partners))
            found = (pairs, tuple(w for w in judged if self.may_lack[w]))
            self.touching[workers] = found
        return found

    def total(self) -> int:
        """Price of the whole layout."""
        return self.cost(tuple(range(len(self.at))))

    def pair_cost(self, pair: Pair) -> int:
        """Price of the way between two workers."""
        a, b = self.at[pair.producer], self.at[pair.consumer]
        if a is None or b is None:
            return 0
        way = abs(a[0] - b[0]) + abs(a[1] - b[1])
        if pair.direct:
            return 0 if way <= 1 else LOST_DIRECT + STEP * way
        return STEP * way

    def own_cost(self, worker: int) -> int:
        """Price of the way to the host, and to where the worker was wished."""
        spot = self.at[worker]
        if spot is None:
            return 0
        total = STEP * self.host[spot[0]] if worker in self.nets.host else 0
        wish = self.wishes.get(worker)
        if wish is not None:
            total += WISH * (abs(spot[0] - wish[0]) + abs(spot[1] - wish[1]))
        return total

    def lacking_at_worst(self, worker: int) -> bool:
        """Whether a core would lack DMA channels if none of its fifos were direct."""
        mine = [pair for pair in self.pairs[worker] if pair.direct]
        inputs = self.nets.inputs[worker] + sum(pair.consumer == worker for pair in mine)
        outputs = self.nets.outputs[worker] + sum(pair.producer == worker for pair in mine)
        return self.price(inputs, outputs) > 0

    def lacking(self, worker: int) -> int:
        """Price of DMA channels that a core would need and does not have."""
        inputs, outputs = self.nets.inputs[worker], self.nets.outputs[worker]
        here = self.at[worker]
        for pair in self.pairs[worker]:
            if not pair.direct:
                continue
            there = self.at[pair.consumer if pair.producer == worker else pair.producer]
            if here is None or there is None or abs(here[0] - there[0]) + abs(here[1] - there[1]) <= 1:
                continue
            inputs, outputs = inputs + (pair.consumer == worker), outputs + (pair.producer == worker)
        return self.price(inputs, outputs)

    def lacking_at_best(self) -> int:
        """Price of the channels that cores lack wherever they are: a core has four neighbours."""
        total = 0
        limits = (self.nets.input_limit, self.nets.output_limit)
        for worker, (inputs, outputs) in enumerate(zip(self.nets.inputs, self.nets.outputs, strict=True)):
            worst = self.price(inputs, outputs)
            if limits[0] is not None and limits[1] is not None:
                partners = sum(pair.direct for pair in self.pairs[worker])
                over = inputs + outputs + max(0, partners - NEIGHBOURS) - limits[0] - limits[1]
                worst = max(worst, LACKING_CHANNEL * over)
            total += worst
        return total

    def price(self, inputs: int, outputs: int) -> int:
        """Price of the DMA channels that a core lacks."""
        over = 0
        if self.nets.input_limit is not None:
            over += max(0, inputs - self.nets.input_limit)
        if self.nets.output_limit is not None:
            over += max(0, outputs - self.nets.output_limit)
        return LACKING_CHANNEL * over
