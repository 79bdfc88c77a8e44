from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checklists.model import GateReport, ItemResult
from phases.reports.markdown import append_step_summary, escape, render_markdown
from phases.reports.text import SHOWN_NAMES, counts, figure_text


def test_says_verdict_with_level_first(gate: GateReport) -> None:
    assert render_markdown(gate).startswith("# Baseline gate: FAIL at host level\n")


def test_has_one_row_per_item_with_its_verdict(gate: GateReport) -> None:
    rows = [line for line in render_markdown(gate).splitlines() if line.startswith("| BL")]
    assert len(rows) == len(gate.items)
    for row, item in zip(rows, gate.items, strict=True):
        assert row.startswith(f"| {item.code} | {item.title} | **{escape(item.verdict)}** |")


def test_shows_every_waiver_with_reason_owner_and_day(gate: GateReport) -> None:
    text = render_markdown(gate)
    assert "## Accepted by decision" in text
    assert "because conv\\_out \\(owner ann, until 2031-01-01\\)" in text
    assert "over and have no effect" in text
    assert "too late" in text
    assert "of no use" in text


def test_every_figure_says_what_it_is(gate: GateReport) -> None:
    text = render_markdown(gate)
    assert text.count("(measured on this host's CPU with onnxruntime; source: guide, section 1)") == 6
    assert "- share: 0.25" in text
    assert "- absent: none" in text
    assert "- yes: yes" in text


def test_same_gate_same_text(gate: GateReport) -> None:
    assert render_markdown(gate) == render_markdown(gate)


def test_a_hostile_name_adds_no_line_no_cell_and_no_markup(gate: GateReport, hostile_gate: GateReport) -> None:
    plain, hostile = render_markdown(gate), render_markdown(hostile_gate)
    assert len(plain.splitlines()) == len(hostile.splitlines())
    assert "<script>" not in hostile
    assert "\x1b" not in hostile
    assert "\u202e" not in hostile
    rows = [line for line in hostile.splitlines() if line.startswith("| BL")]
    assert all(row.replace("\\|", "").count("|") == 5 for row in rows)


@given(st.text())
def test_escaped_text_is_one_line_without_bare_markup(text: str) -> None:
    escaped = escape(text)
    assert len(escaped.splitlines()) <= 1
    assert not {"<", ">"} & set(escaped)
    for mark in "|`*_[]":
        assert mark not in escaped.replace("\\\\", "").replace(f"\\{mark}", "")


def test_step_summary_is_appended_only_where_it_is_named(tmp_path: Path) -> None:
    file = tmp_path / "summary.md"
    file.write_text("before\n", encoding="utf-8")
    assert append_step_summary("text\n", {"GITHUB_STEP_SUMMARY": str(file)})
    assert file.read_text(encoding="utf-8") == "before\ntext\n\n"
    assert not append_step_summary("text", {})
    assert not append_step_summary("text", {"GITHUB_STEP_SUMMARY": ""})


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "none"), (False, "no"), (3, "3"), (2**70, str(2**70)), (0.1 + 0.2, "0.3"), ((), "none"), ("a\nb", r"a\nb")],
)
def test_figures_in_words(value: float | str | tuple[str, ...] | None, text: str) -> None:
    assert figure_text(value) == text


def test_long_lists_are_bounded_and_say_so() -> None:
    names = tuple(f"t{i}" for i in range(SHOWN_NAMES + 1))
    assert figure_text(names[:-1]).endswith(f"t{SHOWN_NAMES - 1}")
    assert figure_text(names).endswith("and 1 more")


def test_counts_add_up(gate: GateReport) -> None:
    assert counts(gate) == "1 PASS, 1 FAIL, 1 NOT_RUN, 1 BLOCKED, 1 NOT_APPLICABLE, 1 WAIVED"
    assert all(isinstance(i, ItemResult) for i in gate.items)
