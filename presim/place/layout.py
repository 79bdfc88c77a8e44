"""Where workers are during the search, and what that costs.

A fifo that could be direct and is not costs most after a core without enough DMA channels; then the ways count, in
tiles. The price of a move is that of the pairs and cores that it touches.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from presim.place.grid import Grid
from presim.place.nets import Nets, Pair
from presim.place.units import Spot, Unit

LOST_DIRECT: Final = 40
"""A fifo by DMA between two workers that could share a memory, in half tiles of way."""

LACKING_CHANNEL: Final = 100_000
STEP: Final = 2
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

    def cost(self, workers: Iterable[int]) -> int:
        """Price of everything that the spots of `workers` decide; what has no spot yet costs nothing."""
        moved = dict.fromkeys(workers)
        pairs = {pair: None for worker in moved for pair in self.pairs[worker]}
        judged = {*moved, *(w for pair in pairs if pair.direct for w in (pair.producer, pair.consumer))}
        total = sum(self.pair_cost(pair) for pair in pairs)
        total += sum(self.own_cost(worker) for worker in moved)
        return total + sum(self.lacking(worker) for worker in judged)

    def total(self) -> int:
        """Price of the whole layout."""
        return self.cost(range(len(self.at)))

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

    def lacking(self, worker: int) -> int:
        """Price of DMA channels that a core would need and does not have."""
        nets = self.nets
        inputs, outputs = nets.inputs[worker], nets.outputs[worker]
        here = self.at[worker]
        for pair in self.pairs[worker]:
            if not pair.direct:
                continue
            there = self.at[pair.consumer if pair.producer == worker else pair.producer]
            if here is None or there is None or abs(here[0] - there[0]) + abs(here[1] - there[1]) <= 1:
                continue
            inputs, outputs = inputs + (pair.consumer == worker), outputs + (pair.producer == worker)
        over = 0
        if nets.input_limit is not None:
            over += max(0, inputs - nets.input_limit)
        if nets.output_limit is not None:
            over += max(0, outputs - nets.output_limit)
        return LACKING_CHANNEL * over
