"""What looks like a hang and is none (facts 3b): never flagged, under ten schedules."""

import dataclasses

import numpy as np
import pytest

from manifest.device import load_device
from presim.design import Call, Loop, Step
from presim.static import check_design
from tests.presim.sketches import Sketch, acquire, call, loop, move, numbers, put, release, take, three

PLACES = {"placement", "shim_columns"}
"""Rules about where things are: sketches put their actors anywhere."""


def clean(sketch: Sketch) -> None:
    """Completes, nothing grows, no check finds an error."""
    result = sketch.run(schedules=10)
    assert result.sound, result.text
    assert result.schedules == 11
    checks = check_design(sketch.design(), load_device("npu2"))
    assert [f.line() for c in checks for f in c.findings if f.severity == "error" and c.rule not in PLACES] == []


def test_FP1_a_long_run_is_no_hang() -> None:
    s = Sketch()
    s.worker("w", loop(5000, *move("x", "y")))
    s.fifo("x", "shim0", "w").fifo("y", "w", "shim1").fill("x", 5000).drain("y", 5000)
    clean(s)


@pytest.mark.parametrize("depth", [1, 2])
def test_FP2_the_skip_broadcast_of_the_guide_lives_with_all_depths_one(depth: int) -> None:
    s = Sketch()
    s.worker("a", loop(6, *move("x", "of0")))
    s.worker("b", loop(6, *move("of0", "of1")))
    s.worker("c", loop(6, *move("of0", "of1", "y")))
    s.fifo("x", "shim0", "a", depth=1).fifo("of0", "a", "b", "c", depth=1).fifo("of1", "b", "c", depth=depth)
    s.fifo("y", "c", "shim1", depth=1).fill("x", 6).drain("y", 6)
    clean(s)


def sliding(rows: int) -> tuple[Step, ...]:
    """3 x 3 convolution over rows: top border, middle, bottom border, as the shipped bottleneck does it."""
    return (
        acquire("x", 2), acquire("y"), call("move", "x", "x", "x:1", "y"), release("y"),
        loop(rows - 2, acquire("x", 3), acquire("y"), call("move", "x", "x:1", "x:2", "y"), release("x"), release("y")),
        acquire("x", 2), acquire("y"), call("move", "x", "x:1", "x:1", "y"), release("x", 2), release("y"),
    )  # fmt: skip


def test_FP3_a_sliding_window_with_borders_lives_and_keeps_its_rows_apart() -> None:
    rows = 8
    s = Sketch()
    s.worker("conv", *sliding(rows))
    s.fifo("x", "shim0", "conv", depth=4).fifo("y", "conv", "shim1").fill("x", rows).drain("y", rows)
    clean(s)
    images = three(rows)
    padded = [np.concatenate([image[:1], image, image[-1:]]) for image in images]
    wanted = [{"y": p[:-2] + p[1:-1] + p[2:] + 1} for p in padded]
    result = s.run_with([{"x": i} for i in images], outputs=wanted)
    assert (result.verdict, result.compared["y"]) == ("completes", 3 * rows * 4)


def test_FP3_objects_kept_over_loops_and_over_inferences_are_fine() -> None:
    s = Sketch()
    s.worker("w", acquire("k"), loop(3, acquire("x", 2), call("look", "k", "x", "x:1"), *put("y"), release("x", 2)))
    s.fifo("k", "shim0", "w", depth=1).fifo("x", "shim1", "w", depth=3).fifo("y", "w", "shim2")
    s.fill("x", 6).fill("k", 1).drain("y", 3)
    result = s.run(inferences=1)
    assert (result.verdict, [left.kind for left in result.left]) == ("completes_leaving", ["held"])
    assert result.sound


def test_FP3_a_self_loop_on_one_tile_lives() -> None:
    s = Sketch()
    body = (
        acquire("t", 1, "produce"), acquire("x"), call("move", "x", "t/produce"),
        release("x"), release("t", 1, "produce"),
        acquire("t", 1, "consume"), acquire("y"), call("move", "t/consume", "y"), release("y"),
        release("t", 1, "consume"),
    )  # fmt: skip
    s.worker("w", loop(4, *body))
    s.fifo("x", "shim0", "w").fifo("t", "w", "w", depth=3).fifo("y", "w", "shim1").fill("x", 4).drain("y", 4)
    clean(s)
    rows = three(4)
    assert s.run_with([{"x": r} for r in rows], outputs=[{"y": r + 2} for r in rows]).verdict == "completes"


def test_FP3_a_self_loop_deeper_than_one_window_lives_as_in_mobilenet() -> None:
    s = Sketch()
    first = (
        acquire("t", 1, "produce"),
        acquire("x"),
        call("move", "x", "t/produce"),
        release("x"),
        release("t", 1, "produce"),
    )
    second = (acquire("t", 3, "consume"), *put("y"), release("t", 1, "consume"))
    s.worker("w", loop(2, *first), loop(4, *first, *second), release("t", 2, "consume"))
    s.fifo("x", "shim0", "w").fifo("t", "w", "w", depth=3).fifo("y", "w", "shim1").fill("x", 6).drain("y", 4)
    clean(s)


def test_FP3_a_core_that_ends_blocked_in_acquire_is_no_hang() -> None:
    s = Sketch()
    s.worker("w", acquire("y"), acquire("x"), call("move", "x", "y"), release("x"), release("y"))
    s.fifo("x", "shim0", "w").fifo("y", "w", "shim1").fill("x", 4).drain("y", 4)
    result = s.run()
    assert (result.verdict, result.left) == ("completes", ())


def test_FP3_objects_that_were_sent_ahead_into_a_memory_tile_are_listed_and_fine() -> None:
    s = Sketch()
    s.worker("w", loop(4, *move("c", "x", "y")))
    s.fifo("c", "mem0", "w", init_objects=2).fifo("x", "shim0", "w").fifo("y", "w", "shim1").fill("x", 4).drain("y", 4)
    result = s.run(schedules=10)
    assert (result.verdict, result.sound) == ("completes_leaving", True)
    assert {(left.fifo, left.fine) for left in result.left} == {("c", True)}


def test_FP3_tasks_that_nobody_awaits_are_no_hang() -> None:
    s = Sketch()
    s.worker("w", loop(4, *move("x", "y")))
    s.fifo("x", "shim0", "w").fifo("y", "w", "shim1").fill("x", 2).fill("x", 2, offset=8).drain("y", 4)
    clean(s)


def test_FP5_a_diamond_is_a_cycle_of_fifos_and_no_cycle_of_tokens() -> None:
    s = Sketch()
    s.worker("fork", loop(6, acquire("x"), acquire("l"), acquire("r"), call("move", "x", "l"), call("move", "x", "r"),
                          release("x"), release("l"), release("r")))  # fmt: skip
    s.worker("left", loop(6, *move("l", "m")))
    s.worker("right", loop(6, *move("r", "n")))
    s.worker("join", loop(6, *move("m", "n", "y")))
    s.fifo("x", "shim0", "fork", depth=1).fifo("l", "fork", "left", depth=1).fifo("r", "fork", "right", depth=1)
    s.fifo("m", "left", "join", depth=1).fifo("n", "right", "join", depth=1).fifo("y", "join", "shim1", depth=1)
    s.fill("x", 6).drain("y", 6)
    clean(s)


def test_FP6_two_inputs_and_fifos_of_depth_one_are_ordinary() -> None:
    s = Sketch()
    s.worker("add", loop(5, *move("a", "b", "y")))
    s.fifo("a", "shim0", "add", depth=1).fifo("b", "shim1", "add", depth=1).fifo("y", "add", "shim2", depth=1)
    s.fill("a", 5).fill("b", 5).drain("y", 5)
    clean(s)


@pytest.mark.parametrize("mem", [1, 2])
def test_a_bottleneck_lives_with_one_row_of_skip_per_tile(mem: int) -> None:
    """Rows through 1x1, 3x3 in two halves, 1x1 with the skip that came through a memory tile."""
    rows = 8
    s = Sketch()
    s.worker("first", loop(rows, *move("x", "a")))
    for half in ("h0", "h1"):
        s.worker(half, *(_renamed(step, {"x": "a", "y": f"{half}o"}) for step in sliding(rows)))
    s.worker("last", loop(rows, *move("h0o", "h1o", "skip", "y")))
    s.fifo("x", "shim0", "first", "mem0", depth=[2, 4, mem])
    s.fifo("a", "first", "h0", "h1", depth=[2, 4, 4])
    s.fifo("h0o", "h0", "last").fifo("h1o", "h1", "last").fifo("skip", "mem0", "last", depth=2).fifo(
        "y", "last", "shim1"
    )
    s.link("forward", "x", "skip").fill("x", rows).drain("y", rows)
    assert s.run(schedules=10).verdict == "completes"


def _renamed(step: Step, names: dict[str, str]) -> Step:
    """A step with its fifos renamed."""
    if isinstance(step, Loop):
        return dataclasses.replace(step, body=tuple(_renamed(s, names) for s in step.body))
    if isinstance(step, Call):
        arguments = tuple(dataclasses.replace(a, name=names.get(a.name, a.name)) for a in step.arguments)
        return dataclasses.replace(step, arguments=arguments)
    return dataclasses.replace(step, fifo=names.get(step.fifo, step.fifo))


def test_a_deep_consumer_pool_does_not_need_a_deep_producer_pool() -> None:
    s = Sketch()
    s.worker("a", loop(6, *put("t")))
    s.worker("b", acquire("t", 6), call("look", "t", "t:5"), release("t", 6), *put("y"))
    s.fifo("t", "a", "b", depth=[1, 6]).fifo("y", "b", "shim0").drain("y", 1)
    assert s.run().sound
    assert s.run_with([{}] * 3, outputs=[{"y": numbers(1) * 0 + 7}] * 3).sound


def test_neighbours_share_a_pool_and_take_still_what_they_need() -> None:
    s = Sketch().place("a", 0, 2).place("b", 0, 3)
    s.worker("a", loop(4, *move("x", "t")))
    s.worker("b", loop(4, *move("t", "y")), loop(0, *take("t")))
    s.fifo("x", "shim0", "a").fifo("t", "a", "b", depth=1).fifo("y", "b", "shim1").fill("x", 4).drain("y", 4)
    clean(s)
    rows = three(4)
    result = s.run_with(
        [{"x": r} for r in rows], outputs=[{"y": r + 2} for r in rows], fifos=[{"t": r + 1} for r in rows]
    )
    assert (result.verdict, result.compared["t"]) == ("completes", 48)
