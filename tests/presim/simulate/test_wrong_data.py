"""Wrong data of the public record (rows W of the facts, 3a): found and placed, and the legal neighbours right."""

import numpy as np
import pytest

from manifest.device import load_device
from presim.design import Buffer
from presim.simulate import KernelContext
from presim.static import check_design
from tests.presim.sketches import Array, Sketch, acquire, call, loop, move, numbers, put, release, three


def errors(sketch: Sketch, rule: str) -> list[str]:
    found = {c.rule: c for c in check_design(sketch.design(), load_device(sketch.device))}
    return [f.line() for f in found[rule].findings if f.severity == "error"]


@pytest.mark.parametrize("rounds", [1, 3, 5])
def test_W1_odd_rounds_on_an_even_ring_keep_every_object_in_its_buffer(rounds: int) -> None:
    s = Sketch()
    s.worker("a", loop(rounds, *move("x", "t")))
    s.worker("b", loop(rounds, *move("t", "y")))
    s.fifo("x", "shim0", "a").fifo("t", "a", "b", depth=[2, 3]).fifo("y", "b", "shim1")
    s.fill("x", rounds).drain("y", rounds)
    rows = three(rounds)
    result = s.run_with(
        [{"x": r} for r in rows], outputs=[{"y": r + 2} for r in rows], fifos=[{"t": r + 1} for r in rows]
    )
    assert result.verdict == "completes"
    assert result.compared == {"y": 12 * rounds, "t": 12 * rounds}


def test_W3_the_stack_counts_in_the_memory_of_the_tile() -> None:
    def tile(stack: int) -> Sketch:
        s = Sketch().place("w", 0, 2)
        s.worker("w", loop(1, *move("x", "y")), stack_bytes=stack)
        s.fifo("x", "shim0", "w", shape=(64512 // 4,), depth=1).fifo("y", "w", "shim1", shape=(8,), depth=1)
        return s.fill("x", 1).drain("y", 1)

    assert errors(tile(1024 - 32), "data_memory") == []
    (text,) = errors(tile(1024), "data_memory")
    assert "core tile (0, 2)" in text
    assert "stack 1024" in text


def joined(dims: tuple[tuple[int, int], ...] = ()) -> Sketch:
    s = Sketch()
    for index in range(2):
        s.worker(f"w{index}", loop(3, *move(f"in{index}", f"out{index}")))
        s.fifo(f"in{index}", f"shim{index}", f"w{index}").fifo(f"out{index}", f"w{index}", "mem0").fill(f"in{index}", 3)
    s.fifo("y", "mem0", "shim9", shape=(8,), dims={"mem0": dims})
    return s.link("join", "out0 out1", "y", offsets=(0, 4)).drain("y", 3)


def test_W5_a_permutation_on_the_output_of_a_join_is_refused() -> None:
    assert errors(joined(), "links") == []
    (text,) = errors(joined(((2, 1), (4, 2))), "links")
    assert "'y', the output of a join" in text


def test_W6_a_window_with_a_tail_inside_nested_loops_is_legal_and_right() -> None:
    rows = 5
    s = Sketch()
    body = (
        loop(rows - 1, acquire("x", 2), acquire("y"), call("move", "x", "x:1", "y"), release("x"), release("y")),
        acquire("x", 1), acquire("y"), call("move", "x", "x", "y"), release("x"), release("y"),
    )  # fmt: skip
    s.worker("w", loop(2, loop(2, *body)))
    s.fifo("x", "shim0", "w", depth=3).fifo("y", "w", "shim1").fill("x", 4 * rows).drain("y", 4 * rows)
    images = three(4 * rows)
    wanted = []
    for image in images:
        tiles = image.reshape(4, rows, 4)
        wanted.append({"y": (tiles + np.concatenate([tiles[:, 1:], tiles[:, -1:]], axis=1) + 1).reshape(-1, 4)})
    assert s.run_with([{"x": i} for i in images], outputs=wanted).verdict == "completes"


def test_W7_repeated_objects_arrive_as_often_as_they_are_sent() -> None:
    s = Sketch()
    s.worker("w", loop(6, *move("x", "y")))
    s.fifo("in", "shim0", "mem0", depth=2).fifo("x", "mem0", "w", repeat_count=3).fifo("y", "w", "shim1")
    s.link("forward", "in", "x").fill("in", 2).drain("y", 6)
    rows = three(2)
    wanted = [{"y": np.repeat(r, 3, axis=0) + 1} for r in rows]
    assert s.run_with([{"in": r} for r in rows], outputs=wanted).verdict == "completes"


def split(offsets: tuple[int, int], shape: tuple[int, ...] = (4,)) -> Sketch:
    s = Sketch()
    for index in range(2):
        s.worker(f"w{index}", loop(2, *move(f"x{index}", f"y{index}")))
        s.fifo(f"x{index}", "mem0", f"w{index}", shape=shape).fifo(
            f"y{index}", f"w{index}", f"shim{index}", shape=shape
        )
        s.drain(f"y{index}", 2)
    s.fifo("x", "shim9", "mem0", shape=(8,))
    return s.link("split", "x", "x0 x1", offsets=offsets).fill("x", 2)


def split_run(s: Sketch, rows: list[Array]) -> tuple[str, str]:
    wanted = [{"y0": r[:, :4] + 1, "y1": r[:, 4:] + 1} for r in rows]
    fifos = [{"x0": r[:, :4], "x1": r[:, 4:]} for r in rows]
    result = s.run_with([{"x": r} for r in rows], outputs=wanted, fifos=fifos)
    return result.verdict, result.text


def test_W11_a_split_that_tiles_its_object_is_right() -> None:
    assert split_run(split((0, 4)), three(2, (8,))) == ("completes", "completes 3 inferences, nothing is left")
    assert errors(split((0, 4)), "segments") == []


@pytest.mark.parametrize("offsets", [(0, 3), (1, 4), (4, 0), (0, 0)])
def test_W11_a_wrong_offset_is_an_error_and_shows_in_the_data(offsets: tuple[int, int]) -> None:
    verdict, _ = split_run(split(offsets), three(2, (8,)))
    assert errors(split(offsets), "segments")
    # the DMA goes through the segments in their order: a permuted list is cut as it came
    assert verdict == ("completes" if offsets == (4, 0) else "wrong_data")


def test_W11_segments_smaller_than_the_object_drop_data() -> None:
    s = split((0, 4), (2,))
    (text,) = errors(s, "segments")[:1]
    assert "begins at 4, expected 2" in text
    rows = three(2, (8,))
    result = s.run_with([{"x": r} for r in rows], fifos=[{"x1": r[:, 4:6]} for r in rows])
    assert result.verdict == "wrong_data"
    assert result.mismatch is not None
    assert (result.mismatch.where, result.mismatch.inference, result.mismatch.number) == ("x1", 0, 0)


def test_W11_a_kernel_that_gets_the_wrong_type_is_named() -> None:
    def picky(_: KernelContext, x: Array, y: Array) -> None:
        if x.dtype != np.int8:
            msg = f"x: expected int8, got {x.dtype}"
            raise TypeError(msg)
        y[...] = x

    s = Sketch().kernel("picky")
    s.worker("w", loop(2, *move("x", "y", kernel="picky")))
    s.fifo("x", "shim0", "w").fifo("y", "w", "shim1").fill("x", 2).drain("y", 2)
    result = s.run_with([{"x": numbers(2)}], kernels={"picky": picky})
    assert result.verdict == "fault"
    assert result.fault is not None
    assert (result.fault.kind, result.fault.actor, result.fault.step) == ("kernel", "w", "0[0].2")
    assert "TypeError: x: expected int8, got int32" in result.fault.text


def test_W11_a_drain_without_wait_is_an_error() -> None:
    s = Sketch()
    s.worker("w", loop(2, *move("x", "y")), loop(2, *move("x", "z")))
    s.fifo("x", "shim0", "w").fifo("y", "w", "shim1").fifo("z", "w", "shim2")
    s.fill("x", 4).drain("z", 2).drain("y", 2, wait=False)
    (text,) = errors(s, "awaited_drains")
    assert "'y'" in text


def test_the_first_wrong_element_is_named_with_fifo_object_index_and_writer() -> None:
    def off(context: KernelContext, x: Array, y: Array) -> None:
        y[...] = x + 1
        if context.scalars["row"] == 3:
            y[1, 2] += 5

    s = Sketch().kernel("off")
    s.worker(
        "w",
        loop(4, acquire("x"), acquire("y"), call("off", "x", "y", row="@r"), release("x"), release("y"), counter="r"),
    )
    s.worker("v", loop(4, *move("y", "z")))
    s.fifo("x", "shim0", "w", shape=(2, 3)).fifo("y", "w", "v", shape=(2, 3)).fifo("z", "v", "shim1", shape=(2, 3))
    s.fill("x", 4).drain("z", 4)
    rows = three(4, (2, 3))
    result = s.run_with(
        [{"x": r} for r in rows],
        kernels={"off": off},
        outputs=[{"z": r + 2} for r in rows],
        fifos=[{"y": r + 1} for r in rows],
    )
    assert result.verdict == "wrong_data"
    m = result.mismatch
    assert m is not None
    assert (m.where, m.producer, m.inference, m.number, m.index) == ("y", "w", 0, 3, (1, 2))
    assert (m.got - m.expected, m.different, m.elements) == (5, 1, 6)
    assert "object 3 of fifo 'y' in inference 0, written by w" in result.text
    assert result.inferences == 0


def test_stale_weights_show_in_the_second_input() -> None:
    """Weights that are kept in a buffer though every input brings its own."""

    def first_only(context: KernelContext, weights: Array, kept: Array, x: Array, y: Array) -> None:
        if not context.scalars["seen"]:
            kept[...] = np.where(kept == 0, weights, kept)
        y[...] = x + kept

    s = Sketch().kernel("first_only")
    s.buffers.append(Buffer(name="kept", tile=None, shape=(4,), dtype="int32", array="zeros", keep=True))
    s.worker("w", acquire("k"), *_weighted(), release("k"))
    s.fifo("k", "shim0", "w", depth=1).fifo("x", "shim1", "w").fifo("y", "w", "shim2")
    s.fill("k", 1).fill("x", 1).drain("y", 1)
    rows, weights = three(1), [numbers(1, seed=9 + i) for i in range(3)]
    result = s.run_with(
        [{"x": r, "k": k} for r, k in zip(rows, weights, strict=True)],
        kernels={"first_only": first_only},
        arrays={"zeros": np.zeros(4, np.int32)},
        outputs=[{"y": r + k} for r, k in zip(rows, weights, strict=True)],
    )
    assert result.verdict == "wrong_data"
    assert result.mismatch is not None
    assert (result.mismatch.where, result.mismatch.inference) == ("y", 1)


def _weighted() -> tuple:  # type: ignore[type-arg]
    steps = move("x", "y")
    return (*steps[:2], call("first_only", "k", "#kept", "x", "y", seen=0), *steps[3:])


def test_masked_elements_are_not_compared() -> None:
    s = Sketch()
    s.worker("w", loop(2, *move("x", "y")))
    s.fifo("x", "shim0", "w").fifo("y", "w", "shim1").fill("x", 2).drain("y", 2)
    x = numbers(2)
    wrong = x + 1
    wrong[1, 3] += 9
    masked = np.ma.MaskedArray(wrong, mask=wrong != x + 1)
    assert s.run_with([{"x": x}], outputs=[{"y": wrong}]).verdict == "wrong_data"
    result = s.run_with([{"x": x}], outputs=[{"y": masked}], fifos=[{"y": masked}])
    assert (result.verdict, result.compared) == ("completes", {"y": 7})


def test_memory_that_nobody_wrote_is_recognised() -> None:
    def half(_: KernelContext, x: Array, y: Array) -> None:
        y[:2] = x[:2] + 1

    s = Sketch().kernel("half")
    s.worker("w", loop(2, *move("x", "y", kernel="half")))
    s.fifo("x", "shim0", "w").fifo("y", "w", "shim1").fill("x", 2).drain("y", 2)
    x = numbers(2)
    result = s.run_with([{"x": x}], outputs=[{"y": x + 1}], kernels={"half": half})
    assert result.verdict == "wrong_data"
    assert result.mismatch is not None
    assert result.mismatch.never_written
    assert "nobody wrote" in result.text


def test_a_buffer_that_two_workers_write_shows_as_nondeterministic() -> None:
    def bump(_: KernelContext, shared: Array, y: Array) -> None:
        shared[...] += 1
        y[...] = shared

    s = Sketch().kernel("bump")
    s.buffers.append(Buffer(name="shared", tile=None, shape=(4,), dtype="int32", array="zeros"))
    for name in ("a", "b"):
        s.worker(name, loop(6, acquire(name + "y"), call("bump", "#shared", name + "y"), release(name + "y")))
        s.fifo(name + "y", name, f"shim{name}").drain(name + "y", 6)
    result = s.run_with([{}], kernels={"bump": bump}, arrays={"zeros": np.zeros(4, np.int32)}, schedules=8)
    assert result.verdict == "nondeterministic"
    assert "ay" in result.text or "by" in result.text


def test_an_object_short_is_found_though_the_host_is_content() -> None:
    s = Sketch()
    s.worker("w", loop(2, *move("x", "y")), *put("t"))
    s.worker("v", *move("t", kernel="look"))
    s.fifo("x", "shim0", "w").fifo("y", "w", "shim1").fifo("t", "w", "v").fill("x", 2).drain("y", 2)
    x = numbers(2)
    seven = np.full((1, 4), 7, np.int32)
    assert s.run_with([{"x": x}], fifos=[{"t": seven}]).sound
    short = s.run_with([{"x": x}], fifos=[{"t": np.concatenate([seven, seven])}])
    assert short.verdict == "fault"
    assert "carried 1 objects of 2" in short.text
