"""Where to cut a run of ops: by the quick budget first, and then as the planner of phase 2 can place every piece.

The quick budget proposes the best cuts; the planner is asked about each piece. A piece that it refuses gives the
shortest refused run from the same start, found by halving; no later proposal contains that run. Where that takes too
many questions (long chains of equal layers), every piece is made as long as both take it: as few pieces, not the
cheapest places. What is returned has been planned, up to single steps that the planner takes no way: those keep the
quick budget's word.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final

from phases.baseline.partition import Fits, best_cuts

Ask = Callable[[int, int], bool]
"""Whether the planner refuses the ops of [start, end)."""

MOST_ASKED: Final = 80
"""Questions to the planner while the cheapest places are looked for."""


def planned_cuts(
    count: int, allowed: Sequence[int], cut_cost: Mapping[int, tuple[int, int]], fits: Fits, refuses: Ask
) -> list[int]:
    """Positions at which to cut, as `best_cuts`, so that the planner takes every piece.

    Args:
        count: number of ops.
        allowed: positions at which a cut is possible, ascending.
        cut_cost: (live tensors, their bytes) per position.
        fits: what fits the quick budget from a start.
        refuses: asks the planner; a run inside one that it takes is taken to be taken.
    """
    planner = _Asked((0, *allowed, count), refuses)
    refused: list[tuple[int, int]] = []

    def still_fits(start: int) -> Iterator[tuple[int, bool]]:
        for end, ok in fits(start):
            yield end, ok and not any(start <= a and b <= end for a, b in refused)

    while planner.asked <= MOST_ASKED:
        cuts = best_cuts(count, allowed, cut_cost, still_fits)
        found = next((r for a, b in pairwise([0, *cuts, count]) if (r := planner.shortest_refused(a, b))), None)
        if found is None:
            return cuts
        refused.append(found)
    return list(_longest(count, fits, planner))


def _longest(count: int, fits: Fits, planner: "_Asked") -> Iterator[int]:
    """Ends of pieces, each as long as quick budget and planner take it, without the last."""
    start = 0
    while start < count:
        after = [s for s in planner.stops if s > start]
        reach = {end for end, ok in fits(start) if ok}
        end = max((s for s in after if s in reach), default=after[0])
        if (found := planner.shortest_refused(start, end)) is not None:
            end = max(s for s in after if s < found[1])
        start = end
        if start < count:
            yield start


class _Asked:
    """The planner, each question asked once.

    Attributes:
        stops: positions at which pieces may begin and end.
        asked: questions so far.
    """

    def __init__(self, stops: Sequence[int], refuses: Ask) -> None:
        self.stops = stops
        self.asked = 0
        self._refuses = refuses
        self._known: dict[tuple[int, int], bool] = {}
        self._hopeless: frozenset[int] | None = None

    def shortest_refused(self, start: int, end: int) -> tuple[int, int] | None:
        """The shortest refused run from the start of a piece; None = the planner takes the piece, or says nothing.

        Pieces of one step cannot be cut, and of those with a step that is refused alone too the planner says nothing.
        """
        inside = [s for s in self.stops if start < s <= end]
        if len(inside) < 2 or not self.refuses(start, end) or any(start <= h < end for h in self.hopeless()):
            return None
        low, high = 0, len(inside) - 1
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self.refuses(start, inside[middle]) else (middle, high)
        return start, inside[high]

    def hopeless(self) -> frozenset[int]:
        """Starts of the single steps that are refused alone; looked for once, when something is refused."""
        if self._hopeless is None:
            self._hopeless = frozenset(a for a, b in pairwise(self.stops) if self._refuses(a, b))
        return self._hopeless

    def refuses(self, start: int, end: int) -> bool:
        if (start, end) not in self._known:
            self.asked += 1
            self._known[start, end] = self._refuses(start, end)
        return self._known[start, end]
