"""Plain Python of core bodies: against numpy, one trip at a time and a whole loop at once."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from presim.iron import traced
from presim.iron.traced import TracedKernel, function_of

COUNTER = ["counter", "i0"]
OPERATIONS = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
}


def context(**scalars: int) -> Any:
    return SimpleNamespace(scalars=scalars, worker="w", modes=None, rounding="floor", saturation="none")


def run(statements: list[Any], *arrays: Any, counters: tuple[str, ...] = (), **scalars: int) -> None:
    kernel = TracedKernel(symbol="k", parameters=(), counters=counters, statements=tuple(statements))
    function_of(kernel, {})(context(**scalars), *arrays)


def elementwise(name: str, dtype: str, size: int) -> list[Any]:
    body = [
        ["load", 1, 0, [COUNTER]],
        ["load", 2, 1, [COUNTER]],
        ["store", 2, [COUNTER], ["op", name, dtype, ["temp", 1], ["temp", 2]]],
    ]
    return [["loop", "i0", size, body]]


@given(
    name=st.sampled_from(sorted(OPERATIONS)),
    dtype=st.sampled_from(["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64"]),
    seed=st.integers(0, 1000),
)
def test_integers_wrap_as_numpys_do(name: str, dtype: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    a, b = (rng.integers(low, high, 9, dtype=dtype, endpoint=True) for _ in range(2))
    made = np.zeros(9, dtype)
    run(elementwise(name, dtype, 9), a, b, made)
    with np.errstate(over="ignore"):
        assert np.array_equal(made, OPERATIONS[name](a, b))


@given(name=st.sampled_from(["add", "sub", "mul"]), dtype=st.sampled_from(["int8", "int32"]), seed=st.integers(0, 1000))
def test_whole_loop_and_single_trips_agree(name: str, dtype: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = (rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, 7, dtype=dtype) for _ in range(2))
    whole, single = np.zeros(7, dtype), np.zeros(7, dtype)
    program = elementwise(name, dtype, 7)
    run(program, a, b, whole)
    for trip in range(7):
        run(program[0][3], a, b, single, counters=("i0",), s0=trip)
    assert np.array_equal(whole, single)


def test_sum_over_trips_is_not_computed_at_once() -> None:
    """`acc[0] = acc[0] + x[i]`."""
    body = [
        ["load", 1, 1, [["const", 0]]],
        ["load", 2, 0, [COUNTER]],
        ["store", 1, [["const", 0]], ["op", "add", "int32", ["temp", 1], ["temp", 2]]],
    ]
    x, acc = np.arange(6, dtype=np.int32), np.zeros(1, np.int32)
    run([["loop", "i0", 6, body]], x, acc)
    assert acc[0] == 15


def test_prefix_sum_is_not_computed_at_once() -> None:
    """`x[i + 1] = x[i + 1] + x[i]`."""
    after = ["op", "add", "", COUNTER, ["const", 1]]
    body = [
        ["load", 1, 0, [after]],
        ["load", 2, 0, [COUNTER]],
        ["store", 0, [after], ["op", "add", "int32", ["temp", 1], ["temp", 2]]],
    ]
    x = np.ones(5, np.int32)
    run([["loop", "i0", 4, body]], x)
    assert x.tolist() == [1, 2, 3, 4, 5]


def test_copy_within_one_array_is_not_computed_at_once() -> None:
    """`x[i + 1] = x[i]` carries the first value through."""
    after = ["op", "add", "", COUNTER, ["const", 1]]
    x = np.array([7, 1, 2, 3], np.int32)
    run([["loop", "i0", 3, [["load", 1, 0, [COUNTER]], ["store", 0, [after], ["temp", 1]]]]], x)
    assert x.tolist() == [7, 7, 7, 7]


def test_element_that_stays_is_read_with_every_trip() -> None:
    """`y[i] = x[i] * f[0]`."""
    body = [
        ["load", 1, 0, [COUNTER]],
        ["load", 2, 1, [["const", 0]]],
        ["store", 2, [COUNTER], ["op", "mul", "int16", ["temp", 1], ["temp", 2]]],
    ]
    x, f, y = np.arange(4, dtype=np.int16), np.array([3], np.int16), np.zeros(4, np.int16)
    run([["loop", "i0", 4, body]], x, f, y)
    assert y.tolist() == [0, 3, 6, 9]


def test_two_dimensions_and_a_counter_from_outside() -> None:
    inner = [["store", 0, [["counter", "i9"], COUNTER], ["cast", "int8", COUNTER]]]
    x = np.zeros((2, 3), np.int8)
    run([["loop", "i0", 3, inner]], x, counters=("i9",), s0=1)
    assert x.tolist() == [[0, 0, 0], [0, 1, 2]]


def test_branches() -> None:
    negative = ["op", "lt", "int32", ["temp", 1], ["const", 0]]
    body = [
        ["load", 1, 0, [COUNTER]],
        ["if", negative, [["store", 0, [COUNTER], ["const", 0]]], [["store", 0, [COUNTER], ["const", 9]]]],
    ]
    x = np.array([-3, 4, -1], np.int32)
    run([["loop", "i0", 3, body]], x)
    assert x.tolist() == [0, 9, 0]


def test_floats_stay_in_their_type() -> None:
    a, b, made = (np.array(v, np.float32) for v in ([0.1, 1e38], [0.2, 10.0], [0.0, 0.0]))
    run(elementwise("mul", "float32", 2), a, b, made)
    with np.errstate(over="ignore"):
        assert np.array_equal(made, a * b)


def test_calls_get_computed_numbers_and_memory() -> None:
    got: list[Any] = []
    kernel = TracedKernel(
        symbol="k",
        parameters=(),
        counters=(),
        statements=(
            ["load", 1, 0, [["const", 1]]],
            ["call", "f", [["memory", 0], ["number", ["op", "add", "int32", ["temp", 1], ["const", 5]]]]],
        ),
    )
    assert kernel.calls == ("f",)
    functions = {"f": lambda c, x: got.append((c.scalars, c.kernel, x.tolist()))}
    function_of(kernel, functions)(context(), np.array([1, 2], np.int32))
    assert got == [({"s0": 7}, "f", [1, 2])]


@pytest.mark.parametrize(
    ("place", "moves"),
    [
        ([COUNTER], True),
        ([["op", "add", "", COUNTER, ["const", 3]]], True),
        ([["op", "mul", "", COUNTER, ["const", 2]]], True),
        ([["op", "mul", "", COUNTER, ["const", 0]]], False),
        ([["op", "floordiv", "", COUNTER, ["const", 2]]], False),
        ([["const", 3]], False),
        ([["counter", "i1"]], False),
        ([["counter", "i1"], COUNTER], True),
    ],
)
def test_places_that_move_with_the_loop(place: list[Any], moves: bool) -> None:
    assert traced._moves(place, "i0") is moves
