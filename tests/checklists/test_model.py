import math
from datetime import date

import pytest

from checklists.model import CheckItem, Finding, Verdict, Waiver, number, one_line


def rule(evidence: int) -> Finding:
    """First line.

    Second paragraph.
    """
    return Finding(verdict=Verdict.PASS, summary=str(evidence))


def test_an_item_cannot_waive_itself() -> None:
    with pytest.raises(ValueError, match="cannot waive itself"):
        Finding(verdict=Verdict.WAIVED, summary="fine")


@pytest.mark.parametrize("summary", ["", "  "])
def test_a_finding_without_words_is_refused(summary: str) -> None:
    with pytest.raises(ValueError, match="expected one line"):
        Finding(verdict=Verdict.PASS, summary=summary)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_figure_that_json_cannot_carry_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match="sqnr_db"):
        Finding(verdict=Verdict.PASS, summary="fine", figures={"sqnr_db": value})
    assert isinstance(number(value), str)


def test_number_keeps_what_json_carries() -> None:
    assert number(1.5) == 1.5
    assert number(None) is None
    assert number(math.inf) == "inf"
    assert number(math.nan) == "nan"


def test_rule_is_the_docstring_without_its_indent() -> None:
    item = CheckItem(code="BL999", title="t", source="s", basis="b", run=rule)
    assert item.rule == "First line.\n\nSecond paragraph."


def test_one_line_escapes_what_is_not_printable() -> None:
    assert one_line("a\nb\x1b[31m\u2028é") == r"a\nb\x1b[31m\u2028é"


def test_a_waiver_holds_on_its_last_day_and_not_on_the_next() -> None:
    waiver = Waiver(code="BL001", reason="r", owner="o", until=date(2030, 1, 31))
    assert not waiver.expired(date(2030, 1, 31))
    assert waiver.expired(date(2030, 2, 1))


def test_a_waiver_line_names_code_subject_reason_owner_and_day() -> None:
    waiver = Waiver(code="BL011", subject="t\n1", reason="small", owner="ann", until=date(2030, 1, 31))
    assert waiver.line() == r"BL011 for 't\n1': small (owner ann, until 2030-01-31)"
