"""Design files go through the stand-in and come out as the design that they were printed from."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bringup.emit import emit, write
from bringup.emit.roundtrip import differences
from manifest.errors import RefusedError
from presim.design import Buffer, Call, Cascade, Design, Loop
from presim.iron.run import lower_file
from tests.bringup.emit.printing import printed, stacked
from tests.bringup.emit.printing import write as write_files
from tests.presim.sketches import Sketch, acquire, loop, move, put, release, take
from tests.presim.sketches import call as called

Modules = Any


def lowered(design: Design, folder: Path, doubles: Modules, constants: Any = None) -> Any:
    _, files = printed(design, constants, doubles)
    return lower_file(write_files(folder, files), argv=[design.device])


def test_dispatch_and_pieces(digits: Any, doubles: Modules, tmp_path: Path) -> None:
    write(emit(digits.given, digits.clearance, modules=doubles), tmp_path / "out")
    assert differences(digits.given.designs[0], lower_file(tmp_path / "out/d0/design.py").design) == ()
    folders = sorted((tmp_path / "out/d0/steps").iterdir())
    assert len(folders) == len(digits.given.steps)
    for step, folder in list(zip(digits.given.steps, folders, strict=True))[::5]:
        found = lower_file(folder / "design.py")
        assert differences(step.design, found.design) == (), step.name
        for buffer in step.design.buffers:
            if buffer.array is not None:
                planned = digits.given.constants["d0"][buffer.array]
                assert any(np.array_equal(a, planned) for a in found.arrays.values())


def through(kernel: str = "move") -> Sketch:
    sketch = Sketch().fifo("x", "shim0", "a", depth=[3, 2]).fifo("y", "a", "shim1")
    return sketch.worker("a", loop(4, *move("x", "y", kernel=kernel))).fill("x", 4).drain("y", 4)


def split() -> Sketch:
    sketch = Sketch().fifo("x", "shim0", "mem0", shape=(8,)).fifo("p", "mem0", "a").fifo("q", "mem0", "b", depth=[2, 3])
    sketch.link("split", "x", "p q", offsets=(0, 4), tile=sketch.tiles["mem0"])
    sketch.fifo("y", "a", "shim1").fifo("z", "b", "shim2")
    sketch.worker("a", *move("p", "y")).worker("b", *move("q", "z"))
    return sketch.fill("x", 1).drain("y", 1).drain("z", 1)


def join() -> Sketch:
    sketch = Sketch().fifo("y", "mem0", "shim1", shape=(8,)).fifo("p", "a", "mem0").fifo("q", "b", "mem0", depth=[2, 3])
    sketch.link("join", "p q", "y", offsets=(0, 4), tile=sketch.tiles["mem0"])
    sketch.fifo("x", "shim0", "a", "b")
    sketch.worker("a", *move("x", "p")).worker("b", *move("x", "q"))
    return sketch.fill("x", 1).drain("y", 1)


def forward() -> Sketch:
    sketch = Sketch().fifo("x", "shim0", "mem0", depth=[2, 4]).fifo("p", "mem0", "a", depth=[4, 2], repeat_count=2)
    sketch.link("forward", "x", "p", tile=sketch.tiles["mem0"]).fifo("y", "a", "shim1")
    return sketch.worker("a", *move("p", "y")).fill("x", 1).drain("y", 2)


def forward_then_split() -> Sketch:
    sketch = Sketch().fifo("x", "shim0", "mem0", shape=(8,)).fifo("m", "mem0", "mem1", shape=(8,))
    sketch.fifo("p", "mem1", "a").fifo("q", "mem1", "a")
    sketch.link("split", "m", "p q", offsets=(0, 4), tile=sketch.tiles["mem1"])
    sketch.link("forward", "x", "m", tile=sketch.tiles["mem0"])
    sketch.fifo("y", "a", "shim1").worker("a", *move("p", "q", "y"))
    return sketch.fill("x", 1).drain("y", 1)


def dims() -> Sketch:
    order = ((2, 1), (2, 2))
    sketch = Sketch().fifo("x", "shim0", "a", dims={"a": order}).fifo("y", "a", "shim1", dims={"a": order})
    return sketch.worker("a", *move("x", "y")).fill("x", 1).drain("y", 1)


def cascade() -> Sketch:
    sketch = Sketch().place("a", 0, 3).place("b", 0, 2)
    sketch.fifo("x", "shim0", "a").fifo("y", "b", "shim1").kernel("first").kernel("last")
    sketch.worker("a", acquire("x"), called("first", "x", ">"), release("x"))
    sketch.worker("b", acquire("y"), called("last", "<", "y"), release("y"))
    sketch.cascades.append(Cascade(source="a", target="b"))
    return sketch.fill("x", 1).drain("y", 1)


def flags() -> Sketch:
    sketch = Sketch().place("a", 0, 2).place("b", 0, 3)
    sketch.fifo("x", "shim0", "a").fifo("m", "a", "b", via_dma=True, repeat_count=2, iter_count=3)
    sketch.fifo("y", "b", "shim1", shape=(8,), consumer_shape=(4,)).kernel("wide").kernel("out")
    sketch.worker("a", *move("x", "m"), while_true=False, stack_bytes=2048)
    sketch.worker("b", *move("m", "y", kernel="wide"))
    return sketch.fill("x", 1).drain("y", 4)


def self_loop() -> Sketch:
    sketch = Sketch().fifo("x", "shim0", "a").fifo("s", "a", "a", depth=3).fifo("y", "a", "shim1").kernel("back")
    sketch.worker(
        "a",
        acquire("x"),
        acquire("s", side="produce"),
        called("move", "x", "s/produce"),
        release("x"),
        release("s", side="produce"),
        acquire("s", side="consume"),
        acquire("y"),
        called("back", "s/consume", "y"),
        release("s", side="consume"),
        release("y"),
    )
    return sketch.fill("x", 1).drain("y", 1)


def groups() -> Sketch:
    sketch = Sketch().fifo("x", "shim0", "a").fifo("y", "a", "shim1").worker("a", *move("x", "y"))
    sketch.fill("x", 2, group="first").drain("y", 2, group="first")
    sketch.fill("x", 1, offset=8, tensor="x").drain("y", 1, offset=8, tensor="y")
    return sketch


def patterns() -> Sketch:
    sketch = Sketch().fifo("x", "shim0", "a").fifo("y", "a", "shim1").worker("a", *move("x", "y"))
    sketch.fill("x", 4, sizes=(2, 2, 4), strides=(8, 16, 1), offset=4)
    return sketch.drain("y", 4)


def counters() -> Sketch:
    sketch = Sketch().fifo("x", "shim0", "a").fifo("y", "a", "shim1").kernel("rows", type="add")
    body = (acquire("x"), acquire("y"), called("rows", "x", "y", row="@i*3+1"), release("x"), release("y"))
    inner = loop(2, *body, counter="i")
    outer = loop(2, *(replace(s, scalars=(("row", "@j-1"),)) if isinstance(s, Call) else s for s in body), counter="j")
    nested = loop(3, loop(2, *body, counter="k"), counter="i")
    return sketch.worker("a", inner, outer, nested).fill("x", 10).drain("y", 10)


def windows() -> Sketch:
    sketch = Sketch().fifo("x", "shim0", "a", depth=[2, 4]).fifo("y", "a", "shim1")
    figures = (("kernel", (3, 1)), ("dilations", (1, 1)))
    sketch.kernel("pool", type="max_pool", attributes=figures)

    def at(count: int, top: int, bottom: int) -> tuple[Any, ...]:
        held = [f"x:{i}" for i in range(count)]
        one = called("pool", *held, "y", pad_top=top, pad_bottom=bottom)
        return (acquire("x", count), acquire("y"), one, release("y"))

    middle = loop(2, *at(3, 0, 0), release("x"))
    sketch.worker("a", *at(2, 1, 0), middle, *at(2, 0, 1), release("x", 2))
    return sketch.fill("x", 4).drain("y", 4)


def bundles() -> Sketch:
    """Objects that the consumer of a link cuts: a method of the handle cannot say it."""
    sketch = Sketch().fifo("x", "shim0", "mem0", shape=(4,))
    sketch.fifo("p", "mem0", "a", shape=(8,), consumer_shape=(4,)).fifo("y", "a", "shim1")
    sketch.link("forward", "x", "p", tile=sketch.tiles["mem0"])
    return sketch.worker("a", *move("p", "y")).fill("x", 2).drain("y", 2)


def parts_in_pieces() -> Sketch:
    sketch = Sketch().fifo("x", "shim0", "mem0", shape=(16,)).fifo("y", "a", "shim1").fifo("z", "b", "shim2")
    sketch.fifo("p", "mem0", "a", shape=(8,), consumer_shape=(4,)).fifo(
        "q", "mem0", "b", shape=(8,), consumer_shape=(4,)
    )
    sketch.link("split", "x", "p q", offsets=(0, 8), tile=sketch.tiles["mem0"])
    sketch.worker("a", *move("p", "y")).worker("b", *move("q", "z"))
    return sketch.fill("x", 1).drain("y", 2).drain("z", 2)


def joined_pieces() -> Sketch:
    sketch = Sketch().fifo("x", "shim0", "a", "b").fifo("y", "mem0", "shim1", shape=(8,)).kernel("wide")
    sketch.fifo("p", "a", "mem0", shape=(8,), consumer_shape=(4,)).fifo("q", "b", "mem0")
    sketch.link("join", "p q", "y", offsets=(0, 4), tile=sketch.tiles["mem0"])
    sketch.worker("a", *move("x", "p", kernel="wide")).worker("b", *move("x", "q"))
    return sketch.fill("x", 2).drain("y", 2)


SKETCHES: dict[str, Callable[[], Sketch]] = {
    f.__name__: f
    for f in (
        through,
        split,
        join,
        forward,
        forward_then_split,
        dims,
        cascade,
        flags,
        self_loop,
        groups,
        patterns,
        counters,
        windows,
        bundles,
        parts_in_pieces,
        joined_pieces,
    )
}


@pytest.mark.parametrize("name", sorted(SKETCHES))
def test_sketches(name: str, tmp_path: Path, doubles: Modules) -> None:
    design = SKETCHES[name]().design()
    assert differences(design, lowered(design, tmp_path, doubles).design) == ()


def test_values_at_the_start(tmp_path: Path, doubles: Modules) -> None:
    sketch = Sketch().fifo("x", "shim0", "a").fifo("y", "a", "shim1")
    sketch.fifo("s", "a", "a", depth=2, init_array="weights:s:all", init_objects=2)
    sketch.kernel("old").kernel("new")
    sketch.worker(
        "a",
        *move("x", "y"),
        acquire("s", side="consume"),
        called("old", "s/consume"),
        release("s", side="consume"),
        acquire("s", side="produce"),
        called("new", "s/produce"),
        release("s", side="produce"),
    )
    design = sketch.fill("x", 1).drain("y", 1).design()
    values = stacked([1, 2, 3, 4], [5, 6, 7, 8])
    found = lowered(design, tmp_path, doubles, {"weights:s:all": values})
    assert differences(design, found.design) == ()
    np.testing.assert_array_equal(found.arrays["fifo:s"], values)


def test_weights_in_a_memory_tile(tmp_path: Path, doubles: Modules) -> None:
    sketch = Sketch().fifo("x", "shim0", "a").fifo("y", "a", "shim1").kernel("times")
    sketch.fifo("w", "mem0", "a", depth=[3, 2], init_array="weights:op:0,1,2", init_objects=3)
    body = (acquire("x"), acquire("y"), acquire("w"), called("times", "x", "w", "y"))
    sketch.worker("a", loop(3, *body, release("w"), release("x"), release("y")))
    design = sketch.fill("x", 3).drain("y", 3).design()
    values = stacked([1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12])
    found = lowered(design, tmp_path, doubles, {"weights:op:0,1,2": values})
    assert differences(design, found.design) == ()
    np.testing.assert_array_equal(found.arrays["fifo:w"], values)
    assert "ObjectFifoEndpoint(tile=tile_" in (tmp_path / "design.py").read_text()


def test_buffers(tmp_path: Path, doubles: Modules) -> None:
    sketch = Sketch().place("a", 0, 2).fifo("x", "shim0", "a").fifo("y", "a", "shim1").kernel("sum")
    tile = sketch.tiles["a"]
    away = replace(tile, row=3) if tile is not None else None
    sketch.buffers.append(Buffer(name="b/0", tile=away, shape=(4,), dtype="int32", array="bias:op:all"))
    sketch.buffers.append(Buffer(name="b/1", tile=None, shape=(2, 2), dtype="int32"))
    sketch.worker("a", acquire("x"), acquire("y"), called("sum", "x", "#b/0", "#b/1", "y"), release("x"), release("y"))
    design = sketch.fill("x", 1).drain("y", 1).design()
    found = lowered(design, tmp_path, doubles, {"bias:op:all": np.arange(4, dtype=np.int32)})
    assert differences(design, found.design) == ()
    assert {(b.name, b.tile, b.shape) for b in found.design.buffers} >= {("b_u2f_0", away, (4,))}


CHANGES: dict[str, Callable[[str], str]] = {
    "depth": lambda t: t.replace("fifo0.cons(depth=2)", "fifo0.cons(depth=5)"),
    "release": lambda t: t.replace("fifo0_cons0.release(1)", "fifo0_cons0.release(1)  #", 1).replace(
        "range_(4)", "range_(5)"
    ),
    "wait": lambda t: t.replace(", wait=True", ""),
    "stack": lambda t: t.replace("stack_size=1024", "stack_size=2048"),
    "kernel": lambda t: t.replace('name="move"', 'name="other"'),
    "name": lambda t: t.replace('name="x"', 'name="z"'),
}


@pytest.mark.parametrize("change", sorted(CHANGES))
def test_changed_design_files_are_seen(change: str, tmp_path: Path, doubles: Modules) -> None:
    design = through().design()
    _, files = printed(design, None, doubles)
    text = files["design.py"].decode()
    edited = CHANGES[change](text)
    assert edited != text
    found = lower_file(write_files(tmp_path, {**files, "design.py": edited.encode()}), argv=["npu2"])
    assert differences(design, found.design)


def test_equal_depths_that_are_taken_as_they_are(doubles: Modules, tmp_path: Path) -> None:
    """A host end has no pool, so its depth makes the list; between two workers there is no way."""
    sketch = Sketch().fifo("x", "shim0", "a", depth=[5, 5]).fifo("y", "a", "shim1").worker("a", *move("x", "y"))
    design = sketch.fill("x", 1).drain("y", 1).design()
    found = lowered(design, tmp_path, doubles).design
    assert differences(design, found) == ()
    assert [(e.kind, e.depth) for e in (found.fifos[0].producer, *found.fifos[0].consumers)] == [
        ("shim", 6),
        ("worker", 5),
    ]
    between = Sketch().fifo("m", "a", "b", depth=[5, 5], via_dma=True).worker("a", *put("m")).worker("b", *take("m"))
    with pytest.raises(RefusedError, match=r"EMIT-DEPTH.*'m'"):
        printed(between.design(), None, doubles)


def test_released_objects_move_the_view(tmp_path: Path, doubles: Modules) -> None:
    sketch = Sketch().fifo("x", "shim0", "a", depth=3)
    sketch.worker("a", acquire("x", 3), called("look", "x"), release("x"), called("look", "x:1"), release("x", 2))
    design = sketch.fill("x", 3).design()
    text = printed(design, None, doubles)[1]["design.py"].decode()
    assert "look" in text
    assert "(fifo0_cons0_objects[0])" in text
    assert "(fifo0_cons0_objects[2])" in text
    assert differences(design, lowered(design, tmp_path, doubles).design) == ()


def test_counters_of_one_name_inside_each_other(doubles: Modules) -> None:
    sketch = Sketch().fifo("x", "shim0", "a").kernel("rows", type="add")
    one = (acquire("x"), called("rows", "x", row="@i"), release("x"))
    program = Loop(times=2, body=(Loop(times=3, body=one, counter="i"), *one), counter="i")
    text = printed(sketch.worker("a", program).fill("x", 8).design(), None, doubles)[1]["design.py"].decode()
    assert "for i in range_(2):" in text
    assert "for i_ in range_(3):" in text
    assert "(fifo0_cons0_objects, i_)" in text
    assert "(fifo0_cons0_objects, i)" in text
