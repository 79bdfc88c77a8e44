"""Bounds on parts of a problem: a block with its neighbours, or what hangs on one edge, placed alone as well as can be.

A part costs in every placement of the whole what it costs alone at least. Around a fan-out that is far more than the
sum over its edges, and no relaxation sees it. Parts that look alike are solved once; larger ones use what is known of
smaller ones inside them.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

from optimize.placement.geometry import Geometry
from optimize.placement.model import Bound, Model
from optimize.placement.symmetry import graph_of, maps

SMALLEST: Final = 4
LARGEST: Final = 9
FAN: Final = 3
"""Neighbours of some block of a part: without a fan the edges alone say as much."""

Prove = Callable[[Model], int | None]
"""The best scaled bound on the objective of a model, None = there is no more time."""


def clusters_of(geometry: Geometry) -> tuple[tuple[int, ...], ...]:
    """Parts whose bounds may help, small ones first."""
    found = dict.fromkeys(part for part in _parts(geometry) if _helps(geometry, part))
    return tuple(sorted(found, key=lambda part: (len(part), part)))


def _helps(geometry: Geometry, part: tuple[int, ...]) -> bool:
    if not SMALLEST <= len(part) <= min(LARGEST, len(geometry.blocks) - 2):
        return False
    inside = set(part)
    return any(len(inside.intersection(geometry.neighbours[i])) >= FAN for i in part)


def _parts(geometry: Geometry) -> Iterator[tuple[int, ...]]:
    near = geometry.neighbours
    for block in range(len(geometry.blocks)):
        ball = {block, *near[block]}
        yield tuple(sorted(ball))
        yield tuple(sorted(ball.union(*(near[i] for i in ball))))
    for span in geometry.spans:
        for root, other in ((span.source, span.target), (span.target, span.source)):
            branch = _branch(near, root, other)
            if other not in branch:
                yield tuple(sorted(branch))


def _branch(near: tuple[tuple[int, ...], ...], root: int, other: int) -> set[int]:
    """Blocks that are reached from a root without the edge to another block."""
    found, queue = {root}, [root]
    while queue:
        block = queue.pop()
        for following in near[block]:
            if {block, following} != {root, other} and following not in found:
                found.add(following)
                queue.append(following)
    return found


def bounds_of(geometry: Geometry, prove: Prove) -> tuple[Bound, ...]:
    """Bounds on all parts, as far as `prove` goes on."""
    found: list[Bound] = []
    for part in clusters_of(geometry):
        graph = graph_of(geometry, part)
        alike = [b for b in found if len(b.blocks) == len(part) and maps(graph_of(geometry, b.blocks), graph, {})]
        if alike:
            found += [replace(bound, blocks=part) for bound in alike[:2]]
            continue
        alone = _alone(geometry, part)
        known = [_renumbered(bound, part) for bound in found if set(bound.blocks) <= set(part)]
        for rows in (True, False):
            model = Model(alone, known)
            if not rows:
                model.model.minimize(sum(model.prices))
            cost = prove(model)
            if cost is None:
                return tuple(found)
            found.append(Bound(blocks=part, rows=rows, cost=cost))
    return tuple(found)


def _alone(geometry: Geometry, part: tuple[int, ...]) -> Geometry:
    """The problem of a part alone, without anchors."""
    problem = geometry.problem
    blocks = tuple(replace(problem.blocks[i], anchor=None) for i in part)
    names = {block.name for block in blocks}
    edges = tuple(edge for edge in problem.edges if {edge.source, edge.target} <= names)
    return Geometry(replace(problem, blocks=blocks, edges=edges))


def _renumbered(bound: Bound, part: tuple[int, ...]) -> Bound:
    return replace(bound, blocks=tuple(part.index(i) for i in bound.blocks))
