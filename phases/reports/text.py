"""Figures and verdicts as words; shared by all reports."""

from typing import Final

from checklists.model import Figure, GateReport, ItemResult, Verdict, one_line

SHOWN_NAMES: Final = 20
"""Names of a list that a report spells out; the gate file holds all of them."""

MEANINGS: Final = {
    Verdict.PASS: "holds",
    Verdict.FAIL: "does not hold",
    Verdict.NOT_RUN: "could run, did not",
    Verdict.BLOCKED: "a tool or device is absent",
    Verdict.NOT_APPLICABLE: "nothing to judge, see the figure",
    Verdict.WAIVED: "accepted by a recorded decision",
}


def figure_text(value: Figure | tuple[str, ...]) -> str:
    """One figure in words: numbers as they are, `none` for None, lists bounded; always one printable line."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, tuple):
        more = len(value) - SHOWN_NAMES
        shown = ", ".join(one_line(name) for name in value[:SHOWN_NAMES])
        return (f"{shown} and {more} more" if more > 0 else shown) or "none"
    return one_line(str(value))


def figure_rows(item: ItemResult) -> list[tuple[str, str]]:
    """(name, value) of an item's figures, in the order of their names."""
    return [(one_line(name), figure_text(item.figures[name])) for name in sorted(item.figures)]


def counts(report: GateReport) -> str:
    """How many items have which verdict: `11 PASS, 1 NOT_APPLICABLE`."""
    found = [i.verdict for i in report.items]
    return ", ".join(f"{found.count(v)} {v}" for v in Verdict if v in found)
