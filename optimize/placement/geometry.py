"""Blocks and edges as offsets, for what searches: how far blocks have to keep apart, what an edge costs.

With x and y of a target less those of its source as u and v, the columns between their faces are
max(0, u + east, -u + west), the rows max(0, v + north, -v + south). Two blocks are apart by a gap in one direction, or
one takes its input from the memory of the other that it touches (`Touch`).

A keepout that would lie outside the grid never matters: no block lies there either.
"""

from dataclasses import dataclass
from functools import cached_property
from math import lcm

from optimize.placement.problem import Block, Face, Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Touch:
    """Where a consumer has to be to share the memory of its producer: (east, north) of it."""

    producer: int
    consumer: int
    east: int
    north: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """What an edge costs, by numbers of blocks and offsets as above."""

    source: int
    target: int
    east: int
    west: int
    north: int
    south: int

    def columns(self, u: int) -> int:
        """Columns between the faces."""
        return max(0, u + self.east, self.west - u)

    def rows(self, v: int) -> int:
        """Rows between the faces."""
        return max(0, v + self.north, self.south - v)


class Geometry:
    """A problem in numbers; the objective is scaled so that all of it is integer."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.blocks = problem.blocks
        self.columns, self.rows = problem.rules.columns, problem.rules.rows
        self.number = {block.name: i for i, block in enumerate(problem.blocks)}
        self.scale = lcm(problem.rules.row_step.denominator, problem.rules.height.denominator)
        self.row_step = int(problem.rules.row_step * self.scale)
        self.height = int(problem.rules.height * self.scale)
        self.spans = tuple(self._span(e.source, e.target) for e in problem.edges)
        self.touches = self._touches()

    @cached_property
    def around(self) -> tuple[tuple[Span, ...], ...]:
        """Edges of every block."""
        return tuple(tuple(s for s in self.spans if i in (s.source, s.target)) for i in range(len(self.blocks)))

    @cached_property
    def neighbours(self) -> tuple[tuple[int, ...], ...]:
        """Blocks that every block has an edge with."""
        return tuple(
            tuple(dict.fromkeys(n for s in spans for n in (s.source, s.target) if n != i))
            for i, spans in enumerate(self.around)
        )

    def gap_x(self, left: int, right: int) -> int:
        """Columns that have to be free between two blocks beside each other."""
        return self.blocks[left].keepout.right + self.blocks[right].keepout.left

    def gap_y(self, low: int, high: int) -> int:
        """Rows that have to be free between two blocks above each other."""
        return self.blocks[low].keepout.bottom + self.blocks[high].keepout.top

    def conflict(self, i: int, at: tuple[int, int], j: int, there: tuple[int, int]) -> bool:
        """Whether two blocks cannot be where they are."""
        u, v = there[0] - at[0], there[1] - at[1]
        a, b = self.blocks[i], self.blocks[j]
        if u >= a.width + self.gap_x(i, j) or -u >= b.width + self.gap_x(j, i):
            return False
        if v >= a.height + self.gap_y(i, j) or -v >= b.height + self.gap_y(j, i):
            return False
        touch = self.touches.get((i, j))
        if touch is not None and (u, v) == (touch.east, touch.north):
            return False
        touch = self.touches.get((j, i))
        return touch is None or (-u, -v) != (touch.east, touch.north)

    def span_cost(self, span: Span, at: tuple[int, int], there: tuple[int, int]) -> int:
        """Scaled cost of an edge whose source is at `at` and whose target `there`."""
        return self.scale * span.columns(there[0] - at[0]) + self.row_step * span.rows(there[1] - at[1])

    def cost(self, spots: tuple[tuple[int, int], ...]) -> int:
        """Scaled cost of a placement."""
        total = self.height * sum(row for _, row in spots)
        return total + sum(self.span_cost(s, spots[s.source], spots[s.target]) for s in self.spans)

    def _span(self, source: str, target: str) -> Span:
        s, t = self.number[source], self.number[target]
        out, into = _box(self.blocks[s], self.blocks[s].output_face), _box(self.blocks[t], self.blocks[t].input_face)
        return Span(
            source=s,
            target=t,
            east=into[0] - out[1],
            west=out[0] - into[1],
            north=into[2] - out[3],
            south=out[2] - into[3],
        )

    def _touches(self) -> dict[tuple[int, int], Touch]:
        found = {}
        for edge in self.problem.edges:
            p, c = self.number[edge.source], self.number[edge.target]
            out, into = self.blocks[p].output_face, self.blocks[c].input_face
            sides = (out.side, into.side) == ("right", "left")
            if p != c and edge.direct and edge.exclusive and sides and out.end - out.start == into.end - into.start:
                found[p, c] = Touch(producer=p, consumer=c, east=self.blocks[p].width, north=out.start - into.start)
        return found


def _box(block: Block, face: Face) -> tuple[int, int, int, int]:
    """First and last column, first and last row of a face, inside its block."""
    if face.side in ("left", "right"):
        column = 0 if face.side == "left" else block.width - 1
        return column, column, face.start, face.end
    row = 0 if face.side == "top" else block.height - 1
    return face.start, face.end, row, row
