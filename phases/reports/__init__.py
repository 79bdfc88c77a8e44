"""Reports for people: Markdown, JUnit XML, HTML and a notebook, all made from gates and the manifest alone.

Why no clock, duration or host in them: same inputs give same bytes, so that a report can be compared and hashed.
"""

from collections.abc import Sequence

from checklists.model import GateReport
from manifest.model import Manifest
from phases.reports.badge import render_badge
from phases.reports.html import render_html
from phases.reports.junit import render_junit
from phases.reports.markdown import append_step_summary, render_markdown
from phases.reports.notebook import render_notebook
from phases.reports.tables import Table

__all__ = [
    "Table",
    "append_step_summary",
    "build_reports",
    "render_html",
    "render_junit",
    "render_markdown",
    "render_notebook",
]


def build_reports(gates: Sequence[GateReport], manifest: Manifest, tables: Sequence[Table] = ()) -> dict[str, bytes]:
    """Every report of a port, by its name in the port.

    Args:
        gates: the gates that are there, in the order of the phases; the last is the one that was just judged.
        manifest: the deployment manifest.
        tables: what the last phase adds about its own artifacts.

    Returns:
        `reports/report.html` and `reports/junit.xml` over all gates, `reports/<phase>.md` and `reports/badge.json` of
        the last one, and `reports/baseline.ipynb` where that is the baseline.
    """
    last = gates[-1]
    reports = {
        "reports/report.html": render_html(gates, manifest, tables),
        "reports/junit.xml": render_junit(gates),
        "reports/badge.json": render_badge(last),
        f"reports/{last.phase}.md": render_markdown(last, tables).encode("utf-8"),
    }
    if last.phase == "baseline":
        reports["reports/baseline.ipynb"] = render_notebook()
    return reports
