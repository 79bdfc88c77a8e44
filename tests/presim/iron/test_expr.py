"""Values of a traced core function: affine forms, text of kernel scalars, types."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from presim.iron.errors import UnsupportedError
from presim.iron.expr import INDEX, Scalar, affine, cast, scalar_text
from presim.steps import variable_of

COUNTER = Scalar(("counter", "i0"), INDEX)
OTHER = Scalar(("counter", "i1"), INDEX)
ELEMENT = Scalar(("temp", 1), "int8")
SMALL = st.integers(-20, 20)


@given(factor=SMALL, offset=SMALL, more=SMALL)
def test_affine_values_have_one_form(factor: int, offset: int, more: int) -> None:
    value = (COUNTER * factor + offset - more) + (more - COUNTER * 0)
    assert affine(value.tree) in {("i0", factor, offset), ("", 0, offset)}
    text = scalar_text(value)
    if factor == 0:
        assert text == offset
    else:
        assert isinstance(text, str)
        assert variable_of(text) == ("i0", factor, offset)


@given(factor=SMALL, offset=SMALL)
def test_counter_on_the_right(factor: int, offset: int) -> None:
    assert affine((offset - factor * COUNTER).tree) in {("i0", -factor, offset), ("", 0, offset)}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (5, 5),
        (np.int32(5), 5),
        (True, 1),
        (COUNTER, "@i0"),
        (COUNTER - 1, "@i0-1"),
        (COUNTER * 2 + 1, "@i0*2+1"),
        (COUNTER - COUNTER, 0),
        (cast("int32", COUNTER + 3), "@i0+3"),
        (COUNTER + OTHER, None),
        (COUNTER * COUNTER, None),
        (COUNTER // 2, None),
        (ELEMENT, None),
        (1.5, None),
    ],
)
def test_text_of_a_scalar(value: object, text: object) -> None:
    assert scalar_text(value) == text


def test_number_takes_the_type_of_the_other_side() -> None:
    assert (ELEMENT + 1).dtype == "int8"
    assert (3 * ELEMENT).dtype == "int8"
    assert (ELEMENT + COUNTER).dtype == "int8"
    assert (ELEMENT < 3).dtype == "bool"


def test_two_types_have_no_arithmetic() -> None:
    with pytest.raises(UnsupportedError, match="no arithmetic on two types"):
        ELEMENT + Scalar(("temp", 2), "int16")


@pytest.mark.parametrize("use", [bool, int, list, range])
def test_value_of_the_core_decides_nothing_in_python(use: type) -> None:
    with pytest.raises(UnsupportedError, match="known only when the core runs"):
        use(ELEMENT)
