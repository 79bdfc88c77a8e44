"""The host backend: what is emitted is held against the plan, compiled and run; a fault has its status and place."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bringup.backends import BackendOptions, HostBackend
from bringup.backends.host.backend import with_cascades
from bringup.backends.host.compare import Naming, constants_of, difference, form_of, sha256_of
from bringup.execute import toolchain
from bringup.model import Outcome
from manifest.errors import Problem, RefusedError, UnavailableError
from presim.design import Acquire, Argument, Buffer, Call, Cascade, Design, Link, Loop, Release, Tile
from presim.steps import steps_of
from tests.bringup.backends.folders import (
    DESIGN_FILE,
    MOVE,
    Function,
    Lowered,
    index_of,
    inputs,
    job_in,
    lowered,
    parameter,
    write_folder,
)
from tests.bringup.execute.compiled import move_design, rows
from tests.presim.sketches import Array, Sketch, acquire, call, loop, move, release


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("work")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write_folder(tmp_path / "g")


def run(root: Path, work: Path, found: Lowered | None = None, *, timeout_s: float = 60, **changes: Any) -> Outcome:
    """Run the job with a design file that lowers to `found`."""
    options = BackendOptions(work=work, schedules=1, timeout_s=timeout_s)
    backend = HostBackend("npu2", options, lower=lambda *_: found or Lowered(lowered(move_design())))
    try:
        return backend.run(job_in(root, **changes), inputs())
    finally:
        backend.close()


def body(text: str) -> str:
    return MOVE.replace("y[i] = x[i]", text)


def test_planned_and_lowered_design_have_one_hash(root: Path, work: Path) -> None:
    outcome = run(root, work)
    assert outcome.status == "completed", outcome.text
    assert outcome.artifacts["planned design"] == outcome.artifacts["lowered design"]
    assert set(outcome.artifacts) == {"planned design", "lowered design", "library"}
    assert outcome.compared == {"y": 48}


def test_a_kernel_that_does_not_compile_fails_the_jobs_that_call_it_alone(tmp_path: Path, work: Path) -> None:
    root = write_folder(tmp_path / "g")
    files = {"kernels/move.cc": MOVE.encode(), "kernels/broken.cc": b'extern "C" void broken(nothing *x) {}\n'}
    (root / "kernels/broken.cc").write_bytes(files["kernels/broken.cc"])
    index = index_of({**files, DESIGN_FILE: (root / DESIGN_FILE).read_bytes()})
    row = {"parameters": [parameter("x", "object_in")], "scalars": []}
    write_folder(root, files=index["files"], kernels={**index["kernels"], "broken": row})
    assert run(root, work).status == "completed"
    both = Lowered(lowered(move_design()), externals=(*Lowered(move_design()).externals, BROKEN))
    outcome = run(root, work, both)
    assert outcome.status == "compile_error"
    assert outcome.place.kernel == "broken"
    assert outcome.text.startswith("kernels/broken.cc:1: ")


BROKEN = Function("broken", (("int32", (4,)),))


def programs(change: Callable[[Any], tuple[Any, ...]]) -> Callable[[Design], Design]:
    """Replace every step by what `change` gives."""

    def steps(program: tuple[Any, ...]) -> tuple[Any, ...]:
        found: list[Any] = []
        for step in program:
            inner = replace(step, body=steps(step.body)) if isinstance(step, Loop) else step
            found += change(inner)
        return tuple(found)

    def changed(design: Design) -> Design:
        return replace(design, workers=tuple(replace(w, program=steps(w.program)) for w in design.workers))

    return changed


def fifos(**changes: Any) -> Callable[[Design], Design]:
    return lambda d: replace(d, fifos=(replace(d.fifos[0], **changes), *d.fifos[1:]))


def workers(**changes: Any) -> Callable[[Design], Design]:
    return lambda d: replace(d, workers=tuple(replace(w, **changes) for w in d.workers))


def transfers(**changes: Any) -> Callable[[Design], Design]:
    return lambda d: replace(d, sequence=(replace(d.sequence[0], **changes), *d.sequence[1:]))


CHANGES: Mapping[str, tuple[Callable[[Design], Design], str]] = {
    "depth": (fifos(depth=1), "pool > x"),
    "element type": (fifos(dtype="uint32"), "fifo > x > dtype"),
    "object shape": (fifos(shape=(2, 2)), "fifo > x > shape"),
    "repeat": (fifos(repeat_count=2), "fifo > x > repeat_count"),
    "passes": (fifos(iter_count=3), "fifo > x > iter_count"),
    "through DMAs": (fifos(via_dma=True), "fifo > x > via_dma"),
    "start": (fifos(init_objects=1), "fifo > x > starts_with"),
    "another fifo": (lambda d: replace(d, fifos=(*d.fifos, replace(d.fifos[0], name="z"))), "fifo > z: planned none"),
    "tile": (workers(tile=Tile(column=7, row=5)), "worker > w > tile"),
    "stack": (workers(stack_bytes=512), "worker > w > stack_bytes"),
    "ends": (workers(while_true=False), "worker > w > while_true"),
    "worker": (workers(name="v"), "worker > w: planned present, the emitted design has none"),
    "release": (programs(lambda s: () if isinstance(s, Release) and s.fifo == "x" else (s,)), "program > 0 > 2"),
    "acquire": (
        programs(lambda s: (replace(s, count=2),) if isinstance(s, Acquire) else (s,)),
        "program > 0 > 2 > 0 > 2",
    ),
    "loop": (programs(lambda s: (replace(s, times=5),) if isinstance(s, Loop) else (s,)), "program > 0 > 1: planned 4"),
    "kernel": (programs(lambda s: (replace(s, kernel="other"),) if isinstance(s, Call) else (s,)), "program"),
    "argument": (
        programs(lambda s: (replace(s, arguments=s.arguments[:1] * 2),) if isinstance(s, Call) else (s,)),
        "program > 0 > 2 > 2 > 2",
    ),
    "scalar": (programs(lambda s: (replace(s, scalars=(("s0", 1),)),) if isinstance(s, Call) else (s,)), "program"),
    "order of the host": (lambda d: replace(d, sequence=d.sequence[::-1]), "sequence > 0"),
    "transfer": (transfers(objects=3), "sequence > 0 > 4"),
    "offset": (transfers(offset=4), "sequence > 0 > 5"),
    "pattern": (transfers(sizes=(4, 4), strides=(4, 0)), "sequence > 0 > 6"),
    "await": (transfers(wait=True), "sequence > 2"),
    "cascade": (lambda d: replace(d, cascades=(Cascade(source="w", target="v"),)), "cascade"),
    "link": (lambda d: replace(d, links=(Link(kind="forward", sources=("x",), targets=("y",)),)), "link"),
    "device": (lambda d: replace(d, device="npu1"), "device: planned npu2"),
}


@pytest.mark.parametrize("what", CHANGES)
def test_an_emitted_design_that_is_not_the_planned_one_is_a_mismatch_with_its_place(what: str) -> None:
    change, words = CHANGES[what]
    naming = Naming(symbol=str, scalars={}, buffers=frozenset(), constants=frozenset())
    planned, other = form_of(move_design(), naming), form_of(change(move_design()), naming)
    found = difference(planned, other)
    assert found is not None
    assert words in found.line()
    assert sha256_of(planned) != sha256_of(other)
    assert difference(planned, form_of(move_design(), naming)) is None


@pytest.mark.parametrize("what", ["depth", "tile", "release", "order of the host"])
def test_the_backend_does_not_run_such_a_design(root: Path, work: Path, what: str) -> None:
    changed = CHANGES[what][0](move_design())
    outcome = run(root, work, Lowered(lowered(changed)))
    assert outcome.status == "mismatch"
    assert CHANGES[what][1] in outcome.text
    assert outcome.artifacts["planned design"] != outcome.artifacts["lowered design"]
    assert not outcome.outputs


def test_depths_may_be_written_in_another_way(root: Path, work: Path) -> None:
    design = move_design()
    listed = tuple(
        replace(f, producer=replace(f.producer, depth=2), consumers=tuple(replace(c, depth=2) for c in f.consumers))
        for f in design.fifos
    )
    assert run(root, work, Lowered(lowered(replace(design, fifos=listed)))).status == "completed"


def test_packed_constants_may_have_another_shape() -> None:
    s = Sketch()
    s.fifo("w", "shim0", "mem0").fifo("v", "mem0", "a").link("forward", "w", "v").fifo("x", "shim1", "a")
    s.worker("a", *move("x", "v", "y")).fifo("y", "a", "shim2").fill("w", 1).fill("x", 1).drain("y", 1)
    design = s.design()
    constants = constants_of(design, frozenset({"x"}))
    assert constants == {"w", "v"}
    naming = Naming(symbol=str, scalars={}, buffers=frozenset(), constants=constants)
    packed = replace(design, fifos=tuple(replace(f, shape=(2, 2)) if f.name in constants else f for f in design.fifos))
    assert difference(form_of(design, naming), form_of(packed, naming)) is None
    other = replace(design, fifos=tuple(replace(f, shape=(2, 2)) if f.name == "x" else f for f in design.fifos))
    assert difference(form_of(design, naming), form_of(other, naming)) is not None


def test_the_order_of_consumers_is_no_difference_and_another_consumer_is() -> None:
    s = Sketch().fifo("x", "shim0", "a", "b").fifo("y", "a", "shim1").fifo("z", "b", "shim2")
    s.worker("a", *move("x", "y")).worker("b", *move("x", "z")).fill("x", 1).drain("y", 1).drain("z", 1)
    design = s.design()
    naming = Naming(symbol=str, scalars={}, buffers=frozenset(), constants=frozenset())
    one, two = design.fifos[0].consumers
    turned, twice = fifos(consumers=(two, one))(design), fifos(consumers=(one, one))(design)
    assert difference(form_of(design, naming), form_of(turned, naming)) is None
    assert difference(form_of(design, naming), form_of(twice, naming)) is not None


def test_rows_that_stand_in_at_the_border_and_names_of_scalars_and_counters_are_no_difference() -> None:
    def window(counter: str, *arguments: str, **scalars: int | str) -> Design:
        s = Sketch()
        s.fifo("x", "shim0", "w").fifo("y", "w", "shim1").fill("x", 4).drain("y", 4)
        s.worker("w", loop(4, acquire("x"), acquire("y"), call("k", *arguments, **scalars), counter=counter))
        return s.design()

    planned = window("row", "x", "y", pad_top=1, out_offset="@row*2")
    emitted = window("i", "x", "x", "x", "y", s0=1, s1=0, s2="@i*2")
    naming = Naming(
        symbol=str, scalars={"k": ("pad_top", "pad_bottom", "out_offset")}, buffers=frozenset(), constants=frozenset()
    )
    assert difference(form_of(planned, naming), form_of(emitted, naming)) is None
    for changed in ({"s0": 1, "s1": 0, "s2": "@i*3"}, {"s0": 0, "s1": 1, "s2": "@i*2"}, {"s0": 1, "s1": 0, "s2": 2}):
        wrong = window("i", "x", "x", "y", **changed)
        assert difference(form_of(planned, naming), form_of(wrong, naming)) is not None


def test_a_buffer_that_the_code_does_without_is_no_difference_and_a_swapped_one_is() -> None:
    def design(*names: str, used: tuple[str, ...]) -> Design:
        s = Sketch()
        s.fifo("x", "shim0", "w").fifo("y", "w", "shim1").fill("x", 1).drain("y", 1)
        s.buffers += [Buffer(name=n, tile=None, shape=(4,), dtype="int8", array=n) for n in names]
        s.worker("w", call("k", "x", f"#{used[0]}", "y"), call("l", "x", f"#{used[1]}", "y"))
        return s.design()

    naming = Naming(symbol=str, scalars={}, buffers=frozenset({"a", "b"}), constants=frozenset())
    planned = form_of(design("a", "b", "c", used=("a", "b")), naming)
    assert difference(planned, form_of(design("a", "b", used=("a", "b")), naming)) is None
    assert difference(planned, form_of(design("a", "b", used=("b", "a")), naming)) is not None


def test_calls_at_a_cascade_get_it_as_the_plan_has_it() -> None:
    s = Sketch().kernel("put a").kernel("take")
    s.fifo("x", "shim0", "a").fifo("y", "b", "shim1").fill("x", 1).drain("y", 1)
    s.worker("a", loop(2, call("put a", "x", ">"))).worker("b", call("take", "<", "y"))
    s.cascades.append(Cascade(source="a", target="b", depth=4, words=3))
    planned = s.design()

    def plain(step: Any) -> tuple[Any, ...]:
        if not isinstance(step, Call):
            return (step,)
        return (replace(step, arguments=tuple(a for a in step.arguments if a.kind == "fifo")),)

    bare = replace(programs(plain)(lowered(planned)), cascades=(Cascade(source="a", target="b"),))
    mended = with_cascades(bare, planned)
    calls = [s for w in mended.workers for s in steps_of(w.program) if isinstance(s, Call)]
    assert [[a.kind for a in c.arguments] for c in calls] == [["fifo", "cascade_out"], ["fifo", "cascade_in"]]
    assert mended.cascades == planned.cascades
    assert calls[0].arguments[0] == Argument(kind="fifo", name="x")


def test_a_kernel_declared_with_other_types_than_its_code_takes_is_a_mismatch(root: Path, work: Path) -> None:
    for types, words in (
        (
            (("int32", (4,)), ("uint32", (4,))),
            "declared with (int32[4], uint32[4]), its code takes (int32[4], int32[4])",
        ),
        ((("int32", (4,)), ("int32", (8,))), "declared with (int32[4], int32[8])"),
        ((("int32", (4,)), ("int32", (4,)), "int32"), "declared with (int32[4], int32[4], int32)"),
    ):
        outcome = run(root, work, Lowered(lowered(move_design()), externals=(Function("move", types),)))
        assert (outcome.status, outcome.place.kernel) == ("mismatch", "move")
        assert words in outcome.text
    same = Lowered(lowered(move_design()), externals=(Function("move", (("int32", (2, 2)), ("int32", (4,)))),))
    assert run(root, work, same).status == "completed"
    other = Lowered(lowered(move_design()), externals=(Function("gone", ()),))
    assert "no code of it was emitted" in run(root, work, other).text


@pytest.mark.parametrize(
    ("text", "status", "argument"),
    [
        ("y[i] = x[i], y[i + 1] = 0", "crash", "y"),
        ("y[i] = x[i + 1]", "crash", "x"),
        ("y[i] = x[i] + 2147483647", "crash", ""),
        ("const_cast<int32_t *>(x)[i] = 0", "crash", "x"),
        ("y[i] = y[i] + x[i]", "crash", "y"),
    ],
)
def test_a_kernel_that_breaks_a_rule_is_a_crash_with_kernel_and_argument(
    root: Path, work: Path, text: str, status: str, argument: str
) -> None:
    write_folder(root, kernel=body(text))
    outcome = run(root, work)
    assert (outcome.status, outcome.place.worker, outcome.place.kernel) == (status, "w", "move"), outcome.text
    assert outcome.place.argument == argument


def test_wrong_arithmetic_is_a_mismatch_at_its_fifo(root: Path, work: Path) -> None:
    write_folder(root, kernel=body("y[i] = x[i] + (i == 3 && x[i] > 200)"))
    outcome = run(root, work)
    assert outcome.status == "mismatch"
    place = outcome.place
    assert (place.fifo, place.worker, place.inference, place.object_number, place.index) == ("y", "w", 2, 0, (3,))
    assert (place.expected, place.got) == (204, 205)


def test_a_kernel_that_does_not_compile_names_file_line_and_kernel(root: Path, work: Path) -> None:
    write_folder(root, kernel=body("y[i] = z[i]"))
    outcome = run(root, work)
    assert (outcome.status, outcome.place.kernel) == ("compile_error", "move")
    assert outcome.text.startswith("kernels/move.cc:3: ")


def test_a_kernel_that_does_not_return_is_a_timeout(root: Path, work: Path) -> None:
    write_folder(root, kernel=body("for (volatile int k = 0; x[0] != 1234 && k < 4;) y[i] = x[i]"))
    outcome = run(root, work, timeout_s=1)
    assert (outcome.status, outcome.place.kernel) == ("timeout", "move")


def test_a_design_that_hangs_is_a_deadlock_with_its_waits(root: Path, work: Path) -> None:
    s = Sketch().kernel("move")
    s.fifo("x", "shim0", "w").fifo("y", "w", "shim9").fifo("z", "w", "w")
    inner = (acquire("x"), acquire("z", 1, "consume"), *move("y", kernel="move")[:1], call("move", "x", "y"))
    s.worker("w", loop(4, *inner, release("x"), release("y"))).fill("x", 4).drain("y", 4)
    outcome = run(root, work, Lowered(lowered(s.design())), design=s.design())
    assert outcome.status == "deadlock"
    assert outcome.cycle


def test_a_design_file_that_does_not_lower_is_a_mismatch(root: Path, work: Path) -> None:
    def refused(*_: object) -> Lowered:
        raise RefusedError((Problem(code="IRON-DESIGN", where="design.py:3", what="asks for the moon"),))

    backend = HostBackend("npu2", BackendOptions(work=work), lower=refused)
    outcome = backend.run(job_in(root), inputs())
    assert outcome.status == "mismatch"
    assert "design.py:3: asks for the moon" in outcome.text


def test_what_the_design_does_not_have_is_not_taken_for_compared(root: Path, work: Path) -> None:
    outcome = run(root, work, expected=[{"y": x, "gone": x} for x in rows()])
    assert outcome.status == "mismatch"
    assert "nothing of 'gone' was compared" in outcome.text


def test_a_masked_fifo_need_not_be_compared(root: Path, work: Path) -> None:
    masked: list[Mapping[str, Array]] = [{"x": np.ma.masked_array(x, True)} for x in rows()]
    assert run(root, work, expected=masked).status == "completed"


def test_kernels_are_compiled_once_for_all_jobs_and_again_when_they_change(root: Path, tmp_path: Path) -> None:
    options = BackendOptions(work=tmp_path / "w", schedules=0)
    backend = HostBackend("npu2", options, lower=lambda *_: Lowered(lowered(move_design())))
    try:
        assert backend.run(job_in(root), inputs()).status == "completed"
        seconds = backend.compile_seconds
        assert seconds > 0
        assert backend.run(job_in(root, name="d0/01_again"), inputs()).status == "completed"
        assert backend.compile_seconds == seconds
        write_folder(root, kernel=MOVE + "// changed\n")
        assert backend.run(job_in(root), inputs()).status == "completed"
        assert backend.compile_seconds > seconds
    finally:
        backend.close()


def test_its_own_folder_goes_with_the_backend(root: Path) -> None:
    backend = HostBackend("npu2", BackendOptions(schedules=0), lower=lambda *_: Lowered(lowered(move_design())))
    assert backend.run(job_in(root), inputs()).status == "completed"
    assert backend.work.exists()
    backend.close()
    assert not backend.work.exists()


def test_the_architecture_of_the_device_is_what_kernels_are_compiled_for(tmp_path: Path) -> None:
    for device, arch in (("npu1", 20), ("npu2", 21)):
        root = write_folder(tmp_path / device, kernel=body(f"y[i] = x[i] + (__AIE_ARCH__ != {arch})"))
        design = replace(move_design(), device=device)
        backend = HostBackend(device, BackendOptions(schedules=0), lower=lambda *_, d=design: Lowered(lowered(d)))
        assert backend.run(job_in(root, device=device), inputs()).status == "completed"
        backend.close()


def test_without_sanitizers_it_is_unavailable(monkeypatch: pytest.MonkeyPatch, work: Path) -> None:
    def absent(self: object, name: str) -> Path:
        msg = f"{name}: not installed"
        raise UnavailableError(msg)

    monkeypatch.setattr(toolchain.Toolchain, "library", absent)
    found = HostBackend("npu2", BackendOptions(work=work)).identity()
    assert "libasan.so: not installed" in str(found)
