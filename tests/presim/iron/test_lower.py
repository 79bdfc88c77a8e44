"""Design files into designs: ends, depths, links, programs, transfers, tiles."""

from pathlib import Path

import numpy as np
import pytest

from manifest.errors import RefusedError
from presim.design import Acquire, Argument, Call, Link, Loop, Release, Tile
from presim.steps import steps_of
from tests.presim.iron.lowering import lowered, refusals


def calls(program: object) -> list[Call]:
    return [s for s in steps_of(program) if isinstance(s, Call)]  # type: ignore[arg-type]


def test_steps_follow_the_core_function(tmp_path: Path) -> None:
    made = lowered(
        tmp_path,
        """
        k = Kernel("k", "k.o", [ty, ty, np.int32, np.int32])
        def core(i, o, k):
            for n in range_(2, 10, 3):
                a, b = i.acquire(1), o.acquire(1)
                k(a, b, n * 2 + 1, 7)
                i.release(1)
                o.release(1)
        simple(core, None, k, stack_size=2048, while_true=False)
        """,
    )
    (worker,) = made.design.workers
    assert (worker.name, worker.while_true, worker.stack_bytes) == ("core", False, 2048)
    (loop,) = worker.program
    assert isinstance(loop, Loop)
    assert loop.times == 3
    assert loop.body == (
        Acquire(fifo="in", count=1),
        Acquire(fifo="out", count=1),
        Call(
            kernel="k",
            arguments=(Argument(kind="fifo", name="in"), Argument(kind="fifo", name="out")),
            scalars=(("s0", f"@{loop.counter}*6+5"), ("s1", 7)),
        ),
        Release(fifo="in", count=1),
        Release(fifo="out", count=1),
    )
    (row,) = made.design.kernels
    assert (row.name, row.type, row.op, row.rounding, row.saturation) == ("k", "external", "", "", "")
    (external,) = made.externals
    assert external.arg_types == (("int32", (8,)), ("int32", (8,)), "int32", "int32")


def test_python_range_unrolls(tmp_path: Path) -> None:
    text = """
    k = Kernel("k", "k.o", [ty, ty, np.int32])
    def core(i, o, k):
        for n in range(3):
            k(i.acquire(1), o.acquire(1), n)
            i.release(1), o.release(1)
    simple(core, None, k)
    """
    (worker,) = lowered(tmp_path, text).design.workers
    assert [c.scalars for c in calls(worker.program)] == [(("s0", 0),), (("s0", 1),), (("s0", 2),)]


def test_index_counts_from_the_oldest_that_is_held(tmp_path: Path) -> None:
    text = """
    k = Kernel("k", "k.o", [ty, ty, ty])
    def core(i, o, k):
        rows = i.acquire(3)
        k(rows[0], rows[2], o.acquire(1))
        i.release(1)
        k(rows[1], rows[2], o.acquire(2)[1])
        i.release(2)
        o.release(2)
    of_in, of_out = ObjectFifo(ty, depth=3, name="in"), ObjectFifo(ty, depth=3, name="out")
    w = Worker(core, [of_in.cons(), of_out.prod(), k])
    rt = Runtime(lambda x, y, i, o: (i.fill(x), o.drain(y, wait=True)), [host, host, of_in.prod(), of_out.cons()])
    Program(NPU2(), rt, workers=[w]).resolve_program()
    """
    (worker,) = lowered(tmp_path, text).design.workers
    assert [[a.index for a in c.arguments] for c in calls(worker.program)] == [[0, 2, 0], [0, 1, 1]]


def test_equal_depths_are_a_hint_and_different_ones_a_list(tmp_path: Path) -> None:
    text = """
    def core(i, j, o):
        i.acquire(1), j.acquire(1), o.acquire(1)
        i.release(1), j.release(1), o.release(1)
    a, b, c = ObjectFifo(ty, depth=3, name="a"), ObjectFifo(ty, name="b"), ObjectFifo(ty, name="c")
    w = Worker(core, [a.cons(), b.cons(depth=4), c.prod()])
    def seq(x, y, z, ah, bh, ch):
        ah.fill(x), bh.fill(y), ch.drain(z, wait=True)
    rt = Runtime(seq, [host, host, host, a.prod(), b.prod(), c.cons()])
    Program(NPU2(), rt, workers=[w]).resolve_program()
    """
    fifos = {f.name: f for f in lowered(tmp_path, text).design.fifos}
    assert (fifos["a"].depth, fifos["a"].literal, fifos["a"].consumers[0].depth) == (3, False, None)
    assert (fifos["b"].depth, fifos["b"].literal) == (2, True)
    assert (fifos["b"].producer.depth, fifos["b"].consumers[0].depth) == (2, 4)


def test_links_and_their_ends(tmp_path: Path) -> None:
    text = """
    half = np.ndarray[(4,), np.dtype[np.int32]]
    big_in, big_out = ObjectFifo(ty, name="big_in"), ObjectFifo(ty, name="big_out")
    ins = big_in.cons().split([0, 4], obj_types=[half] * 2, tile=Tile(1, 1))
    outs = big_out.prod().join([0, 4], obj_types=[half] * 2, names=["l", "r"], depths=[1, 2])
    far = big_out.cons().forward(name="far", dims_to_stream=[(2, 4), (4, 1)])
    def core(i, o):
        i.acquire(1), o.acquire(1)
        i.release(1), o.release(1)
    ws = [Worker(core, [ins[n].cons(), outs[n].prod()]) for n in range(2)]
    rt = Runtime(lambda x, y, i, o: (i.fill(x), o.drain(y, wait=True)), [host, host, big_in.prod(), far.cons()])
    Program(NPU2(), rt, workers=ws).resolve_program()
    """
    made = lowered(tmp_path, text).design
    assert [(k.kind, k.sources, k.targets, k.offsets) for k in made.links] == [
        ("split", ("big_in",), ("big_in_split0", "big_in_split1"), (0, 4)),
        ("join", ("l", "r"), ("big_out",), (0, 4)),
        ("forward", ("big_out",), ("far",), ()),
    ]
    assert all(isinstance(k, Link) and k.tile is not None for k in made.links)
    assert made.links[0].tile == Tile(column=1, row=1, kind="mem")
    fifos = {f.name: f for f in made.fifos}
    assert fifos["far"].producer.dims == ((2, 4), (4, 1))
    assert (fifos["l"].depth, fifos["r"].depth) == (1, 2)
    assert {w.name for w in made.workers} == {"core0", "core1"}


def test_self_loop_says_which_side(tmp_path: Path) -> None:
    text = """
    loop = ObjectFifo(ty, depth=1, name="loop")
    def core(i, o, p, c):
        i.acquire(1), p.acquire(1)
        p.release(1), i.release(1)
        c.acquire(1), o.acquire(1)
        c.release(1), o.release(1)
    simple(core, None, loop.prod(), loop.cons())
    """
    (worker,) = lowered(tmp_path, text).design.workers
    sides = [(s.fifo, s.side) for s in worker.program if isinstance(s, Acquire)]
    assert sides == [("in", ""), ("loop", "produce"), ("loop", "consume"), ("out", "")]


def test_patterns_are_as_short_as_they_can_be(tmp_path: Path) -> None:
    text = """
    def core(i, o):
        i.acquire(1), o.acquire(1)
        i.release(1), o.release(1)
    a, b = ObjectFifo(ty, name="a"), ObjectFifo(ty, name="b")
    w = Worker(core, [a.cons(), b.prod()])
    def seq(x, y, ah, bh):
        ah.fill(x)
        ah.fill(x, tap=TensorAccessPattern((32,), 8, [1, 1, 2, 8], [0, 0, 8, 1]))
        ah.fill(x, tap=TensorAccessPattern((32,), 0, [1, 2, 2, 8], [0, 0, 16, 1]))
        ah.fill(x, offset=8, transfer_len=16)
        bh.drain(y, wait=True)
    rt = Runtime(seq, [host, host, a.prod(), b.cons()])
    Program(NPU2(), rt, workers=[w]).resolve_program()
    """
    made = lowered(tmp_path, text)
    transfers = [(t.objects, t.offset, t.sizes, t.strides) for t in made.design.sequence]
    assert transfers == [
        (4, 0, (), ()),
        (2, 8, (), ()),
        (4, 0, (2, 2, 8), (0, 16, 1)),
        (2, 8, (), ()),
        (4, 0, (), ()),
    ]
    assert made.argument_types == (("x", "int32", (32,)), ("y", "int32", (32,)))


def test_task_groups_are_labels_and_late_finishes_are_noted(tmp_path: Path) -> None:
    text = """
    def core(i, o):
        i.acquire(1), o.acquire(1)
        i.release(1), o.release(1)
    a, b = ObjectFifo(ty, name="a"), ObjectFifo(ty, name="b")
    w = Worker(core, [a.cons(), b.prod()])
    def seq(x, y, ah, bh):
        one, two = TaskGroup(), TaskGroup()
        ah.fill(x, group=one)
        bh.drain(y, wait=True, group=one)
        ah.fill(x, group=two)
        one.finish()
        bh.drain(y, wait=True, group=two)
        two.finish()
    Program(NPU2(), Runtime(seq, [host, host, a.prod(), b.cons()]), workers=[w]).resolve_program()
    """
    made = lowered(tmp_path, text).design
    assert [t.group for t in made.sequence] == ["group0", "group0", "group1", "group1"]
    assert any("task group 0 is awaited right behind its last transfer" in n for n in made.notes)
    assert not any("task group 1" in n for n in made.notes)


def test_initial_values_of_buffers_and_fifos_and_what_the_host_writes(tmp_path: Path) -> None:
    text = """
    k = Kernel("k", "k.o", [ty, ty, ty, np.int32])
    table = Buffer(initial_value=np.arange(8, dtype=np.int32), name="table")
    rtp = Buffer(np.ndarray[(2,), np.dtype[np.int32]], name="rtp", use_write_rtp=True)
    full = ObjectFifo(ty, name="full", init_values=[np.full(8, 5, np.int32)])
    def core(i, o, k, table, rtp, p, c):
        for _ in range_(rtp[1]):
            k(i.acquire(1), table, o.acquire(1), rtp[0] + 1)
            i.release(1), o.release(1)
    of_in, of_out = ObjectFifo(ty, name="in"), ObjectFifo(ty, name="out")
    w = Worker(core, [of_in.cons(), of_out.prod(), k, table, rtp, full.prod(), full.cons()])
    def seq(x, y, i, o):
        rtp[0] = 41
        rtp[1] = 4
        i.fill(x), o.drain(y, wait=True)
    Program(NPU2(), Runtime(seq, [host, host, of_in.prod(), of_out.cons()]), workers=[w]).resolve_program()
    """
    made = lowered(tmp_path, text)
    (worker,) = made.design.workers
    (call,) = calls(worker.program)
    assert call.scalars == (("s0", 42),)
    assert isinstance(worker.program[0], Loop)
    assert worker.program[0].times == 4
    buffers = {b.name: b for b in made.design.buffers}
    assert np.array_equal(made.arrays[buffers["table"].array or ""], np.arange(8))
    assert np.array_equal(made.arrays[buffers["rtp"].array or ""], [41, 4])
    fifo = next(f for f in made.design.fifos if f.name == "full")
    assert fifo.init_objects == 1
    assert np.array_equal(made.arrays[fifo.init_array or ""], np.full((1, 8), 5))


def test_pinned_tiles_stay_and_the_rest_is_placed(tmp_path: Path) -> None:
    text = """
    def core(i, o):
        i.acquire(1), o.acquire(1)
        i.release(1), o.release(1)
    simple(core, tile=Tile(2, 4), device=NPU1())
    """
    made = lowered(tmp_path, text).design
    assert made.device == "npu1"
    assert made.workers[0].tile == Tile(column=2, row=4)
    assert all(e.tile is not None for f in made.fifos for e in (f.producer, *f.consumers))


def test_current_device_is_the_one_that_is_asked_for(tmp_path: Path) -> None:
    text = """
    def core(i, o):
        i.acquire(1), o.acquire(1)
        i.release(1), o.release(1)
    simple(core, device=iron.get_current_device())
    """
    assert lowered(tmp_path, text, device="npu1").design.device == "npu1"


def test_bfloat16_is_carried_as_its_bits(tmp_path: Path) -> None:
    text = """
    from ml_dtypes import bfloat16
    ty = np.ndarray[(8,), np.dtype[bfloat16]]
    host = np.ndarray[(32,), np.dtype[bfloat16]]
    def core(i, o):
        a, b = i.acquire(1), o.acquire(1)
        for n in range_(8):
            b[n] = a[n]
        i.release(1), o.release(1)
    simple(core)
    """
    made = lowered(tmp_path, text)
    assert {f.dtype for f in made.design.fifos} == {"uint16"}
    with pytest.raises(RefusedError, match="arithmetic on bfloat16"):
        lowered(tmp_path, text.replace("a[n]", "a[n] + 1"))


def test_asymmetric_objects_repeats_and_passes(tmp_path: Path) -> None:
    text = """
    big = np.ndarray[(32,), np.dtype[np.int32]]
    a = ObjectFifo(big, depth=1, name="a", consumer_obj_type=ty, repeat_count=2, via_DMA=True)
    a.set_iter_count(3)
    b = ObjectFifo(ty, name="b")
    def core(i, o):
        i.acquire(1), o.acquire(1)
        i.release(1), o.release(1)
    w = Worker(core, [a.cons(), b.prod()])
    rt = Runtime(lambda x, y, i, o: (i.fill(x), o.drain(y, wait=True)), [host, host, a.prod(), b.cons()])
    Program(NPU2(), rt, workers=[w]).resolve_program()
    """
    fifo = lowered(tmp_path, text).design.fifos[0]
    assert (fifo.consumer_shape, fifo.repeat_count, fifo.iter_count, fifo.via_dma) == ((8,), 2, 3, True)


CORE = "def core(i, o):\n"
REFUSED = {
    CORE + "    Kernel('k', 'k.o', [ty])(i.acquire(1), o.acquire(1))\nsimple(core)": "takes 1 arguments, got 2",
    CORE + "    Kernel('k', 'k.o', [host])(i.acquire(1))\nsimple(core)": "expected memory of 32 int32",
    "def core(i, o):\n    i.acquire(3)\nsimple(core)": "acquire of 3 objects of fifo 'in': expected 1 to its depth 2",
    "def core(i, o):\n    a = i.acquire(1)\n    i.release(1)\n    a[0] = 1\nsimple(core)": "after its release",
    "def core(i, o):\n    a = i.acquire(1)\n    a[8] = 1\nsimple(core)": "index 8 of 'in': expected 0 to 7",
    "def core(i, o):\n    a = i.acquire(1)\n    if a[0]:\n        pass\nsimple(core)": "decides a Python `if`",
    CORE + "    for _ in range_(i.acquire(1)[0]):\n        pass\nsimple(core)": "known only when the core runs",
    CORE + "    a = i.acquire(1)\n    for _ in range_(3):\n        a[0] = 1\n"
    "        i.release(1)\nsimple(core)": "changes with every trip",
    "Worker(lambda i: None, [ObjectFifo(ty)])": "expected its prod() or cons()",
    "of = ObjectFifo(ty, name='x')\nsimple(lambda i, o, x: None, None, of.cons())": "ObjectFifo 'x' has no producer",
    "of = ObjectFifo(ty, depth=0)": "expected 1 or more, got 0",
    "Program(NPU2(), Runtime(lambda: TaskGroup(), [])).resolve_program()": "task groups [0] that nobody finished",
    "TaskGroup()": "TaskGroup() outside a runtime sequence",
    "ObjectFifo(ty).cons().acquire(1)": "outside a core function",
    "ObjectFifo(ty, disable_synchronization=True)": "the simulator does not follow disable_synchronization",
    "ObjectFifo(3)": "expected a type such as np.ndarray",
    "Program(NPU2(), Runtime(lambda n: None, [np.int32])).resolve_program()": "is a number of the host",
    "ScratchpadParameter": "it ends without a resolved Program",
    "raise SystemExit(3)": "ends with exit code 3",
    "1 / 0": "ZeroDivisionError: division by zero",
    "def (": "SyntaxError",
}


@pytest.fixture(scope="module")
def refused(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[str, str]]:
    """What each file is refused with."""
    return refusals(tmp_path_factory.mktemp("refused"), REFUSED)


@pytest.mark.parametrize("text", REFUSED)
def test_what_cannot_be_followed_is_refused_in_one_line(refused: dict[str, tuple[str, str]], text: str) -> None:
    where, what = refused[text]
    assert REFUSED[text] in what
    assert where.startswith("design.py")
    assert "\n" not in what
