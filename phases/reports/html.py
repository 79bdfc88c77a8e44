"""All gates of a port on one self-contained HTML page: no scripts, no fonts, nothing fetched."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from checklists.items.words import counted
from checklists.model import GateReport, one_line
from manifest.model import Dispatch, Manifest
from phases.reports.ranges import range_row
from phases.reports.tables import Table
from phases.reports.text import MEANINGS, counts, figure_rows

TEMPLATES: Final = Path(__file__).resolve().parent.parent / "templates"
SHOWN_ROWS: Final = 500
"""Rows of a table on the page; the manifest file holds all of them."""


def render_html(gates: Sequence[GateReport], manifest: Manifest, tables: Sequence[Table] = ()) -> bytes:
    """Return the page: per gate its items, figures and decisions; tables of the last; activations, ops, notes.

    Every name is escaped, so that a hostile one shows as text.
    """
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["line"] = one_line
    ranges = [row for t in manifest.tensors if (row := range_row(t)) is not None]
    text = environment.get_template("report.html.j2").render(
        gates=gates,
        tables=tables,
        counts=counts,
        figure_rows=figure_rows,
        meanings=MEANINGS,
        manifest=manifest,
        ranges=ranges[:SHOWN_ROWS],
        ranges_left=max(0, len(ranges) - SHOWN_ROWS),
        dispatch_words=dispatch_words,
        shown=SHOWN_ROWS,
    )
    return text.encode("utf-8")


def dispatch_words(dispatch: Dispatch) -> str:
    """What a dispatch hands on, in words."""
    return f"{counted(len(dispatch.ops), 'op')} on {'the array' if dispatch.where == 'npu' else 'the host'}"
