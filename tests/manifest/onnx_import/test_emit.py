import math
from fractions import Fraction

import numpy as np
import pytest

from manifest.onnx_import.builder import Units
from manifest.onnx_import.emit import clamped_output, code_of, reference_of
from manifest.onnx_import.fuse import Bounds
from manifest.onnx_import.quant import per_tensor


@pytest.mark.parametrize(
    ("value", "code"),
    [
        (0.0, 3),
        (0.25, 3),
        (0.75, 5),
        (-0.25, 3),
        (1.26, 6),
        (1e9, 127),
        (-1e9, -128),
        (math.inf, 127),
        (-math.inf, -128),
        (3e38, 127),
    ],
)
def test_bounds_become_codes_as_quantizelinear_gives_them(value: float, code: int) -> None:
    assert code_of(value, per_tensor(0.5, 3), -128, 127) == code


def test_bounds_are_divided_in_float32() -> None:
    """0.35 / 0.1 is 3.4999998 in real numbers and 3.5 in float32, which rounds to 4."""
    low, scale = float(np.float32(0.35)), per_tensor(0.1)
    assert Fraction(low) / Fraction(scale.scales[0]) < Fraction(7, 2)
    assert code_of(low, scale, -128, 127) == 4


def test_a_clamp_outside_the_type_leaves_one_code() -> None:
    output = clamped_output(per_tensor(0.5), "int8", Bounds(low=100.0, high=200.0))
    assert (output.qmin, output.qmax) == (127, 127)


def units(*values: Fraction, integral: bool = True) -> Units:
    return Units(values=values, integral=integral)


def test_srs_is_the_reference_where_everything_is_a_power_of_two() -> None:
    output = clamped_output(per_tensor(0.5), "int8", Bounds())
    assert reference_of(units(Fraction(1, 8), Fraction(1, 4)), output) == "srs"
    assert reference_of(units(Fraction(1, 8), Fraction(1, 3)), output) == "rational"
    assert reference_of(units(Fraction(1, 8), integral=False), output) == "rational"
    assert reference_of(units(Fraction(1, 8)), clamped_output(per_tensor(0.3), "int8", Bounds())) == "rational"
