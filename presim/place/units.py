"""Workers that have to be placed together: those of a cascade lie along a path of neighbours."""

import itertools
from collections.abc import Container, Iterator, Mapping

from manifest.errors import Problem, RefusedError
from presim.adjacency import cascade_steps
from presim.design import Design

Unit = tuple[int, ...]
"""Numbers of workers: one alone, or those of a cascade from its source on."""

Spot = tuple[int, int]
"""Column and row of a core tile, absolute."""


def units_of(design: Design) -> tuple[Unit, ...]:
    """Every worker in one unit, in the order of their first workers.

    Raises:
        RefusedError: a core with two cascades in or out, or a cascade that ends where it begins.
    """
    numbers = {worker.name: i for i, worker in enumerate(design.workers)}
    after: dict[int, int] = {}
    before: dict[int, int] = {}
    problems: list[Problem] = []
    for cascade in design.cascades:
        source, target = numbers[cascade.source], numbers[cascade.target]
        for held, end, other, what in ((after, source, target, "out of"), (before, target, source, "into")):
            if held.get(end, other) != other:
                worker = design.workers[end].name
                problems.append(_problem(f"worker {worker!r}", f"two cascades lead {what} it", "one"))
            held[end] = other
    units = [_path(first, after) for first in range(len(numbers)) if first not in before]
    reached = {worker for unit in units for worker in unit}
    closed = [name for name, number in numbers.items() if number not in reached]
    if closed and not problems:
        problems = [
            _problem(f"worker {name!r}", "its cascade ends where it begins", "an open chain") for name in closed
        ]
    if problems:
        raise RefusedError(tuple(problems))
    return tuple(units)


def _path(first: int, after: Mapping[int, int]) -> Unit:
    path = [first]
    while path[-1] in after and after[path[-1]] not in path:
        path.append(after[path[-1]])
    return tuple(path)


def _problem(where: str, what: str, expected: str) -> Problem:
    return Problem(code="PLACE-CASCADE", where=where, what=what, expected=expected)


def paths_from(start: Spot, length: int, arch: str, free: Container[Spot], turns: int) -> Iterator[tuple[Spot, ...]]:
    """Paths that a cascade can take from a spot on, over free spots, with at most so many turns; straight ones first.

    Args:
        start: first spot.
        length: spots, >= 1.
        arch: of the device.
        free: spots that may be used.
        turns: >= 0.
    """
    found = _extend((start,), length, arch, free, turns) if start in free else ()
    yield from sorted(found, key=_turns)


def _extend(
    path: tuple[Spot, ...], length: int, arch: str, free: Container[Spot], turns: int
) -> Iterator[tuple[Spot, ...]]:
    if len(path) == length:
        yield path
        return
    column, row = path[-1]
    for east, north in cascade_steps(row, arch):
        following = (column + east, row + north)
        longer = (*path, following)
        if following in free and _turns(longer) <= turns:
            yield from _extend(longer, length, arch, free, turns)


def _turns(path: tuple[Spot, ...]) -> int:
    rows = [b[1] == a[1] for a, b in itertools.pairwise(path)]
    return sum(a != b for a, b in itertools.pairwise(rows))
