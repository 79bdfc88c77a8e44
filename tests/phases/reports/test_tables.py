"""Tables that a phase adds: the design in words, hostile names as text."""

import re
from dataclasses import replace

from checklists.model import GateReport
from manifest.model import Manifest
from phases.reports import build_reports
from phases.reports.design import design_tables
from phases.reports.html import SHOWN_ROWS, render_html
from phases.reports.markdown import render_markdown
from phases.reports.tables import Table
from tests.phases.reports.conftest import HOSTILE
from tests.presim_designs import copy_design, every_part
from tests.presim_evidence import good_presim


def table(name: str = "a", rows: int = 1) -> Table:
    row = ((name, "7"),)
    return Table(title=f"Things {name}", basis="planned", columns=("thing", "count"), rows=row * rows)


def test_a_table_is_in_both_reports(gate: GateReport, manifest: Manifest) -> None:
    made = build_reports((gate,), manifest, (table(),))
    assert "| a | 7 |" in made["reports/baseline.md"].decode()
    page = made["reports/report.html"].decode()
    assert "<h2>Things a</h2>" in page
    assert "<td>a</td><td>7</td>" in page
    assert "planned" in page


def test_hostile_names_stay_text(gate: GateReport, manifest: Manifest) -> None:
    page = render_html((gate,), manifest, (table(HOSTILE),)).decode()
    assert "<script>" not in page
    text = render_markdown(gate, (table(HOSTILE),))
    row = next(line for line in text.splitlines() if line.endswith("| 7 |"))
    assert len(re.findall(r"(?<!\\)\|", row)) == 3


def test_a_long_table_is_cut_on_the_page_and_whole_in_markdown(gate: GateReport, manifest: Manifest) -> None:
    long = table(rows=SHOWN_ROWS + 2)
    page = render_html((gate,), manifest, (long,)).decode()
    assert page.count("<td>a</td><td>7</td>") == SHOWN_ROWS
    assert "2 more in design.json" in page
    assert render_markdown(gate, (long,)).count("| a | 7 |") == SHOWN_ROWS + 2


def test_a_design_in_tables() -> None:
    tables = {t.title: t for t in design_tables((copy_design(), every_part()), good_presim())}
    assert [len(t.rows) for t in tables.values()] == [2, 2, 4, 5, 1, 2]
    assert all(len(row) == len(t.columns) for t in tables.values() for row in t.rows)
    assert tables["Spread of every op"].rows[0] == ("d0", "copy", "rows", "1", "0.0 %", "resident", "0")
    assert tables["Workers"].rows[0] == ("d0", "w", "core 0, 2", "copy", "copy")
    assert tables["Fifos"].rows[0] == ("d0", "x", "int8 8", "2", "shim0", "w", "x")
    assert tables["Fifos"].rows[3][5] == "w (depth 3)"
    assert [row[0] for row in tables["Validation in its order"].rows] == ["0", "1", "2", "3", "4"]
    assert tables["Margins"].rows == (("d0: f at shared", "4", "3"),)
    assert "never measured" in tables["Regimes"].basis


def test_weights_from_a_memory_tile_and_workers_without_a_place_say_so() -> None:
    design = copy_design()
    streamed = replace(design.splits[0], resident_weights=False, padding_fraction=0.125)
    worker = replace(design.workers[0], tile=None)
    tables = design_tables((replace(design, splits=(streamed,), workers=(worker,)),), good_presim())
    assert tables[0].rows[0][4:6] == ("12.5 %", "streamed from a memory tile")
    assert tables[1].rows[0][2] == "not placed"
