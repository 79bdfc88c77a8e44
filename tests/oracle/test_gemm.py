"""Integer matrix products through float BLAS: exact at the bound, and one unit above another dtype is taken."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracle.gemm import Product, exact_matmul
from oracle.value import Array


def _product(weights: Array, columns: Array, reach: int, **options: int) -> tuple[Product, list[list[int]]]:
    product = Product(weights, reach, **options)
    out = np.empty((weights.shape[0], columns.shape[1]), product.carrier)
    product(columns.astype(product.dtype), out)
    return product, out.astype(np.int64).tolist()


def test_float32_up_to_the_l1_bound_of_2_to_24() -> None:
    weights = np.full((1, 256), 256)
    product, got = _product(weights, np.full((256, 1), 256), 256)
    assert (product.bound, product.dtype.name, product.carrier.name) == (2**24, "float32", "float32")
    assert got == [[2**24]]


def test_float64_one_unit_above() -> None:
    weights = np.concatenate([np.full((1, 256), 256), np.ones((1, 1), int)], axis=1)
    columns = np.concatenate([np.full((256, 1), 256), np.ones((1, 1), int)])
    product, got = _product(weights, columns, 256)
    assert (product.dtype.name, product.carrier.name) == ("float64", "float64")
    assert got == [[2**24 + 1]]


def test_the_bound_is_that_of_the_worst_channel() -> None:
    product = Product(np.array([[1, -2], [30, 4]]), 10)
    assert (product.bounds, product.bound, product.channels) == ([30, 340], 340, 2)


@given(st.data())
def test_split_sums_match_python_integers(data: st.DataObject) -> None:
    """With a limit of 2**12 instead of 2**53 the split is exercised on small numbers."""
    n, k, m = (data.draw(st.integers(1, s)) for s in (3, 9, 3))
    weights = np.array(data.draw(st.lists(st.integers(-99, 99), min_size=n * k, max_size=n * k))).reshape(n, k)
    columns = np.array(data.draw(st.lists(st.integers(-99, 99), min_size=k * m, max_size=k * m))).reshape(k, m)
    want = (weights.astype(object) @ columns.astype(object)).tolist()
    assert _product(weights, columns, 99)[1] == want
    product, got = _product(weights, columns, 99, float64_limit=1 << 12)
    assert got == want
    if product.bound > 4 * (1 << 12) + 99 * 99:
        assert product.carrier == np.int64


def test_batches_of_weights_share_nothing() -> None:
    weights = np.arange(12).reshape(2, 1, 2, 3)
    product = Product(weights, 5)
    columns = np.arange(2 * 4 * 3 * 2).reshape(2, 4, 3, 2)
    out = np.empty((2, 4, 2, 2), product.carrier)
    product(columns.astype(product.dtype), out)
    np.testing.assert_array_equal(out, weights @ columns)


@pytest.mark.parametrize(
    ("bound", "dtype"), [(2**24, np.float32), (2**53, np.float64), (2**61, np.int64), (2**63, object)]
)
def test_exact_matmul_takes_the_smallest_dtype(bound: int, dtype: type) -> None:
    a = np.array([[3, -4]], np.float64)
    got = exact_matmul(a, a.T, bound)
    assert got.dtype == np.dtype(dtype)
    assert got.tolist() == [[25]]
