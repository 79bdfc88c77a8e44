from collections.abc import Callable
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checklists.evaluate import evaluate, gate_verdict
from checklists.model import CheckItem, Finding, GateReport, Level, Verdict, Waiver

TODAY = date(2030, 1, 1)
LATER = date(2030, 6, 1)


def item(code: str, finding: Finding, level: Level = "host") -> CheckItem[None]:
    run: Callable[[None], Finding] = lambda _: finding  # noqa: E731
    return CheckItem(code=code, title=code, source="here", basis="computed", run=run, level=level)


def judge(*items: CheckItem[None], waivers: tuple[Waiver, ...] = (), level: Level = "host") -> GateReport:
    return evaluate(items, None, waivers, TODAY, level)


def failing(*subjects: str, ops: dict[str, str] | None = None, verdict: Verdict = Verdict.FAIL) -> CheckItem[None]:
    return item("BL011", Finding(verdict=verdict, summary="bad", subjects=subjects, ops=ops or {}))


def waiver(subject: str | None = None, code: str = "BL011", until: date = LATER) -> Waiver:
    return Waiver(code=code, subject=subject, reason="accepted", owner="ann", until=until)


PASSING = item("BL001", Finding(verdict=Verdict.PASS, summary="good"))
ROWS = st.lists(st.tuples(st.sampled_from(["host", "hardware"]), st.sampled_from(list(Verdict))))


@given(rows=ROWS, level=st.sampled_from(["host", "hardware"]))
def test_gate_verdict_follows_the_rules_word_by_word(rows: list[tuple[Level, Verdict]], level: Level) -> None:
    counted = [v for item_level, v in rows if not (level == "host" and item_level == "hardware")]
    if any(v == "FAIL" for v in counted):
        expected = "FAIL"
    elif any(v in ("NOT_RUN", "BLOCKED") for v in counted):
        expected = "NOT_RUN"
    elif any(v == "PASS" for v in counted):
        expected = "PASS"
    else:
        expected = "NOT_RUN"
    assert gate_verdict(rows, level) == expected


@given(rows=ROWS, level=st.sampled_from(["host", "hardware"]), data=st.data())
def test_turning_one_counted_item_bad_never_leaves_a_pass(
    rows: list[tuple[Level, Verdict]], level: Level, data: st.DataObject
) -> None:
    bad = data.draw(st.sampled_from([Verdict.FAIL, Verdict.NOT_RUN, Verdict.BLOCKED]))
    assert gate_verdict([*rows, ("host", bad)], level) is not Verdict.PASS


@given(rows=ROWS, level=st.sampled_from(["host", "hardware"]))
def test_order_of_items_does_not_matter(rows: list[tuple[Level, Verdict]], level: Level) -> None:
    assert gate_verdict(rows, level) is gate_verdict(rows[::-1], level)


@pytest.mark.parametrize(
    "rows", [[], [("host", Verdict.NOT_APPLICABLE)], [("host", Verdict.WAIVED)], [("hardware", Verdict.PASS)]]
)
def test_without_one_pass_that_counts_a_gate_does_not_pass(rows: list[tuple[Level, Verdict]]) -> None:
    assert gate_verdict(rows, "host") is Verdict.NOT_RUN


def test_an_empty_checklist_does_not_pass() -> None:
    assert judge().verdict is Verdict.NOT_RUN


def test_words_always_carry_the_level() -> None:
    assert judge(PASSING).words == "PASS at host level"
    assert judge(PASSING, level="hardware").words == "PASS at hardware level"


def test_hardware_items_are_listed_blocked_at_host_level_and_do_not_run() -> None:
    def explode(_: None) -> Finding:
        raise AssertionError

    hardware = CheckItem(code="BU001", title="t", source="s", basis="b", run=explode, level="hardware")
    report = judge(PASSING, hardware)
    assert [i.verdict for i in report.items] == [Verdict.PASS, Verdict.BLOCKED]
    assert report.verdict is Verdict.PASS


def test_a_blocked_hardware_item_counts_at_hardware_level() -> None:
    blocked = item("BU001", Finding(verdict=Verdict.BLOCKED, summary="no device"), level="hardware")
    assert judge(PASSING, blocked, level="hardware").verdict is Verdict.NOT_RUN


def test_an_item_that_raises_is_a_fault_of_the_tool() -> None:
    def broken(_: None) -> Finding:
        msg = "broken item"
        raise RuntimeError(msg)

    with pytest.raises(RuntimeError, match="broken item"):
        judge(CheckItem(code="BL001", title="t", source="s", basis="b", run=broken))


def test_two_items_with_one_code_are_refused() -> None:
    with pytest.raises(ValueError, match="two items with one code"):
        judge(PASSING, PASSING)


@pytest.mark.parametrize("verdict", [Verdict.FAIL, Verdict.NOT_RUN])
def test_a_waiver_replaces_fail_and_not_run(verdict: Verdict) -> None:
    report = judge(PASSING, failing("a", verdict=verdict), waivers=(waiver(),))
    assert report.items[1].verdict is Verdict.WAIVED
    assert report.items[1].found is verdict
    assert report.items[1].waivers == (waiver(),)
    assert report.verdict is Verdict.PASS


@pytest.mark.parametrize("verdict", [Verdict.PASS, Verdict.BLOCKED, Verdict.NOT_APPLICABLE])
def test_a_waiver_replaces_nothing_else(verdict: Verdict) -> None:
    report = judge(PASSING, failing(verdict=verdict), waivers=(waiver(),))
    assert report.items[1].verdict is verdict
    assert report.unused_waivers == (waiver(),)


def test_a_waiver_for_one_tensor_does_not_hide_another() -> None:
    report = judge(PASSING, failing("a", "b"), waivers=(waiver("a"),))
    assert report.verdict is Verdict.FAIL
    assert report.unused_waivers == (waiver("a"),)


def test_waivers_for_every_tensor_together_waive() -> None:
    report = judge(PASSING, failing("a", "b"), waivers=(waiver("b"), waiver("a")))
    assert report.verdict is Verdict.PASS
    assert report.items[1].waivers == (waiver("a"), waiver("b"))


def test_a_waiver_for_an_op_covers_the_tensors_that_it_writes() -> None:
    ops = {"a": "conv1", "b": "conv1"}
    assert judge(PASSING, failing("a", "b", ops=ops), waivers=(waiver("conv1"),)).verdict is Verdict.PASS
    assert judge(PASSING, failing("a", "b", ops={"a": "conv1"}), waivers=(waiver("conv1"),)).verdict is Verdict.FAIL


def test_a_name_that_is_a_tensor_at_fault_is_not_taken_for_an_op() -> None:
    ops = {"conv1": "other", "b": "conv1"}
    assert judge(PASSING, failing("conv1", "b", ops=ops), waivers=(waiver("conv1"),)).verdict is Verdict.FAIL


def test_a_waiver_with_a_subject_does_not_waive_a_finding_without_one() -> None:
    assert judge(PASSING, failing(), waivers=(waiver("a"),)).verdict is Verdict.FAIL


def test_a_waiver_for_another_item_does_nothing() -> None:
    assert judge(PASSING, failing("a"), waivers=(waiver(code="BL001"),)).verdict is Verdict.FAIL


def test_a_waiver_holds_on_its_last_day_and_is_named_as_expired_after() -> None:
    today, yesterday = waiver(until=TODAY), waiver(until=date(2029, 12, 31))
    assert judge(PASSING, failing("a"), waivers=(today,)).verdict is Verdict.PASS
    report = judge(PASSING, failing("a"), waivers=(yesterday,))
    assert report.verdict is Verdict.FAIL
    assert report.expired_waivers == (yesterday,)


def test_an_expired_waiver_is_named_for_its_own_item_only() -> None:
    other = waiver(code="BL001", until=date(2029, 1, 1))
    assert judge(PASSING, failing("a"), waivers=(other,)).expired_waivers == ()


def test_an_expired_waiver_that_nothing_needs_is_not_named() -> None:
    assert judge(PASSING, waivers=(waiver(code="BL001", until=date(2029, 1, 1)),)).expired_waivers == ()


def test_waivers_of_other_phases_are_not_called_unused() -> None:
    assert judge(PASSING, waivers=(waiver(code="PS001"),)).unused_waivers == ()
    assert judge(PASSING, waivers=(waiver(code="BL099"),)).unused_waivers == (waiver(code="BL099"),)


def test_a_summary_stays_on_one_line() -> None:
    hostile = item("BL001", Finding(verdict=Verdict.FAIL, summary="tensor 'a\nPASS'"))
    assert judge(hostile).items[0].summary == r"tensor 'a\nPASS'"
