"""Placements to begin with: rows filled from the west, then a local search with a fixed number of steps.

The search may pass through placements with conflicts, at a price; what it returns has none, or nothing is returned.
Its random numbers are those of a seed, so the same problem gives the same placement.
"""

import math
import random
from collections.abc import Sequence
from typing import Final

from optimize.placement.geometry import Geometry

Spot = tuple[int, int]

STEPS: Final = 6_000
"""For each block."""

NEAR: Final = 24
"""Cheapest offsets of a neighbour that a move draws from."""

ROUNDS: Final = ((4, 3.0), (3, 6.0), (12, 3.0), (3, 3.0))
"""Price of two blocks in conflict and heat at the beginning of each round, in columns: none of them is best for all."""

COLD: Final = 0.06
"""Heat at the end."""


def shelves(geometry: Geometry) -> list[Spot]:
    """Blocks in rows from the west, in the order of their edges; what does not fit lies over others."""
    x = y = top = 0
    before: int | None = None
    spots = [(0, 0)] * len(geometry.blocks)
    for i in order_of(geometry):
        block = geometry.blocks[i]
        gap = 0 if before is None or (before, i) in geometry.touches else geometry.gap_x(before, i)
        if x + gap + block.width > geometry.columns:
            x, y, gap = 0, top, 0
        spots[i] = (min(x + gap, geometry.columns - block.width), min(y, geometry.rows - block.height))
        x, top, before = x + gap + block.width, max(top, y + block.height), i
    return [block.anchor or spot for block, spot in zip(geometry.blocks, spots, strict=True)]


def order_of(geometry: Geometry) -> list[int]:
    """Blocks behind what feeds them, along a branch first; loops are cut."""
    count = len(geometry.blocks)
    waits = [0] * count
    after: list[list[int]] = [[] for _ in range(count)]
    for span in geometry.spans:
        if span.source != span.target:
            waits[span.target] += 1
            after[span.source].append(span.target)
    order: list[int] = []
    ready = [i for i in reversed(range(count)) if not waits[i]]
    rest = dict.fromkeys(range(count))
    while rest:
        here = ready.pop() if ready else next(iter(rest))
        if here not in rest:
            continue
        del rest[here]
        order.append(here)
        for following in after[here]:
            waits[following] -= 1
            if not waits[following]:
                ready.append(following)
    return order


def pack(geometry: Geometry, seed: int, steps: int = STEPS, floor: int = 0) -> tuple[Spot, ...] | None:
    """The cheapest placement that the search comes upon, None = none without conflicts.

    Args:
        geometry: of the problem.
        seed: of the random numbers.
        steps: of all rounds together, for each block.
        floor: scaled cost below which nothing is; the search ends there.
    """
    best: tuple[int, tuple[Spot, ...]] | None = None
    for number, (conflict, hot) in enumerate(ROUNDS):
        if best is not None and best[0] <= floor:
            break
        walk = _Walk(geometry, random.Random(seed * len(ROUNDS) + number), conflict)
        found = walk.run(steps * len(geometry.blocks) // len(ROUNDS), hot, floor)
        if found is not None and (best is None or found[0] < best[0]):
            best = found
    return None if best is None else best[1]


class _Walk:
    """One simulated annealing."""

    def __init__(self, geometry: Geometry, chance: random.Random, conflict: int) -> None:
        self.geometry = geometry
        self.chance = chance
        self.at = shelves(geometry)
        self.free = [i for i, block in enumerate(geometry.blocks) if block.anchor is None]
        self.count = len(geometry.blocks)
        self.price = conflict * geometry.scale
        self.offsets = {pair: near_offsets(geometry, *pair) for pair in self._joined()}
        self.best: tuple[int, tuple[Spot, ...]] | None = None

    def _joined(self) -> list[tuple[int, int]]:
        return [(i, j) for i, others in enumerate(self.geometry.neighbours) for j in others]

    def run(self, steps: int, hot: float, floor: int) -> tuple[int, tuple[Spot, ...]] | None:
        cost, conflicts = self.geometry.cost(tuple(self.at)), self.conflicts(range(self.count))
        self.keep(cost, conflicts)
        factor = (COLD / hot) ** (1 / max(1, steps))
        heat = hot * self.geometry.scale
        for _ in range(steps if self.free else 0):
            if self.best is not None and self.best[0] <= floor:
                break
            heat *= factor
            moved = self.move()
            before = self.part(moved)
            old = [self.at[i] for i in moved]
            for i, spot in moved.items():
                self.at[i] = spot
            after = self.part(moved)
            rise = after[0] - before[0] + self.price * (after[1] - before[1])
            if rise <= 0 or self.chance.random() < math.exp(-rise / heat):
                cost, conflicts = cost + after[0] - before[0], conflicts + after[1] - before[1]
                self.keep(cost, conflicts)
            else:
                for i, spot in zip(moved, old, strict=True):
                    self.at[i] = spot
        return self.best

    def keep(self, cost: int, conflicts: int) -> None:
        if conflicts == 0 and (self.best is None or cost < self.best[0]):
            self.best = (cost, tuple(self.at))

    def part(self, moved: dict[int, Spot]) -> tuple[int, int]:
        """Cost and conflicts that some blocks decide."""
        geometry, at = self.geometry, self.at
        total = geometry.height * sum(at[i][1] for i in moved)
        for span in dict.fromkeys(span for i in moved for span in geometry.around[i]):
            total += geometry.span_cost(span, at[span.source], at[span.target])
        return total, self.conflicts(moved)

    def conflicts(self, some: Sequence[int] | range | dict[int, Spot]) -> int:
        geometry, at = self.geometry, self.at
        return sum(
            geometry.conflict(i, at[i], j, at[j])
            for i in some
            for j in range(self.count)
            if j != i and (j > i or j not in some)
        )

    def move(self) -> dict[int, Spot]:
        """A change: a block beside a neighbour, two blocks exchanged, or blocks that touch moved together."""
        i = self.chance.choice(self.free)
        kind = self.chance.random()
        if kind < 0.5 and self.geometry.neighbours[i]:
            j = self.chance.choice(self.geometry.neighbours[i])
            east, north = self.chance.choice(self.offsets[j, i])
            moved = {i: (self.at[j][0] + east, self.at[j][1] + north)}
        elif kind < 0.65:
            j = self.chance.choice(self.free)
            moved = {i: self.at[j], j: self.at[i]}
        elif kind < 0.85:
            east, north = self.chance.choice(((1, 0), (-1, 0), (0, 1), (0, -1), (-2, 0), (2, 0)))
            moved = {j: (self.at[j][0] + east, self.at[j][1] + north) for j in self.together(i)}
        else:
            moved = {i: (self.chance.randrange(self.geometry.columns), self.chance.randrange(self.geometry.rows))}
        return {j: self.inside(j, spot) for j, spot in moved.items()}

    def together(self, i: int) -> list[int]:
        """A block and those that touch it, one way or through others."""
        found, queue = {i}, [i]
        while queue:
            here = queue.pop()
            for other in self.geometry.neighbours[here]:
                if other not in found and self.geometry.blocks[other].anchor is None and self.touches(here, other):
                    found.add(other)
                    queue.append(other)
        return sorted(found)

    def touches(self, i: int, j: int) -> bool:
        for p, c in ((i, j), (j, i)):
            touch = self.geometry.touches.get((p, c))
            if touch and self.at[c] == (self.at[p][0] + touch.east, self.at[p][1] + touch.north):
                return True
        return False

    def inside(self, i: int, spot: Spot) -> Spot:
        block = self.geometry.blocks[i]
        return (
            min(max(spot[0], 0), self.geometry.columns - block.width),
            min(max(spot[1], 0), self.geometry.rows - block.height),
        )


def near_offsets(geometry: Geometry, i: int, j: int) -> tuple[Spot, ...]:
    """Cheapest legal (east, north) of block j seen from block i, by their edges and the row."""
    a, b = geometry.blocks[i], geometry.blocks[j]
    spans = [s for s in geometry.around[i] if {s.source, s.target} == {i, j}]
    reach_x, reach_y = a.width + b.width + 3, a.height + b.height + 1
    rated = []
    for u in range(-reach_x, reach_x + 1):
        for v in range(-reach_y, reach_y + 1):
            if not geometry.conflict(i, (0, 0), j, (u, v)):
                at = {i: (0, 0), j: (u, v)}
                cost = sum(geometry.span_cost(s, at[s.source], at[s.target]) for s in spans)
                rated.append((cost + geometry.height * abs(v), u, v))
    return tuple((u, v) for _, u, v in sorted(rated)[:NEAR])
