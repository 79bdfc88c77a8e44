"""Directives on places: which worker has to be where, and where the others of its op would best be."""

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from manifest.errors import Problem, RefusedError
from presim.design import Call, Design, Tile, Worker
from presim.directives import Directives
from presim.place.grid import Grid
from presim.steps import steps_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Pins:
    """What is asked for.

    Attributes:
        fixed: tiles of workers that are pinned, or were placed before, by name.
        wished: tiles at which the other workers of a pinned op would form a block with the first: summands to the
            east, output channels to the north.
        unused: ops that are pinned and have no worker in this design.
    """

    fixed: Mapping[str, Tile]
    wished: Mapping[str, Tile]
    unused: tuple[str, ...]


def ops_of(design: Design, worker: Worker) -> tuple[str, ...]:
    """Manifest ops that a worker computes (parts of), in program order."""
    owners = {kernel.name: kernel.op for kernel in design.kernels}
    called = (s.kernel for s in steps_of(worker.program) if isinstance(s, Call))
    return tuple(op for op in dict.fromkeys(owners[name] for name in called) if op)


def pins_of(design: Design, directives: Directives, grid: Grid) -> Pins:
    """The pins of a design.

    Raises:
        RefusedError: places outside the array or taken twice; all problems.
    """
    return _Pinner(design, directives, grid).pins()


class _Pinner:
    """Collects pins and what is wrong with them."""

    def __init__(self, design: Design, directives: Directives, grid: Grid) -> None:
        self.design = design
        self.directives = directives
        self.grid = grid
        self.workers: dict[str, list[str]] = {}
        for worker in design.workers:
            for op in ops_of(design, worker):
                self.workers.setdefault(op, []).append(worker.name)
        self.fixed = {w.name: w.tile for w in design.workers if w.tile is not None}
        self.owners = {tile: f"worker {name!r}" for name, tile in self.fixed.items()}
        self.pinned: dict[str, str] = {}
        self.problems: list[Problem] = []

    def pins(self) -> Pins:
        asked = {op: d.placement for op, d in self.directives.by_op.items() if d.placement is not None}
        for op, placement in asked.items():
            row, column = placement.row, placement.col
            if op in self.workers:
                self.pin(op, Tile(column=column, row=self.grid.core_row + row), row)
        if self.problems:
            raise RefusedError(tuple(self.problems))
        wished: dict[str, Tile] = {}
        for op in asked:
            for name, tile in self.block(op) if op in self.workers else ():
                if name not in self.fixed:
                    wished.setdefault(name, tile)
        return Pins(fixed=self.fixed, wished=wished, unused=tuple(op for op in asked if op not in self.workers))

    def pin(self, op: str, tile: Tile, row: int) -> None:
        """Fix the first worker of an op."""
        name = self.workers[op][0]
        if not self.grid.has_core(tile.column, tile.row):
            expected = f"row 0 to {self.grid.core_rows - 1}, col 0 to {self.grid.columns - 1} on {self.grid.device}"
            self.refuse(op, "outside the array", expected, f"row {row}, col {tile.column}")
        elif self.fixed.get(name, tile) != tile:
            other = self.pinned.get(name, name)
            got = f"row {row}, col {tile.column}"
            self.refuse(op, f"it runs on one core with {other!r}, which is elsewhere", "one place for both", got)
        elif tile in self.owners and self.fixed.get(name) != tile:
            got = f"row {row}, col {tile.column}"
            self.refuse(op, f"the place is taken by {self.owners[tile]}", "a core tile of its own", got)
        else:
            self.fixed[name] = tile
            self.owners[tile] = f"node {op!r}"
            self.pinned[name] = op

    def refuse(self, op: str, what: str, expected: str, got: str) -> None:
        where = f"directives, node {op!r}, placement"
        self.problems.append(Problem(code="PLACE-PIN", where=where, what=what, expected=expected, got=got))

    def block(self, op: str) -> Iterator[tuple[str, Tile]]:
        """The workers of a pinned op as a block: along a cascade to the east, the others to the north."""
        names = self.workers[op]
        anchor = self.fixed[names[0]]
        follows = {(c.source, c.target) for c in self.design.cascades}
        east = north = 0
        for before, name in itertools.pairwise(names):
            east, north = (east + 1, north) if (before, name) in follows else (0, north + 1)
            tile = Tile(column=anchor.column + east, row=anchor.row + north)
            if self.grid.has_core(tile.column, tile.row):
                yield name, tile
