"""What emitters of elementwise kernels share: the text of a source, the headers that it needs."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from bringup.kernels.elementwise import ROUNDINGS, extents, literal, only
from bringup.lint.cxx import Source as Code
from bringup.lint.kernels import events, linkage, modes, restricted
from oracle.fixedpoint import ROUNDINGS as KNOWN
from tests.bringup.kernels import (
    test_add,
    test_average_pool,
    test_concat,
    test_global_average_pool,
    test_max_pool,
    test_mul,
    test_quantize_linear,
    test_reinterpret,
    test_reshape,
    test_transpose,
)
from tests.bringup.kernels.emitted import Case, own_names

INCLUDE = Path(__file__).resolve().parents[3] / "bringup" / "kernels" / "include"
CASES = {
    **{f"add, {name}": case for name, case in test_add.cases().items()},
    **{f"average_pool, {name}": case for name, case in test_average_pool.cases().items()},
    **{f"concat, {name}": case for name, case in test_concat.cases().items()},
    **{f"global_average_pool, {name}": case for name, case in test_global_average_pool.cases().items()},
    **{f"max_pool, {name}": case for name, case in test_max_pool.cases().items()},
    **{f"mul, {name}": case for name, case in test_mul.cases().items()},
    **{f"requantize, {name}": case for name, case in test_quantize_linear.rounded().items()},
    **{f"unary, {name}": case for name, case in test_quantize_linear.others().items()},
    **{f"copy, {name}": case for name, case in test_reinterpret.cases().items()},
    **{f"reshape, {name}": case for name, case in test_reshape.cases().items()},
    **{f"transpose, {name}": case for name, case in test_transpose.cases().items()},
}


def included(name: str) -> Iterator[str]:
    """Headers of `include/` that a header includes, itself too."""
    yield name
    for found in re.findall(r'#include "(\w+\.h)"', (INCLUDE / name).read_text()):
        yield from included(found)


@pytest.mark.parametrize("name", CASES)
def test_a_source_names_all_its_headers_and_has_the_form_of_a_kernel(name: str) -> None:
    case = CASES[name]
    source = case.module.source(case.row)
    first = re.findall(r'#include "(\w+\.h)"', source.text)
    assert len(first) == 1
    assert set(included(first[0])) == set(source.headers)
    assert len(source.headers) == len(set(source.headers))
    assert [p.name for p in source.parameters] == [p.name for p in case.row.parameters]
    assert source.scalars == case.row.scalars
    assert source.vectorized or source.notes
    code, row = Code(source.text), {"rounding": case.row.rounding, "saturation": case.row.saturation}
    assert [f for rule in (events, linkage, modes, restricted) for f in rule(code, row)] == []
    assert case.module.source(case.row) == source


def test_a_kernel_of_a_name_that_is_no_identifier() -> None:
    case = test_reinterpret.cases()["row"]
    fields = {name: getattr(case.row, name) for name in type(case.row).__slots__}
    source = case.module.source(type(case.row)(**{**fields, "name": "a/b:copy"}))
    assert re.fullmatch(r"k_a_b_copy_[0-9a-f]{8}", source.symbol)
    assert f"void {source.symbol}(" in source.text
    assert "K_k_a_b_copy" in own_names(source)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (-5, "-5"),
        ((1 << 31) - 1, "2147483647"),
        (-(1 << 31), "INT32_MIN"),
        (1 << 31, "INT64_C(2147483648)"),
        (-(1 << 63), "INT64_MIN"),
    ],
)
def test_integers_of_cxx(value: int, text: str) -> None:
    assert literal(value) == text


def test_every_rounding_of_the_manifest_has_a_mode() -> None:
    assert set(ROUNDINGS) == set(KNOWN)


def test_extents() -> None:
    assert (extents((2, 5, 8)).blocks, extents((2, 5, 8)).width, extents((2, 5, 8)).elements) == (2, 5, 80)
    assert (extents((24,)).blocks, extents((24,)).width) == (3, 1)
    assert (extents((3, 8)).blocks, extents((3, 8)).width) == (3, 1)


def test_a_role_that_is_not_there() -> None:
    case: Case = CASES["copy, row"]
    with pytest.raises(ValueError, match="expected one parameter requant, got 0"):
        only(case.row, "requant")
