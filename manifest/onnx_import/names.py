"""Names that this tool invents, checked against every name of the graph.

Why: a pass that calls its copy of bias `b` simply `b0` corrupts a graph that already has a tensor `b0`.
"""

from collections.abc import Iterable

SEPARATOR = "#"


class Names:
    """Set of taken names (tensors, initialisers, nodes, graph inputs and outputs) that hands out fresh ones."""

    def __init__(self, taken: Iterable[str]) -> None:
        self._taken = set(taken)

    def fresh(self, base: str, suffix: str) -> str:
        """A name `base#suffix` (then `base#suffix2`, ...) that nothing else has; it is taken from now on."""
        candidate = f"{base}{SEPARATOR}{suffix}"
        count = 1
        while candidate in self._taken:
            count += 1
            candidate = f"{base}{SEPARATOR}{suffix}{count}"
        self._taken.add(candidate)
        return candidate
