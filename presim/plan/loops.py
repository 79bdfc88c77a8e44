"""From a long list of steps to a program of nested loops.

The list is cut into turns (the steps of one firing). A run of turns that repeats becomes a `Loop`; integers that grow
evenly from turn to turn become its counter. Found by the turns alone, so that borders, strides and batches need no
rules of their own: what differs stays in front of the loop or behind it.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from presim.design import Call, Loop, Step

Turn = tuple[Step, ...]

LONGEST_PERIOD: Final = 128
"""Turns of the longest run that is looked for."""

_NESTING: Final = 4


@dataclass(frozen=True, slots=True)
class _Item:
    """Steps that stay together: their form without counters, and the integers that may count."""

    steps: Turn
    form: Hashable
    counts: tuple[int, ...]


def program_of(turns: Sequence[Turn]) -> tuple[Step, ...]:
    """The program that runs `turns` one after the other.

    Args:
        turns: steps of the firings; integers of calls are numbers, not counters.
    """
    items = [_item(turn) for turn in turns if turn]
    for level in range(_NESTING):
        folded = _fold(items, f"i{level}")
        if len(folded) == len(items):
            break
        items = folded
    return tuple(step for item in items for step in item.steps)


def _item(steps: Turn) -> _Item:
    form: list[Hashable] = []
    counts: list[int] = []
    for step in steps:
        if isinstance(step, Call):
            form.append((replace(step, scalars=()), tuple((name, isinstance(v, int)) for name, v in step.scalars)))
            form.append(tuple(v for _, v in step.scalars if not isinstance(v, int)))
            counts += [v for _, v in step.scalars if isinstance(v, int)]
        else:
            form.append(step)
    return _Item(steps, tuple(form), tuple(counts))


def _fold(items: Sequence[_Item], prefix: str) -> list[_Item]:
    """Replace every run that repeats by one item with a loop."""
    numbers: dict[Hashable, int] = {}
    ids = np.array([numbers.setdefault(item.form, len(numbers)) for item in items], dtype=np.int64)
    same = _matches(ids)
    result: list[_Item] = []
    position = loops = 0
    while position < len(items):
        period, times = _best(items, same, position)
        if times < 2:
            result.append(items[position])
            position += 1
            continue
        counter = f"{prefix}_{loops}"
        result.append(_item((_loop(items, position, period, times, counter),)))
        loops += 1
        position += period * times
    return result


def _matches(ids: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Per period p (index p - 1) and position: how many items in a row equal the one p further on."""
    runs = []
    for period in range(1, min(LONGEST_PERIOD, len(ids) // 2) + 1):
        equal = ids[:-period] == ids[period:]
        ends = np.flatnonzero(~np.append(equal, False))
        positions = np.arange(len(equal))
        runs.append(ends[np.searchsorted(ends, positions)] - positions)
    return runs


def _best(items: Sequence[_Item], same: Sequence[NDArray[np.int64]], position: int) -> tuple[int, int]:
    """(period, times) of the loop that covers most from `position` on; the shortest period of those."""
    best = (1, 1)
    for index, runs in enumerate(same):
        period = index + 1
        if position >= len(runs) or runs[position] < period:
            continue
        most = int(runs[position]) // period + 1
        if most * period <= best[0] * best[1]:
            continue
        times = _even(items, position, period, most)
        if times >= 2 and times * period > best[0] * best[1]:
            best = (period, times)
    return best


def _even(items: Sequence[_Item], position: int, period: int, times: int) -> int:
    """How many of `times` repeats have integers that grow evenly."""
    first = _counts(items, position, period)
    steps = tuple(b - a for a, b in zip(first, _counts(items, position + period, period), strict=True))
    for k in range(2, times):
        expected = tuple(a + k * s for a, s in zip(first, steps, strict=True))
        if _counts(items, position + k * period, period) != expected:
            return k
    return times


def _counts(items: Sequence[_Item], position: int, period: int) -> tuple[int, ...]:
    return tuple(n for item in items[position : position + period] for n in item.counts)


def _loop(items: Sequence[_Item], position: int, period: int, times: int, counter: str) -> Loop:
    first = _counts(items, position, period)
    second = _counts(items, position + period, period)
    terms = [_term(counter, a, b - a) for a, b in zip(first, second, strict=True)]
    counted = any(isinstance(t, str) for t in terms)
    body: list[Step] = []
    for item in items[position : position + period]:
        for step in item.steps:
            if isinstance(step, Call):
                own = tuple((name, terms.pop(0) if isinstance(v, int) else v) for name, v in step.scalars)
                body.append(replace(step, scalars=own))
            else:
                body.append(step)
    return Loop(times=times, body=tuple(body), counter=counter if counted else "")


def _term(counter: str, start: int, step: int) -> int | str:
    """An integer that starts at `start` and grows by `step` per turn."""
    if step == 0:
        return start
    factor = "" if step == 1 else f"*{step}"
    offset = "" if start == 0 else f"{start:+d}"
    return f"@{counter}{factor}{offset}"
