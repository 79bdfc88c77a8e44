"""Whether a placement is legal, and its cost, by tiles instead of inequalities; shares no code with what places.

Every block is the set of its tiles, every keepout the set of the tiles that it adds inside the grid.
"""

from collections.abc import Iterator
from fractions import Fraction

from optimize.placement.problem import Block, Edge, Face, Placement, Problem

Spot = tuple[int, int]


def violations(problem: Problem, placement: Placement) -> tuple[str, ...]:
    """Everything that is wrong with a placement; () = it is legal."""
    if len(placement.spots) != len(problem.blocks):
        return (f"{len(placement.spots)} places for {len(problem.blocks)} blocks",)
    placed = list(zip(problem.blocks, placement.spots, strict=True))
    found = [text for block, spot in placed for text in _alone(problem, block, spot)]
    for index, (first, at) in enumerate(placed):
        for second, there in placed[index + 1 :]:
            text = _pair(problem, (first, at), (second, there))
            if text:
                found.append(text)
    return tuple(found)


def _alone(problem: Problem, block: Block, spot: Spot) -> Iterator[str]:
    grid = {(c, r) for c in range(problem.rules.columns) for r in range(problem.rules.rows)}
    if not _tiles(block, spot) <= grid:
        yield f"{block.name!r} at {spot} is not inside the grid"
    if block.anchor is not None and block.anchor != spot:
        yield f"{block.name!r} at {spot}, its anchor is {block.anchor}"


def _pair(problem: Problem, one: tuple[Block, Spot], two: tuple[Block, Spot]) -> str:
    if _tiles(*one) & _tiles(*two):
        return f"{one[0].name!r} and {two[0].name!r} overlap"
    if _with_keepout(*one) & _with_keepout(*two):
        shared = any(_hands_over(e, one, two) or _hands_over(e, two, one) for e in problem.edges)
        if not shared:
            return f"{one[0].name!r} and {two[0].name!r}: one takes tiles that the other keeps free"
    return ""


def _tiles(block: Block, spot: Spot) -> set[Spot]:
    return {(spot[0] + c, spot[1] + r) for c in range(block.width) for r in range(block.height)}


def _with_keepout(block: Block, spot: Spot) -> set[Spot]:
    keep = block.keepout
    around = set()
    for column, row in _tiles(block, spot):
        for c in range(column - keep.left, column + keep.right + 1):
            for r in range(row - keep.top, row + keep.bottom + 1):
                if c >= 0 and r >= 0:
                    around.add((c, r))
    return around


def _hands_over(edge: Edge, producer: tuple[Block, Spot], consumer: tuple[Block, Spot]) -> bool:
    """Whether the consumer takes its input from the memory of the producer that it touches."""
    (p, p_spot), (c, c_spot) = producer, consumer
    if (edge.source, edge.target) != (p.name, c.name) or not (edge.direct and edge.exclusive):
        return False
    if (p.output_face.side, c.input_face.side) != ("right", "left"):
        return False
    leaving = _face_tiles(p, p.output_face, p_spot)
    entering = _face_tiles(c, c.input_face, c_spot)
    return {(column + 1, row) for column, row in leaving} == entering


def _face_tiles(block: Block, face: Face, spot: Spot) -> set[Spot]:
    span = range(face.start, face.end + 1)
    column = {"left": 0, "right": block.width - 1}
    row = {"top": 0, "bottom": block.height - 1}
    if face.side in column:
        return {(spot[0] + column[face.side], spot[1] + k) for k in span}
    return {(spot[0] + k, spot[1] + row[face.side]) for k in span}


def cost_of(problem: Problem, placement: Placement) -> Fraction:
    """The objective of a placement, exactly; says nothing about whether it is legal."""
    at = {block.name: (block, spot) for block, spot in zip(problem.blocks, placement.spots, strict=True)}
    total = sum((problem.rules.height * spot[1] for _, spot in at.values()), Fraction(0))
    for edge in problem.edges:
        source, s_spot = at[edge.source]
        target, t_spot = at[edge.target]
        leaving = _face_tiles(source, source.output_face, s_spot)
        entering = _face_tiles(target, target.input_face, t_spot)
        total += min(abs(a - b) for a, _ in leaving for b, _ in entering)
        total += problem.rules.row_step * min(abs(a - b) for _, a in leaving for _, b in entering)
    return total
