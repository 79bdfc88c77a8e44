"""The model of spots for workers: the price of `presim.place.layout`, with what proves that nothing is cheaper.

Cores form a grid of two colours: neighbours differ, so a ring of an odd number of workers is never direct all around.
A core has four neighbours, eight at two tiles, and so on: that bounds the ways of a worker with many partners.
"""

import itertools
from collections.abc import Mapping, Sequence

from ortools.sat.python import cp_model

from presim.adjacency import FIRST_GENERATION
from presim.place.grid import Grid
from presim.place.layout import LACKING_CHANNEL, LOST_DIRECT, STEP, WISH
from presim.place.nets import Nets, Pair
from presim.place.units import Spot, Unit


class Cores:
    """Variables and constraints.

    Args:
        nets: what joins the workers.
        units: cascades and single workers.
        grid: of the device.
        fixed: spots of pinned workers.
        wishes: spots that others would best have.
    """

    def __init__(
        self, nets: Nets, units: Sequence[Unit], grid: Grid, fixed: Mapping[int, Spot], wishes: Mapping[int, Spot]
    ) -> None:
        self.model = cp_model.CpModel()
        self.grid = grid
        self.nets = nets
        count = len(nets.workers)
        self.x = [self.model.new_int_var(0, grid.columns - 1, f"x{i}") for i in range(count)]
        low, high = grid.core_row, grid.core_row + grid.core_rows - 1
        self.y = [self.model.new_int_var(low, high, f"y{i}") for i in range(count)]
        self.odd = [self._odd(self.x[i] + self.y[i], grid.columns + high, f"{i}") for i in range(count)]
        for worker, (column, row) in fixed.items():
            self.model.add(self.x[worker] == column)
            self.model.add(self.y[worker] == row)
        self.model.add_all_different([self.x[i] * grid.core_rows + self.y[i] for i in range(count)])
        for unit in units:
            for source, target in itertools.pairwise(unit):
                self._cascade(source, target)
        self.ways = {key: self._way(*key) for key in dict.fromkeys(_key(pair) for pair in nets.pairs)}
        self.near = {key: self._near(*key) for key in dict.fromkeys(_key(p) for p in nets.pairs if p.direct)}
        self._fans(count)
        terms = [self._pair(pair) for pair in nets.pairs]
        terms += [self._host(worker) for worker in sorted(nets.host)]
        terms += [self._wish(worker, spot) for worker, spot in wishes.items()]
        terms += [term for worker in range(count) for term in self._lacking(worker)]
        self.model.minimize(cp_model.LinearExpr.sum(terms))

    def hint(self, spots: Sequence[Spot]) -> None:
        """Begin with spots."""
        for i, (column, row) in enumerate(spots):
            self.model.add_hint(self.x[i], column)
            self.model.add_hint(self.y[i], row)

    def spots(self, solver: cp_model.CpSolver) -> tuple[Spot, ...]:
        """Spots of a solution."""
        return tuple((solver.value(x), solver.value(y)) for x, y in zip(self.x, self.y, strict=True))

    def _odd(self, value: cp_model.LinearExpr, most: int, name: str) -> cp_model.IntVar:
        odd = self.model.new_bool_var(f"odd{name}")
        half = self.model.new_int_var(0, most, f"half{name}")
        self.model.add(value == 2 * half + odd)
        return odd

    def _cascade(self, source: int, target: int) -> None:
        east = self.x[target] - self.x[source]
        north = self.y[target] - self.y[source]
        if self.grid.arch == FIRST_GENERATION:
            odd_row = self._odd(self.y[source], self.grid.core_row + self.grid.core_rows, f"row{source}")
            self.model.add(east == 1 - 2 * odd_row)
            self.model.add(north == 0)
            return
        level = self.model.new_bool_var(f"level{source}_{target}")
        self.model.add(east == level)
        self.model.add(north == level - 1)

    def _apart(self, one: cp_model.LinearExpr, other: cp_model.LinearExpr | int, name: str) -> cp_model.IntVar:
        far = self.model.new_int_var(0, self.grid.columns + self.grid.core_rows, name)
        self.model.add_abs_equality(far, one - other)
        return far

    def _way(self, a: int, b: int) -> cp_model.LinearExpr:
        across = self._apart(self.x[a], self.x[b], f"across{a}_{b}")
        along = self._apart(self.y[a], self.y[b], f"along{a}_{b}")
        self.model.add(across + along >= 1)
        return across + along

    def _near(self, a: int, b: int) -> cp_model.IntVar:
        near = self.model.new_bool_var(f"near{a}_{b}")
        self.model.add(self.ways[a, b] <= 1).only_enforce_if(near)
        self.model.add(self.ways[a, b] >= 2).only_enforce_if(~near)
        self.model.add(self.odd[a] + self.odd[b] == 1).only_enforce_if(near)
        return near

    def _fans(self, count: int) -> None:
        for worker in range(count):
            mine = [way for key, way in self.ways.items() if worker in key]
            least, ring, left = 0, 1, len(mine)
            while left > 0:
                here = min(left, 4 * ring)
                least, left, ring = least + ring * here, left - here, ring + 1
            if len(mine) > 4:
                self.model.add(cp_model.LinearExpr.sum(mine) >= least)

    def _pair(self, pair: Pair) -> cp_model.LinearExpr:
        way = self.ways[_key(pair)]
        if not pair.direct:
            return STEP * way
        near = self.near[_key(pair)]
        return STEP * way - STEP * near + LOST_DIRECT * (1 - near)

    def _host(self, worker: int) -> cp_model.LinearExpr:
        table = [self.grid.to_host(column) for column in range(self.grid.columns)]
        far = self.model.new_int_var(0, max(table), f"host{worker}")
        self.model.add_element(self.x[worker], table, far)
        return STEP * far

    def _wish(self, worker: int, spot: Spot) -> cp_model.LinearExpr:
        across = self._apart(self.x[worker], spot[0], f"wish_x{worker}")
        along = self._apart(self.y[worker], spot[1], f"wish_y{worker}")
        return WISH * across + WISH * along

    def _lacking(self, worker: int) -> list[cp_model.LinearExpr]:
        """Price of DMA channels that a core would need and does not have, each way."""
        found: list[cp_model.LinearExpr] = []
        pairs = [pair for pair in self.nets.pairs if pair.direct]
        for name, given, limit, mine in (
            ("in", self.nets.inputs, self.nets.input_limit, [p for p in pairs if p.consumer == worker]),
            ("out", self.nets.outputs, self.nets.output_limit, [p for p in pairs if p.producer == worker]),
        ):
            if limit is None or given[worker] + len(mine) <= limit:
                continue
            over = self.model.new_int_var(0, given[worker] + len(mine) - limit, f"lacking_{name}{worker}")
            apart = cp_model.LinearExpr.sum([1 - self.near[_key(pair)] for pair in mine])
            self.model.add(over >= given[worker] + apart - limit)
            found.append(LACKING_CHANNEL * over)
        return found


def _key(pair: Pair) -> tuple[int, int]:
    return min(pair.producer, pair.consumer), max(pair.producer, pair.consumer)
