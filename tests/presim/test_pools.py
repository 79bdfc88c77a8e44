"""Pools, streams and ports: the rules of depths, of shared memories and of links."""

import dataclasses
from typing import Any

import pytest

from presim.pools import Pool, Wiring, allocated_depth, is_literal, shares_memory, wire
from tests.presim.sketches import Sketch, acquire, call, loop, move, put, release


def wired(sketch: Sketch) -> Wiring:
    return wire(sketch.design())


@pytest.mark.parametrize(
    ("declared", "largest", "allocated"),
    [(1, 0, 1), (5, 0, 5), (1, 1, 1), (2, 1, 2), (9, 1, 2), (1, 2, 3), (2, 3, 4), (4, 3, 4), (9, 3, 4)],
)
def test_a_core_gets_its_largest_acquire_plus_one_and_a_memory_tile_what_is_declared(
    declared: int, largest: int, allocated: int
) -> None:
    assert allocated_depth(declared, largest) == allocated


def window(depth: Any, count: int = 1) -> Pool:
    s = Sketch()
    s.worker("w", acquire("x", count), call("look", "x"), release("x", count), *put("y"))
    s.fifo("x", "shim0", "w", depth=depth).fifo("y", "w", "shim1").fill("x", count).drain("y", 1)
    return wired(s).pools["x:consume:w"]


@pytest.mark.parametrize(
    ("depth", "count", "expected"),
    [
        (4, 1, (4, 2, 2)),  # an integer is a hint: the core gets less
        (4, 3, (4, 4, 4)),
        (2, 3, (2, 4, 2)),  # and liveness is judged on the smaller
        (1, 1, (1, 1, 1)),
        ([1, 4], 1, (4, 4, 4)),  # a list is taken as it is
        ([4, 2], 3, (2, 2, 2)),
    ],
)
def test_depths_declared_allocated_and_judged(depth: Any, count: int, expected: tuple[int, int, int]) -> None:
    pool = window(depth, count)
    assert (pool.declared, pool.allocated, pool.depth) == expected
    assert pool.largest_acquire == count


def test_an_integer_depth_does_not_deepen_a_skip_and_the_fix_says_how() -> None:
    def skip(depth: Any) -> Sketch:
        s = Sketch()
        s.worker("main", acquire("x", 3), call("look", "x"), loop(3, *put("m"), release("x")))
        s.worker("add", loop(3, *move("m", "x", "y")))
        s.fifo("x", "shim0", "main", "add", depth=depth).fifo("m", "main", "add").fifo("y", "add", "shim1")
        return s.fill("x", 3).drain("y", 3)

    hint = skip(8).run()
    assert hint.verdict == "deadlock"
    assert (hint.fixes[0].side, hint.fixes[0].before, hint.fixes[0].after) == ("consume:add", 2, 3)
    assert "as a depth list (an integer is a hint)" in hint.text
    assert skip([1, 4, 3]).run().verdict == "completes"


def test_depths_that_differ_are_a_list() -> None:
    fifo = Sketch().fifo("x", "shim0", "w", depth=3).fifos[0]
    assert not is_literal(fifo)
    assert is_literal(dataclasses.replace(fifo, literal=True))
    assert is_literal(dataclasses.replace(fifo, producer=dataclasses.replace(fifo.producer, depth=1)))
    assert not is_literal(dataclasses.replace(fifo, producer=dataclasses.replace(fifo.producer, depth=3)))


def neighbours(a: tuple[int, int], b: tuple[int, int], **fifo: Any) -> Sketch:
    s = Sketch().place("a", *a).place("b", *b)
    s.worker("a", loop(2, *put("t"))).worker("b", acquire("t", 2), call("look", "t"), release("t", 2), *put("y"))
    return s.fifo("t", "a", "b", **{"depth": 4, **fifo}).fifo("y", "b", "shim0").drain("y", 1)


@pytest.mark.parametrize(
    ("a", "b", "shared"),
    [
        ((1, 2), (1, 3), True),
        ((1, 3), (1, 2), True),
        ((1, 2), (2, 2), True),
        ((2, 2), (1, 2), True),
        ((1, 2), (2, 3), False),
        ((1, 2), (1, 4), False),
        ((1, 2), (3, 2), False),
    ],
)
def test_cores_side_by_side_share_one_pool_of_the_declared_depth(
    a: tuple[int, int], b: tuple[int, int], shared: bool
) -> None:
    wiring = wired(neighbours(a, b))
    assert shares_memory(neighbours(a, b).fifos[0]) == shared
    assert ({"t:shared"} if shared else {"t:produce", "t:consume:b"}) <= set(wiring.pools)
    assert [s.fifo for s in wiring.streams] == (["y"] if shared else ["t", "y"])
    if shared:
        pool = wiring.pools["t:shared"]
        assert (pool.declared, pool.allocated, pool.largest_acquire) == (4, 4, 2)
        assert wiring.ports["a", "t", "produce"] == wiring.ports["b", "t", "consume"] == "t:shared"


@pytest.mark.parametrize(
    "change",
    [
        {"via_dma": True},
        {"repeat_count": 2},
        {"dims": {"a": ((4, 1),)}},
        {"dims": {"b": ((4, 1),)}},
        {"consumer_shape": (2,)},
    ],
)
def test_what_only_a_dma_can_do_is_done_by_one(change: dict[str, Any]) -> None:
    assert "t:shared" not in wired(neighbours((1, 2), (1, 3), **change)).pools


def test_a_broadcast_is_never_shared_and_every_consumer_has_a_pool() -> None:
    s = Sketch().place("a", 1, 2).place("b", 1, 3).place("c", 2, 2)
    s.worker("a", *put("t"))
    for name in "bc":
        s.worker(name, *move("t", f"{name}y")).fifo(f"{name}y", name, "shim0").drain(f"{name}y", 1)
    s.fifo("t", "a", "b", "c", depth=[1, 2, 3])
    wiring = wired(s)
    assert [wiring.pools[n].depth for n in ("t:produce", "t:consume:b", "t:consume:c")] == [1, 2, 3]
    stream = next(x for x in wiring.streams if x.fifo == "t")
    assert (stream.source.pool, [t.pool for t in stream.targets]) == ("t:produce", ["t:consume:b", "t:consume:c"])


def test_what_is_not_placed_needs_a_dma_and_a_self_loop_never_does() -> None:
    s = Sketch()
    s.tiles = dict.fromkeys(("a", "b"))
    assert not shares_memory(s.fifo("t", "a", "b").fifos[0])
    assert shares_memory(s.fifo("u", "a", "a").fifos[1])


def through(kind: str, arriving: int = 4, leaving: int = 4, **target: Any) -> Pool:
    s = Sketch()
    if kind == "join":
        s.fifo("x", "w", "mem0", shape=(arriving,), depth=3).fifo("z", "w", "mem0", shape=(arriving,))
        s.fifo("t", "mem0", "shim0", shape=(2 * arriving,), depth=5)
        s.link("join", "x z", "t", offsets=(0, arriving))
    else:
        s.fifo("x", "shim0", "mem0", shape=(arriving,), depth=3).fifo(
            "t", "mem0", "w", shape=(leaving,), depth=5, **target
        )
        s.link("forward", "x", "t")
    s.worker("w")
    return next(p for p in wired(s).pools.values() if p.kind == "link")


@pytest.mark.parametrize(
    ("made", "owner", "depth", "elements"),
    [
        (through("forward"), "x", 3, 4),
        (through("forward", 8, 4), "x", 3, 8),
        (through("forward", 4, 8), "t", 5, 8),
        (through("forward", init_array="k", init_objects=2), "t", 5, 4),
        (through("join"), "t", 5, 8),
    ],
)
def test_the_pool_of_a_link_is_that_of_the_fifo_with_whole_objects(
    made: Pool, owner: str, depth: int, elements: int
) -> None:
    assert (made.name, made.depth, made.elements, made.tile_kind) == (f"{owner}:link", depth, elements, "mem")


def test_segments_are_those_of_the_parts() -> None:
    assert [(s.fifo, s.offset, s.elements) for s in through("join").segments] == [("x", 0, 4), ("z", 4, 4)]


def test_a_memory_tile_that_holds_values_and_is_never_filled_is_static() -> None:
    s = Sketch()
    s.worker("w", loop(2, *move("c", "y"))).fifo("c", "mem0", "w", depth=3, init_array="k").fifo(
        "y", "w", "shim0"
    ).drain("y", 2)
    pool = wired(s).pools["c:produce"]
    assert (pool.static, pool.init_objects, pool.init_array, pool.depth) == (True, 3, "k", 3)
    feedback = Sketch()
    feedback.worker("w").fifo("h", "w", "w", depth=2, init_objects=1)
    assert (wired(feedback).pools["h:shared"].static, wired(feedback).pools["h:shared"].init_objects) == (False, 1)


def test_a_broadcast_into_two_memory_tiles_meets_each_link_where_it_is() -> None:
    s = Sketch()
    for index in range(2):
        s.worker(f"w{index}", loop(2, *move(f"t{index}", f"y{index}")))
        s.fifo(f"t{index}", f"mem{index}", f"w{index}").fifo(f"y{index}", f"w{index}", f"shim{index}").drain(
            f"y{index}", 2
        )
    s.fifo("x", "shim9", "mem0", "mem1", depth=[1, 2, 3]).fill("x", 2)
    s.link("forward", "x", "t1", tile=s.tiles["mem1"]).link("forward", "x", "t0", tile=s.tiles["mem0"])
    design = s.design()
    stream = next(x for x in wire(design).streams if x.fifo == "x")
    pools = [p for p in wire(design).pools.values() if p.kind == "link"]
    assert {(p.tile, p.depth) for p in pools} == {(s.tiles["mem0"], 2), (s.tiles["mem1"], 3)}
    assert len({t.pool for t in stream.targets}) == 2
    tiles = [t.tile for t in stream.targets]
    assert tiles == [s.tiles["mem0"], s.tiles["mem1"]]
    assert s.run().verdict == "completes"
