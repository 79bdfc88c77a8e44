"""Words that several items share: quoted names, short lists, shares."""

from collections.abc import Sequence
from typing import Final

from checklists.model import Finding, Verdict

SHOWN: Final = 3
"""Names that a summary spells out; the figures and subjects of the finding hold all of them."""

NO_DATA: Final = (
    "no real data was given: run again with --data FILE.npz (labels as `y` or `y_eval` in it, where there are any)"
)


def quoted(name: str, limit: int = 120) -> str:
    """Return a name as one quoted, bounded word."""
    text = name if len(name) <= limit else f"{name[: limit - 1]}…"
    return f"'{text}'"


def listed(names: Sequence[str]) -> str:
    """Return the first names quoted, and how many more there are."""
    shown = ", ".join(quoted(n) for n in names[:SHOWN])
    more = len(names) - SHOWN
    return f"{shown} and {more} more" if more > 0 else shown


def percent(share: float) -> str:
    """Return a share as percent with two decimals."""
    return f"{100 * share:.2f} %"


def not_run(why: str) -> Finding:
    """Return the finding of an item that had nothing to judge."""
    return Finding(verdict=Verdict.NOT_RUN, summary=why)
