"""Programs: depths, balance, drift and rates, both sides of each."""

import dataclasses
from typing import Any

import pytest

from tests.presim.checking import found, plain, severities, split
from tests.presim.sketches import Sketch, acquire, call, loop, move, put, release


@pytest.mark.parametrize(("count", "depth", "fine"), [(2, 2, True), (3, 2, False), (3, 3, True)])
def test_acquire_stays_within_the_declared_depth(count: int, depth: int, fine: bool) -> None:
    s = Sketch()
    s.worker("w", acquire("x", count), *put("y"), release("x", count))
    s.fifo("x", "shim0", "w", depth=depth).fifo("y", "w", "shim1").fill("x", count).drain("y", 1)
    assert severities(s, "acquire_depth") == ([] if fine else ["error"])
    listed = Sketch()
    listed.worker("w", acquire("x", count), *put("y"), release("x", count))
    listed.fifo("x", "shim0", "w", depth=[1, depth]).fifo("y", "w", "shim1").fill("x", count).drain("y", 1)
    assert severities(listed, "acquire_depth") == ([] if fine else ["error"])


@pytest.mark.parametrize(("depth", "expected"), [(2, []), (3, ["warning"])])
def test_a_producer_deeper_than_some_toolchains_allocate_is_a_warning(depth: int, expected: list[str]) -> None:
    s = Sketch()
    s.worker("a", loop(2, *put("t"))).worker("b", loop(2, *move("t", "y")))
    s.fifo("t", "a", "b", depth=[depth, 2]).fifo("y", "b", "shim0").drain("y", 2)
    assert severities(s, "acquire_depth") == expected


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ((loop(4, *move("x", "y")),), ""),
        ((loop(4, acquire("x", 2), call("look", "x:1"), release("x"), *put("y")),), ""),
        ((loop(4, *move("x", "y"), release("x")),), "releases 1 of fifo 'x' and holds 0"),
        ((acquire("x"), release("x", 2)), "releases 2 of fifo 'x' and holds 1"),
        ((loop(2, acquire("x"), call("look", "x:1"), release("x")),), "gets object 1"),
        ((acquire("x"), release("x"), call("look", "x")), "gets object 0 of fifo 'x', held are 0"),
        ((loop(2, acquire("y"), acquire("x"), call("look", "x"), release("y"), release("x")),), "no kernel was given"),
        ((acquire("x", 4), loop(5, call("look", "x"), release("x"))), "holds 0"),
        ((acquire("x", 4), loop(4, call("look", "x"), release("x"))), ""),
    ],
)
def test_release_balance_is_exact(program: Any, words: str) -> None:
    s = Sketch()
    s.worker("w", *program)
    s.fifo("x", "shim0", "w", depth=4).fifo("y", "w", "shim1").fill("x", 4).drain("y", 4)
    lines = [f.line() for f in found(s, "release_balance")]
    assert bool(lines) == bool(words), lines
    assert any(words in line for line in lines) or not words


def test_release_balance_is_quick_for_long_loops() -> None:
    s = Sketch()
    s.worker("w", loop(10**12, loop(10**12, *move("x", "y"))))
    s.fifo("x", "shim0", "w").fifo("y", "w", "shim1").fill("x", 4).drain("y", 4)
    assert found(s, "release_balance") == []
    assert found(s, "drift") == []


def test_drift_is_a_body_that_takes_another_number_the_second_time() -> None:
    s = Sketch()
    s.worker("w", loop(3, acquire("x", 2), *put("y"), release("x")))
    s.fifo("x", "shim0", "w", depth=3).fifo("y", "w", "shim1").fill("x", 3).drain("y", 3)
    (finding,) = found(s, "drift")
    assert (finding.severity, finding.used, finding.limit) == ("warning", 4, 3)
    assert "keeps 1 when it ends" in finding.text
    even = Sketch()
    even.worker("w", loop(3, acquire("x", 2), *put("y"), release("x")), release("x"))
    even.fifo("x", "shim0", "w", depth=3).fifo("y", "w", "shim1").fill("x", 4).drain("y", 3)
    assert found(even, "drift") == []


@pytest.mark.parametrize(("sent", "expected"), [(4, []), (5, ["warning"]), (3, ["error"])])
def test_rates_compare_what_is_sent_with_what_is_taken(sent: int, expected: list[str]) -> None:
    s = plain()
    s.sequence[0] = dataclasses.replace(s.sequence[0], objects=sent)
    findings = found(s, "rates")
    assert [f.severity for f in findings] == expected
    if expected:
        assert f"{sent} objects are sent an inference and 4 are taken" in findings[0].text


def test_rates_go_through_links_repeats_and_cut_objects() -> None:
    s = split((0, 4), (4, 4), 8)
    assert found(s, "rates") == []
    s.fifos[0] = dataclasses.replace(s.fifos[0], repeat_count=2)
    assert len(found(s, "rates")) == 1
    cut = Sketch()
    cut.worker("w", loop(6, *move("x", "y")))
    cut.fifo("x", "shim0", "w", shape=(12,), consumer_shape=(4,)).fifo("y", "w", "shim1").fill("x", 2).drain("y", 6)
    assert found(cut, "rates") == []
    assert len(found(cut.fill("x", 1), "rates")) == 1


def test_rates_solve_for_bodies_that_run_several_times() -> None:
    s = Sketch()
    s.worker("w", *move("x", "y"))
    s.fifo("x", "shim0", "w").fifo("y", "w", "shim1").fill("x", 5).drain("y", 5)
    assert found(s, "rates") == []
    assert found(s.fill("x", 1), "rates")
