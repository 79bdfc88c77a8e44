"""Every op and small graphs against the slow second meaning in `tests.oracle.naive`, in both arithmetics."""

from typing import Literal

import numpy as np
from hypothesis import given

from oracle.run import Oracle
from oracle.strategies import Case, add_cases, conv_cases, gemm_cases, graphs, pool_cases
from tests.oracle.naive import Naive
from tests.oracle.naive_base import float32_of


def check(case: Case, arithmetics: tuple[Literal["reference", "target"], ...] = ("reference", "target")) -> None:
    """All tensors equal in both arithmetics; the exact values are those of the slow meaning."""
    oracle, naive = Oracle(case.manifest, case.arrays), Naive(case.manifest, case.arrays)
    for arithmetic in arithmetics:
        want = naive.run(case.inputs, arithmetic)
        got = oracle.run(case.inputs, arithmetic=arithmetic, keep="all")
        assert got.keys() == want.keys()
        for name, array in got.items():
            expected = want[name]
            if expected.dtype == object:
                expected = np.array([float32_of(v) for v in expected.ravel()], np.float32).reshape(expected.shape)
            assert array.dtype == expected.dtype
            np.testing.assert_array_equal(array, expected, err_msg=f"{name} {arithmetic}")


@given(conv_cases())
def test_conv(case: Case) -> None:
    check(case)


@given(gemm_cases())
def test_gemm_and_matmul(case: Case) -> None:
    check(case)


@given(add_cases())
def test_add(case: Case) -> None:
    check(case)


@given(pool_cases())
def test_pools(case: Case) -> None:
    check(case)


@given(graphs())
def test_graphs(case: Case) -> None:
    check(case)
