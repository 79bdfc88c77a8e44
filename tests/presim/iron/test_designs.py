"""Every pattern of the published examples: a clean design computes what it should, its hanging variant is found."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from numpy.typing import NDArray

from presim.iron.lowered import Lowered
from presim.iron.run import lower_file
from presim.simulate import SimData, SimOptions, SimResult, simulate

Array = NDArray[Any]
Feed = Mapping[str, Array]
DESIGNS: Final = Path(__file__).parent / "designs"


def scale(context: Any, taken: Array, made: Array) -> None:
    made[...] = taken * context.scalars["s0"]


def add(context: Any, a: Array, b: Array, made: Array) -> None:
    made[...] = a + b


def total(context: Any, a: Array, b: Array, c: Array, made: Array) -> None:
    made[...] = a + b + c


def double(context: Any, taken: Array, made: Array) -> None:
    made[...] = taken * 2


def relu(context: Any, taken: Array, made: Array) -> None:
    made[...] = np.maximum(taken, 0)


def blur(context: Any, *arrays: Array) -> None:
    top, mid, bottom, taps, made = arrays
    made[...] = taps[0] * top + taps[1] * mid + taps[2] * bottom + context.scalars["s0"]


def shift(context: Any, taken: Array, by: Array, made: Array) -> None:
    made[...] = taken + by[0]


def clear(context: Any, made: Array) -> None:
    made[...] = 0


def product(context: Any, a: Array, b: Array, made: Array) -> None:
    """A comes in two halves of four columns, B and C by rows."""
    left = np.concatenate(a.reshape(2, 8, 4), axis=1).astype(np.int32)
    made[...] += (left @ b.reshape(8, 8)).reshape(-1)


def square(context: Any, taken: Array, port: Any) -> None:
    port.put(taken * taken)


def finish(context: Any, taken: Array, made: Array, block: Array) -> None:
    made[...] = block + taken


def mark(context: Any, token: Array) -> None:
    token[...] = 1


def numbers(seed: int, shape: tuple[int, ...], dtype: str = "int32") -> Array:
    return np.random.default_rng(seed).integers(-100, 100, shape).astype(dtype)


def windowed(x: Array) -> Array:
    rows = [x[0], *x, x[-1]]
    border = [0] + [1] * (len(x) - 2) + [2]
    return np.stack([rows[i] + 2 * rows[i + 1] + 3 * rows[i + 2] + border[i] + x[i] for i in range(len(x))])


@dataclass(frozen=True)
class Pattern:
    """A design file: what it is fed, its kernels, what it should give, what its hanging variant is."""

    feed: Callable[[int], Feed]
    result: Callable[[Feed], Feed]
    kernels: Mapping[str, Callable[..., None]]
    hang: str
    says: str


PATTERNS: Final = {
    "passthrough": Pattern(
        feed=lambda s: {"x": numbers(s, (128,), "int16")},
        result=lambda f: {"y": f["x"] + 1},
        kernels={},
        hang="deadlock",
        says="no room for fifo 'out' at host",
    ),
    "split_join": Pattern(
        feed=lambda s: {"x": numbers(s, (4, 24))},
        result=lambda f: {"y": f["x"] * np.repeat([2, 3, 4], 8).astype(np.int32)},
        kernels={"scale": scale},
        hang="deadlock",
        says="fifo 'in",
    ),
    "broadcast": Pattern(
        feed=lambda s: {"x": numbers(s, (24,))},
        result=lambda f: {
            "y": (f["x"].reshape(2, 3, 4) + f["x"].reshape(2, 3, 4).sum(axis=1, keepdims=True)).astype(np.int32)
        },
        kernels={"add": add, "total": total},
        hang="deadlock",
        says="depth 3 in place of 1 for fifo 'in' at consume:join",
    ),
    "pipeline": Pattern(
        feed=lambda s: {"x": numbers(s, (48,), "int16")},
        result=lambda f: {"y": np.maximum(f["x"] * 2, 0)},
        kernels={"double": double, "relu": relu},
        hang="deadlock",
        says="1 object at the start of fifo",
    ),
    "window": Pattern(
        feed=lambda s: {"x": numbers(s, (5, 8))},
        result=lambda f: {"y": windowed(f["x"])},
        kernels={"blur": blur, "add": add},
        hang="deadlock",
        says="lets it run",
    ),
    "barrier": Pattern(
        feed=lambda s: {"x": numbers(s, (32,))},
        result=lambda f: {"y": f["x"] * 7},
        kernels={"scale": scale},
        hang="deadlock",
        says="barrier",
    ),
    "columns": Pattern(
        feed=lambda s: {"x": numbers(s, (6, 8)), "v": numbers(s + 50, (6,))},
        result=lambda f: {"y": f["x"] + f["v"][:, None]},
        kernels={"shift": shift},
        hang="deadlock",
        says="fifo 'vector'",
    ),
    "matmul": Pattern(
        feed=lambda s: {"a": numbers(s, (16, 24), "int16"), "b": numbers(s + 9, (24, 8), "int16")},
        result=lambda f: {"c": f["a"].astype(np.int32) @ f["b"].astype(np.int32)},
        kernels={"matmul_scalar_i16_i32": product, "zero_scalar_i32": clear},
        hang="deadlock",
        says="host awaits",
    ),
    "cascade": Pattern(
        feed=lambda s: {"x": numbers(s, (32,)), "w": numbers(s + 7, (32,))},
        result=lambda f: {"y": f["x"] * f["x"] + f["w"]},
        kernels={"square_put_cascade": square, "add_get_cascade": finish, "mark": mark},
        hang="deadlock",
        says="cascade",
    ),
}


def run(lowered: Lowered, pattern: Pattern, *, expect: bool = True) -> SimResult:
    feeds = [pattern.feed(seed) for seed in range(2)]
    data = SimData(
        kernels=lowered.kernels(pattern.kernels),
        inputs=feeds,
        arrays=lowered.arrays,
        outputs=[pattern.result(f) for f in feeds] if expect else [],
    )
    return simulate(lowered.design, data=data, options=SimOptions(schedules=3))


@pytest.mark.parametrize("name", PATTERNS)
def test_clean_design_computes_what_it_should(name: str) -> None:
    result = run(lower_file(DESIGNS / f"{name}.py"), PATTERNS[name])
    assert result.sound, result.text
    assert sum(result.compared.values()) > 0


@pytest.mark.parametrize("name", PATTERNS)
def test_wrong_result_is_seen(name: str) -> None:
    """The comparison can fail: one element off by one."""
    pattern = PATTERNS[name]
    feed = pattern.feed(0)
    wrong = {n: a.copy() for n, a in pattern.result(feed).items()}
    next(iter(wrong.values())).reshape(-1)[-1] += 1
    lowered = lower_file(DESIGNS / f"{name}.py")
    data = SimData(kernels=lowered.kernels(pattern.kernels), inputs=[feed], arrays=lowered.arrays, outputs=[wrong])
    assert simulate(lowered.design, data=data, options=SimOptions(schedules=0)).verdict == "wrong_data"


@pytest.mark.parametrize("name", PATTERNS)
def test_hanging_variant_is_found(name: str) -> None:
    pattern = PATTERNS[name]
    result = run(lower_file(DESIGNS / f"{name}.py", argv=["hang"]), pattern, expect=False)
    assert result.verdict == pattern.hang, result.text
    assert pattern.says in result.text


def test_barrier_that_the_core_clears_needs_a_set_for_each_inference() -> None:
    pattern = PATTERNS["barrier"]
    result = run(lower_file(DESIGNS / "barrier.py", argv=["again"]), pattern)
    assert result.sound, result.text
