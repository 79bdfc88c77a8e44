"""Windows over held rows, against positions counted by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from presim.blocks import to_objects
from presim.kernels.window import covered, windows
from tests.presim.kernels.driver import Tile

SMALL = st.integers(1, 3)
PAD = st.integers(0, 3)


def tile(kernel: tuple[int, int], *, top: int = 0, bottom: int = 0, left: int = 0) -> Tile:
    attributes = {"kernel": kernel, "strides": (1, 1), "dilations": (1, 1), "pads_lr": (left, 0)}
    return Tile(attributes=attributes, scalars={"pad_top": top, "pad_bottom": bottom})


@given(
    kernel=st.tuples(SMALL, SMALL), step=SMALL, dilations=st.tuples(SMALL, SMALL), pads=st.tuples(PAD, PAD, PAD, PAD)
)
def test_taps_are_those_of_the_image(
    kernel: tuple[int, int], step: int, dilations: tuple[int, int], pads: tuple[int, int, int, int]
) -> None:
    """First and last rows lie outside; zero point off the codes, `fill` elsewhere."""
    top, left, bottom, right = pads
    extent = (kernel[0] - 1) * dilations[0] + 1
    inside = max(0, extent - top - bottom)
    image = np.arange(1, 1 + inside * 5 * 11).reshape(1, 11, inside, 5)
    width = (5 + left + right - (kernel[1] - 1) * dilations[1] - 1) // step + 1
    context = Tile(
        attributes={"kernel": kernel, "strides": (9, step), "dilations": dilations, "pads_lr": (left, right)},
        scalars={"pad_top": top, "pad_bottom": bottom},
    )
    got = windows(context, list(to_objects(image)), max(0, width), channels=slice(2, 9), zero_point=7, fill=-99)
    assert got.shape == (kernel[0], 7, kernel[1], max(0, width))
    for (a, c, b, o), value in np.ndenumerate(got):
        row, column = a * dilations[0] - top, o * step - left + b * dilations[1]
        there = 0 <= row < inside and 0 <= column < 5
        assert value == (image[0, c + 2, row, column] - 7 if there else -99)


@pytest.mark.parametrize(("rows", "fits"), [(2, True), (1, False), (3, False)])
def test_the_number_of_rows_has_to_be_that_of_the_window(rows: int, fits: bool) -> None:
    held = list(to_objects(np.zeros((1, 8, rows, 4), np.int8)))
    if fits:
        windows(tile((3, 1), top=1), held, 4, channels=slice(0, 8), zero_point=0)
        return
    with pytest.raises(ValueError, match=f"window of 3 rows, 1 above and 0 below the image: got {rows} rows"):
        windows(tile((3, 1), top=1), held, 4, channels=slice(0, 8), zero_point=0)


@given(st.integers(-5, 5), st.integers(1, 4), st.integers(1, 3), st.integers(-3, 3), st.integers(-3, 6))
def test_covered_counts_taps(first: int, taps: int, dilation: int, low: int, high: int) -> None:
    places = range(first, first + taps * dilation, dilation)
    assert covered(first, taps, dilation, low, high) == len([p for p in places if low <= p < high])
