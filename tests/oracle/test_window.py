"""Windows against listing every position."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manifest.errors import RefusedError
from manifest.model import Op
from oracle.strategies import windows
from oracle.window import Axis, axes_of


def _op(**attributes: Any) -> Op:
    return Op(name="pool", type="MaxPool", inputs=("x",), outputs=("y",), attributes=attributes)


@given(window=windows(), ceil_mode=st.integers(0, 1), data=st.data())
def test_axes_match_a_list_of_positions(
    window: dict[str, tuple[int, ...]], ceil_mode: int, data: st.DataObject
) -> None:
    attributes = {k: v for k, v in window.items() if k != "size"}
    for i, axis in enumerate(axes_of(_op(**attributes, ceil_mode=ceil_mode), window["size"], window["kernel_shape"])):
        begin, end, size = window["pads"][i], window["pads"][2 + i], window["size"][i]
        reach = axis.dilation * (axis.kernel - 1)
        starts = range(-begin, size + end, axis.stride)
        inside = [s for s in starts if s + reach < size + end]
        if ceil_mode:  # one more where the last does not reach the end, none that starts in the padding behind
            if inside[-1] + reach < size + end - 1:
                inside.append(inside[-1] + axis.stride)
            inside = inside[:-1] if inside[-1] >= size else inside
        assert axis.out == len(inside)
        first = data.draw(st.integers(0, axis.out - 1))
        last = data.draw(st.integers(first + 1, axis.out))
        for tap in range(axis.kernel):
            places = {w: s + tap * axis.dilation for w, s in enumerate(inside)}
            want = [(w - first, p) for w, p in places.items() if first <= w < last and 0 <= p < size]
            outs, ins = axis.valid(tap, first, last)
            got = list(zip(range(last - first)[outs], range(size)[ins], strict=True))
            assert got == want
        for padded in (False, True):
            low, high = (-begin, size + end) if padded else (0, size)
            want_counts = [sum(low <= s + k * axis.dilation < high for k in range(axis.kernel)) for s in inside]
            assert axis.counts(include_pad=padded) == want_counts


def test_one_spatial_axis_gets_a_row_axis_of_size_one() -> None:
    rows, cols = axes_of(_op(strides=(2,), dilations=(1,), pads=(0, 1)), (5,), (3,))
    assert rows == Axis(size=1, kernel=1, stride=1, dilation=1, begin=0, end=0, out=1)
    assert cols == Axis(size=5, kernel=3, stride=2, dilation=1, begin=0, end=1, out=2)


def test_three_spatial_axes_are_refused() -> None:
    with pytest.raises(RefusedError, match="3 spatial axes; expected 1 or 2"):
        axes_of(_op(), (4, 4, 4), (1, 1, 1))


def test_attributes_of_another_kind_are_refused() -> None:
    with pytest.raises(RefusedError, match="'strides' is not a list"):
        axes_of(_op(strides=1), (4, 4), (1, 1))


@pytest.mark.parametrize(
    ("form", "pads", "padded", "data"),
    [
        ((3, 2, 2), (0, 0), [2, 1], [2, 1]),
        ((3, 3, 3), (1, 1), [3, 2], [2, 1]),
        ((4, 3, 2), (0, 1), [3, 3], [3, 2]),
        ((4, 3, 2), (1, 0), [3, 3], [2, 3]),
    ],
)
def test_counts_of_windows_that_hang_over_the_end(
    form: tuple[int, int, int], pads: tuple[int, int], padded: list[int], data: list[int]
) -> None:
    size, kernel, stride = form
    (_, axis) = axes_of(_op(strides=(stride,), dilations=(1,), pads=pads, ceil_mode=1), (size,), (kernel,))
    assert axis.counts(include_pad=True) == padded
    assert axis.counts(include_pad=False) == data
