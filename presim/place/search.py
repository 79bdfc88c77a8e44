"""A spot for every worker: several deterministic beginnings, each repaired by moves and swaps; the cheapest one.

Why no exact search: chains, the common case, come out with every edge direct from the first beginning, and a person
pins what should lie otherwise. Cascades alone can make a tight array hard to fill, so placing them backtracks.
"""

import heapq
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from presim.place.grid import Grid
from presim.place.layout import LACKING_CHANNEL, LOST_DIRECT, Layout
from presim.place.nets import Nets
from presim.place.units import Spot, Unit, paths_from

NEAREST: Final = 48
"""Free spots that are looked at for a unit, nearest first."""

REACH: Final = 2
"""Tiles around a partner that a move looks at."""

ROUNDS: Final = 12
FEW_ROUNDS: Final = 2
"""Rounds of improvement where there are many workers."""

SEED: Final = 7
SHAKES: Final = 60
SHAKEN_MOVES: Final = 12_000
"""Moves that all shakes together may look at."""

HARDER: Final = 5
"""Times as much where a core lacks DMA channels."""


LARGE: Final = 96
"""Workers above which one beginning is enough: a way that is longer costs less than the search for a shorter one."""

BACKTRACKS: Final = 4000
FEW_TURNS: Final = 1
ALL_TURNS: Final = 64


class Search:
    """One placement problem.

    Args:
        nets: what joins the workers.
        units: all workers.
        grid: of the device.
        fixed: spots of pinned workers.
        wishes: spots that others would best have.
    """

    def __init__(
        self, nets: Nets, units: Sequence[Unit], grid: Grid, fixed: Mapping[int, Spot], wishes: Mapping[int, Spot]
    ) -> None:
        self.nets = nets
        self.units = tuple(units)
        self.grid = grid
        self.fixed = fixed
        self.wishes = wishes
        self.spots = [(tile.column, tile.row) for tile in grid.cores()]
        self.rank = {spot: i for i, spot in enumerate(self.spots)}
        self.pinned = set(fixed.values())
        self.unit_of = {worker: unit for unit in units for worker in unit}
        self.budget = BACKTRACKS
        self.moves = 0

    def best(self) -> list[Spot] | Unit:
        """Spots by worker number, or the unit for which there was no room."""
        found: list[tuple[int, int, Layout]] = []
        for number, order in enumerate(self.orders()):
            if found and len(self.nets.workers) > LARGE:
                break
            layout = Layout(self.nets, self.grid, self.wishes)
            if self.fill(layout, order) is None:
                self.improve(layout)
                found.append((layout.total(), number, layout))
        if not found:
            layout = Layout(self.nets, self.grid, self.wishes)
            stuck = self.pack(layout)
            if stuck is not None:
                return stuck
            self.improve(layout)
            found = [(0, 0, layout)]
        return self.shaken(min(found, key=lambda item: item[:2])[2])

    def shaken(self, layout: Layout) -> list[Spot]:
        """The best of what a layout becomes when single workers trade spots at random and it is repaired again.

        Only where a fifo that could be direct is not, and harder where a core lacks channels: that would be refused.
        The random numbers are the same every time.
        """
        chance = random.Random(SEED)
        best, spots = layout.total(), layout.spots()
        single = [u for u in self.movable() if len(u) == 1]
        before, shakes, hopeless = self.moves, 0, layout.lacking_at_best()
        while single and best >= LOST_DIRECT and layout.lost():
            hard = best - hopeless >= LACKING_CHANNEL
            effort = HARDER if hard else 1
            if shakes >= SHAKES * effort or self.moves - before > SHAKEN_MOVES * effort:
                break
            shakes += 1
            self.shake(layout, single, chance)
            self.improve(layout, None if hard else single)
            cost = layout.total()
            if cost < best:
                best, spots = cost, layout.spots()
            elif cost > best:
                layout.restore(spots)
        return spots

    def shake(self, layout: Layout, single: Sequence[Unit], chance: random.Random) -> None:
        """Let one to three workers trade spots with what is near their partners."""
        for _ in range(chance.randint(1, 3)):
            unit = chance.choice(single)
            here = layout.at[unit[0]]
            targets = self.around(layout, unit)
            if here is not None and targets:
                self.exchange(layout, unit, here, chance.choice(targets))

    def orders(self) -> Iterator[tuple[Unit, ...]]:
        """Units in several orders, those with pins first."""
        pinned = [u for u in self.units if any(w in self.fixed for w in u)]
        deep = self.topological(newest_first=True)
        for order in (deep, self.topological(newest_first=False), sorted(deep, key=lambda u: -len(u))):
            yield (*pinned, *(u for u in order if u not in pinned))

    def topological(self, *, newest_first: bool) -> tuple[Unit, ...]:
        """Units downstream of what feeds them: along a branch first, or level by level. Loops are cut."""
        number = {unit: i for i, unit in enumerate(self.units)}
        after: dict[int, set[int]] = {i: set() for i in number.values()}
        waits = dict.fromkeys(number.values(), 0)
        for pair in self.nets.pairs:
            a, b = number[self.unit_of[pair.producer]], number[self.unit_of[pair.consumer]]
            if a != b and b not in after[a]:
                after[a].add(b)
                waits[b] += 1
        order: list[int] = []
        ready = [(0, i) for i in number.values() if not waits[i]]
        heapq.heapify(ready)
        rest = set(number.values())
        while rest:
            here = heapq.heappop(ready)[1] if ready else min(rest)
            if here not in rest:
                continue
            rest.discard(here)
            order.append(here)
            for following in sorted(after[here]):
                waits[following] -= 1
                if not waits[following]:
                    heapq.heappush(ready, (-len(order) if newest_first else len(order), following))
        return tuple(self.units[i] for i in order)

    def fill(self, layout: Layout, order: Iterable[Unit]) -> Unit | None:
        """Place units one after the other, each at its cheapest place; the unit that finds none."""
        for unit in order:
            path = self.cheapest(layout, unit)
            if path is None:
                return unit
            layout.put(unit, path)
        return None

    def cheapest(self, layout: Layout, unit: Unit) -> tuple[Spot, ...] | None:
        """The cheapest free place of a unit, the first along the snake where several are."""
        best: tuple[int, tuple[int, ...]] | None = None
        chosen = None
        for path in self.places(layout, unit):
            self.moves += 1
            layout.put(unit, path)
            key = (layout.cost(unit), tuple(self.rank[spot] for spot in path))
            layout.lift(unit)
            if best is None or key < best:
                best, chosen = key, path
        return chosen

    def places(self, layout: Layout, unit: Unit) -> Iterator[tuple[Spot, ...]]:
        """Places of a unit: near its partners with few turns, else all."""
        free = self.free(layout, unit)
        near = self.near(layout, unit, free)
        found = [p for spot in near[:NEAREST] for p in self.paths(unit, spot, free, FEW_TURNS)]
        if not found:
            found = [p for spot in near for p in self.paths(unit, spot, free, ALL_TURNS)]
        yield from found

    def free(self, layout: Layout, unit: Unit) -> set[Spot]:
        """Spots that a unit may use."""
        own = {self.fixed[w] for w in unit if w in self.fixed}
        return {s for s in self.spots if s not in layout.owner and (s not in self.pinned or s in own)}

    def paths(self, unit: Unit, start: Spot, free: set[Spot], turns: int) -> Iterator[tuple[Spot, ...]]:
        """Places of a unit from a spot on, with its pinned workers where they are pinned."""
        for path in paths_from(start, len(unit), self.grid.arch, free, turns):
            if all(self.fixed.get(worker, spot) == spot for worker, spot in zip(unit, path, strict=True)):
                yield path

    def near(self, layout: Layout, unit: Unit, free: set[Spot]) -> list[Spot]:
        """Free spots for the first worker of a unit, by the way to the partners that are placed."""
        if unit[0] in self.fixed:
            return [self.fixed[unit[0]]]
        if any(worker in self.fixed for worker in unit):
            return sorted(free, key=self.rank.__getitem__)
        partners = [s for s in self.partners(layout, unit) if s is not None]
        partners += [self.wishes[w] for w in unit[:1] if w in self.wishes]

        def key(spot: Spot) -> tuple[int, int]:
            ways = [abs(spot[0] - p[0]) + abs(spot[1] - p[1]) for p in partners]
            return min(ways, default=0), self.rank[spot]

        return sorted(free, key=key)

    def partners(self, layout: Layout, unit: Unit) -> list[Spot | None]:
        """Spots of workers that a unit is joined with."""
        others = (w for mine in unit for pair in layout.pairs[mine] for w in (pair.producer, pair.consumer))
        return [layout.at[w] for w in dict.fromkeys(others) if w not in unit]

    def pack(self, layout: Layout) -> Unit | None:
        """Place cascades by backtracking, the longest first, then the rest; the unit that finds no room."""
        chains = sorted((u for u in self.units if len(u) > 1), key=lambda u: -len(u))
        chains.sort(key=lambda u: not any(w in self.fixed for w in u))
        self.budget = BACKTRACKS
        stuck = self.pack_from(layout, chains, 0)
        if stuck is not None:
            return stuck
        singles = [u for u in next(iter(self.orders())) if len(u) == 1]
        return self.fill(layout, singles)

    def pack_from(self, layout: Layout, chains: Sequence[Unit], index: int) -> Unit | None:
        """Place the chains from `index` on; the one that failed deepest."""
        if index == len(chains):
            return None
        unit = chains[index]
        free = self.free(layout, unit)
        starts = [self.fixed[unit[0]]] if unit[0] in self.fixed else sorted(free, key=self.rank.__getitem__)
        deepest = unit
        for start in starts:
            for path in self.paths(unit, start, free, ALL_TURNS):
                if self.budget <= 0:
                    return deepest
                self.budget -= 1
                layout.put(unit, path)
                stuck = self.pack_from(layout, chains, index + 1)
                if stuck is None:
                    return None
                deepest = stuck
                layout.lift(unit)
        return deepest

    def movable(self) -> list[Unit]:
        """Units without pins."""
        return [u for u in self.units if not any(w in self.fixed for w in u)]

    def improve(self, layout: Layout, units: Sequence[Unit] | None = None) -> None:
        """Move and swap units while that makes the layout cheaper; None = all that may move."""
        movable = self.movable() if units is None else units
        for _ in range(ROUNDS if len(self.nets.workers) <= LARGE else FEW_ROUNDS):
            if not any([self.move(layout, unit) for unit in movable]):
                return

    def move(self, layout: Layout, unit: Unit) -> bool:
        """The best move of one unit, or swap with another single one; whether there was any."""
        if len(unit) > 1:
            return self.shift(layout, unit)
        here = layout.at[unit[0]]
        if here is None:
            return False
        gain, target = 0, None
        for spot in self.around(layout, unit):
            won = self.gain(layout, unit, here, spot)
            if won > gain:
                gain, target = won, spot
        if target is None:
            return False
        self.exchange(layout, unit, here, target)
        return True

    def shift(self, layout: Layout, unit: Unit) -> bool:
        """Move a chain to its cheapest place."""
        before = tuple(spot for w in unit if (spot := layout.at[w]) is not None)
        cost = layout.cost(unit)
        layout.lift(unit)
        path = self.cheapest(layout, unit) or before
        layout.put(unit, path)
        if layout.cost(unit) < cost:
            return True
        layout.lift(unit)
        layout.put(unit, before)
        return False

    def around(self, layout: Layout, unit: Unit) -> list[Spot]:
        """Spots near the partners of a unit that are free or hold a single worker that may move."""
        found: dict[Spot, None] = {}
        centres = [s for s in self.partners(layout, unit) if s is not None]
        centres += [self.wishes[w] for w in unit if w in self.wishes]
        for column, row in centres:
            for east in range(-REACH, REACH + 1):
                for north in range(abs(east) - REACH, REACH - abs(east) + 1):
                    spot = (column + east, row + north)
                    if spot in self.rank and self.may_take(layout, unit, spot):
                        found[spot] = None
        return sorted(found, key=self.rank.__getitem__)

    def may_take(self, layout: Layout, unit: Unit, spot: Spot) -> bool:
        """Whether a spot is free, or held by a single worker that may go where the unit is."""
        owner = layout.owner.get(spot)
        if owner is None:
            return True
        return owner not in unit and owner not in self.fixed and len(self.unit_of[owner]) == 1

    def gain(self, layout: Layout, unit: Unit, here: Spot, spot: Spot) -> int:
        """What a move would save."""
        self.moves += 1
        owner = layout.owner.get(spot)
        touched = unit if owner is None else (*unit, owner)
        before = layout.cost(touched)
        self.exchange(layout, unit, here, spot)
        after = layout.cost(touched)
        self.exchange(layout, unit, spot, here)
        return before - after

    def exchange(self, layout: Layout, unit: Unit, here: Spot, spot: Spot) -> None:
        """Move a single worker; who was there comes here."""
        owner = layout.owner.get(spot)
        layout.lift(unit)
        if owner is not None:
            layout.lift((owner,))
            layout.put((owner,), (here,))
        layout.put(unit, (spot,))
