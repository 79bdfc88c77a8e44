"""Verdicts over synthetic traces, both sides of every limit."""

from dataclasses import replace
from typing import Any

import pytest

from optimize.comparator import Arm, Provenance, Unchanged, judge_arms

BEFORE = Arm(
    name="before",
    metric="traced_cycles",
    kernel="gemm_0",
    calls=20,
    truncated=False,
    values=(10_000,) * 20,
    unchanged=Unchanged(kernel="relu_0", cycles=310),
    pinned=False,
    provenance=Provenance(
        commit="0a1b2c3",
        compiler="peano 19.0",
        kernel_sha256="a" * 64,
        timestamp="2026-01-31T12:00:00+00:00",
        host="box",
        device="npu2",
        session="one",
    ),
)
AFTER = replace(
    BEFORE, name="after", values=(9_000,) * 20, provenance=replace(BEFORE.provenance, kernel_sha256="b" * 64)
)


def arms(*, after: dict[str, Any] | None = None, before: dict[str, Any] | None = None) -> str:
    return judge_arms(replace(BEFORE, **(before or {})), replace(AFTER, **(after or {}))).outcome


def spread(low: int, high: int, count: int = 20) -> tuple[int, ...]:
    return (low, high, *(low,) * (count - 2))


@pytest.mark.parametrize(
    ("values", "outcome"),
    [
        (spread(9_950, 9_999), "confirmed"),
        (spread(9_950, 10_000), "no_change"),
        (spread(10_000, 10_050), "no_change"),
        (spread(10_001, 10_050), "rejected"),
        ((10_000,) * 20, "no_change"),
    ],
)
def test_disjoint_ranges_decide_and_ranges_that_touch_do_not(values: tuple[int, ...], outcome: str) -> None:
    assert arms(after={"values": values}) == outcome


def test_the_words_are_those_of_the_rules() -> None:
    words = {
        judge_arms(BEFORE, replace(AFTER, values=values)).word
        for values in ((9_000,) * 20, (10_000,) * 20, (11_000,) * 20, (9_000,) * 19)
    }
    assert words == {"confirmed", "no change", "rejected", "void"}


def test_20_runs_are_enough_and_19_are_not() -> None:
    assert arms(after={"values": (9_000,) * 20}) == "confirmed"
    assert arms(after={"values": (9_000,) * 19, "calls": 19}) == "void"
    assert arms(before={"values": (10_000,) * 19, "calls": 19}) == "void"


def test_the_spread_is_under_1_percent() -> None:
    assert arms(after={"values": spread(9_000, 9_089)}) == "confirmed"
    assert arms(after={"values": spread(9_000, 9_090)}) == "void"
    assert arms(before={"values": spread(10_000, 10_099)}) == "confirmed"
    assert arms(before={"values": spread(10_000, 10_100)}) == "void"


def test_half_of_the_calls_are_measured() -> None:
    assert arms(after={"calls": 40}) == "confirmed"
    assert arms(after={"calls": 41}) == "void"


def test_a_truncated_trace_is_void() -> None:
    assert arms(after={"truncated": True}) == "void"
    assert arms(before={"truncated": True}) == "void"


@pytest.mark.parametrize("unchanged", [Unchanged(kernel="relu_0", cycles=311), Unchanged(kernel="relu_1", cycles=310)])
def test_the_unchanged_kernel_reproduces_to_the_cycle(unchanged: Unchanged) -> None:
    found = judge_arms(BEFORE, replace(AFTER, unchanged=unchanged))
    assert found.outcome == "void"
    assert "the same to the cycle" in found.reasons[0]


@pytest.mark.parametrize("field", ["session", "host", "device", "compiler"])
def test_nothing_but_the_kernel_is_different(field: str) -> None:
    provenance = replace(AFTER.provenance, **{field: "another"})
    found = judge_arms(BEFORE, replace(AFTER, provenance=provenance))
    assert found.outcome == "void"
    assert found.reasons[0].startswith(f"{field}: ")


def test_another_commit_is_no_other_pair() -> None:
    assert arms(after={"provenance": replace(AFTER.provenance, commit="1234567")}) == "confirmed"


def test_the_same_kernel_twice_is_void() -> None:
    assert arms(after={"provenance": BEFORE.provenance}) == "void"
    assert arms(after={"kernel": "gemm_1"}) == "void"


def test_all_reasons_of_void_are_told() -> None:
    found = judge_arms(replace(BEFORE, truncated=True), replace(AFTER, truncated=True, kernel="gemm_1"))
    assert len(found.reasons) == 3


def wall(before: int, after: int, **changed: Any) -> str:
    common: dict[str, Any] = {"metric": "wall_ns", "unchanged": None, "pinned": True}
    one = replace(BEFORE, **common, values=spread(before, 2 * before))
    two = replace(AFTER, **{**common, **changed}, values=spread(after, 2 * after))
    return judge_arms(one, two).outcome


def test_wall_clock_counts_beyond_its_noise() -> None:
    least = 1_000_000
    assert wall(least, least - 49_100) == "no_change"
    assert wall(least, least - 49_101) == "confirmed"
    assert wall(least, least + 43_300) == "no_change"
    assert wall(least, least + 43_301) == "rejected"


def test_wall_clock_of_a_process_that_moves_is_void() -> None:
    assert wall(1_000_000, 900_000) == "confirmed"
    assert wall(1_000_000, 900_000, pinned=False) == "void"


def test_a_trace_and_a_wall_clock_are_no_pair() -> None:
    assert arms(after={"metric": "wall_ns", "unchanged": None, "pinned": True}) == "void"
