"""Choice of scales: nothing is clipped at the coarse one, and no candidate has less error than the chosen one."""

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from manifest.onnx_import.quantize.calibrate import (
    best_exponent,
    candidates,
    coarse_exponent,
    squared_error,
    weight_exponent,
)
from manifest.onnx_import.quantize.scheme import DEFAULT_EXPONENT, EXPONENT_LIMIT, QuantizeOptions

FINITE = st.floats(-1e15, 1e15, allow_nan=False, allow_subnormal=False)


@given(low=FINITE, high=FINITE)
@example(low=-128.0, high=127.0)
@example(low=-128.5, high=0.0)
@example(low=0.0, high=127.5)
@example(low=-1e-30, high=0.0)
def test_the_coarse_exponent_is_the_smallest_that_clips_nothing(low: float, high: float) -> None:
    low, high = min(low, high), max(low, high)

    def clips(k: int) -> bool:
        return round(math.ldexp(high, -k)) > 127 or round(math.ldexp(low, -k)) < -128

    k = coarse_exponent(low, high)
    assert not clips(k)
    if (low, high) == (0.0, 0.0):
        assert k == DEFAULT_EXPONENT
    else:
        assert k == -EXPONENT_LIMIT or clips(k - 1)


@pytest.mark.parametrize(("high", "k"), [(127.0, 0), (127.4, 0), (127.5, 1), (63.5, -1), (63.8, 0), (1.0, -6)])
def test_both_sides_of_the_positive_end(high: float, k: int) -> None:
    assert coarse_exponent(0.0, high) == k


@pytest.mark.parametrize(("low", "k"), [(-128.0, 0), (-128.5, 0), (-128.6, 1), (-1.0, -7)])
def test_both_sides_of_the_negative_end(low: float, k: int) -> None:
    assert coarse_exponent(low, 0.0) == k


def test_squared_error_counts_rounding_and_clipping() -> None:
    assert squared_error(np.array([0.25, -0.5]), 0) == 0.0625 + 0.25
    assert squared_error(np.array([130.0, -130.0]), 0) == 9.0 + 4.0
    assert squared_error(np.array([1.0, -3.0]), 0) == 0.0


def test_equal_errors_take_the_coarser_scale() -> None:
    assert best_exponent({-3: 1.0, -2: 1.0, -1: 2.0}) == -2


def test_candidates_end_at_the_limit() -> None:
    assert list(candidates(-2, 3)) == [-5, -4, -3, -2]
    assert list(candidates(1 - EXPONENT_LIMIT, 3)) == [-EXPONENT_LIMIT, 1 - EXPONENT_LIMIT]


def test_one_outlier_is_clipped_where_that_costs_less() -> None:
    values = np.append(np.random.default_rng(0).normal(size=20_000) * 4, 130.0).astype(np.float32)
    assert weight_exponent(values, QuantizeOptions(scale_choice="range")) == 1
    assert weight_exponent(values, QuantizeOptions()) == 0
