"""Builds the probes of this folder, the same bytes every time: one small design per mechanism that phase 2 knows.

Run from the project: `python -m examples.probes.build [FOLDER]`.
"""

import dataclasses
import json
import sys
from pathlib import Path
from typing import Any, Final

import numpy as np

from examples.probes.sketch import (
    COPY,
    MEM,
    OBJECTS,
    SIZE,
    at,
    compact,
    copier,
    copy,
    core,
    design,
    drain,
    fifo,
    fill,
    give,
    probe,
    shim,
    take,
    values,
    worker,
)
from manifest.io import write_npz
from presim.design import Argument, Buffer, Call, Cascade, Kernel, Link, Loop, Release, Tile, Worker


def same(of: Any, i: int) -> Any:
    """The host gets what it gave."""
    return {"x": of(i)}, {"y": of(i)}


def probes() -> dict[str, dict[str, Any]]:
    """Every probe by file name."""
    return {
        **between(),
        **in_memory_tiles(),
        **on_one_worker(),
        **weights(),
        "skip_too_shallow": skip_too_shallow(),
    }


def between() -> dict[str, dict[str, Any]]:
    """Ways from worker to worker."""
    two = [copier("w0", "x", "m"), copier("w1", "m", "y")]
    chain = [fifo("x", shim("x"), core("w0")), fifo("m", core("w0"), core("w1")), fifo("y", core("w1"), shim("y"))]
    beside = [dataclasses.replace(w, tile=Tile(column=0, row=2 + i)) for i, w in enumerate(two)]
    shared = fifo("m", core("w0", tile=beside[0].tile), core("w1", tile=beside[1].tile))
    listed = fifo("m", core("w0", depth=1), core("w1", depth=3), literal=True, via_dma=True)
    cut = fifo("x", shim("x"), core("w0"), shape=3 * SIZE, consumer_shape=(SIZE,))
    fan = [copier("w0", "x", "y0"), copier("w1", "x", "y1")]
    fans = [fifo("x", shim("x"), core("w0"), core("w1"))]
    fans += [fifo(f"y{i}", core(f"w{i}"), shim(f"y{i}")) for i in range(2)]
    ends = [fill("x"), drain("y")]
    return {
        "worker_between_two_fifos": probe(
            "worker between two fifos",
            design([copier("w0", "x", "y")], [chain[0], fifo("y", core("w0"), shim("y"))], ends),
            same,
        ),
        "shared_memory": probe("shared memory", design(beside, [chain[0], shared, chain[2]], ends), same),
        "depth_list": probe("depth list", design(two, [chain[0], listed, chain[2]], ends), same),
        "objects_cut_by_the_consumer": probe(
            "objects cut by the consumer",
            design([copier("w0", "x", "y")], [cut, fifo("y", core("w0"), shim("y"))], [fill("x", 1), drain("y")]),
            same,
        ),
        "broadcast": probe(
            "broadcast",
            design(fan, fans, [fill("x"), drain("y0"), drain("y1")]),
            lambda of, i: ({"x": of(i)}, {"y0": of(i), "y1": of(i)}),
        ),
        "cascade": cascade(),
    }


def in_memory_tiles() -> dict[str, dict[str, Any]]:
    """Links."""
    half = SIZE // 2
    small = dataclasses.replace(COPY, attributes=(("out_channels", half),))
    forward = [
        fifo("x", shim("x"), MEM),
        fifo("m", MEM, core("w0")),
        fifo("y", core("w0"), shim("y")),
    ]
    split = [fifo("x", shim("x"), MEM)]
    split += [fifo(f"x{i}", MEM, core(f"w{i}"), shape=half) for i in range(2)]
    split += [fifo(f"y{i}", core(f"w{i}"), shim(f"y{i}"), shape=half) for i in range(2)]
    join = [fifo(f"x{i}", shim(f"x{i}"), core(f"w{i}"), shape=half) for i in range(2)]
    join += [fifo(f"y{i}", core(f"w{i}"), MEM, shape=half) for i in range(2)] + [fifo("y", MEM, shim("y"))]
    pair = [copier(f"w{i}", f"x{i}", f"y{i}") for i in range(2)]

    def halves(whole: Any) -> list[Any]:
        return [whole[:, :half], whole[:, half:]]

    return {
        "forward_through_a_memory_tile": probe(
            "forward through a memory tile",
            design(
                [copier("w0", "m", "y")],
                forward,
                [fill("x"), drain("y")],
                links=(Link(kind="forward", sources=("x",), targets=("m",)),),
            ),
            same,
        ),
        "split_in_a_memory_tile": probe(
            "split in a memory tile",
            design(
                pair,
                split,
                [fill("x"), drain("y0"), drain("y1")],
                kernels=(small,),
                links=(Link(kind="split", sources=("x",), targets=("x0", "x1"), offsets=(0, half)),),
            ),
            lambda of, i: ({"x": of(i)}, dict(zip(("y0", "y1"), halves(of(i)), strict=True))),
        ),
        "join_in_a_memory_tile": probe(
            "join in a memory tile",
            design(
                pair,
                join,
                [fill("x0"), fill("x1"), drain("y")],
                kernels=(small,),
                links=(Link(kind="join", sources=("y0", "y1"), targets=("y",), offsets=(0, half)),),
            ),
            lambda of, i: (dict(zip(("x0", "x1"), halves(of(i)), strict=True)), {"y": of(i)}),
        ),
    }


def on_one_worker() -> dict[str, dict[str, Any]]:
    """Programs that hold several objects at once."""
    x, y = fifo("x", shim("x"), core("w0")), fifo("y", core("w0"), shim("y"))
    window = [
        *take("x", count=3),
        *take("y"),
        copy(at("x", 1), at("y")),
        *give("x", "y"),
    ]
    rest = (Release(fifo="x", count=2),)
    alternate = [
        *take("a", "y"),
        copy(at("a"), at("y")),
        *give("a", "y"),
        *take("b", "y"),
        copy(at("b"), at("y")),
        *give("b", "y"),
    ]
    both = [*take("x", "y0", "y1"), copy(at("x"), at("y0")), copy(at("x"), at("y1")), *give("x", "y0", "y1")]
    around = [
        *take("x"),
        *take("s", side="produce"),
        copy(at("x"), at("s", side="produce")),
        *give("s", side="produce"),
        *give("x"),
        *take("s", side="consume"),
        *take("y"),
        copy(at("s", side="consume"), at("y")),
        *give("s", side="consume"),
        *give("y"),
    ]
    slider = Worker(name="w0", tile=None, program=(Loop(times=OBJECTS, body=tuple(window)), *rest))
    return {
        "sliding_window": probe(
            "sliding window",
            design([slider], [dataclasses.replace(x, depth=4), y], [fill("x", OBJECTS + 2), drain("y")]),
            lambda of, i: ({"x": of(i, OBJECTS + 2)}, {"y": of(i, OBJECTS + 2)[1:-1]}),
        ),
        "several_inputs_of_a_worker": probe(
            "several inputs of a worker",
            design(
                [worker("w0", *alternate)],
                [fifo("a", shim("a"), core("w0")), fifo("b", shim("b"), core("w0")), y],
                [fill("a"), fill("b"), drain("y", 2 * OBJECTS)],
            ),
            lambda of, i: ({"a": of(i), "b": of(i + 3)}, {"y": np.stack([of(i), of(i + 3)], axis=1)}),
        ),
        "several_outputs_of_a_worker": probe(
            "several outputs of a worker",
            design(
                [worker("w0", *both)],
                [x, fifo("y0", core("w0"), shim("y0")), fifo("y1", core("w0"), shim("y1"))],
                [fill("x"), drain("y0"), drain("y1")],
            ),
            lambda of, i: ({"x": of(i)}, {"y0": of(i), "y1": of(i)}),
        ),
        "self_loop": probe(
            "self-loop",
            design(
                [worker("w0", *around)], [x, fifo("s", core("w0"), core("w0"), depth=1), y], [fill("x"), drain("y")]
            ),
            same,
        ),
    }


def weights() -> dict[str, dict[str, Any]]:
    """Weights that come through fifos."""
    x, y = fifo("x", shim("x"), core("w0")), fifo("y", core("w0"), shim("y"))
    held = values(5, 2)
    each = [*take("x"), *take("w", "y"), copy(at("w"), at("y")), *give("w", "y")]
    each += [*take("w", "y"), copy(at("w"), at("y")), *give("w", "y"), *give("x")]
    stream = fifo("w", MEM, core("w0"), depth=2, init_array="weights")
    once = (
        *take("w"),
        Loop(times=OBJECTS, body=(*take("x", "y"), copy(at("w"), at("y")), *give("x", "y"))),
        *give("w"),
    )
    return {
        "streamed_weights": probe(
            "streamed weights",
            design([worker("w0", *each)], [x, stream, y], [fill("x"), drain("y", 2 * OBJECTS)]),
            lambda of, i: ({"x": of(i)}, {"y": np.tile(held, (OBJECTS, 1))}),
            arrays={"weights": held.tolist()},
            expect={"verdict": "completes_leaving"},
        ),
        "weights_filled_by_the_host": probe(
            "weights filled by the host",
            design(
                [Worker(name="w0", tile=None, program=once)],
                [x, fifo("w", shim("w"), core("w0"), depth=1), y],
                [fill("w", 1), fill("x"), drain("y")],
            ),
            lambda of, i: ({"x": of(i), "w": held[:1]}, {"y": np.tile(held[:1], (OBJECTS, 1))}),
        ),
    }


def cascade() -> dict[str, Any]:
    """A dense layer whose sum is spread over two workers: half of the products comes over the cascade."""
    half, outputs = SIZE // 2, 8
    matrix = (np.arange(SIZE * outputs).reshape(SIZE, outputs) % 3) - 1
    shared = (
        ("acc_bits", 32),
        ("acc_shift", (0,)),
        ("finish", "round"),
        ("has_bias", 0),
        ("out_channels", outputs),
        ("out_dtype", "int8"),
        ("qmax", 127),
        ("qmin", -128),
        ("w_zero_points", (0,)),
        ("x_first", 0),
        ("x_zero_point", 0),
        ("y_zero_point", 0),
        ("zero_point_inside", 0),
    )
    parts = [
        Kernel(
            name=f"k{i}",
            op="gemm",
            type="gemm",
            attributes=(
                *shared,
                ("cascade_in", i),
                ("cascade_out", 1 - i),
                ("in_count", half),
                ("in_first", half * i),
            ),
        )
        for i in range(2)
    ]
    first = Call(kernel="k0", arguments=(at("x"), buffer("b0"), Argument(kind="cascade_out")))
    last = Call(kernel="k1", arguments=(at("x"), Argument(kind="cascade_in"), buffer("b1"), buffer("requant"), at("y")))
    made = design(
        [
            worker("w0", *take("x"), first, *give("x"), tile=Tile(column=0, row=2)),
            worker("w1", *take("x", "y"), last, *give("x", "y"), tile=Tile(column=1, row=2)),
        ],
        [fifo("x", shim("x"), core("w0"), core("w1")), fifo("y", core("w1"), shim("y"), shape=outputs)],
        [fill("x"), drain("y")],
        kernels=tuple(parts),
        cascades=(Cascade(source="w0", target="w1"),),
        buffers=(
            Buffer(name="b0", tile=None, shape=(half, outputs), dtype="int8", array="b0"),
            Buffer(name="b1", tile=None, shape=(half, outputs), dtype="int8", array="b1"),
            Buffer(name="requant", tile=None, shape=(2, 1), dtype="int32", array="requant"),
        ),
    )
    arrays = {"b0": matrix[:half].tolist(), "b1": matrix[half:].tolist(), "requant": [[1], [0]]}
    return probe("cascade", made, lambda of, i: ({"x": of(i)}, {"y": of(i) @ matrix}), arrays=arrays)


def buffer(name: str) -> Argument:
    """A buffer as argument."""
    return Argument(kind="buffer", name=name)


def skip_too_shallow() -> dict[str, Any]:
    """A skip beside a window of 3: the adder gets nothing before the window is full, so the skip has to hold it."""
    window = worker("main", *take("x", count=3), *take("m"), copy(at("x"), at("m")), *give("x", "m"))
    window = dataclasses.replace(window, program=(*window.program, Release(fifo="x", count=2)))
    adder = worker("adder", *take("m", "skip", "y"), copy(at("m"), at("y")), *give("m", "skip", "y"))
    adder = dataclasses.replace(adder, program=(*adder.program, *2 * [*take("skip"), *give("skip")]))
    made = design(
        [window, adder],
        [
            fifo("x", shim("x"), core("main", depth=3), MEM, literal=True, depth=1),
            fifo("m", core("main"), core("adder"), via_dma=True),
            fifo("skip", MEM, core("adder", depth=1), literal=True, depth=1),
            fifo("y", core("adder"), shim("y")),
        ],
        [fill("x", OBJECTS + 2), drain("y")],
        links=(Link(kind="forward", sources=("x",), targets=("skip",)),),
    )
    return {
        "name": "skip beside a window",
        "expect": {"verdict": "deadlock", "fix": {"fifo": "x", "depth": 2}},
        "design": compact(made),
    }


def scores() -> np.ndarray[Any, Any]:
    """Attention scores of made-up queries and keys, (4 heads, 32 queries, 64 keys), float32."""
    random = np.random.default_rng(11)
    q, k = (random.standard_normal((4, n, 16)) for n in (32, 64))
    return (3 * q @ k.swapaxes(1, 2) / 4).astype(np.float32)


EQUIVALENCE: Final = {
    "name": "softmax of attention scores",
    "decomposition": "chunked_softmax",
    "chunks": [8, 16, 48],
    "data": "scores.npz",
    "arrays": {"x": "scores"},
    "allowed": 1e-6,
}


def build(folder: Path) -> None:
    """Write every file of this folder."""
    for name, value in probes().items():
        (folder / f"{name}.json").write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")
    (folder / "chunked_softmax.json").write_text(json.dumps(EQUIVALENCE, indent=1) + "\n", encoding="utf-8")
    write_npz(folder / "scores.npz", {"scores": scores()})


if __name__ == "__main__":
    build(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent)
