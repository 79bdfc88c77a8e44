"""Designs that the templates of `aie.iron.algorithms` make."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from presim.simulate import SimData, simulate
from tests.presim.iron.lowering import FIRST_LINE, lowered, refusals

Array = NDArray[Any]
Expected = Callable[[Mapping[str, Array]], Array]

IMPORTS = (
    "from aie.iron import kernels; from aie.iron.algorithms import *\nbig = np.ndarray[(1024,), np.dtype[np.int32]]\n"
)
FACTOR = "np.ndarray[(1,), np.dtype[np.int32]]"
CASES: Mapping[str, tuple[int, Expected]] = {
    "transform(lambda x: x * 2 + 1, big)": (1, lambda t: t["in0"] * 2 + 1),
    "transform_binary(lambda x, y: x - y, big, tile_size=64)": (1, lambda t: t["in0"] - t["in1"]),
    f"transform(kernels.scale(64, np.int32), big, {FACTOR}, tile_size=64)": (1, lambda t: t["in0"] * t["param0"]),
    f"transform_parallel(kernels.scale(32, np.int32), big, {FACTOR}, tile_size=32)": (
        8,
        lambda t: t["in0"] * t["param0"],
    ),
    "transform_parallel(lambda x: x - 3, big, num_channels=2)": (16, lambda t: t["in0"] - 3),
    "transform_parallel_binary(lambda x, y: x + y, big)": (8, lambda t: t["in0"] + t["in1"]),
}


def scale(_: object, taken: Array, made: Array, factor: Array) -> None:
    made[...] = taken * factor[0]


@pytest.mark.parametrize("text", CASES)
def test_a_template_gives_right_results(tmp_path: Path, text: str) -> None:
    workers, expected = CASES[text]
    made = lowered(tmp_path, IMPORTS + text)
    assert len(made.design.workers) == workers
    names = {t.tensor for t in made.design.sequence if t.direction == "fill"}
    rng = np.random.default_rng(0)
    sizes = {n: s for n, _, s in made.argument_types}
    feeds = [{n: rng.integers(-99, 99, sizes[n]).astype(np.int32) for n in sorted(names)} for _ in range(2)]
    outputs = [{"out": expected(f)} for f in feeds]
    kernels = made.kernels({"vector_scalar_mul_vector": scale})
    result = simulate(made.design, data=SimData(kernels=kernels, inputs=feeds, arrays=made.arrays, outputs=outputs))
    assert result.sound, result.text
    assert result.compared == {"out": 2048}


REFUSED = {
    "transform(lambda x: x, big, tile_size=48)": "algorithms.transform: 1024 elements are no multiple of 48 x 1",
    "transform_parallel(lambda x: x, big, tile_size=256)": "1024 elements are no multiple of 256 x 8 workers",
    "transform_parallel(lambda x: x, big, num_channels=3)": "num_channels: 1 or 2, 1 with parameters; got 3",
    "transform(lambda x: x, big, 3)": "parameters are for kernels, got a function",
    "transform(lambda x: x, big, size=3)": "got an unexpected keyword argument 'size'; 1.4.0 takes (func,",
    "transform(lambda x: x, np.int32)": "algorithms.transform: tensor_ty",
    "kernels.add(tile_size=64)": "kernels.add: 64 elements of bfloat16, the library has 1024 of bfloat16",
    "kernels.mul(dtype=np.int8)": "kernels.mul: 1024 elements of int8, the library has 1024 of bfloat16",
}


def test_what_a_template_does_not_take_is_refused_at_its_line(tmp_path: Path) -> None:
    found = refusals(tmp_path, [IMPORTS + text for text in REFUSED])
    for text, part in REFUSED.items():
        where, what = found[IMPORTS + text]
        assert part in what, (text, what)
        assert where == f"design.py:{FIRST_LINE + 2}"
