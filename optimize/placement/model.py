"""The model of a placement problem for CP-SAT.

Two blocks are left of, right of, below or above each other, or they touch (exactly one of these is chosen). What makes
proofs short are constraints that follow from others but that a linear relaxation does not see:

* capacity: in every row the blocks that cover it, each with its gaps, less the gaps of those that touch, fit the grid;
* edges: each of the five ways has its own least number of columns and rows between the faces;
* clusters: bounds on the cost of some blocks, proved before by the same model on these blocks alone (`clusters`);
* blocks that can trade places are in order (`symmetry`);
* without anchors some block is in column 0, since every placement can be moved west.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from ortools.sat.python import cp_model

from optimize.placement.geometry import Geometry, Span, Touch
from optimize.placement.symmetry import graph_of

WAYS: Final = ("east", "west", "north", "south")
"""Where the second of two blocks is, seen from the first."""

OPPOSITE: Final = {"east": "west", "west": "east", "north": "south", "south": "north"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """Blocks whose own edges and rows cost at least `cost`, scaled; `rows` = with the price of their rows."""

    blocks: tuple[int, ...]
    rows: bool
    cost: int


class Model:
    """Variables and constraints of one problem.

    Args:
        geometry: of the problem.
        bounds: proved before.
        ordered: order blocks that can trade places.
    """

    def __init__(self, geometry: Geometry, bounds: Iterable[Bound] = (), *, ordered: bool = True) -> None:
        self.geometry = geometry
        self.model = cp_model.CpModel()
        self.x = [self._int(geometry.columns - b.width, f"x{i}") for i, b in enumerate(geometry.blocks)]
        self.y = [self._int(geometry.rows - b.height, f"y{i}") for i, b in enumerate(geometry.blocks)]
        self.in_row = [self._rows(i) for i in range(len(geometry.blocks))]
        self.touching = {pair: self.model.new_bool_var(f"touch{pair}") for pair in geometry.touches}
        self.ways: dict[tuple[int, int], dict[str, cp_model.IntVar]] = {}
        self._pairs()
        self._packed()
        self._capacity()
        self.prices = [self._price(span) for span in geometry.spans]
        self.rows = geometry.height * cp_model.LinearExpr.sum(self.y)
        self._anchor()
        if ordered:
            self._order()
        for bound in bounds:
            self._bound(bound)
        self.objective = cp_model.LinearExpr.sum(self.prices) + self.rows
        self.model.minimize(self.objective)

    def hint(self, spots: Sequence[tuple[int, int]]) -> None:
        """Begin with a placement."""
        for i, (x, y) in enumerate(spots):
            self.model.add_hint(self.x[i], x)
            self.model.add_hint(self.y[i], y)
            for row, literal in enumerate(self.in_row[i]):
                self.model.add_hint(literal, row == y)

    def at_least(self, cost: int) -> None:
        """What is known of the scaled objective."""
        self.model.add(self.objective >= cost)

    def _int(self, high: int, name: str) -> cp_model.IntVar:
        return self.model.new_int_var(0, high, name)

    def _rows(self, i: int) -> list[cp_model.IntVar]:
        count = self.geometry.rows - self.geometry.blocks[i].height + 1
        literals = [self.model.new_bool_var(f"row{i}_{r}") for r in range(count)]
        self.model.add_exactly_one(literals)
        self.model.add(self.y[i] == sum(r * literal for r, literal in enumerate(literals)))
        return literals

    def _pairs(self) -> None:
        blocks = self.geometry.blocks
        for i in range(len(blocks)):
            for j in range(i + 1, len(blocks)):
                way = {w: self.model.new_bool_var(f"{w}{i}_{j}") for w in WAYS}
                self.ways[i, j] = way
                self.ways[j, i] = {w: way[OPPOSITE[w]] for w in WAYS}
                for a, b in ((i, j), (j, i)):
                    beside = self.x[b] - self.x[a] >= blocks[a].width + self.geometry.gap_x(a, b)
                    above = self.y[b] - self.y[a] >= blocks[a].height + self.geometry.gap_y(a, b)
                    self.model.add(beside).only_enforce_if(self.ways[a, b]["east"])
                    self.model.add(above).only_enforce_if(self.ways[a, b]["north"])
                touching = [self._touch(t) for pair in ((i, j), (j, i)) if (t := self.geometry.touches.get(pair))]
                self.model.add_exactly_one([*way.values(), *touching])

    def _touch(self, touch: Touch) -> cp_model.IntVar:
        p, c = touch.producer, touch.consumer
        literal = self.touching[p, c]
        self.model.add(self.x[c] - self.x[p] == touch.east).only_enforce_if(literal)
        self.model.add(self.y[c] - self.y[p] == touch.north).only_enforce_if(literal)
        return literal

    def _packed(self) -> None:
        """The blocks as rectangles, with the columns that they keep free to the west where they touch nobody."""
        across, along = [], []
        for i, block in enumerate(self.geometry.blocks):
            left = block.keepout.left
            free = left * (1 - sum(literal for (_, c), literal in self.touching.items() if c == i))
            start = self.model.new_int_var(-left, self.geometry.columns, f"start{i}")
            size = self.model.new_int_var(block.width, block.width + left, f"size{i}")
            self.model.add(start == self.x[i] - free)
            self.model.add(size == block.width + free)
            self.model.add(sum(literal for (_, c), literal in self.touching.items() if c == i) <= 1)
            self.model.add(sum(literal for (p, _), literal in self.touching.items() if p == i) <= 1)
            across.append(self.model.new_interval_var(start, size, self.x[i] + block.width, f"across{i}"))
            along.append(self.model.new_interval_var(self.y[i], block.height, self.y[i] + block.height, f"along{i}"))
        self.model.add_no_overlap_2d(across, along)

    def _capacity(self) -> None:
        blocks = self.geometry.blocks
        terms: list[list[cp_model.LinearExprT]] = [[] for _ in range(self.geometry.rows)]
        for i, block in enumerate(blocks):
            for y, literal in enumerate(self.in_row[i]):
                for row in range(y, y + block.height):
                    terms[row].append((block.width + block.keepout.left + block.keepout.right) * literal)
        for (p, c), literal in self.touching.items():
            gap = self.geometry.gap_x(p, c)
            north = self.geometry.touches[p, c].north
            here = []
            for y, at in enumerate(self.in_row[p]):
                if not 0 <= y + north < len(self.in_row[c]):
                    continue
                both = self.model.new_bool_var(f"touch{p}_{c}_{y}")
                self.model.add_implication(both, at)
                self.model.add_implication(both, self.in_row[c][y + north])
                here.append(both)
                for row in range(max(y, y + north), min(y + blocks[p].height, y + north + blocks[c].height)):
                    terms[row].append(-gap * both)
            self.model.add(sum(here) == literal)
        outer = max(b.keepout.left for b in blocks) + max(b.keepout.right for b in blocks)
        for one in terms:
            self.model.add(sum(one) <= self.geometry.columns + outer)

    def _price(self, span: Span) -> cp_model.LinearExprT:
        s, t = span.source, span.target
        if s == t:
            return self.geometry.span_cost(span, (0, 0), (0, 0))
        columns = self._int(self.geometry.columns, f"columns{s}_{t}")
        rows = self._int(self.geometry.rows, f"rows{s}_{t}")
        u, v = self.x[t] - self.x[s], self.y[t] - self.y[s]
        limits = self._limits(s, t)
        for far, way, axis, (first, second), offset in (
            (columns, u, span.columns, (span.east, span.west), 0),
            (rows, v, span.rows, (span.north, span.south), 1),
        ):
            least, over, under = [], [], []
            for literal, ranges in limits:
                low, high = ranges[offset]
                least.append(axis(min(max(-first, low), high)) * literal)
                over.append((axis(high) - high - first) * literal)
                under.append((axis(low) + low - second) * literal)
            self.model.add(far >= way + first + sum(over))
            self.model.add(far >= second - way + sum(under))
            self.model.add(far >= sum(least))
        return self.geometry.scale * columns + self.geometry.row_step * rows

    def _limits(self, s: int, t: int) -> list[tuple[cp_model.IntVar, tuple[tuple[int, int], tuple[int, int]]]]:
        """Of every way that the target can be seen from the source: (least, most) columns and rows between them."""
        g = self.geometry
        across, along = (1 - g.columns, g.columns - 1), (1 - g.rows, g.rows - 1)
        ways = self.ways[s, t]
        found = [
            (ways["east"], ((g.blocks[s].width + g.gap_x(s, t), across[1]), along)),
            (ways["west"], ((across[0], -g.blocks[t].width - g.gap_x(t, s)), along)),
            (ways["north"], (across, (g.blocks[s].height + g.gap_y(s, t), along[1]))),
            (ways["south"], (across, (along[0], -g.blocks[t].height - g.gap_y(t, s)))),
        ]
        for (p, c), sign in (((s, t), 1), ((t, s), -1)):
            touch = g.touches.get((p, c))
            if touch is not None:
                u, v = sign * touch.east, sign * touch.north
                found.append((self.touching[p, c], ((u, u), (v, v))))
        return found

    def _anchor(self) -> None:
        anchored = False
        for i, block in enumerate(self.geometry.blocks):
            if block.anchor is not None:
                anchored = True
                self.model.add(self.x[i] == block.anchor[0])
                self.model.add(self.y[i] == block.anchor[1])
        if not anchored:
            west = self._int(0, "west")
            self.model.add_min_equality(west, self.x)

    def _order(self) -> None:
        columns = self.geometry.columns
        for first, others in graph_of(self.geometry, tuple(range(len(self.x)))).orbits():
            for other in others:
                here, there = (self.y[i] * columns + self.x[i] for i in (first, other))
                self.model.add(here + 1 <= there)

    def _bound(self, bound: Bound) -> None:
        inside = set(bound.blocks)
        prices = [
            price
            for span, price in zip(self.geometry.spans, self.prices, strict=True)
            if span.source in inside and span.target in inside
        ]
        total = cp_model.LinearExpr.sum(prices)
        if bound.rows:
            total += self.geometry.height * cp_model.LinearExpr.sum([self.y[i] for i in bound.blocks])
        self.model.add(total >= bound.cost)
