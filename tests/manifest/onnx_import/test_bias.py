from fractions import Fraction

import numpy as np
import pytest

from manifest.onnx_import.bias import plan_bias
from manifest.onnx_import.quant import per_tensor, quantization

WEIGHTS = per_tensor(2.0**-8)


def codes(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


def test_a_product_scale_is_added_as_it_is() -> None:
    plan = plan_bias(codes(7, -9), per_tensor(2.0**-12), Fraction(1, 16), WEIGHTS)
    assert (plan.kind, plan.shifts, plan.addends, plan.power_of_two) == ("accumulator", (), (7, -9), True)


def test_a_product_rounded_to_float32_counts_as_the_product() -> None:
    x, w = np.float32(0.1), np.float32(0.02)
    product = float(x * w)
    assert Fraction(product) != Fraction(float(x)) * Fraction(float(w))
    plan = plan_bias(codes(5), per_tensor(product), Fraction(float(x)), per_tensor(float(w)))
    assert plan.kind == "accumulator"
    beside = float(np.nextafter(np.float32(product), np.float32(1)))
    assert plan_bias(codes(5), per_tensor(beside), Fraction(float(x)), per_tensor(float(w))).kind == "rescaled"


def test_the_example_of_xint8_is_shifted_left_by_five() -> None:
    """Weights 2^-8, input 2^-4, bias 2^-7: facts/quark-xint8."""
    plan = plan_bias(codes(3, -4), per_tensor(2.0**-7), Fraction(1, 16), WEIGHTS)
    assert (plan.kind, plan.shifts, plan.promotion, plan.addends) == ("shifted", (5,), (0,), (96, -128))


def test_a_finer_bias_promotes_the_accumulator() -> None:
    plan = plan_bias(codes(3), per_tensor(2.0**-14), Fraction(1, 16), WEIGHTS)
    assert (plan.kind, plan.shifts, plan.promotion, plan.addends) == ("shifted", (-2,), (2,), (3,))


def test_shifts_per_channel() -> None:
    weights = quantization((2.0**-8, 2.0**-6), (0, 0), 0)
    plan = plan_bias(codes(1, 1), per_tensor(2.0**-7), Fraction(1, 16), weights)
    assert (plan.shifts, plan.promotion, plan.addends) == ((5, 3), (0, 0), (32, 8))


def test_one_channel_that_is_no_shift_rescales_all() -> None:
    scales = quantization((2.0**-7, 3 * 2.0**-12), (0, 0), 0)
    plan = plan_bias(codes(2, 5), scales, Fraction(1, 16), WEIGHTS)
    assert plan.kind == "rescaled"
    assert plan.rescaled is not None
    assert plan.rescaled.tolist() == [64, 15]


@pytest.mark.parametrize(("value", "expected"), [(0.5, 0), (1.5, 2), (2.5, 2), (-0.5, 0), (-1.5, -2), (2.75, 3)])
def test_a_float_bias_is_rounded_half_even_for_the_target(value: float, expected: int) -> None:
    plan = plan_bias(np.array([value], np.float32), None, Fraction(1, 4), per_tensor(4.0))
    assert plan.kind == "rescaled"
    assert not plan.power_of_two
    assert plan.rescaled is not None
    assert plan.rescaled.tolist() == [expected]


@pytest.mark.parametrize(
    ("value", "expected"), [(2.0**31 - 1, 2**31 - 1), (2.0**31 + 2**8, 2**31 - 1), (-(2.0**32), -(2**31))]
)
def test_a_rescaled_bias_saturates_to_int32_and_its_bound_says_so(value: float, expected: int) -> None:
    plan = plan_bias(np.array([value], np.float64), None, Fraction(1), per_tensor(1.0))
    assert plan.rescaled is not None
    assert plan.rescaled.tolist() == [expected]
    assert plan.addends[0] >= abs(value)


def test_the_bound_of_a_rescaled_bias_covers_both_arithmetics() -> None:
    plan = plan_bias(np.array([2.25], np.float32), None, Fraction(1), per_tensor(1.0))
    assert plan.addends == (3,)
