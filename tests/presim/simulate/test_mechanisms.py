"""Mechanisms one by one with data: links, layouts, repeats, cut objects, cascades, modes, groups, loops."""

import itertools
from typing import Any

import numpy as np
import pytest

from presim.design import Buffer, Cascade
from presim.pools import wire
from presim.simulate import CascadePort, KernelContext
from tests.presim.sketches import Array, Sketch, acquire, call, loop, move, numbers, put, release, three


def identity(s: Sketch, rows: list[Array], wanted: list[Array], **rest: Any) -> None:
    result = s.run_with([{"x": r} for r in rows], outputs=[{"y": w} for w in wanted], **rest)
    assert result.verdict == "completes", result.text
    assert result.compared["y"] == sum(w.size for w in wanted)


@pytest.mark.parametrize("tiles", [1, 2, 3])
def test_forward_through_memory_tiles(tiles: int) -> None:
    s = Sketch()
    names = ["x", *(f"f{i}" for i in range(1, tiles)), "last"]
    s.fifo("x", "shim0", "mem0")
    for index in range(1, tiles):
        s.fifo(names[index], f"mem{index - 1}", f"mem{index}")
    s.fifo("last", f"mem{tiles - 1}", "w").worker("w", loop(5, *move("last", "y"))).fifo("y", "w", "shim9")
    for source, target in itertools.pairwise(names):
        s.link("forward", source, target)
    s.fill("x", 5).drain("y", 5)
    rows = three(5)
    identity(s, rows, [r + 1 for r in rows])


def test_a_link_pool_is_as_deep_as_its_owner_says_and_is_one_pool() -> None:
    s = Sketch()
    s.fifo("x", "shim0", "mem0", depth=3).fifo("t", "mem0", "w").worker("w", loop(4, *move("t", "y")))
    s.fifo("y", "w", "shim1").link("forward", "x", "t").fill("x", 4).drain("y", 4)
    pools = wire(s.design()).pools
    assert set(pools) == {"x:link", "t:consume:w", "y:produce"}
    assert pools["x:link"].depth == 3


@pytest.mark.parametrize(("arriving", "leaving"), [(8, 4), (4, 8), (12, 4)])
def test_a_forward_may_cut_or_gather_objects(arriving: int, leaving: int) -> None:
    s = Sketch()
    count = 24 // leaving
    s.fifo("x", "shim0", "mem0", shape=(arriving,)).fifo("t", "mem0", "w", shape=(leaving,))
    s.worker("w", loop(count, *move("t", "y"))).fifo("y", "w", "shim1", shape=(leaving,))
    s.link("forward", "x", "t").fill("x", 24 // arriving).drain("y", count)
    rows = three(24 // arriving, (arriving,))
    identity(s, rows, [r.reshape(-1) + 1 for r in rows])


def test_consumers_may_get_pieces_of_an_object() -> None:
    s = Sketch()
    s.worker("w", loop(6, *move("x", "y")))
    s.fifo("x", "shim0", "w", shape=(3, 4), consumer_shape=(4,)).fifo("y", "w", "shim1").fill("x", 2).drain("y", 6)
    rows = three(2, (3, 4))
    identity(s, rows, [r.reshape(6, 4) + 1 for r in rows])


def test_weights_in_a_memory_tile_are_sent_again_in_pieces() -> None:
    s = Sketch()
    s.worker("w", loop(3, loop(2, *move("k", "x", "y"))))
    s.fifo("in", "shim0", "mem0", shape=(2, 4), depth=1)
    s.fifo("k", "mem0", "w", shape=(2, 4), consumer_shape=(4,), repeat_count=3, depth=1)
    s.fifo("x", "shim1", "w").fifo("y", "w", "shim2").link("forward", "in", "k")
    s.fill("in", 1).fill("x", 6).drain("y", 6)
    rows, weights = three(6), three(1, (2, 4))
    wanted = [r + np.tile(k[0], (3, 1)) + 1 for r, k in zip(rows, weights, strict=True)]
    result = s.run_with(
        [{"x": r, "in": k} for r, k in zip(rows, weights, strict=True)], outputs=[{"y": w} for w in wanted]
    )
    assert result.verdict == "completes", result.text


@pytest.mark.parametrize("parts", [2, 3])
def test_split_and_join_put_every_segment_where_it_belongs(parts: int) -> None:
    s = Sketch()
    s.fifo("x", "shim0", "mem0", shape=(4 * parts,)).fifo("y", "mem1", "shim1", shape=(4 * parts,))
    names = range(parts)
    for i in names:
        s.worker(f"w{i}", loop(4, *move(f"i{i}", f"o{i}")))
        s.fifo(f"i{i}", "mem0", f"w{i}").fifo(f"o{i}", f"w{i}", "mem1")
    offsets = tuple(4 * i for i in names)
    s.link("split", "x", " ".join(f"i{i}" for i in names), offsets=offsets)
    s.link("join", " ".join(f"o{i}" for i in names), "y", offsets=offsets).fill("x", 4).drain("y", 4)
    rows = three(4, (4 * parts,))
    fifos = [{f"i{i}": r[:, 4 * i : 4 * i + 4] for i in names} for r in rows]
    identity(s, rows, [r + 1 for r in rows], fifos=fifos, schedules=6)


def test_segments_have_locks_of_their_own_a_slow_target_does_not_hold_the_first() -> None:
    """Target 0 gets object 1 while target 1 still has object 0; the pool of depth 1 would not let it otherwise."""
    s = Sketch()
    s.worker("a", loop(2, acquire("i0"), *put("t"), release("i0")))
    s.worker("b", loop(2, acquire("t"), call("look", "t"), release("t")), loop(2, *move("i1", "y")))
    s.fifo("x", "shim0", "mem0", shape=(8,), depth=1).fifo("i0", "mem0", "a", depth=1).fifo("i1", "mem0", "b", depth=1)
    s.fifo("t", "a", "b", depth=1).fifo("y", "b", "shim1").link("split", "x", "i0 i1", offsets=(0, 4))
    s.fill("x", 2).drain("y", 2)
    assert s.run().verdict == "completes"


@pytest.mark.parametrize("side", ["shim0", "mem0", "w"])
def test_layouts_gather_at_the_producer_and_scatter_at_the_consumer(side: str) -> None:
    transposed = ((4, 1), (3, 4))
    s = Sketch()
    s.worker("w", loop(2, *move("t", "y")))
    s.fifo("x", "shim0", "mem0", shape=(3, 4), dims={"shim0": transposed} if side == "shim0" else {})
    s.fifo("t", "mem0", "w", shape=(3, 4), dims={side: transposed} if side != "shim0" else {})
    s.fifo("y", "w", "shim1", shape=(3, 4)).link("forward", "x", "t").fill("x", 2).drain("y", 2)
    rows = three(2, (3, 4))
    if side == "w":
        # arriving element i goes to place order[i]
        order = np.arange(12).reshape(3, 4).T.reshape(-1)
        wanted = []
        for r in rows:
            out = np.empty((2, 12), np.int32)
            out[:, order] = r.reshape(2, 12)
            wanted.append(out.reshape(2, 3, 4) + 1)
    else:
        wanted = [r.transpose(0, 2, 1).reshape(2, 3, 4) + 1 for r in rows]
    identity(s, rows, wanted)


def test_host_tensors_are_walked_in_the_order_of_the_transfer() -> None:
    s = Sketch()
    s.worker("w", loop(6, *move("x", "y")))
    s.fifo("x", "shim0", "w", shape=(2, 2)).fifo("y", "w", "shim1", shape=(2, 2))
    # 2 x 2 blocks of a 4 x 6 matrix
    blocks = {"sizes": (2, 3, 2, 2), "strides": (12, 2, 6, 1)}
    s.fill("x", 6, **blocks).drain("y", 6, **blocks)
    rows = three(4, (6,))
    identity(s, rows, [r + 1 for r in rows])


def test_transfers_with_an_offset_move_parts_of_a_tensor() -> None:
    s = Sketch()
    s.worker("w", loop(4, *move("x", "y")))
    s.fifo("x", "shim0", "w").fifo("y", "w", "shim1")
    s.fill("x", 2, offset=8).fill("x", 2, offset=0).drain("y", 4)
    rows = three(4)
    identity(s, rows, [np.concatenate([r[2:], r[:2]]) + 1 for r in rows])


def test_broadcast_gives_every_consumer_every_object_at_its_own_pace() -> None:
    s = Sketch()
    names = ["a", "b", "c"]
    for index, name in enumerate(names):
        steps = (
            acquire("x", index + 1),
            acquire(name + "o"),
            call("move", "x", name + "o"),
            release("x"),
            release(name + "o"),
        )
        s.worker(
            name, loop(5 - index, *steps), loop(index, *steps[:1][:0], acquire("x"), *put(name + "o"), release("x"))
        )
        s.fifo(name + "o", name, f"shim{index + 1}").drain(name + "o", 5)
    s.fifo("x", "shim0", *names, depth=[2, 2, 3, 4]).fill("x", 5)
    rows = three(5)
    for seeds in (0, 8):
        result = s.run_with([{"x": r} for r in rows], outputs=[{"ao": r + 1} for r in rows], schedules=seeds)
        assert result.verdict == "completes", result.text


def test_values_of_the_start_are_read_first() -> None:
    s = Sketch()
    s.worker("a", loop(3, *move("x", "t")))
    s.worker("b", loop(3, *move("t", "y")))
    s.fifo("x", "shim0", "a").fifo("t", "a", "b", depth=2, init_array="first", init_objects=1, via_dma=True)
    s.fifo("y", "b", "shim1").fill("x", 3).drain("y", 3)
    rows = three(3)
    first = numbers(1, seed=9)
    before = [first[0], rows[0][2] + 1, rows[1][2] + 1]
    wanted = [np.concatenate([[b], r[:2] + 1]) + 1 for b, r in zip(before, rows, strict=True)]
    result = s.run_with([{"x": r} for r in rows], outputs=[{"y": w} for w in wanted], arrays={"first": first})
    assert result.sound, result.text
    assert result.compared["y"] == 36


def test_constants_of_a_memory_tile_come_round_in_their_order() -> None:
    s = Sketch()
    s.worker("w", loop(5, *move("c", "y")))
    s.fifo("c", "mem0", "w", depth=3, init_array="three").fifo("y", "w", "shim0").drain("y", 5)
    values = numbers(3)
    wanted = values[np.arange(15) % 3].reshape(3, 5, 4) + 1
    result = s.run_with([{}] * 3, outputs=[{"y": w} for w in wanted], arrays={"three": values})
    assert result.sound, result.text


def cascade(words: int = 0, depth: int = 4) -> Sketch:
    """Three partial sums over a cascade: the first puts, the second takes and puts, the third takes."""
    s = Sketch().kernel("first").kernel("middle").kernel("last")
    arguments = {"first": ("x0", ">"), "middle": ("x1", "<", ">"), "last": ("x2", "<", "y")}
    for index, (name, given) in enumerate(arguments.items()):
        after = [acquire("y")] if name == "last" else []
        ends = [release("y")] if name == "last" else []
        s.worker(name, loop(4, acquire(f"x{index}"), *after, call(name, *given), release(f"x{index}"), *ends))
        s.fifo(f"x{index}", f"shim{index}", name).fill(f"x{index}", 4)
    s.fifo("y", "last", "shim3").drain("y", 4)
    for source, target in (("first", "middle"), ("middle", "last")):
        s.cascades.append(Cascade(source=source, target=target, depth=depth, words=words))
    return s


def k_first(_: KernelContext, x: Array, out: CascadePort) -> None:
    out.put(x.astype(np.int64))


def k_middle(_: KernelContext, x: Array, before: Array, out: CascadePort) -> None:
    out.put(before + x)


def k_last(_: KernelContext, x: Array, before: Array, y: Array) -> None:
    y[...] = before + x


CASCADE_KERNELS = {"first": k_first, "middle": k_middle, "last": k_last}


@pytest.mark.parametrize("words", [0, 2, 4, 5])
def test_a_cascade_carries_partial_sums(words: int) -> None:
    parts = [three(4) for _ in range(3)]
    inputs = [{f"x{i}": parts[i][n] for i in range(3)} for n in range(3)]
    wanted = [{"y": sum(parts[i][n] for i in range(3))} for n in range(3)]
    result = cascade(words).run_with(inputs, outputs=wanted, kernels=CASCADE_KERNELS, schedules=5)  # type: ignore[arg-type]
    assert result.verdict == "completes", result.text


@pytest.mark.parametrize("words", [4, 5, 0])
def test_a_block_longer_than_the_cascade_holds_its_writer_until_it_is_read(words: int) -> None:
    s = Sketch().kernel("first").kernel("last")
    s.worker("a", call("first", ">"), *put("go"))
    s.worker("b", acquire("go"), call("look", "go"), release("go"), acquire("y"), call("last", "<", "y"), release("y"))
    s.fifo("go", "a", "b").fifo("y", "b", "shim0").drain("y", 1)
    s.cascades.append(Cascade(source="a", target="b", words=words))
    result = s.run()
    assert result.sound == (words == 4)
    if words != 4:
        assert result.verdict == "deadlock"
        assert {(w.actor, w.op, w.fifo) for w in result.cycle} >= {("a", "put", "a > b")}
        assert not result.fixes


def test_a_call_that_puts_nothing_or_twice_on_the_cascade_is_a_fault() -> None:
    def nothing(_: KernelContext, x: Array, out: CascadePort) -> None:
        del x, out

    def twice(_: KernelContext, x: Array, out: CascadePort) -> None:
        out.put(x)
        out.put(x)

    for kernel, words in ((nothing, "put nothing"), (twice, "puts one block")):
        inputs = [{f"x{i}": numbers(4) for i in range(3)}]
        result = cascade().run_with(inputs, kernels={**CASCADE_KERNELS, "first": kernel})
        assert result.verdict == "fault"
        assert words in result.text


def modes(*rows: tuple[str, str, str]) -> list[tuple[str, str, str]]:
    """(kernel, rounding, saturation) as its kernels see the tile, in the order in which they are called."""
    seen: list[tuple[str, str, str]] = []

    def look(context: KernelContext, *_: Array) -> None:
        seen.append((context.kernel, context.rounding, context.saturation))

    s = Sketch()
    for name, rounding, saturation in rows:
        s.kernel(name, rounding=rounding, saturation=saturation)
    s.worker("w", acquire("x"), *(call(name, "x") for name, _, _ in rows), release("x"), *put("y"))
    s.fifo("x", "shim0", "w").fifo("y", "w", "shim1").fill("x", 1).drain("y", 1)
    s.run_with([{"x": numbers(1)}] * 2, kernels={name: look for name, _, _ in rows}, schedules=0)
    return seen


def test_a_tile_begins_with_the_modes_of_the_hardware_and_keeps_those_that_are_set() -> None:
    seen = modes(("relies", "", ""), ("sets", "pos_inf", "symmetric"), ("relies", "", ""))
    assert seen[:3] == [
        ("relies", "floor", "none"),
        ("sets", "pos_inf", "symmetric"),
        ("relies", "pos_inf", "symmetric"),
    ]
    assert seen[3] == ("relies", "conv_even", "saturate")  # what the last kernel of the pass before has set


def test_tiles_do_not_share_modes() -> None:
    seen: dict[str, str] = {}

    def look(context: KernelContext, x: Array, y: Array) -> None:
        seen[context.worker] = context.rounding
        y[...] = x

    s = Sketch().kernel("sets", rounding="ceil").kernel("relies", rounding="", saturation="")
    s.worker("a", *move("x", "t", kernel="sets")).worker("b", *move("t", "y", kernel="relies"))
    s.fifo("x", "shim0", "a").fifo("t", "a", "b").fifo("y", "b", "shim1").fill("x", 1).drain("y", 1)
    s.run_with([{"x": numbers(1)}], kernels={"sets": look, "relies": look})
    assert seen == {"a": "ceil", "b": "floor"}


def test_loop_variables_reach_the_kernel() -> None:
    seen: list[dict[str, int]] = []

    def look(context: KernelContext, _: Array) -> None:
        seen.append(dict(context.scalars))

    s = Sketch().kernel("see")
    body = call("see", "x", row="@i", pair="@i*2+1", last="@j-1", fixed=4)
    s.worker("w", loop(2, acquire("x"), loop(2, body, counter="j"), release("x"), counter="i"), *put("y"))
    s.fifo("x", "shim0", "w").fifo("y", "w", "shim1").fill("x", 2).drain("y", 1)
    s.run_with([{"x": numbers(2)}], kernels={"see": look}, schedules=0)
    assert seen == [{"fixed": 4, "row": i, "pair": 2 * i + 1, "last": j - 1} for i in range(2) for j in range(2)]


def test_groups_are_awaited_behind_their_last_task() -> None:
    s = Sketch()
    s.worker("w", loop(4, *move("x", "y")))
    s.fifo("x", "shim0", "w", depth=1).fifo("y", "w", "shim1", depth=1)
    for group in range(2):
        s.fill("x", 2, offset=8 * group, group=f"g{group}").drain("y", 2, offset=8 * group, group=f"g{group}")
    rows = three(4)
    identity(s, rows, [r + 1 for r in rows], schedules=6)


def test_a_buffer_brings_its_values() -> None:
    def add(_: KernelContext, x: Array, k: Array, y: Array) -> None:
        y[...] = x + k

    s = Sketch().kernel("add")
    s.buffers.append(Buffer(name="k", tile=None, shape=(4,), dtype="int32", array="t000001"))
    s.worker("w", loop(3, acquire("x"), acquire("y"), call("add", "x", "#k", "y"), release("x"), release("y")))
    s.fifo("x", "shim0", "w").fifo("y", "w", "shim1").fill("x", 3).drain("y", 3)
    rows, k = three(3), numbers(1, seed=7)[0]
    identity(s, rows, [r + k for r in rows], kernels={"add": add}, arrays={"t000001": k.astype(np.int64)})


def test_host_constants_are_the_same_in_every_inference() -> None:
    s = Sketch()
    s.worker("w", loop(2, *move("k", "x", "y")))
    s.fifo("k", "shim0", "w").fifo("x", "shim1", "w").fifo("y", "w", "shim2").fill("k", 2).fill("x", 2).drain("y", 2)
    rows, k = three(2), numbers(2, seed=5)
    identity(s, rows, [r + k + 1 for r in rows], arrays={"k": k})


def test_captured_objects_and_outputs_come_back() -> None:
    s = Sketch()
    s.worker("a", loop(2, *move("x", "t"))).worker("b", loop(2, *move("t", "y")))
    s.fifo("x", "shim0", "a").fifo("t", "a", "b").fifo("y", "b", "shim1").fill("x", 2).drain("y", 2)
    rows = three(2)
    result = s.run_with([{"x": r} for r in rows], capture=frozenset({"t"}))
    assert set(result.captured) == {"t"}
    np.testing.assert_array_equal(result.captured["t"], np.concatenate(rows) + 1)
    for r, outputs in zip(rows, result.outputs, strict=True):
        np.testing.assert_array_equal(outputs["y"].reshape(2, 4), r + 2)


def test_the_objects_at_either_end_of_a_fifo_can_be_looked_at() -> None:
    s = Sketch()
    s.worker("a", loop(2, *move("x", "t"))).worker("b", loop(2, *move("t", "y")))
    s.fifo("x", "shim0", "a", shape=(2, 2)).fifo("t", "a", "b", shape=(2, 2), dims={"a": ((2, 1), (2, 2))})
    s.fifo("y", "b", "shim1", shape=(2, 2)).fill("x", 2).drain("y", 2)
    x = numbers(2, (2, 2))
    at_a, at_b = x + 1, (x + 1).transpose(0, 2, 1)
    result = s.run_with([{"x": x}], fifos=[{"t": at_b, "t@a": at_a, "t@b": at_b}])
    assert (result.verdict, result.compared) == ("completes", {"t": 8, "t@a": 8, "t@b": 8})
    assert s.run_with([{"x": x}], fifos=[{"t@a": at_b}]).verdict == "wrong_data"
