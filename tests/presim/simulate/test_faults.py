"""Rules that a program breaks: each named with worker, step, fifo and object."""

import numpy as np
import pytest

from manifest.errors import RefusedError
from presim.design import Buffer
from presim.simulate import Fault, KernelContext, SimData, simulate
from presim.simulate.lane import poison_of
from tests.presim.sketches import KERNELS, Array, Sketch, acquire, call, loop, move, numbers, put, release, three


def copier(*program, kernels: tuple[str, ...] = (), depth: int = 3) -> Sketch:  # type: ignore[no-untyped-def]
    s = Sketch()
    for kernel in kernels:
        s.kernel(kernel)
    s.worker("w", *program)
    s.fifo("x", "shim0", "w", depth=depth).fifo("y", "w", "shim1", depth=depth).fill("x", 4).drain("y", 4)
    return s


def fault_of(s: Sketch, **kernels) -> Fault:  # type: ignore[no-untyped-def]
    result = s.run_with([{"x": r} for r in three(4)], kernels=kernels)
    assert result.verdict == "fault", result.text
    assert result.fault is not None
    assert result.fault.text in result.text
    return result.fault


def test_use_after_release_is_named_with_the_object() -> None:
    steps = (acquire("x"), acquire("y"), release("x"), call("move", "x", "y"), release("y"))
    fault = fault_of(copier(loop(4, *steps)))
    assert (fault.kind, fault.actor, fault.step, fault.fifo, fault.number) == (
        "use_after_release",
        "w",
        "0[0].3",
        "x",
        0,
    )
    assert copier(loop(4, *steps)).run().verdict == "fault"


def test_use_after_release_in_a_later_round_has_that_objects_number() -> None:
    steps = (acquire("x", 2), acquire("y"), release("x"), call("move", "x:1", "y"), release("y"))
    fault = fault_of(copier(*move("x", "y"), loop(2, *steps)))
    assert (fault.kind, fault.step, fault.number) == ("use_after_release", "5[0].3", 2)


def test_an_index_beyond_what_is_held_is_named() -> None:
    fault = fault_of(copier(loop(4, acquire("x"), acquire("y"), call("move", "x:1", "y"), release("x"), release("y"))))
    assert (fault.kind, fault.fifo, fault.number) == ("not_held", "x", 1)
    assert "holds 1" in fault.text


def test_the_last_index_held_is_fine() -> None:
    steps = (acquire("x", 2), acquire("y"), call("move", "x:1", "y"), release("x", 2), release("y"))
    s = copier(loop(2, *steps))
    s.sequence.clear()
    s.fill("x", 4).drain("y", 2)
    assert (
        s.run_with([{"x": r} for r in three(4)], outputs=[{"y": r[1::2] + 1} for r in three(4)]).verdict == "completes"
    )


def test_a_release_above_what_is_held_is_named() -> None:
    fault = fault_of(copier(loop(4, acquire("x"), acquire("y"), call("move", "x", "y"), release("x", 2), release("y"))))
    assert (fault.kind, fault.step, fault.fifo, fault.number) == ("release_above_held", "0[0].3", "x", 0)
    assert "releases 2 of fifo 'x' and holds 1" in fault.text


def test_a_doubled_release_is_named() -> None:
    steps = (acquire("x"), acquire("y"), call("move", "x", "y"), release("x"), release("y"), release("y"))
    assert fault_of(copier(loop(4, *steps))).kind == "release_above_held"


def test_an_object_that_no_call_wrote_is_named_where_it_is_read() -> None:
    s = Sketch()
    s.worker("a", loop(4, acquire("x"), acquire("t"), call("look", "x"), release("x"), release("t")))
    s.worker("b", loop(4, *move("t", "y")))
    s.fifo("x", "shim0", "a").fifo("t", "a", "b").fifo("y", "b", "shim1").fill("x", 4).drain("y", 4)
    fault = fault_of(s)
    assert (fault.kind, fault.actor, fault.fifo, fault.number) == ("read_unwritten", "b", "t", 0)
    assert s.run().verdict == "fault"


@pytest.mark.parametrize("through", [False, True])
def test_an_unwritten_object_is_followed_to_the_host(through: bool) -> None:
    s = Sketch()
    s.worker("a", loop(4, acquire("x"), acquire("t"), call("look", "x"), release("x"), release("t")))
    s.fifo("x", "shim0", "a").fill("x", 4)
    if through:
        s.fifo("t", "a", "mem0").fifo("y", "mem0", "shim1").link("forward", "t", "y").drain("y", 4)
    else:
        s.fifo("t", "a", "shim1").drain("t", 4)
    fault = fault_of(s)
    assert (fault.kind, fault.actor, fault.fifo) == ("read_unwritten", "host", "y" if through else "t")


def test_a_segment_of_a_join_that_nobody_wrote_spoils_the_object() -> None:
    s = Sketch()
    s.worker("a", loop(2, *put("p")))
    s.worker("b", loop(2, acquire("q"), release("q")), *put("r"))
    s.worker("c", acquire("r"), call("look", "r"), release("r"))
    s.fifo("p", "a", "mem0").fifo("q", "b", "mem0").fifo("r", "b", "c").fifo("y", "mem0", "shim0", shape=(8,))
    s.link("join", "p q", "y", offsets=(0, 4)).drain("y", 2)
    assert s.run().fault == simulate(s.design()).fault
    fault = s.run().fault
    assert fault is not None
    assert (fault.kind, fault.fifo) == ("read_unwritten", "y")


def test_workers_without_calls_are_taken_to_write_what_they_hand_over() -> None:
    s = Sketch()
    s.worker("a", loop(4, acquire("x"), acquire("y"), release("x"), release("y")))
    s.fifo("x", "shim0", "a").fifo("y", "a", "shim1").fill("x", 4).drain("y", 4)
    assert s.run().verdict == "completes"


def keeper(store: list[Array], which: int):  # type: ignore[no-untyped-def]
    """A kernel that writes into what it was given the time before."""

    def keep(_: KernelContext, x: Array, y: Array) -> None:
        if store:
            store[-1][...] = 99
        store.append((x, y)[which])
        y[...] = x + 1

    return keep


@pytest.mark.parametrize("which", [0, 1])
def test_writing_into_an_object_that_another_holds_is_named(which: int) -> None:
    fault = fault_of(copier(loop(4, *move("x", "y", kernel="keep")), kernels=("keep",)), keep=keeper([], which))
    assert (fault.kind, fault.actor, fault.step) == ("write_not_held", "w", "0[1].2")


def test_reading_an_object_that_was_given_back_reads_poison() -> None:
    seen: list[Array] = []
    values: list[int] = []

    def keep(_: KernelContext, x: Array, y: Array) -> None:
        values.extend(int(old.reshape(-1)[0]) for old in seen)
        seen.append(x)
        y[...] = x + 1

    s = Sketch().kernel("keep")
    s.worker("w", loop(2, *move("x", "y", kernel="keep")))
    s.fifo("x", "shim0", "w", depth=[1, 3]).fifo("y", "w", "shim1").fill("x", 2).drain("y", 2)
    assert s.run_with([{"x": numbers(2)}], kernels={"keep": keep}, schedules=0).verdict == "completes"
    assert values == [int(poison_of("int32"))]


def test_an_exception_of_a_kernel_is_the_verdict_and_not_a_traceback() -> None:
    def broken(_: KernelContext, x: Array, y: Array) -> None:
        y[...] = x.reshape(3, 3)

    fault = fault_of(copier(loop(4, *move("x", "y", kernel="broken")), kernels=("broken",)), broken=broken)
    assert fault.kind == "kernel"
    assert "ValueError" in fault.text


def test_scratch_is_poisoned_at_every_start_and_kept_state_is_not() -> None:
    seen: dict[str, list[int]] = {"scratch": [], "state": []}

    def count(_: KernelContext, x: Array, scratch: Array, state: Array, y: Array) -> None:
        seen["scratch"].append(int(scratch[0]))
        seen["state"].append(int(state[0]))
        scratch[...] = state[...] = 1
        y[...] = x

    s = Sketch().kernel("count")
    for name, keep in (("scratch", False), ("state", True)):
        s.buffers.append(Buffer(name=name, tile=None, shape=(2,), dtype="int16", keep=keep))
    s.worker(
        "w",
        loop(2, acquire("x"), acquire("y"), call("count", "x", "#scratch", "#state", "y"), release("x"), release("y")),
    )
    s.fifo("x", "shim0", "w").fifo("y", "w", "shim1").fill("x", 2).drain("y", 2)
    s.run_with([{"x": numbers(2)}] * 2, kernels={"count": count}, schedules=0)
    fresh = int(poison_of("int16"))
    assert seen == {"scratch": [fresh, 1, fresh, 1], "state": [fresh, 1, 1, 1]}


@pytest.mark.parametrize(
    "dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "float32", "float16"]
)
def test_poison_is_told_apart_by_type(dtype: str) -> None:
    value = poison_of(dtype)
    assert np.dtype(dtype) == value.dtype
    others = {str(poison_of(d)) for d in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32") if d != dtype}
    assert str(value) not in others


def test_what_a_design_names_and_nobody_gives_is_refused_all_at_once() -> None:
    s = copier(loop(4, *move("x", "y", kernel="other")), kernels=("other",))
    s.buffers.append(Buffer(name="b", tile=None, shape=(2,), dtype="int8", array="t000001"))
    s.buffers.append(Buffer(name="c", tile=None, shape=(2,), dtype="int8", array="t000002"))
    s.buffers.append(Buffer(name="d", tile=None, shape=(2,), dtype="int8", array="t000003"))
    arrays = {"t000002": np.zeros(3, np.int8), "t000003": np.array([1, 128])}
    with pytest.raises(RefusedError) as caught:
        simulate(s.design(), data=SimData(kernels=KERNELS, inputs=[{}, {"x": numbers(4)}], arrays=arrays))
    assert {p.code for p in caught.value.problems} == {"DESIGN-DATA"}
    lines = [p.line() for p in caught.value.problems]
    assert len(lines) == 5
    words = ("array 't000001'", "has 3 elements, expected 2", "no int8", "kernel 'other'", "tensor 'x' of inference 0")
    assert all(any(word in line for line in lines) for word in words), lines


@pytest.mark.parametrize(
    ("elements", "value", "fine"), [(16, 0, True), (15, 0, False), (16, 1 << 31, False), (16, 0.5, False)]
)
def test_inputs_have_the_elements_and_the_type_of_their_fifo(elements: int, value: float, fine: bool) -> None:
    s = copier(loop(4, *move("x", "y")))
    x = np.full(elements, value)
    if fine:
        assert s.run_with([{"x": x}]).verdict == "completes"
    else:
        with pytest.raises(RefusedError, match="tensor 'x' of inference 0"):
            s.run_with([{"x": x}])


def test_a_tensor_that_nobody_drains_is_named() -> None:
    result = copier(loop(4, *move("x", "y"))).run_with([{"x": numbers(4)}], outputs=[{"z": numbers(4)}])
    assert result.verdict == "fault"
    assert "tensor 'z'" in result.text


def test_the_last_events_of_every_actor_are_kept_and_bounded() -> None:
    s = copier(loop(4, acquire("x"), acquire("y"), call("move", "x", "y"), release("x"), release("y")), acquire("x", 4))
    s.fifos[0] = Sketch().fifo("x", "shim0", "w", depth=2).fifos[0]
    s.tiles["w"] = s.tiles["w"]
    result = s.run(log_events=5)
    assert result.verdict == "deadlock"
    own = [e for e in result.events if e.actor == "w"]
    assert 0 < len(own) <= 5
    assert own[-1].op == "release"
    assert all(len([e for e in result.events if e.actor == a]) <= 5 for a in {e.actor for e in result.events})
