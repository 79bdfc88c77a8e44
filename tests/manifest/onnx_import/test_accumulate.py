import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manifest.onnx_import.accumulate import accumulator, bound_of, channel_l1, largest_input
from manifest.onnx_import.quant import per_tensor, quantization


@pytest.mark.parametrize(
    ("codes", "zero", "expected"),
    [((-128, 127), 0, 128), ((0, 255), 128, 128), ((0, 255), 3, 252), ((128, 255), 128, 127)],
)
def test_largest_input(codes: tuple[int, int], zero: int, expected: int) -> None:
    assert largest_input(codes, zero) == expected


def test_l1_per_channel_subtracts_the_zero_points() -> None:
    weights = np.array([[130, 126], [3, 0]], np.uint8)
    quant = quantization((1.0, 1.0), (128, 1), 0)
    assert channel_l1(weights, quant, 0) == (4, 3)
    assert channel_l1(weights, per_tensor(1.0, 128), 1) == (2 + 125, 2 + 128)
    assert channel_l1(weights, per_tensor(1.0, 128), None) == (257,)


def test_the_bound_of_hls4ml_324() -> None:
    """K = 64, weights 127, inputs up to 127 in magnitude: 1,032,256 needs 21 bits."""
    l1 = channel_l1(np.full((1, 64), 127, np.int8), per_tensor(1.0), 0)
    assert bound_of(127, l1, [0]) == 1_032_256
    assert bound_of(128, l1, [0]).bit_length() == 20


def test_the_bias_of_the_worst_channel_counts() -> None:
    assert bound_of(2, [10, 1], [3, -100]) == 102
    assert bound_of(2, [10, 1], [-5]) == 25


def test_promotion_shifts_the_products_and_not_the_bias() -> None:
    assert bound_of(2, [10], [3], promotion=[4]) == 20 * 16 + 3


@pytest.mark.parametrize(("bound", "bits"), [(2**31 - 1, 32), (2**31, 64)])
def test_an_int32_holds_bounds_below_two_to_the_31(bound: int, bits: int) -> None:
    assert accumulator(bound).bits == bits


@given(
    weights=st.lists(st.integers(-128, 127), min_size=1, max_size=3),
    bias=st.integers(-50, 50),
    zero=st.integers(-3, 3),
)
def test_no_input_beats_the_bound_and_one_reaches_it_up_to_the_signs(weights: list[int], bias: int, zero: int) -> None:
    codes = range(-4, 4)
    array = np.array([weights], np.int8)
    bound = bound_of(largest_input((-4, 3), zero), channel_l1(array, per_tensor(1.0), 0), [bias])
    sums = [
        abs(sum((x - zero) * w for x, w in zip(point, weights, strict=True)) + bias)
        for point in itertools.product(codes, repeat=len(weights))
    ]
    assert max(sums) <= bound
