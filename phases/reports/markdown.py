"""A gate as Markdown, for people and for the summary page of a CI run."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from checklists.model import GateReport, Waiver, one_line
from phases.reports.tables import Table
from phases.reports.text import MEANINGS, counts, figure_rows

SPECIAL: Final = re.compile(r"([\\`*_{}\[\]()#+!|~$])")
"""What Markdown could take for markup; `<`, `>` and `&` become entities."""

STEP_SUMMARY: Final = "GITHUB_STEP_SUMMARY"


def escape(text: str) -> str:
    """Return `text` so that Markdown shows it as it is, on one line, in or out of a table."""
    plain = one_line(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return SPECIAL.sub(r"\\\1", plain)


def render_markdown(report: GateReport, tables: Sequence[Table] = ()) -> str:
    """Return a gate as Markdown: verdict, items, decisions, tables, figures with what they are, hashes of inputs."""
    lines = [f"# {report.phase.capitalize()} gate: {report.words}", ""]
    lines += [f"{len(report.items)} items: {counts(report)}. Tool version {escape(report.tool_version)}.", ""]
    lines += ["| code | item | verdict | what was found |", "|---|---|---|---|"]
    lines += [
        f"| {escape(i.code)} | {escape(i.title)} | **{escape(i.verdict)}** | {escape(i.summary)} |"
        for i in report.items
    ]
    lines += _decisions(report)
    for table in tables:
        lines += _table(table)
    lines += ["", "## Figures", ""]
    for item in report.items:
        rows = figure_rows(item)
        if rows:
            lines += [
                f"**{escape(item.code)} {escape(item.title)}** ({escape(item.basis)}; source: {escape(item.source)})",
                "",
            ]
            lines += [f"- {escape(name)}: {escape(value)}" for name, value in rows] + [""]
    lines += ["## Read", ""]
    lines += [f"- {escape(name)}: sha256 {sha}" for name, sha in sorted({**report.inputs, **report.upstream}.items())]
    used = {i.verdict for i in report.items}
    lines += ["", "## Verdicts", ""] + [f"- {escape(v)}: {words}" for v, words in MEANINGS.items() if v in used]
    return "\n".join(lines).rstrip() + "\n"


def append_step_summary(text: str, environ: Mapping[str, str]) -> bool:
    """Append `text` to the file that `GITHUB_STEP_SUMMARY` names; return whether there is one.

    Raises:
        OSError: the file cannot be written.
    """
    name = environ.get(STEP_SUMMARY, "")
    if not name:
        return False
    with Path(name).open("a", encoding="utf-8") as file:
        file.write(text + "\n")
    return True


def _decisions(report: GateReport) -> list[str]:
    """The waivers that took effect, are over, or met nothing."""
    groups: tuple[tuple[str, tuple[Waiver, ...]], ...] = (
        ("Accepted by decision", report.waivers),
        ("Decisions that are over and have no effect", report.expired_waivers),
        ("Decisions that nothing needs", report.unused_waivers),
    )
    lines: list[str] = []
    for title, waivers in groups:
        if waivers:
            lines += ["", f"## {title}", ""] + [f"- {escape(w.line())}" for w in waivers]
    return lines


def _table(table: Table) -> list[str]:
    """A table with its title and what its figures are."""
    lines = ["", f"## {escape(table.title)}", "", f"{escape(table.basis)}.", ""]
    lines += [f"| {' | '.join(map(escape, table.columns))} |", "|---" * len(table.columns) + "|"]
    return lines + [f"| {' | '.join(map(escape, row))} |" for row in table.rows]
