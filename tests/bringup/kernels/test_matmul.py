"""Emitted products of whole operands against the simulator's kernel and the scalar twin."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bringup.kernels import matmul as emitter
from manifest.errors import RefusedError
from tests.bringup.kernels.draws import Drawn, Finish, Operands, matmul
from tests.bringup.kernels.heavy import Book, Call, compiled, differing, simulated
from tests.bringup.kernels.twins import Twins

NARROW = Finish(shift=(37, 40), zero_point=3)
PRODUCTS: dict[str, tuple[Operands, Finish]] = {
    "matrices": (Operands(a=(5, 9), b=(9, 11), y=(5, 11), a_zero_points=(3,)), NARROW),
    "one block": (Operands(), Finish(uniform=True, bounds=(0, 100))),
    "images": (
        Operands(a=(2, 3, 5, 9), b=(2, 3, 9, 11), y=(2, 3, 5, 11), a_zero_points=(3,), b_zero_points=(-4,)),
        Finish(shift=(37, 40), bias=False),
    ),
    "images, transposed, bundled": (
        Operands(
            a=(2, 3, 5, 9),
            b=(2, 3, 11, 9),
            y=(2, 3, 5, 11),
            transpose_b=True,
            bundled=True,
            dtypes=("uint8", "uint8"),
            a_zero_points=(30,),
            b_zero_points=(140,),
        ),
        Finish(dtype="uint8", acc_shift=(1,), shift=(39, 42)),
    ),
    "channels of whole blocks": (Operands(a=(1, 8, 3, 4), b=(1, 1, 4, 5), y=(1, 8, 3, 5)), NARROW),
    "constant, broadcast, bundled": (
        Operands(a=(3, 5, 9), b=(9, 21), y=(3, 5, 21), constant=1, bundled=True, a_zero_points=(3,)),
        Finish(shift=(37, 40), acc_shift=tuple(i % 3 for i in range(21))),
    ),
    "both transposed, zero points of columns": (
        Operands(
            a=(9, 5),
            b=(21, 9),
            y=(5, 21),
            transpose_a=True,
            transpose_b=True,
            constant=1,
            dtypes=("uint8", "uint8"),
            a_zero_points=(3,),
            b_zero_points=tuple(range(21)),
        ),
        NARROW,
    ),
    "zero points along the sum": (
        Operands(a=(4, 6), b=(6, 8), y=(4, 8), constant=0, a_zero_points=tuple(range(6))),
        NARROW,
    ),
    "vector on the right": (Operands(a=(5, 9), b=(9,), y=(5,), constant=0, dtypes=("uint8", "int8")), NARROW),
    "vector on the left": (Operands(a=(9,), b=(2, 9, 10), y=(2, 10)), NARROW),
    "dot product": (
        Operands(a=(9,), b=(9,), y=(), dtypes=("uint16", "int16"), a_zero_points=(33333,), b_zero_points=(3,)),
        Finish(kind="exact", dtype="int64", acc_bits=64),
    ),
    "64 bits, both split": (
        Operands(
            a=(5, 9), b=(9, 12), y=(5, 12), dtypes=("uint16", "uint16"), a_zero_points=(3333,), b_zero_points=(60000,)
        ),
        Finish(dtype="uint16", zero_point=100, acc_bits=64, shift=(49, 53)),
    ),
    "integers": (Operands(a=(3, 4), b=(4, 17), y=(3, 17)), Finish(kind="exact", dtype="int32", bias=False)),
}


def drawn(name: str, seed: int) -> Drawn:
    operands, finish = PRODUCTS[name]
    return matmul(operands, finish, seed)


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Book:
    made = Book(tmp_path_factory.mktemp("kernels"))
    made.add([drawn(n, 1).row for n in PRODUCTS])
    return made


@given(seed=st.integers(0, 1 << 30))
@settings(max_examples=8)
def test_kernel_simulator_and_twin_agree(book: Book, twins: Twins, seed: int) -> None:
    made = [drawn(n, seed + 100 * i) for i, n in enumerate(PRODUCTS)]
    wanted = book.check([Call(kernel=i, arrays=d.arrays) for i, d in enumerate(made)])
    for name, one, want in zip(PRODUCTS, made, wanted, strict=True):
        objects = np.concatenate([w.reshape(-1) for w in want])
        np.testing.assert_array_equal(twins.matmul(one).ravel(), objects, err_msg=name)


def test_draws_tell_codes_apart() -> None:
    for name in PRODUCTS:
        one = drawn(name, 2)
        objects = simulated([one.row], [Call(kernel=0, arrays=one.arrays)])[0]
        assert len(np.unique(np.concatenate([o.ravel() for o in objects]))) >= min(8, objects[0].size // 4), name


def test_padding_is_cleared(book: Book) -> None:
    number = list(PRODUCTS).index("images")
    for block in book.check([Call(kernel=number, arrays=drawn("images", 3).arrays)])[0]:
        assert not block[..., 3:].any()
        assert block[..., :3].any()


def test_refusals() -> None:
    row = drawn("vector on the right", 1).row
    with pytest.raises(RefusedError, match="along what is summed over"):
        emitter.source(replace(row, attributes={**row.attributes, "a_zero_points": tuple(range(9))}))
    row = drawn("matrices", 1).row
    wide = tuple(replace(p, dtype="int32") if p.role == "object_in" else p for p in row.parameters)
    with pytest.raises(RefusedError, match="more than 16 bits"):
        emitter.source(replace(row, parameters=wide))


MUTANTS: dict[str, tuple[str, tuple[str, str]]] = {
    "rows of the wrong batch": ("images", ("objects[At::object[batch]", "objects[At::object[0]")),
    "columns of B as rows": ("one block", ("element_of<typename C::AtB>(b, batch, k, first)", "b[0]")),
    "zero point of the next column": (
        "both transposed, zero points of columns",
        ("C::B_ZEROS, unsigned(first + i)", "C::B_ZEROS, unsigned(first + i + 1)"),
    ),
    "last rows left out": (
        "matrices",
        ("row < C::ROWS; row +=", "row + TOGETHER <= C::ROWS; row +="),
    ),
    "padding not cleared": ("images", ("if constexpr (C::Y_CLEARED != 0) {", "if constexpr (false) {")),
    "half of B": ("64 bits, both split", ("if constexpr (C::B_SPLITS) {", "if constexpr (false) {")),
    "one k less": ("dot product", ("k < C::INNER", "k + 1 < C::INNER")),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_mutants_are_noticed(tmp_path: Path, mutant: str) -> None:
    name, edit = MUTANTS[mutant]
    made = [drawn(name, s) for s in (1, 2, 3)]
    calls = [Call(kernel=0, arrays=d.arrays) for d in made]
    got = compiled([made[0].row], calls, tmp_path, edits=[edit])
    assert sum(differing(got, simulated([made[0].row], calls))) > 0
