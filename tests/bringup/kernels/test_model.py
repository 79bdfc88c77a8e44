"""Names of kernels and the registry."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bringup.kernels import KERNELS
from bringup.kernels.model import Row, symbol_of
from presim.kernels import KERNELS as SIMULATED
from tests.bringup.kernels.draws import Finish, Operands, Vector, Window, conv, gemm, matmul
from tests.bringup.kernels.emitted import HOST, INCLUDE


@given(st.text(max_size=20))
@example("")
@example("0abc")
@example("conv/out:0")
def test_a_symbol_is_an_identifier(name: str) -> None:
    assert re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", symbol_of(name))


@given(st.text(max_size=8), st.text(max_size=8))
@example("a/b", "a_b")
@example("a/b", "a:b")
def test_names_keep_apart(one: str, other: str) -> None:
    assert (symbol_of(one) == symbol_of(other)) == (one == other)


def test_a_plain_name_stays() -> None:
    assert symbol_of("conv_0_rows") == "conv_0_rows"


@pytest.mark.parametrize("letter", ["n", "/", "ü"])
@pytest.mark.parametrize("length", [120, 131, 132, 300, 5000])
def test_a_long_name_stays_a_name_of_a_file_and_apart_from_its_like(letter: str, length: int) -> None:
    symbol = symbol_of(letter * length)
    assert len(symbol) <= 131
    assert symbol_of(symbol) == symbol
    assert symbol != symbol_of(letter * (length - 1))
    assert (symbol == letter * length) == (letter == "n" and length <= 131)


def test_every_simulated_kernel_is_emitted() -> None:
    assert set(KERNELS) == set(SIMULATED)


SOURCES: dict[str, Row] = {
    "conv_mmul.h": conv(Window(), Finish(), 1).row,
    "conv_lanes.h": conv(Window(group=8), Finish(), 1).row,
    "gemm.h": gemm(Vector(), Finish(), 1).row,
    "matmul.h": matmul(Operands(), Finish(), 1).row,
}


@pytest.mark.parametrize("header", SOURCES)
def test_a_source_stands_alone_with_the_headers_that_it_names(tmp_path: Path, header: str) -> None:
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("g++ is not on PATH")
    source = KERNELS[SOURCES[header].type].source(SOURCES[header])
    assert source.headers[0] == header
    assert len(set(source.headers)) == len(source.headers)
    for name in source.headers:
        shutil.copy(INCLUDE / name, tmp_path / name)
    (tmp_path / "kernel.cc").write_text(source.text)
    command = [compiler, "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-I", str(HOST / "include")]
    done = subprocess.run([*command, str(tmp_path / "kernel.cc")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_same_row_gives_the_same_text() -> None:
    for row in SOURCES.values():
        assert KERNELS[row.type].source(row) == KERNELS[row.type].source(row)
