"""Tensors as objects and back."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from presim.blocks import channels_of, from_objects, object_count, object_shape, put_channels, to_objects

SHAPES = st.lists(st.integers(1, 11), min_size=0, max_size=5).map(tuple)


@pytest.mark.parametrize(
    ("shape", "one", "count"),
    [
        ((1, 3, 28, 28), (1, 28, 8), 28),
        ((2, 8, 5, 6), (1, 6, 8), 10),
        ((2, 9, 5, 6), (2, 6, 8), 10),
        ((1, 64), (64,), 1),
        ((7, 10), (16,), 7),
        ((2, 3, 8), (8,), 6),
        ((5,), (8,), 1),
        ((), (8,), 1),
    ],
)
def test_shapes_of_objects(shape: tuple[int, ...], one: tuple[int, ...], count: int) -> None:
    assert object_shape(shape) == one
    assert object_count(shape) == count


@given(SHAPES, st.sampled_from(["int8", "uint8", "int16", "int32", "int64"]))
def test_objects_hold_the_tensor_and_zeros(shape: tuple[int, ...], dtype: str) -> None:
    array = (np.arange(1, 1 + int(np.prod(shape))) % 100 + 1).astype(dtype).reshape(shape)
    objects = to_objects(array)
    assert objects.shape == (object_count(shape), *object_shape(shape))
    assert objects.dtype == dtype
    assert np.count_nonzero(objects) == array.size
    back = from_objects(objects, shape)
    assert back.shape == shape
    np.testing.assert_array_equal(back, array)


def test_a_row_has_its_channels_in_blocks_of_eight() -> None:
    array = np.arange(2 * 9 * 3 * 4).reshape(2, 9, 3, 4)
    objects = to_objects(array)
    for n, c, h, w in np.ndindex(array.shape):
        assert objects[n * 3 + h, c // 8, w, c % 8] == array[n, c, h, w]


def test_objects_of_another_tensor_are_refused() -> None:
    with pytest.raises(ValueError, match=r"expected \(3, 1, 4, 8\), got \(2, 1, 4, 8\)"):
        from_objects(np.zeros((2, 1, 4, 8)), (1, 5, 3, 4))


@given(st.integers(1, 20), st.integers(1, 4), st.booleans(), st.data())
def test_channels_written_in_pieces_are_the_whole(total: int, width: int, row: bool, data: st.DataObject) -> None:
    width = width if row else 1
    out = np.full(object_shape((1, total, 1, width)) if row else object_shape((total,)), 85, np.int16)
    values = np.arange(1, 1 + total * width).reshape(total, width)
    first = 0
    while first < total:
        count = data.draw(st.integers(1, total - first))
        put_channels(out, values[first : first + count], first=first, total=total)
        first += count
    whole = channels_of(out)
    np.testing.assert_array_equal(whole[:total], values)
    np.testing.assert_array_equal(whole[total:], 0)
