"""The smallest change that lifts a deadlock, found and verified by running it.

A deeper pool never stops a network of this kind that ran before, so the least depth is found by halving. More than
the objects of one inference is never asked for: that many hold everything there is.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from presim.simulate.build import Changes

Trial = Callable[[Changes], bool | None]
"""Run with changes: True it reaches its goal, False it does not, None nobody knows (a bound)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A verified change: by pool what it was and what it has to be; `exact` = one less was run and fails."""

    what: str
    before: Mapping[str, int]
    after: Mapping[str, int]
    exact: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """What the search found.

    Attributes:
        singles: pools that alone lift it, smallest increase first.
        joint: several pools that lift it together, None = not needed or none.
        initial: objects at the start that lift it, None = none.
        any_depth: whether unlimited depth everywhere lifts it; None = not known.
        exhausted: the runs were used up before everything was tried.
    """

    singles: tuple[Found, ...] = ()
    joint: Found | None = None
    initial: Found | None = None
    any_depth: bool | None = None
    exhausted: bool = False


class Allowance:
    """Instructions that all runs of a search may take together.

    Args:
        steps: of all runs.
        least: that a run counts at least, for what it takes to set it up.
    """

    def __init__(self, steps: int, least: int = 1) -> None:
        self.left = steps
        self.least = least

    def spend(self, steps: int) -> None:
        """A run took so many."""
        self.left -= max(steps, self.least)


class _Budget:
    """Counts runs; remembers whether they ran out or one of them hit its bound."""

    def __init__(self, trial: Trial, runs: int) -> None:
        self.trial = trial
        self.runs = runs
        self.short = False

    def runs_with(self, depths: Mapping[str, int] | None = None, initials: Mapping[str, int] | None = None) -> bool:
        if self.runs <= 0:
            self.short = True
            return False
        self.runs -= 1
        outcome = self.trial(Changes(depths=dict(depths or {}), initials=dict(initials or {})))
        if outcome is None:
            self.short = True
        return outcome is True


def search(
    trial: Trial,
    *,
    depths: Mapping[str, int],
    crowded: Sequence[str],
    starved: Sequence[str],
    most: Mapping[str, int],
    unlimited: bool | None,
    runs: int,
) -> Search:
    """Look for the smallest change.

    Args:
        trial: runs the design with changes.
        depths: of all pools as they are.
        crowded: pools that may be too shallow.
        starved: pools that may lack objects at the start.
        most: objects of one inference by pool: no pool has to be deeper.
        unlimited: whether it runs with pools of any depth; None = not known.
        runs: at most this many runs.
    """
    budget = _Budget(trial, runs)
    if unlimited is None:
        return Search(exhausted=True)
    if not unlimited:
        return Search(any_depth=False, initial=_initial(budget, starved, depths), exhausted=budget.short)
    found = [s for pool in crowded if (s := _single(budget, pool, depths, most)) is not None]
    found.sort(key=lambda s: sum(s.after[p] - s.before[p] for p in s.after))
    joint = None if found else _joint(budget, crowded, depths, most)
    return Search(singles=tuple(found), joint=joint, any_depth=True, exhausted=budget.short)


def least_depth(trial: Trial, pool: str, low: int, high: int) -> int | None:
    """The least depth of a pool in [low, high] that runs; None = `high` does not."""
    if trial(Changes(depths={pool: high})) is not True:
        return None
    while low < high:
        middle = (low + high) // 2
        if trial(Changes(depths={pool: middle})) is True:
            high = middle
        else:
            low = middle + 1
    return high


def _single(budget: _Budget, pool: str, depths: Mapping[str, int], most: Mapping[str, int]) -> Found | None:
    if pool not in depths:
        return None
    low, high = depths[pool], most.get(pool, 0)
    if high <= low or not budget.runs_with({pool: high}):
        return None
    return _halve(budget, {}, pool, low, high)


def _halve(budget: _Budget, others: Mapping[str, int], pool: str, low: int, high: int) -> Found:
    """The least depth in (low, high]: `low` fails, `high` runs."""
    before = low
    while high - low > 1:
        middle = (low + high) // 2
        if budget.runs_with({**others, pool: middle}):
            high = middle
        else:
            low = middle
    return Found(what="depth", before={pool: before}, after={pool: high}, exact=not budget.short)


def _joint(budget: _Budget, crowded: Sequence[str], depths: Mapping[str, int], most: Mapping[str, int]) -> Found | None:
    """Several pools made deeper, each as little as the others allow, in the order in which they are in the way."""
    chosen = {p: most[p] for p in crowded if p in depths and most.get(p, 0) > depths[p]}
    if len(chosen) < 2:
        chosen = {p: n for p, n in most.items() if p in depths and n > depths[p]}
    if not chosen or not budget.runs_with(chosen):
        return None
    for pool in list(chosen):
        rest = {p: n for p, n in chosen.items() if p != pool}
        if budget.runs_with(rest):
            chosen = rest
        else:
            chosen[pool] = _halve(budget, rest, pool, depths[pool], chosen[pool]).after[pool]
    return Found(what="depth", before={p: depths[p] for p in chosen}, after=chosen, exact=not budget.short)


def _initial(budget: _Budget, starved: Sequence[str], depths: Mapping[str, int]) -> Found | None:
    """The fewest objects at the start of one pool, 1 first, that lift a cycle in which all wait for objects."""
    for count in (1, 2, 3, 4):
        for pool in starved:
            if count <= depths.get(pool, 0) and budget.runs_with(None, {pool: count}):
                return Found(what="init_objects", before={pool: 0}, after={pool: count}, exact=not budget.short)
    return None
