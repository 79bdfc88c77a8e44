"""Designs that IRON cannot express, or that do not fit once packed, are refused by name."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from bringup.emit.budget import memory_problems
from manifest.device import load_device
from manifest.errors import RefusedError
from presim.design import Design
from tests.bringup.emit.printing import printed
from tests.presim.sketches import Sketch, acquire, loop, move, release, take
from tests.presim.sketches import call as called

Modules = Any

REFUSED: dict[str, tuple[str, Callable[[], Design]]] = {}


def refused(code: str) -> Callable[[Callable[[], Design]], Callable[[], Design]]:
    def keep(make: Callable[[], Design]) -> Callable[[], Design]:
        REFUSED[make.__name__] = code, make
        return make

    return keep


@refused("EMIT-INIT")
def tokens_without_values() -> Design:
    sketch = Sketch().fifo("s", "a", "a", init_objects=1)
    return sketch.worker("a", acquire("s", side="consume"), release("s", side="consume")).design()


@refused("EMIT-ITERATIONS")
def too_many_passes() -> Design:
    sketch = Sketch().fifo("x", "shim0", "a", iter_count=257).worker("a", *take("x"))
    return sketch.fill("x", 1).design()


@refused("EMIT-VIEW")
def object_of_the_turn_before() -> Design:
    sketch = Sketch().fifo("x", "shim0", "a", depth=3)
    return sketch.worker("a", acquire("x", 2), loop(2, called("look", "x"), release("x"))).fill("x", 2).design()


@refused("EMIT-VIEW")
def object_that_nobody_acquired() -> Design:
    return Sketch().fifo("x", "shim0", "a").worker("a", called("look", "x")).fill("x", 1).design()


@refused("EMIT-SCALAR")
def counter_of_another_loop() -> Design:
    sketch = Sketch().fifo("x", "shim0", "a").kernel("rows", type="add")
    sketch.worker("a", loop(2, *take("x"), counter="i"), acquire("x"), called("rows", "x", row="@i"), release("x"))
    return sketch.fill("x", 3).design()


@refused("EMIT-PATTERN")
def too_many_sizes() -> Design:
    sketch = Sketch().fifo("x", "shim0", "a").worker("a", *take("x"))
    return sketch.fill("x", 1, sizes=(1, 1, 1, 2, 2), strides=(0, 0, 0, 2, 1)).design()


@refused("EMIT-PATTERN")
def pattern_of_another_size() -> Design:
    return Sketch().fifo("x", "shim0", "a").worker("a", *take("x")).fill("x", 2, sizes=(4,), strides=(1,)).design()


@refused("EMIT-TENSOR")
def one_tensor_of_two_types() -> Design:
    sketch = Sketch().fifo("x", "shim0", "a").fifo("y", "a", "shim1", dtype="int8").kernel("narrow")
    sketch.worker("a", *move("x", "y", kernel="narrow"))
    return sketch.fill("x", 1, tensor="t").drain("y", 1, tensor="t").design()


@refused("EMIT-KERNEL")
def one_kernel_with_two_shapes() -> Design:
    sketch = Sketch().fifo("x", "shim0", "a").fifo("y", "a", "shim1", shape=(8,))
    return sketch.worker("a", *take("x"), *take("y")).fill("x", 1).drain("y", 1).design()


@refused("EMIT-NAME")
def fifo_and_kernel_of_one_name() -> Design:
    return Sketch().fifo("look", "shim0", "a").worker("a", *take("look")).fill("look", 1).design()


@refused("EMIT-WINDOW")
def window_without_a_row() -> Design:
    sketch = Sketch().fifo("y", "a", "shim1")
    sketch.kernel("pool", type="max_pool", attributes=(("kernel", (3, 1)), ("dilations", (1, 1))))
    sketch.worker("a", acquire("y"), called("pool", "y", pad_top=3, pad_bottom=0), release("y"))
    return sketch.drain("y", 1).design()


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_what_iron_cannot_say_is_refused(name: str, doubles: Modules) -> None:
    code, make = REFUSED[name]
    with pytest.raises(RefusedError, match=rf"\[{code}\]"):
        printed(make(), None, doubles)


def test_a_memory_tile_that_is_too_small_is_named(doubles: Modules) -> None:
    sketch = Sketch().fifo("x", "shim0", "mem0", shape=(1 << 17,), depth=[2, 2])
    sketch.fifo("p", "mem0", "a", shape=(1 << 17,), consumer_shape=(4,))
    sketch.link("forward", "x", "p", tile=sketch.tiles["mem0"]).worker("a", *take("p"))
    design = sketch.fill("x", 1).design()
    device = load_device("npu2")
    (problem,) = memory_problems(design, device)
    assert (problem.code, problem.expected, problem.got) == ("EMIT-MEMORY", "at most 524288 bytes", "1048576 bytes")
    assert "mem tile" in problem.where
    half = replace(design, fifos=tuple(replace(f, shape=(1 << 15,)) for f in design.fifos))
    assert memory_problems(half, device) == []
