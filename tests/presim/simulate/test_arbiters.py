"""Packet flows that share an arbiter of a stream switch (rows H7, H8, 3b.9 of the facts)."""

from tests.presim.sketches import Sketch, loop, move, put, take


def crossing(arbiter: str) -> Sketch:
    """Two cores send each other four objects before they take any, over flows that may share an arbiter."""
    s = Sketch()
    for one, other in (("a", "b"), ("b", "a")):
        s.worker(one, loop(4, *put(f"{one}{other}")), loop(4, *take(f"{other}{one}")), *put(f"{one}y"))
        s.fifo(f"{one}{other}", one, other, depth=[1, 3], arbiter=arbiter)
        s.fifo(f"{one}y", one, f"shim{one}").drain(f"{one}y", 1)
    return s


def test_H8_iree_1254_two_flows_across_one_arbiter_hang_and_both_are_named() -> None:
    """One object is with the sender, three with the receiver; the flow with the fourth keeps the arbiter for ever."""
    assert crossing("").run().sound
    stuck = crossing("switch (1, 3) 0").run(schedules=8)
    assert stuck.verdict == "deadlock"
    assert {w.actor for w in stuck.cycle} & {"DMA of ab", "DMA of ba"}
    assert any(w.fifo == "arbiter switch (1, 3) 0" for w in stuck.cycle)
    assert "circuits of their own" in stuck.hint


def late_reader(arbiter: str) -> Sketch:
    """`b` takes of `ab` only after it got all of `cb`; the flow of `ab` fills its pool and keeps the arbiter."""
    s = Sketch()
    s.worker("a", loop(4, *put("ab"))).worker("c", loop(4, *put("cb")))
    s.worker("b", loop(4, *take("cb")), loop(4, *take("ab")), *put("y"))
    for fifo in ("ab", "cb"):
        s.fifo(fifo, fifo[0], fifo[1], depth=[1, 1], arbiter=arbiter)
    return s.fifo("y", "b", "shim0").drain("y", 1)


def test_H7_head_of_line_in_a_shared_arbiter_is_a_deadlock_with_the_flow_that_keeps_it() -> None:
    assert late_reader("").run().sound
    stuck = late_reader("in of b").run()
    assert stuck.verdict == "deadlock"
    waits = {(w.actor, w.op, w.fifo) for w in stuck.cycle}
    assert ("DMA of cb", "arbitrate", "arbiter in of b") in waits
    assert ("DMA of ab", "receive", "ab") in waits
    assert not stuck.fixes
    assert "circuits of their own" in stuck.hint


def test_FP9_flows_that_share_an_arbiter_and_always_find_room_run() -> None:
    s = Sketch()
    s.worker("a", loop(4, *move("ax", "ab"))).worker("c", loop(4, *move("cx", "cb")))
    s.worker("b", loop(4, *take("cb")), loop(4, *take("ab")), *put("y"))
    for index, fifo in enumerate(("ab", "cb")):
        s.fifo(f"{fifo[0]}x", f"shim{index}", fifo[0]).fill(f"{fifo[0]}x", 4)
        s.fifo(fifo, fifo[0], fifo[1], depth=[1, 4], arbiter="in of b")
    s.fifo("y", "b", "shim2").drain("y", 1)
    assert s.run(schedules=10).verdict == "completes"
    s.fifos[1] = Sketch().fifo("ab", "a", "b", depth=[1, 3], arbiter="in of b").fifos[0]
    assert s.run(schedules=10).verdict == "deadlock"
