"""Words that several items share: quoted names, short lists, shares."""

from collections.abc import Sequence
from typing import Final

from checklists.model import Finding, Verdict
from oracle.evidence import DispatchBudget

SHOWN: Final = 3
"""Names that a summary spells out; the figures and subjects of the finding hold all of them."""

NO_DATA: Final = (
    "no real data was given: run again with --data FILE.npz (labels as `y` or `y_eval` in it, where there are any)"
)


def quoted(name: str, limit: int = 120) -> str:
    """Return a name as one quoted, bounded word."""
    text = name if len(name) <= limit else f"{name[: limit - 1]}…"
    return f"'{text}'"


def counted(count: int, one: str, many: str = "") -> str:
    """Return a count with its noun: "1 dispatch", "3 dispatches"; the plural takes an s where none is given."""
    return f"{count} {one if count == 1 else many or one + 's'}"


def placed(dispatches: Sequence[DispatchBudget]) -> str:
    """Return a count of dispatches and where they run: "3 dispatches (1 on the array, 2 on the host)"."""
    array = sum(d.where == "npu" for d in dispatches)
    host = len(dispatches) - array
    where = f" ({array} on the array, {host} on the host)" if host else ""
    return counted(len(dispatches), "dispatch", "dispatches") + where


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
