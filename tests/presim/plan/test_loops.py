"""Programs of loops run the steps that they were made from."""

from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from presim.design import Acquire, Argument, Call, Loop, Release, Step
from presim.plan.loops import LONGEST_PERIOD, Turn, program_of
from presim.steps import variable_of


def call(kernel: str, **scalars: int) -> Call:
    return Call(kernel=kernel, arguments=(Argument(kind="fifo", name="x"),), scalars=tuple(scalars.items()))


def unrolled(program: tuple[Step, ...], counters: dict[str, int] | None = None) -> Iterator[Step]:
    """Every step as it runs, counters as numbers."""
    known = counters or {}
    for step in program:
        if isinstance(step, Loop):
            for turn in range(step.times):
                yield from unrolled(step.body, {**known, step.counter: turn})
        elif isinstance(step, Call):
            yield Call(
                kernel=step.kernel,
                arguments=step.arguments,
                scalars=tuple((name, value(given, known)) for name, given in step.scalars),
            )
        else:
            yield step


def value(given: int | str, known: dict[str, int]) -> int:
    if isinstance(given, int):
        return given
    found = variable_of(given)
    assert found is not None
    name, factor, offset = found
    return known[name] * factor + offset


def size(program: tuple[Step, ...]) -> int:
    return sum(1 + (size(s.body) if isinstance(s, Loop) else 0) for s in program)


def test_a_sliding_window_is_a_preamble_a_loop_and_an_end() -> None:
    first: Turn = (Acquire(fifo="x", count=2), call("k", pad_top=1))
    middle: Turn = (Acquire(fifo="x", count=3), call("k", pad_top=0), Release(fifo="x", count=1))
    last: Turn = (Acquire(fifo="x", count=2), call("k", pad_top=0), Release(fifo="x", count=2))
    program = program_of([first, *[middle] * 198, last])
    assert program == (*first, Loop(times=198, body=middle), *last)


def test_counters_grow_and_start_again_with_every_image() -> None:
    turns = [(call("rows", row=row),) for _ in range(3) for row in range(5)]
    program = program_of(turns)
    assert list(unrolled(program)) == [step for turn in turns for step in turn]
    assert size(program) <= 8


def test_offsets_and_factors() -> None:
    turns = [(call("k", a=7 - k, b=3 * k + 1, c=5),) for k in range(4)]
    (loop,) = program_of(turns)
    assert isinstance(loop, Loop)
    (step,) = loop.body
    assert isinstance(step, Call)
    name = loop.counter
    assert step.scalars == (("a", f"@{name}*-1+7"), ("b", f"@{name}*3+1"), ("c", 5))


def test_uneven_integers_are_not_a_loop() -> None:
    turns = [(call("k", a=a),) for a in (0, 1, 3, 7)]
    program = program_of(turns)
    assert list(unrolled(program)) == [step for turn in turns for step in turn]
    assert not any(isinstance(s, Loop) and s.times > 2 for s in program)


def test_a_period_up_to_the_longest_is_found() -> None:
    period = [(call(f"k{i}"),) for i in range(LONGEST_PERIOD)]
    (loop,) = program_of(period * 3)
    assert isinstance(loop, Loop)
    assert (loop.times, len(loop.body)) == (3, LONGEST_PERIOD)


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=40),
    st.integers(1, 4),
    st.integers(1, 3),
)
def test_any_list_of_turns_runs_as_it_is_written(pairs: list[tuple[int, int]], repeats: int, inner: int) -> None:
    once = [(Acquire(fifo="x", count=n + 1), call("k", a=a, b=n)) for n, a in pairs for _ in range(inner)]
    turns = once * repeats
    program = program_of(turns)
    assert list(unrolled(program)) == [step for turn in turns for step in turn]
