"""Small placement problems, and every placement of one, counted through."""

import itertools
import random
from collections.abc import Iterable, Iterator
from fractions import Fraction

from optimize.placement.legality import cost_of, violations
from optimize.placement.problem import Block, Edge, Face, Keepout, Placement, Problem, Rules


def block(name: str, width: int, height: int, *, left: int = 1, anchor: tuple[int, int] | None = None) -> Block:
    """A block as those of the benchmark: input on the left, output on the right, full height."""
    return Block(
        name=name,
        width=width,
        height=height,
        input_face=Face(side="left", start=0, end=height - 1),
        output_face=Face(side="right", start=0, end=height - 1),
        keepout=Keepout(left=left),
        anchor=anchor,
    )


def problem(blocks: Iterable[Block], edges: Iterable[Edge] = (), *, columns: int = 6, rows: int = 3) -> Problem:
    return Problem(name="p", rules=Rules(columns=columns, rows=rows), blocks=tuple(blocks), edges=tuple(edges))


def edge(source: str, target: str, *, direct: bool = True, exclusive: bool = True) -> Edge:
    return Edge(source=source, target=target, direct=direct, exclusive=exclusive)


def chain(sizes: Iterable[tuple[int, int]], *, columns: int = 6, rows: int = 3, direct: bool = True) -> Problem:
    blocks = [block(f"n{i}", w, h) for i, (w, h) in enumerate(sizes)]
    edges = [edge(a.name, b.name, direct=direct) for a, b in itertools.pairwise(blocks)]
    return problem(blocks, edges, columns=columns, rows=rows)


def fan(leaves: int, *, columns: int = 6, rows: int = 3) -> Problem:
    blocks = [block("root", 1, 1), *(block(f"leaf{i}", 1, 1) for i in range(leaves))]
    edges = [edge("root", b.name, exclusive=False) for b in blocks[1:]]
    return problem(blocks, edges, columns=columns, rows=rows)


def every_placement(of: Problem) -> Iterator[Placement]:
    """All legal placements, by trying all of them."""
    spots = [
        [(x, y) for x in range(of.rules.columns - b.width + 1) for y in range(of.rules.rows - b.height + 1)]
        for b in of.blocks
    ]
    for chosen in itertools.product(*spots):
        placement = Placement(spots=chosen)
        if not violations(of, placement):
            yield placement


def cheapest(of: Problem) -> Fraction | None:
    """Cost of the cheapest legal placement, None = there is none."""
    return min((cost_of(of, placement) for placement in every_placement(of)), default=None)


def some_problem(seed: int) -> Problem:
    """A random problem of two to four blocks in a small grid: any keepouts, faces, anchors, edges, prices of rows."""
    chance = random.Random(seed)
    columns, rows = chance.randint(2, 5), chance.randint(1, 3)
    blocks = [_some_block(chance, i, columns, rows) for i in range(chance.randint(2, 3 if columns * rows > 8 else 4))]
    pairs = [(a.name, b.name) for a in blocks for b in blocks if chance.random() < 0.4]
    edges = [edge(a, b, direct=chance.random() < 0.8, exclusive=chance.random() < 0.8) for a, b in pairs if a <= b]
    rules = Rules(columns=columns, rows=rows, row_step=chance.choice([Fraction(1), Fraction(1, 2), Fraction(3)]))
    return Problem(name=f"p{seed}", rules=rules, blocks=tuple(blocks), edges=tuple(edges))


def _some_block(chance: random.Random, number: int, columns: int, rows: int) -> Block:
    width, height = chance.randint(1, min(2, columns)), chance.randint(1, min(2, rows))
    usual = chance.random() < 0.6
    keep = (
        Keepout(left=1) if usual else Keepout(**{s: chance.randint(0, 1) for s in ("left", "right", "top", "bottom")})
    )
    return Block(
        name=f"n{number}",
        width=width,
        height=height,
        input_face=_some_face(chance, "left", usual, width, height),
        output_face=_some_face(chance, "right", usual, width, height),
        keepout=keep,
        anchor=(chance.randint(0, columns - width), 0) if chance.random() < 0.1 else None,
    )


def _some_face(chance: random.Random, side: str, usual: bool, width: int, height: int) -> Face:
    chosen = side if usual else chance.choice(["left", "right", "top", "bottom"])
    length = height if chosen in ("left", "right") else width
    start = 0 if usual else chance.randrange(length)
    return Face(side=chosen, start=start, end=length - 1)  # type: ignore[arg-type]
