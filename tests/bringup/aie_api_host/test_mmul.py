from itertools import product
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pytest

from tests.bringup.aie_api_host.host_api import Array, Probe, build, srs_exact, wrap

HERE = Path(__file__).resolve().parent

# "Matrix multiplication modes for real types" of the AIE API: rows of the table by architecture, columns by type.
COLUMNS: Final = ("8x8", "16x8", "8x16", "16x16", "32x16", "16x32", "32x32", "bf16", "float")
DOCUMENTED: Final = {
    20: (
        "4x8x4 4x16x4 8x8x4 2x8x8 4x8x8 8x8x8 1x16x8 2x16x8 4x16x8",
        "4x4x4 8x4x4 4x8x4 4x4x8 8x4x8 2x8x8",
        "4x4x8 4x4x4",
        "4x4x4 2x4x8 4x4x8 4x2x8 8x2x8 8x1x8",
        "2x4x8 4x4x8 4x4x4 4x2x4 4x1x8",
        "2x4x8 4x4x4",
        "4x2x4 4x4x4 8x2x4 4x1x8 8x1x8",
        "4x8x4 8x8x4 4x16x8 8x8x8",
        "4x8x4 4x1x4 4x1x8",
    ),
    21: (
        "4x8x8 8x8x8",
        "4x4x8 8x4x8 4x8x8 2x8x8",
        "8x2x8 4x4x8",
        "4x2x8 8x2x8 2x4x8 4x4x8 8x1x8",
        "4x2x8 2x4x8 4x4x8 4x1x8",
        "4x4x8",
        "4x2x8 4x4x4 4x4x8 8x2x8 4x1x8",
        "8x8x4 4x8x8 4x8x4 8x8x8 8x1x8",
        "4x8x4",
    ),
}
Shape = tuple[int, int, int]


class Case(NamedTuple):
    arch: int
    a: str
    b: str
    bits: int
    shape: Shape


def shapes(arch: int, column: str) -> list[Shape]:
    rows = [tuple(map(int, text.split("x"))) for text in DOCUMENTED[arch][COLUMNS.index(column)].split()]
    return [(m, k, n) for m, k, n in rows]


def integer_cases() -> list[Case]:
    """Every documented shape, signed and mixed; with 64 bits too where the API accumulates so."""
    found = []
    for arch, column in product(DOCUMENTED, COLUMNS[:7]):
        a, b = column.split("x")
        default = 64 if "32" in column else 32
        for index, shape in enumerate(shapes(arch, column)):
            found.append(Case(arch, f"int{a}", f"int{b}", default, shape))
            sign = ("uint", "int") if index % 2 else ("int", "uint")
            found.append(Case(arch, f"{sign[0]}{a}", f"{sign[1]}{b}", default, shape))
        if column == "16x16":
            found.append(Case(arch, "int16", "int16", 64, shapes(arch, column)[0]))
    return found


def float_cases() -> list[Case]:
    types = {"bf16": "bfloat16", "float": "float"}
    return [Case(arch, types[c], types[c], 32, s) for arch in DOCUMENTED for c in types for s in shapes(arch, c)]


CASES: Final = integer_cases()
FLOATS: Final = float_cases()
NAMES: Final = [f"{c.arch}-{c.a}-{c.b}-{'x'.join(map(str, c.shape))}-{c.bits}" for c in (*CASES, *FLOATS)]


def source(arch: int) -> str:
    lines = ['#include "mmul_probe.hpp"']
    for number, case in enumerate((*CASES, *FLOATS)):
        if case.arch == arch:
            tag = "accauto" if case in FLOATS else f"acc{case.bits}"
            kind = f"aie::mmul<{', '.join(map(str, case.shape))}, {case.a}, {case.b}, {tag}>"
            if case in FLOATS:
                text = f"(const float* a, const float* b, float* c) {{ run_float<{kind}>(a, b, c); }}"
            else:
                text = (
                    "(const void* a, const void* b, const std::int64_t* c, std::int64_t* d, std::int16_t* e, "
                    "std::int32_t* f, std::int64_t* g, std::int64_t* h, std::int32_t* i) "
                    f"{{ run<{kind}>(a, b, c, d, e, f, g, h, i); }}"
                )
            lines.append(f'extern "C" void mmul_{number}{text}')
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="session")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    folder, found = tmp_path_factory.mktemp("mmul"), {}
    for arch in DOCUMENTED:
        file = folder / f"mmul{arch}.cc"
        file.write_text(source(arch))
        flags = (f"-I{HERE}", "-O0", "-fno-sanitize=undefined")
        found[arch] = build([file], folder / f"mmul{arch}.so", arch=arch, flags=flags)
    return found


def random_of(dtype: Any, count: int, rng: np.random.Generator) -> Array:
    info = np.iinfo(dtype)
    values = rng.integers(info.min, info.max, count, dtype=dtype, endpoint=True)
    values[:: max(count // 4, 1)] = rng.choice((info.min, info.max))
    return values


class Result(NamedTuple):
    """What one mmul gives; all but `narrow` in raw order."""

    sums: Array
    narrow: Array
    wide: Array
    again: Array
    product: Array
    order: Array


def run(path: Path, number: int, a: Array, b: Array, start: Array) -> Result:
    probe = Probe(path)
    probe.library.aie_host_reset()
    types = (np.int64, np.int16, np.int32, np.int64, np.int64, np.int32)
    result = Result(*(np.zeros(start.size, t) for t in types))
    probe.call(f"mmul_{number}", a, b, start, *result)
    return result


@pytest.mark.parametrize("number", range(len(CASES)), ids=NAMES[: len(CASES)])
def test_documented_shapes_are_matrix_products_that_wrap(libraries: dict[int, Path], number: int) -> None:
    case = CASES[number]
    m, k, n = case.shape
    rng = np.random.default_rng(number)
    a, b = random_of(case.a, m * k, rng), random_of(case.b, k * n, rng)
    start = random_of(f"int{case.bits}", m * n, rng).astype(np.int64)
    got = run(libraries[case.arch], number, a, b, start)

    order = got.order.tolist()  # raw lane i is the row-major element order[i]
    exact = [int(v) for v in (a.reshape(m, k).astype(object) @ b.reshape(k, n).astype(object)).ravel()]
    assert got.product.tolist() == [wrap(exact[at], case.bits, True) for at in order]
    sums = [wrap(exact[at] + v, case.bits, True) for at, v in zip(order, start.tolist(), strict=True)]
    assert got.sums.tolist() == sums
    low = [wrap(v, 32, True) for v in sums]
    assert got.wide.tolist() == low
    assert got.again.tolist() == low, "raw order in, raw order out"
    narrow = [got.narrow.tolist()[at] for at in order]
    assert narrow == [srs_exact(v, 2, 16, True, (0, 0)) for v in sums], "16 bit results are row-major"


@pytest.mark.parametrize("number", range(len(CASES)), ids=NAMES[: len(CASES)])
def test_raw_lanes_come_in_a_fixed_order_that_is_not_row_major(libraries: dict[int, Path], number: int) -> None:
    case = CASES[number]
    m, k, n = case.shape
    nothing = np.zeros(4 * m * k * n, np.int64)
    order = run(libraries[case.arch], number, nothing, nothing, np.zeros(m * n, np.int64)).order.tolist()
    assert sorted(order) == list(range(m * n))
    assert sum(place != lane for lane, place in enumerate(order)) > m * n // 2, "most lanes move"


@pytest.mark.parametrize("number", range(len(FLOATS)), ids=NAMES[len(CASES) :])
def test_float_shapes_on_values_whose_sums_are_exact(libraries: dict[int, Path], number: int) -> None:
    case = FLOATS[number]
    probe, (m, k, n) = Probe(libraries[case.arch]), case.shape
    rng = np.random.default_rng(number)
    a = rng.integers(-100, 100, (m, k)).astype(np.float32)
    b = rng.integers(-100, 100, (k, n)).astype(np.float32)
    sums = np.zeros((m, n), np.float32)
    probe.call(f"mmul_{len(CASES) + number}", a, b, sums)
    assert sums.tolist() == (a @ b).tolist()


@pytest.mark.parametrize("arch", DOCUMENTED)
def test_exactly_the_documented_shapes_exist(libraries: dict[int, Path], arch: int) -> None:
    probe = Probe(libraries[arch])
    for m, k, n in product((1, 2, 4, 8, 16), (1, 2, 4, 8, 16, 32), (1, 2, 4, 8, 16)):
        for number, column in enumerate(COLUMNS):
            known = (m, k, n) in shapes(arch, column)
            assert probe.call("probe_is_shape", number, m, k, n) == known, (column, m, k, n)
        assert probe.call("probe_is_shape", 9, m, k, n) == 0
