"""State of the tiles with the host's own AIE API: modes that stay, cascades, events; each run begins as after reset."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from bringup.execute import ExternalAbi, HostResult, HostTask, Library, Runner, build
from bringup.execute.compile import AIE_API_HOST
from presim.design import Cascade
from tests.bringup.execute.compiled import pointer
from tests.presim.sketches import Sketch, acquire, call, loop, release

HEAD = "#include <aie_api/aie.hpp>\n"


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("libraries")


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runner]:
    with Runner(tmp_path_factory.mktemp("jobs"), timeout_s=60) as made:
        yield made


def library(out: Path, externals: list[ExternalAbi], **bodies: str) -> Library:
    sources = {f"{name}.cc": (HEAD + text).encode() for name, text in bodies.items()}
    return build(sources, externals, out, api=AIE_API_HOST, flags=("-DAIE_HOST_ARCH=20",))


def abi(symbol: str, *names: str, elements: int = 16) -> ExternalAbi:
    rows = [pointer(n, elements, access="out" if n == "y" else "in") for n in names]
    return ExternalAbi(symbol=symbol, parameters=tuple(rows))


SET = """
extern "C" void set(const int32 *x, int32 *y) {
  aie::set_rounding(aie::rounding_mode::conv_even);
  for (int i = 0; i < 16; ++i) y[i] = x[i];
}
"""
GET = """
extern "C" void get(const int32 *x, int32 *y) {
  for (int i = 0; i < 16; ++i) y[i] = x[i] + (int)aie::get_rounding();
}
"""


def chain(runner: Runner, out: Path, first: str, second: str, *, same_tile: bool) -> HostResult:
    """Two workers one behind the other, or two calls of one worker; the second adds the mode that it finds."""
    s = Sketch().kernel("set").kernel("get")
    s.fifo("x", "shim0", "a", shape=(16,)).fifo("t", "a", "a" if same_tile else "b", shape=(16,))
    s.fifo("y", "a" if same_tile else "b", "shim9", shape=(16,)).fill("x", 2).drain("y", 2)
    one = (
        acquire("x"),
        acquire("t", 1, "produce"),
        call(first, "x", "t/produce"),
        release("x"),
        release("t", 1, "produce"),
    )
    two = (
        acquire("t", 1, "consume"),
        acquire("y"),
        call(second, "t/consume", "y"),
        release("t", 1, "consume"),
        release("y"),
    )
    if same_tile:
        s.worker("a", loop(2, *one, *two))
    else:
        s.worker("a", loop(2, *one)).worker("b", loop(2, *two))
    made = library(out, [abi("set", "x", "y"), abi("get", "x", "y")], set=SET, get=GET)
    task = HostTask(name="m", design=s.design(), inputs=[{"x": np.zeros(32, np.int32)}] * 2)
    return runner.run(task, made)


def test_a_mode_stays_on_its_tile_and_is_not_seen_by_another(runner: Runner, out: Path) -> None:
    stays = chain(runner, out, "set", "get", same_tile=True)
    assert stays.verdict == "completes", stays.text
    mode = int(stays.outputs[0]["y"][0])
    assert mode > 0
    assert set(np.concatenate([o["y"] for o in stays.outputs])) == {mode}
    other = chain(runner, out, "set", "get", same_tile=False)
    assert set(np.concatenate([o["y"] for o in other.outputs])) == {0}


def test_a_mode_that_a_later_call_sets_is_seen_from_the_next_call_on_and_again_in_every_schedule(
    runner: Runner, out: Path
) -> None:
    result = chain(runner, out, "get", "set", same_tile=True)
    assert result.verdict == "completes", result.text
    first, second = (o["y"].reshape(2, 16) for o in result.outputs)
    assert set(first[0]) == {0}
    assert 0 not in first[1]
    assert 0 not in second


PUT = 'extern "C" void put(const int32 *x) { auto v = aie::load_v<16>(x); put_mcd(v); }\n'
TAKE = """extern "C" void take(const int32 *x, int32 *y) {
  auto v = get_scd_v16int32();
  aie::store_v(y, aie::add(v, aie::load_v<16>(x)));
}
"""


def cascaded(runner: Runner, out: Path, put: str = PUT, take: str = TAKE) -> tuple[HostResult, list[np.ndarray]]:
    s = Sketch().kernel("put").kernel("take")
    s.fifo("x0", "shim0", "a", shape=(16,)).fifo("x1", "shim1", "b", shape=(16,)).fifo("y", "b", "shim9", shape=(16,))
    s.worker("a", loop(3, acquire("x0"), call("put", "x0", ">"), release("x0")))
    s.worker("b", loop(3, acquire("x1"), acquire("y"), call("take", "x1", "<", "y"), release("x1"), release("y")))
    s.cascades.append(Cascade(source="a", target="b"))
    s.fill("x0", 3).fill("x1", 3).drain("y", 3)
    rng = np.random.default_rng(0)
    inputs = [{n: rng.integers(-9, 9, 48).astype(np.int32) for n in ("x0", "x1")} for _ in range(2)]
    wanted = [i["x0"] + i["x1"] for i in inputs]
    made = library(out, [abi("put", "x"), abi("take", "x", "y")], put=put, take=take)
    task = HostTask(name="c", design=s.design(), inputs=inputs, outputs=[{"y": w} for w in wanted])
    return runner.run(task, made), wanted


def test_a_cascade_carries_what_is_put_to_the_kernel_that_takes_it(runner: Runner, out: Path) -> None:
    result, wanted = cascaded(runner, out)
    assert result.verdict == "completes", result.text
    assert result.compared == {"y": sum(w.size for w in wanted)}


@pytest.mark.parametrize(
    ("put", "take", "words"),
    [
        (PUT.replace("put_mcd(v);", "put_mcd(v); put_mcd(v);"), TAKE, "leaves 64 bytes of the cascade unread"),
        (PUT.replace("put_mcd(v);", "(void)v;"), TAKE, "put nothing on the cascade"),
        (
            PUT,
            TAKE.replace("auto v", "get_scd_v16int32(); auto v"),
            "cascade read, but the neighbour put no more words",
        ),
    ],
)
def test_a_cascade_that_is_not_read_as_written_is_a_fault(
    runner: Runner, out: Path, put: str, take: str, words: str
) -> None:
    result, _ = cascaded(runner, out, put, take)
    assert result.verdict in {"fault", "crash"}
    assert words in result.text


def test_an_overrun_of_a_vector_store_names_the_kernels_line(runner: Runner, out: Path) -> None:
    wrong = TAKE.replace("aie::store_v(y,", "aie::store_v(y + 16,")
    result, _ = cascaded(runner, out, PUT, wrong)
    assert result.crash is not None
    assert (result.crash.kernel, result.crash.argument, result.crash.source) == ("take", "y", "take.cc:4")
