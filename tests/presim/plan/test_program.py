"""Programs of workers: what is held, when it is given back, how jobs take turns."""

import pytest

from presim.design import Acquire, Argument, Call, Loop, Release, Step
from presim.plan.access import Firing
from presim.plan.program import Body, Feed, Job, Weights, write_program


def job(
    name: str,
    fired: list[Firing],
    source: str,
    total: int,
    output: str,
    *,
    inside: tuple[bool, bool] = (False, False),
    body: Body | None = None,
) -> Job:
    return Job(
        name=name,
        fired=tuple(fired),
        feeds=(Feed(fifo=source, total=total, internal=inside[0]),),
        operands=(0,),
        output=output,
        internal=inside[1],
        bodies=(body or Body(kernel=name),),
    )


def plain(count: int) -> list[Firing]:
    return [Firing(needs=((i,),)) for i in range(count)]


def test_inputs_first_then_room_for_the_output_then_the_kernel() -> None:
    written = write_program([job("k", plain(1), "x", 1, "y", body=Body(kernel="k", buffers=("b",)))])
    assert written.steps == (
        Acquire(fifo="x", count=1),
        Acquire(fifo="y", count=1),
        Call(
            kernel="k",
            arguments=(
                Argument(kind="fifo", name="x"),
                Argument(kind="buffer", name="b"),
                Argument(kind="fifo", name="y"),
            ),
        ),
        Release(fifo="x", count=1),
        Release(fifo="y", count=1),
    )


def test_objects_in_front_and_behind_are_taken_and_given_back() -> None:
    written = write_program([job("k", [Firing(needs=((1,),))], "x", 4, "y")])
    names = [(type(s).__name__, s.count) for s in written.steps if not isinstance(s, Call | Loop) and s.fifo == "x"]
    assert names[:3] == [("Acquire", 1), ("Release", 1), ("Acquire", 1)]
    taken = sum(s.count for s in written.steps if isinstance(s, Release) and s.fifo == "x")
    assert taken == 4


def test_streamed_weights_are_taken_anew_for_every_object() -> None:
    body = Body(kernel="k", weights=Weights(fifo="w", objects=3, chunk=8), macs=9)
    written = write_program([job("k", plain(2), "x", 2, "y", body=body)])
    (loop,) = written.steps
    assert isinstance(loop, Loop)
    calls = [s for s in loop.body if isinstance(s, Call)]
    assert [dict(c.scalars)["out_offset"] for c in calls] == [0, 8, 16]
    assert [c.macs for c in calls] == [3, 3, 3]
    assert calls[0].arguments[1] == Argument(kind="fifo", name="w")


def test_the_job_furthest_downstream_goes_first() -> None:
    pool = [Firing(needs=((0, 1),)), Firing(needs=((2, 3),))]
    jobs = [
        job("a", plain(4), "x", 4, "t", inside=(False, True)),
        job("b", pool, "t", 4, "y", inside=(True, False)),
    ]
    written = write_program(jobs)
    assert written.depths == {"t": 2}
    assert kernels(written.steps) == ["a", "a", "b", "a", "a", "b"]


def kernels(steps: tuple[Step, ...]) -> list[str]:
    """Kernels in the order in which they run."""
    found = []
    for step in steps:
        if isinstance(step, Loop):
            found += kernels(step.body) * step.times
        elif isinstance(step, Call):
            found.append(step.kernel)
    return found


def test_sides_are_said_inside_a_worker_alone() -> None:
    jobs = [
        job("a", plain(1), "x", 1, "t", inside=(False, True)),
        job("b", plain(1), "t", 1, "y", inside=(True, False)),
    ]
    steps = write_program(jobs).steps
    sides = {(s.fifo, s.side) for s in steps if isinstance(s, Acquire | Release)}
    assert sides == {("x", ""), ("t", "produce"), ("t", "consume"), ("y", "")}


def test_jobs_that_never_get_their_objects_are_an_error() -> None:
    with pytest.raises(ValueError, match="wait for each other"):
        write_program([job("b", plain(2), "t", 2, "t", inside=(True, True))])
