"""How a run ends where no row of the facts is meant: order of the host, nothing awaited, programs that end, bounds."""

from tests.presim.checking import severities
from tests.presim.sketches import Sketch, loop, move


def test_awaiting_an_output_before_its_input_was_started_is_a_deadlock_of_the_host() -> None:
    s = Sketch()
    s.worker("w", loop(2, *move("x", "y")))
    s.fifo("x", "shim0", "w").fifo("y", "w", "shim1")
    s.drain("y", 2, group="first").fill("x", 2, group="second")
    stuck = s.run()
    assert stuck.verdict == "deadlock"
    assert "host" in {w.actor for w in stuck.cycle}
    assert not stuck.fixes
    assert "start them first" in stuck.hint


def test_a_design_of_which_nothing_is_awaited_shows_nothing() -> None:
    s = Sketch()
    s.worker("w", loop(2, *move("x", "y")))
    s.fifo("x", "shim0", "w").fifo("y", "w", "shim1").fill("x", 2).drain("y", 2, wait=False)
    assert s.run().verdict == "inconclusive"
    assert severities(s, "awaited_drains") == ["error"]


def test_a_program_that_ends_starves_the_second_input() -> None:
    s = Sketch()
    s.worker("w", loop(2, *move("x", "y")), while_true=False)
    s.fifo("x", "shim0", "w").fifo("y", "w", "shim1").fill("x", 2).drain("y", 2)
    result = s.run()
    assert (result.verdict, result.inferences) == ("starvation", 1)
    assert "while_true" in result.text


def test_the_bound_is_inconclusive_and_names_the_knob() -> None:
    s = Sketch()
    s.worker("w", loop(1000, *move("x", "y")))
    s.fifo("x", "shim0", "w").fifo("y", "w", "shim1").fill("x", 1000).drain("y", 1000)
    assert s.run(max_steps=3000).verdict == "inconclusive"
    assert "max_steps" in s.run(max_steps=3000).text
    assert s.run(max_steps=100_000).verdict == "completes"
