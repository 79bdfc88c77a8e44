"""Hangs of the public record (rows H of the facts, 3a) and their neighbours that run."""

import pytest

from manifest.device import load_device
from presim.design import Tile
from presim.static import check_design
from tests.presim.sketches import Sketch, acquire, call, loop, move, numbers, put, release, take, three


def findings(sketch: Sketch, rule: str) -> list[tuple[str, str]]:
    found = {c.rule: c for c in check_design(sketch.design(), load_device(sketch.device))}
    return [(f.severity, f.line()) for f in found[rule].findings]


def replayed_broadcast(repeats: int, *, depth: int = 2) -> Sketch:
    """One object, sent `repeats` times to two cores; a third takes all of the first core, then all of the second."""
    s = Sketch()
    s.worker("left", loop(repeats, *move("x", "l")))
    s.worker("right", loop(repeats, *move("x", "r")))
    s.worker("sum", loop(repeats, *take("l")), loop(repeats, *take("r")), *put("y"))
    s.fifo("in", "shim0", "mem0", depth=1)
    s.fifo("x", "mem0", "left", "right", depth=depth, repeat_count=repeats)
    s.fifo("l", "left", "sum", depth=depth).fifo("r", "right", "sum", depth=depth).fifo("y", "sum", "shim1")
    s.link("forward", "in", "x")
    return s.fill("in", 1).drain("y", 1)


def test_H1_replayed_broadcast_hangs_once_the_late_branch_is_full() -> None:
    # right holds: two in its own pool, one in work, two sent on, two in the pool of the sum
    assert replayed_broadcast(6).run().verdict == "completes"
    stuck = replayed_broadcast(12).run()
    assert stuck.verdict == "deadlock"
    assert {w.actor for w in stuck.cycle} >= {"sum", "DMA of x"}
    assert stuck.fixes
    assert all(fix.what == "depth" and fix.exact for fix in stuck.fixes)


def test_H1_the_fix_lets_it_run_and_one_less_does_not() -> None:
    (fix,) = replayed_broadcast(12).run().fixes
    assert fix.fifo in {"x", "r"}
    for depth, verdict in ((fix.after, "completes"), (fix.after - 1, "deadlock")):
        s = replayed_broadcast(12)
        at = next(i for i, f in enumerate(s.fifos) if f.name == fix.fifo)
        ends = [2] * (1 + len(s.fifos[at].consumers))
        names = ["produce", *(f"consume:{c.actor}" for c in s.fifos[at].consumers)]
        ends[names.index(fix.side)] = depth
        old = s.fifos.pop(at)
        s.fifo(
            old.name, old.producer.actor, *(c.actor for c in old.consumers), depth=ends, repeat_count=old.repeat_count
        )
        assert s.run().verdict == verdict


def window(taken: int, given: int, rounds: int, sent: int) -> Sketch:
    s = Sketch()
    s.worker("w", loop(rounds, acquire("x", taken), *put("y"), release("x", given)))
    s.fifo("x", "shim0", "w", depth=taken + 1).fifo("y", "w", "shim1")
    return s.fill("x", sent).drain("y", rounds)


@pytest.mark.parametrize(("taken", "given"), [(3, 1), (4, 2), (5, 3)])
def test_H2_a_window_that_gives_back_less_than_it_holds_is_legal(taken: int, given: int) -> None:
    s = window(taken, given, 6, 6 * given)
    s.workers[0] = (
        Sketch().worker("w", acquire("x", taken - given), *s.workers[0].program, release("x", taken - given)).workers[0]
    )
    s.tiles["w"] = s.workers[0].tile
    s.fifos.clear()
    s.fifo("x", "shim0", "w", depth=taken + 1).fifo("y", "w", "shim1")
    s.sequence.clear()
    s.fill("x", 6 * given + taken - given).drain("y", 6)
    assert s.run().verdict == "completes"


def constant_source(iterations: int | None, rounds: int) -> Sketch:
    s = Sketch()
    s.worker("w", loop(rounds, *move("c", "y")))
    s.fifo("c", "mem0", "w", depth=1, init_objects=1, iter_count=iterations).fifo("y", "w", "shim0")
    return s.drain("y", rounds)


def test_H3_a_constant_of_a_memory_tile_is_sent_again_and_again() -> None:
    assert constant_source(None, 4).run().verdict == "completes_leaving"
    assert constant_source(12, 4).run().inferences == 3


def test_H3_passes_that_are_used_up_starve_the_consumer() -> None:
    starved = constant_source(11, 4).run()
    assert starved.verdict == "starvation"
    assert starved.inferences == 2
    assert "iter_count" in starved.text


def many_tasks(count: int) -> Sketch:
    s = Sketch()
    s.worker("w", loop(count, *move("x", "y")))
    s.fifo("x", "shim0", "w").fifo("y", "w", "shim1")
    for index in range(count):
        s.fill("x", 1, tensor="x", offset=4 * index)
    return s.drain("y", count)


@pytest.mark.parametrize(("count", "severity"), [(4, None), (5, "warning"), (6, "warning"), (7, "error")])
def test_H5_tasks_beyond_the_queue_are_lost(count: int, severity: str | None) -> None:
    s = many_tasks(count)
    assert [kind for kind, _ in findings(s, "task_queues")] == ([severity] if severity else [])
    result = s.run()
    assert result.verdict == ("starvation" if severity == "error" else "completes")
    if severity == "error":
        assert "lost" in result.text
        assert "'x'" in result.text


def test_H5_waiting_for_tasks_frees_the_queue() -> None:
    s = Sketch()
    s.worker("w", loop(12, *move("x", "y")))
    s.fifo("x", "shim0", "w").fifo("y", "w", "shim1")
    for index in range(6):
        s.fill("x", 2, offset=8 * index, group=f"g{index}")
        s.drain("y", 2, offset=8 * index, group=f"g{index}")
    assert findings(s, "task_queues") == [("warning", findings(s, "task_queues")[0][1])]
    assert s.run().verdict == "completes"


def test_H5_waiting_for_the_last_task_frees_the_places_of_all_before_it() -> None:
    s = Sketch()
    s.worker("w", loop(12, *move("x", "y")))
    s.fifo("x", "shim0", "w").fifo("y", "w", "shim1").drain("y", 12)
    for index in range(12):
        group = {"group": f"g{index}", "wait": True} if index % 4 == 3 else {}
        s.fill("x", 1, offset=4 * index, **group)
    assert s.run().verdict == "completes"


def test_H9_H10_a_gather_with_a_lock_pair_per_writer_runs_whoever_comes_first() -> None:
    s = Sketch()
    rows = three(6, (8,))
    for index in range(4):
        s.worker(f"w{index}", loop(6, *move(f"in{index}", f"out{index}")))
        s.fifo(f"in{index}", f"shim{index}", f"w{index}", shape=(2,)).fifo(
            f"out{index}", f"w{index}", "mem0", shape=(2,)
        )
        s.fill(f"in{index}", 6)
    s.fifo("y", "mem0", "shim9", shape=(8,))
    s.link("join", "out0 out1 out2 out3", "y", offsets=(0, 2, 4, 6)).drain("y", 6)
    inputs = [{f"in{i}": r[:, 2 * i : 2 * i + 2] for i in range(4)} for r in rows]
    result = s.run_with(inputs, outputs=[{"y": r + 1} for r in rows], schedules=10)
    assert (result.verdict, result.compared["y"]) == ("completes", 3 * 6 * 8)


def test_H11_two_inputs_of_one_core_are_ordinary() -> None:
    s = Sketch()
    s.worker("add", loop(8, *move("a", "b", "y")))
    s.fifo("a", "shim0", "add").fifo("b", "shim1", "add").fifo("y", "add", "shim2")
    s.fill("a", 8).fill("b", 8).drain("y", 8)
    assert s.run().verdict == "completes"


def test_H11_inputs_that_one_memory_tile_sends_one_after_the_other_hang() -> None:
    """The order of transfers, not the two inputs, is what hangs (MLIRAIR-1557)."""
    s = Sketch()
    s.worker("source", loop(8, *put("a")), loop(8, *put("b")))
    s.worker("add", loop(8, *move("a", "b", "y")))
    s.fifo("a", "source", "add", depth=[1, 2]).fifo("b", "source", "add", depth=[1, 2]).fifo("y", "add", "shim0")
    s.drain("y", 8)
    stuck = s.run()
    assert stuck.verdict == "deadlock"
    assert {w.actor for w in stuck.cycle} == {"source", "DMA of b", "add", "DMA of a"}
    assert stuck.fixes[0].fifo == "a"


def test_H12_a_replica_that_nobody_fills_starves_its_core() -> None:
    s = Sketch()
    for index in range(3):
        s.worker(f"w{index}", loop(2, *move(f"x{index}", f"y{index}")))
        s.fifo(f"in{index}", f"shim{index}", f"mem{index}").fifo(f"x{index}", f"mem{index}", f"w{index}")
        s.fifo(f"y{index}", f"w{index}", f"shim1{index}")
        s.link("forward", f"in{index}", f"x{index}").drain(f"y{index}", 2)
    s.fill("in0", 2)
    result = s.run()
    assert result.verdict == "starvation"
    assert "starts no task for fifo 'in1'" in result.text
    assert [severity for severity, _ in findings(s, "host_tasks")] == ["error", "error"]
    s.fill("in1", 2).fill("in2", 2)
    assert s.run().verdict == "completes"
    assert findings(s, "host_tasks") == []


def test_H18_acquire_two_release_one_lives_where_one_object_more_is_sent() -> None:
    """One more for the first input; every further one finds a window that is already half full."""
    one = window(2, 1, 5, 6).run(inferences=1)
    assert (one.verdict, one.left[0].kind, one.left[0].counts) == ("completes_leaving", "held", (1,))
    assert window(2, 1, 5, 5).run(inferences=1).verdict == "starvation"


def test_H18_sending_one_more_every_time_is_listed_as_growing() -> None:
    result = window(2, 1, 5, 6).run()
    assert result.verdict == "completes_leaving"
    assert not result.sound
    grown = [left for left in result.left if not left.fine]
    assert grown
    assert "grows by 1" in grown[0].why
    assert [severity for severity, _ in findings(window(2, 1, 5, 6), "drift")] == ["warning"]
    assert [severity for severity, _ in findings(window(2, 1, 5, 6), "rates")] == ["warning"]


def test_H18_tasks_that_are_not_through_go_on_in_the_next_inference() -> None:
    """Twelve sent: six for the five windows, three more until two outputs wait, one in the pool; the task keeps two."""
    images = three(12)
    result = window(2, 1, 5, 12).run_with([{"x": i} for i in images], fifos=[{"x": i[:2]} for i in images[:1]])
    assert result.verdict == "completes_leaving"
    open_tasks = next(left for left in result.left if left.kind == "task")
    assert (open_tasks.fifo, open_tasks.fine) == ("x", False)
    assert open_tasks.counts == (2, 9, 16)


def holding_downstream(depth: int) -> Sketch:
    """`late` holds two blocks of `a` until `b` comes, and `b` comes after the source sent three more of `a`."""
    s = Sketch()
    s.worker("source", loop(3, *put("a")), *put("b"), *put("a"))
    s.worker(
        "late", acquire("a", 2), *take("b"), call("look", "a", "a:1"), release("a", 2), loop(2, *take("a")), *put("y")
    )
    s.fifo("a", "source", "late", depth=[1, depth]).fifo("b", "source", "late").fifo("y", "late", "shim0")
    return s.drain("y", 1)


def test_H19_a_held_block_counts_against_the_depth() -> None:
    stuck = holding_downstream(1).run()
    assert stuck.verdict == "deadlock"
    assert (stuck.fixes[0].fifo, stuck.fixes[0].side, stuck.fixes[0].after) == ("a", "consume:late", 2)
    assert holding_downstream(2).run().sound


def skip(prefill: int, capacity: int, *, window_depth: int | None = None) -> Sketch:
    """Broadcast to a main path that takes `prefill` rows before its first output, and to a skip path; an adder joins.

    All pools but that of the skip path hold what the main path needs and no more; rows come one by one.
    """
    rows = 6
    s = Sketch()
    body = (acquire("x", prefill), *put("m"), release("x", 1))
    s.worker("main", loop(rows - prefill + 1, *body), loop(prefill - 1, *put("m"), release("x", 1)))
    s.worker("add", loop(rows, *move("m", "x", "y")))
    s.fifo("x", "shim0", "main", "add", depth=[1, window_depth or prefill, capacity])
    s.fifo("m", "main", "add", depth=[1, 1]).fifo("y", "add", "shim1")
    return s.fill("x", rows).drain("y", rows)


@pytest.mark.parametrize("prefill", [1, 2, 3, 4])
def test_H20_the_skip_path_has_to_hold_what_the_main_path_takes_first(prefill: int) -> None:
    assert skip(prefill, prefill).run().verdict == "completes"
    if prefill > 1:
        stuck = skip(prefill, prefill - 1).run()
        assert stuck.verdict == "deadlock"
        best = next(f for f in (*stuck.fixes, *stuck.alternatives) if f.side == "consume:add")
        assert (best.fifo, best.before, best.after) == ("x", prefill - 1, prefill)


def test_H20_an_acquire_above_the_depth_is_named_and_no_skip_depth_helps() -> None:
    stuck = skip(3, 6, window_depth=2).run()
    assert stuck.verdict == "deadlock"
    assert [(w.actor, w.op, w.fifo, w.need) for w in stuck.cycle] == [("main", "acquire", "x", 3)]
    assert (stuck.fixes[0].side, stuck.fixes[0].after) == ("consume:main", 3)
    assert [severity for severity, _ in findings(skip(3, 6, window_depth=2), "acquire_depth")] == ["error"]


def test_H20_a_preamble_that_holds_all_needs_one_more_than_the_window() -> None:
    def held(depth: int) -> Sketch:
        s = Sketch()
        s.worker("main", acquire("x", 4), *put("m"), acquire("x", 5), *put("m"), release("x", 5))
        s.worker("add", loop(2, *move("m", "x", "y")), loop(3, *take("x")))
        s.fifo("x", "shim0", "main", "add", depth=[1, depth, 8]).fifo("m", "main", "add").fifo("y", "add", "shim1")
        return s.fill("x", 5).drain("y", 2)

    assert held(4).run().verdict == "deadlock"
    assert held(5).run().verdict == "completes"


def test_H21_weights_sent_once_and_acquired_twice_starve_the_second_time() -> None:
    def weights(sent: int) -> Sketch:
        s = Sketch()
        s.worker("w", loop(2, acquire("k"), loop(3, *move("x", "y")), release("k")))
        s.fifo("k", "shim0", "w", depth=1).fifo("x", "shim1", "w").fifo("y", "w", "shim2")
        return s.fill("k", sent).fill("x", 6).drain("y", 6)

    starved = weights(1).run()
    assert starved.verdict == "starvation"
    assert starved.inferences == 0
    assert starved.chain[-1].fifo == "k"
    assert "'k' move 1 objects an inference" in starved.text
    worker = next(w for w in starved.chain if w.actor == "w")
    assert (worker.op, worker.step, worker.have, worker.need) == ("acquire", "0[1].0", 0, 1)
    assert [severity for severity, _ in findings(weights(1), "rates")] == ["error"]
    assert weights(2).run().verdict == "completes"


def test_H24_a_link_on_a_compute_tile_is_refused() -> None:
    s = Sketch()
    s.worker("w", loop(2, *move("x", "y")))
    s.fifo("in", "shim0", "mem0").fifo("x", "mem0", "w").fifo("y", "w", "shim1")
    s.link("forward", "in", "x", tile=Tile(column=0, row=2)).fill("in", 2).drain("y", 2)
    assert [severity for severity, _ in findings(s, "links")] == ["error"]
    assert "core tile (0, 2)" in findings(s, "links")[0][1]


def test_H24_cores_with_fewer_rows_than_they_loop_over_starve() -> None:
    s = Sketch()
    for index in range(2):
        s.worker(f"w{index}", loop(4, *move(f"x{index}", f"y{index}")))
        s.fifo(f"x{index}", f"shim{index}", f"w{index}").fifo(f"y{index}", f"w{index}", f"shim1{index}")
        s.fill(f"x{index}", 4 - index).drain(f"y{index}", 4)
    result = s.run()
    assert result.verdict == "starvation"
    assert "'x1' move 3 objects" in result.text


def feedback(first: int, *, depth: int = 1) -> Sketch:
    s = Sketch()
    steps = (
        acquire("x"),
        acquire("h", side="consume"),
        call("look", "x", "h/consume"),
        release("h", side="consume"),
        acquire("h", side="produce"),
        acquire("y"),
        call("make", "h/produce"),
        call("make", "y"),
        release("h", side="produce"),
        release("y"),
        release("x"),
    )
    s.worker("cell", loop(5, *steps))
    s.fifo("x", "shim0", "cell").fifo("y", "cell", "shim1").fifo("h", "cell", "cell", depth=depth, init_objects=first)
    return s.fill("x", 5).drain("y", 5)


def test_mliraie_3077_a_state_loop_needs_its_first_token() -> None:
    stuck = feedback(0).run()
    assert stuck.verdict == "deadlock"
    assert [(w.actor, w.fifo, w.have, w.need) for w in stuck.cycle] == [("cell", "h", 0, 1)]
    assert [(f.what, f.fifo, f.after) for f in stuck.fixes] == [("init_objects", "h", 1)]
    good = feedback(1).run()
    assert (good.verdict, good.left) == ("completes", ())


def test_a_hang_is_found_though_another_part_runs_for_ever() -> None:
    s = replayed_broadcast(12)
    s.worker("spin", loop(4, *put("t")))
    s.worker("sink", loop(4, *take("t")))
    s.fifo("t", "spin", "sink")
    result = s.run()
    assert result.verdict == "deadlock"
    assert result.fixes


def test_input_data_does_not_change_the_verdict_of_a_hang() -> None:
    s = skip(3, 2)
    result = s.run_with([{"x": numbers(6)}] * 3)
    assert result.verdict == "deadlock"
    assert result.fixes == s.run().fixes
    assert result.events
