"""Emitted `gemm`, `gemm_rows` and `gemm_finish` against the simulator's kernels and the scalar twin."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from bringup.kernels import gemm as emitter
from bringup.kernels.elementwise import ROUNDINGS
from bringup.kernels.model import Row
from presim.blocks import channels_of
from tests.bringup.kernels.draws import Drawn, Finish, Vector, gemm, gemm_rows
from tests.bringup.kernels.emitted import SATURATIONS
from tests.bringup.kernels.heavy import Book, Call, compiled, differing, shifted, simulated
from tests.bringup.kernels.twins import Twins

Array = NDArray[Any]
Arch = Literal["aie2", "aie2p"]

VECTORS: dict[str, tuple[Vector, Finish]] = {
    "one block": (Vector(inputs=13, outputs=8, x_zero_point=3), Finish(shift=(37, 40), zero_point=-3)),
    "several blocks, uniform": (
        Vector(inputs=24, outputs=30, x="uint8", x_zero_point=200),
        Finish(dtype="uint8", uniform=True, zero_point=7, inside=True, acc_shift=(2,), shift=(42, 43)),
    ),
    "zero points of channels": (
        Vector(inputs=8, outputs=21, w="uint8", w_zero_points=tuple(range(100, 121))),
        Finish(acc_shift=tuple(i % 5 for i in range(21)), bounds=(-100, 90), shift=(40, 43)),
    ),
    "16 bits": (
        Vector(inputs=16, outputs=17, x="uint16", x_zero_point=40000, w_bits=6),
        Finish(dtype="uint16", zero_point=30000, shift=(37, 40)),
    ),
    "64 bits": (
        Vector(inputs=16, outputs=30, x="int16", w="int16", x_zero_point=-9),
        Finish(acc_bits=64, dtype="int16", shift=(47, 51), acc_shift=(1,)),
    ),
    "integers": (Vector(inputs=10, outputs=10, x="uint8", x_zero_point=9), Finish(kind="exact", dtype="int32")),
    "integers of 64 bits": (
        Vector(inputs=10, outputs=18, x="uint16", w="int16", x_zero_point=40000),
        Finish(kind="exact", dtype="int64", acc_bits=64, bias=False),
    ),
    "part of the inputs": (Vector(inputs=24, outputs=8, in_first=13, in_count=5, x_first=8), Finish(shift=(36, 38))),
}
IMAGES: dict[str, tuple[tuple[int, int, int], Vector, Finish]] = {
    "rows": ((12, 3, 5), Vector(outputs=10, x_zero_point=-5), Finish(shift=(39, 42), zero_point=4)),
    "rows, unsigned": (
        (3, 2, 4),
        Vector(outputs=20, x="uint8", w="uint8", x_zero_point=100, w_zero_points=(120,)),
        Finish(dtype="uint8", uniform=True, shift=(39, 40)),
    ),
    "rows, 64 bits": (
        (8, 4, 2),
        Vector(outputs=9, x="int16", w="int16", x_zero_point=5),
        Finish(acc_bits=64, dtype="int16", shift=(49, 52)),
    ),
    "rows, integers": ((5, 2, 3), Vector(outputs=9), Finish(kind="exact", dtype="int32")),
}
PARTS = ((0, 16), (16, 5))
FINISHES: dict[str, Finish] = {
    "32 bits": Finish(shift=(0, 59), zero_point=3, bias=False),
    "upwards": Finish(shift=(-20, 0), multiplier=(-9, 9), bias=False),
    "far": Finish(shift=(63, 100), bias=False),
    "16 bits": Finish(shift=(20, 47), dtype="int16", zero_point=-32768),
    "64 bits": Finish(shift=(-20, 110), acc_bits=64, dtype="int16", zero_point=101, inside=True, bias=False),
    "64 bits, unsigned": Finish(shift=(40, 70), acc_bits=64, dtype="uint8", zero_point=255),
}


def drawn(name: str, seed: int, arch: Arch = "aie2") -> Drawn:
    vector, finish = VECTORS[name]
    return gemm(vector, finish, seed, arch=arch)


def image(name: str, seed: int) -> tuple[list[Row], list[Call], Array]:
    """Kernels and calls of an image, and its vector."""
    shape, vector, finish = IMAGES[name]
    sums, end, objects = gemm_rows(shape, vector, finish, seed)
    slot = {"acc": list(IMAGES).index(name)}
    calls = [
        Call(kernel=0, arrays={**sums.arrays, "x": x}, scalars={"row": i}, slots=slot) for i, x in enumerate(objects)
    ]
    flat = np.concatenate([channels_of(x)[: shape[0]].T.ravel() for x in objects])
    return [sums.row, end.row], [*calls, Call(kernel=1, arrays=end.arrays, slots=slot)], flat


def chain(seed: int, finish: Finish, **figures: Any) -> tuple[list[Row], list[Call]]:
    """Two vectors that a cascade joins."""
    rows, calls = [], []
    for i, (first, count) in enumerate(PARTS):
        vector = Vector(
            inputs=count, outputs=20, in_first=first, x_first=first, cascade_in=i > 0, cascade_out=i == 0, **figures
        )
        one = gemm(vector, finish, seed + i)
        rows.append(one.row)
        calls.append(Call(kernel=i, arrays=one.arrays, scalars=one.scalars, reads_cascade=i > 0))
    return rows, calls


CASCADES: dict[str, tuple[Finish, dict[str, Any]]] = {
    "32 bits": (Finish(shift=(37, 40)), {"x_zero_point": 9}),
    "64 bits": (Finish(shift=(47, 51), acc_bits=64, dtype="int16"), {"x": "int16", "w": "int16"}),
}


class Kernels:
    """All kernels of this file in one program."""

    def __init__(self, folder: Path) -> None:
        self.book = Book(folder)
        self.first = {"vectors": self.book.add([drawn(n, 1).row for n in VECTORS])}
        for name in IMAGES:
            self.first[name] = self.book.add(image(name, 1)[0])
        for name, (finish, figures) in CASCADES.items():
            self.first[f"cascade {name}"] = self.book.add(chain(1, finish, **figures)[0])
        self.first["stream"] = self.book.add([streamed()[0]])
        for name in FINISHES:
            self.first[f"finish {name}"] = self.book.add(finishing(name, 1)[0])


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Kernels:
    return Kernels(tmp_path_factory.mktemp("kernels"))


@given(seed=st.integers(0, 1 << 30))
@settings(max_examples=8)
def test_vectors(kernels: Kernels, twins: Twins, seed: int) -> None:
    made = [drawn(n, seed + 100 * i) for i, n in enumerate(VECTORS)]
    wanted = kernels.book.check([Call(kernel=i, arrays=d.arrays) for i, d in enumerate(made)])
    for name, one, want in zip(VECTORS, made, wanted, strict=True):
        vector = VECTORS[name][0]
        first = vector.in_first - vector.x_first
        x = one.arrays["x"][first : first + (vector.in_count or vector.inputs)]
        got = twins.gemm(one.row, one.arrays, x, one.arrays["weights"], dict(one.row.attributes))
        np.testing.assert_array_equal(got, want[0], err_msg=name)


@given(seed=st.integers(0, 1 << 30))
@settings(max_examples=5)
def test_rows_of_images(kernels: Kernels, twins: Twins, seed: int) -> None:
    for name in IMAGES:
        rows, calls, flat = image(name, seed)
        want = kernels.book.check(shifted(calls, kernels.first[name]))[-1][0]
        weights = calls[0].arrays["weights"]
        attributes = {**rows[0].attributes, **rows[1].attributes}
        got = twins.gemm(rows[1], calls[-1].arrays, flat, weights.reshape(len(flat), -1), attributes)
        np.testing.assert_array_equal(got, want, err_msg=name)


def test_the_first_row_clears_the_accumulators(kernels: Kernels) -> None:
    _, calls, _ = image("rows", 1)
    twice = shifted([*calls, *calls], kernels.first["rows"])
    wanted = kernels.book.check(twice)
    np.testing.assert_array_equal(wanted[len(calls) - 1][0], wanted[-1][0])


@pytest.mark.parametrize("name", CASCADES)
def test_cascades(kernels: Kernels, name: str) -> None:
    finish, figures = CASCADES[name]
    for seed in range(3):
        kernels.book.check(shifted(chain(seed, finish, **figures)[1], kernels.first[f"cascade {name}"]))


def streamed() -> tuple[Row, list[Call]]:
    """Weights of 24 channels as objects of 8 or, the last one, less."""
    one = gemm(Vector(inputs=9, outputs=21, w="uint8", w_zero_points=tuple(range(21))), Finish(shift=(37, 39)), 3)
    objects = np.zeros((3, 9, 8), np.uint8)
    for j in range(3):
        part = one.arrays["weights"][:, 8 * j : 8 * j + 8]
        objects[j, :, : part.shape[1]] = part
    parameters = tuple(replace(p, shape=(9, 8)) if p.role == "weights" else p for p in one.row.parameters)
    arrays = {**one.arrays, "weights": objects}
    calls = [Call(kernel=0, arrays=arrays, scalars={"out_offset": 8 * j}, object_number=j) for j in range(3)]
    return replace(one.row, parameters=parameters), calls


def test_streamed_weights(kernels: Kernels) -> None:
    wanted = kernels.book.check(shifted(streamed()[1], kernels.first["stream"]))
    assert [int((w[0] != 85).sum()) for w in wanted] == [8, 8, 8]


def finishing(name: str, seed: int) -> tuple[list[Row], list[Call]]:
    """`gemm_finish` on accumulators at the ends of their range, in every mode of the tile."""
    finish = FINISHES[name]
    vector = Vector(outputs=24)
    _, end, _ = gemm_rows((8, 1, 1), vector, finish, seed)
    rng = np.random.default_rng(seed)
    bits = finish.acc_bits - (2 if finish.acc_bits == 64 else 0)
    ends = [-(1 << (bits - 1)), (1 << (bits - 1)) - 1, 0, 1, -1]
    # Ties: the middle between two codes, and one beside it.
    amount = max(1, min(finish.shift[1], 30))
    ties = [(2 * k + 1) * (1 << (amount - 1)) + d for k in (-2, -1, 0, 1) for d in (-1, 0, 1)]
    near = rng.integers(-(1 << 20), 1 << 20, 24 - len(ends) - len(ties))
    acc = np.array([*ends, *ties, *near], f"int{finish.acc_bits}")
    slot = {"acc": 100 + 10 * list(FINISHES).index(name)}
    saturations = [s for s in SATURATIONS if s != "none" or finish.acc_bits == 32]
    rows = [replace(end.row, rounding="", saturation=s) for s in saturations]
    arrays = {**end.arrays, "acc": rng.permutation(acc)}
    calls = [
        Call(kernel=i, arrays=arrays, slots={"acc": slot["acc"] + i}, modes=(mode, "none"))
        for i in range(len(rows))
        for mode in ROUNDINGS
    ]
    return rows, calls


@pytest.mark.parametrize("name", FINISHES)
def test_finish_at_the_ends(kernels: Kernels, twins: Twins, name: str) -> None:
    for seed in range(3):
        rows, calls = finishing(name, seed)
        wanted = kernels.book.check(shifted(calls, kernels.first[f"finish {name}"]))
        for call, want in zip(calls, wanted, strict=True):
            row = replace(rows[call.kernel], rounding=call.modes[0])
            attributes = {**row.attributes, "x_zero_point": 0, "w_zero_points": (0,)}
            # The twin has no entry for accumulators: one input of 1 with them as weights is the same.
            acc = call.arrays["acc"][np.newaxis]
            got = twins.gemm(row, call.arrays, np.ones(1), acc, attributes)
            np.testing.assert_array_equal(got, want[0], err_msg=f"{call.modes} {row.saturation}")


def test_the_other_architecture(tmp_path: Path) -> None:
    names = ["several blocks, uniform", "64 bits"]
    book = Book(tmp_path)
    book.add([drawn(n, 1, "aie2p").row for n in names])
    book.check([Call(kernel=i, arrays=drawn(n, 4, "aie2p").arrays) for i, n in enumerate(names)])


def test_notes_name_the_slow_ways() -> None:
    assert emitter.source(drawn("one block", 1).row).notes == ()
    assert "64 bits" in emitter.source(drawn("64 bits", 1).row).notes[0]


MUTANTS: dict[str, tuple[str, tuple[str, str]]] = {
    "bias twice": ("one block", ("lanes = aie::add(lanes, bias);", "lanes = aie::add(aie::add(lanes, bias), bias);")),
    "next block's multipliers": ("several blocks", ("packed + 16 * block", "packed + 16 * (block + 1)")),
    "zero point ignored": ("one block", ("int32_t(x[C::IN_FIRST + k]) - C::X_ZERO", "int32_t(x[C::IN_FIRST + k])")),
    "wrong k": ("part of the inputs", ("x[C::IN_FIRST + k]", "x[k]")),
    "last channels not written": ("several blocks", ("if (B::HALF && first < end) {", "if (false) {")),
    "halves not added": ("one block", ("sums.template extract<8>(1));", "sums.template extract<8>(0));")),
    "last k left out": ("one block", ("if constexpr ((C::IN_COUNT & 1) != 0) {", "if constexpr (false) {")),
    "one promotion for all": ("zero points of channels", ("all[channel < N ? channel : N - 1]", "all[N - 1]")),
    "rest of 20 bits lost": ("integers of 64 bits", ("uint64_t(int64_t(low.get(i)))", "uint64_t(0)")),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_mutants_are_noticed(tmp_path: Path, mutant: str) -> None:
    name, edit = MUTANTS[mutant]
    made = [gemm(*WIDE, s) if name == "several blocks" else drawn(name, s) for s in (1, 2, 3)]
    calls = [Call(kernel=0, arrays=d.arrays) for d in made]
    got = compiled([made[0].row], calls, tmp_path, edits=[edit])
    assert sum(differing(got, simulated([made[0].row], calls))) > 0


WIDE = (Vector(inputs=16, outputs=24), Finish(shift=(37, 40)))


def test_draws_tell_codes_apart() -> None:
    for name in VECTORS:
        found: Sequence[int] = [
            len(np.unique(simulated([d.row], [Call(kernel=0, arrays=d.arrays)])[0][0]))
            for d in (drawn(name, s) for s in range(3))
        ]
        assert max(found) > 6, (name, found)
