"""Windows and firings: what an op needs for each object that it makes."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manifest.model import Op
from presim.blocks import object_count
from presim.plan.access import Firing, Geometry, firings, geometry, largest_window, usual_step, windows

Shape = tuple[int, ...]


def op_of(op_type: str, attributes: Mapping[str, Any]) -> Op:
    return Op(name="op", type=op_type, inputs=("x",), outputs=("y",), attributes=dict(attributes))


def pooled(
    height: int, kernel: int, stride: int, pads: tuple[int, int], *, dilation: int = 1, images: int = 1
) -> Geometry:
    """A window along the rows; the width does not matter."""
    out = (height + sum(pads) - ((kernel - 1) * dilation + 1)) // stride + 1
    attributes = {
        "kernel_shape": (kernel, 1),
        "strides": (stride, 1),
        "pads": (pads[0], 0, pads[1], 0),
        "dilations": (dilation, 1),
    }
    return geometry(op_of("MaxPool", attributes), "max_pool", ((images, 8, height, 1),), (images, 8, out, 1))


def needs(of: Geometry, port: int = 0) -> list[tuple[int, ...]]:
    return [f.needs[port] for f in firings(of)]


def test_window_at_the_borders_leaves_out_the_rows_outside_the_image() -> None:
    fired = firings(pooled(4, 3, 1, (1, 1)))
    assert [f.needs[0] for f in fired] == [(0, 1), (0, 1, 2), (1, 2, 3), (2, 3)]
    assert [dict(f.scalars) for f in fired] == [
        {"pad_top": 1, "pad_bottom": 0},
        {"pad_top": 0, "pad_bottom": 0},
        {"pad_top": 0, "pad_bottom": 0},
        {"pad_top": 0, "pad_bottom": 1},
    ]


def test_uneven_pads_stride_and_dilation() -> None:
    assert needs(pooled(5, 3, 2, (0, 1))) == [(0, 1, 2), (2, 3, 4)]
    assert needs(pooled(5, 2, 1, (2, 0), dilation=3)) == [(0, 1), (0, 1, 2), (0, 1, 2, 3), (1, 2, 3, 4)]


def test_images_of_a_batch_do_not_share_rows() -> None:
    assert needs(pooled(2, 3, 1, (1, 1), images=2)) == [(0, 1), (0, 1), (2, 3), (2, 3)]


def test_rows_that_no_window_needs_are_skipped() -> None:
    fired = firings(pooled(5, 1, 2, (0, 0)))
    held = windows(fired, 0, 5)
    assert [(w.first, w.last, w.skip, w.keep) for w in held] == [(0, 0, 1, 2), (2, 2, 1, 4), (4, 4, 0, 5)]
    last = windows(firings(pooled(8, 3, 3, (0, 0))), 0, 8)[-1]
    assert (last.first, last.last, last.skip) == (3, 5, 2)


@given(
    height=st.integers(1, 9),
    kernel=st.integers(1, 4),
    stride=st.integers(1, 4),
    pads=st.tuples(st.integers(0, 3), st.integers(0, 3)),
    dilation=st.integers(1, 3),
    images=st.integers(1, 2),
)
def test_windows_hold_what_is_needed_in_order_and_take_everything(
    *, height: int, kernel: int, stride: int, pads: tuple[int, int], dilation: int, images: int
) -> None:
    if height + sum(pads) < (kernel - 1) * dilation + 1:
        return
    rows = pooled(height, kernel, stride, pads, dilation=dilation, images=images)
    fired = firings(rows)
    total = object_count(rows.inputs[0])
    position = windows(fired, 0, total)[0].first
    for firing, window in zip(fired, windows(fired, 0, total), strict=True):
        assert window.first == position
        assert all(window.first <= n <= window.last for n in firing.needs[0])
        position = window.keep
        assert window.keep >= window.first
        assert window.skip == max(0, window.keep - window.last - 1)
    assert position == total
    assert largest_window(fired, 0, total) <= (kernel - 1) * dilation + 1


def test_depths_of_a_three_row_window() -> None:
    fired = firings(pooled(8, 3, 2, (1, 1)))
    assert (largest_window(fired, 0, 8), usual_step(fired, 0, 8)) == (3, 2)


def test_the_end_of_an_image_is_no_step() -> None:
    fired = firings(pooled(8, 3, 1, (1, 1), images=2))
    assert (largest_window(fired, 0, 16), usual_step(fired, 0, 16)) == (3, 1)


def test_rows_are_summed_up_and_one_object_comes_out_per_image() -> None:
    sums = Geometry(kind="global_average_pool", inputs=((2, 8, 2, 3),), output=(2, 8, 1, 1))
    assert [(f.needs[0], f.gives, f.kernel, f.scalars) for f in firings(sums)] == [
        ((0,), 0, 0, (("row", 0),)),
        ((1,), 0, 0, (("row", 1),)),
        ((), 1, 1, ()),
        ((2,), 0, 0, (("row", 0),)),
        ((3,), 0, 0, (("row", 1),)),
        ((), 1, 1, ()),
    ]


@pytest.mark.parametrize(
    ("shapes", "output", "expected"),
    [
        (((1, 8, 3, 2), (1, 8, 1, 2)), (1, 8, 3, 2), [(0, 0), (1, 0), (2, 0)]),
        (((2, 8, 1, 2), (1, 8, 2, 2)), (2, 8, 2, 2), [(0, 0), (0, 1), (1, 0), (1, 1)]),
        (((2, 3, 8), (3, 8)), (2, 3, 8), [(0, 0), (1, 1), (2, 2), (3, 0), (4, 1), (5, 2)]),
    ],
)
def test_operands_are_broadcast_over_objects(
    shapes: tuple[Shape, ...], output: Shape, expected: list[tuple[int, int]]
) -> None:
    sums = Geometry(kind="add", inputs=shapes, output=output)
    assert [tuple(n for port in f.needs for n in port) for f in firings(sums)] == expected


def test_an_operand_that_comes_round_again_is_held() -> None:
    sums = Geometry(kind="add", inputs=((2, 3, 8), (3, 8)), output=(2, 3, 8))
    assert largest_window(firings(sums), 1, 3) == 3


def test_concat_along_rows_is_an_order_of_objects() -> None:
    op = op_of("Concat", {"axis": 2})
    joined = geometry(op, "concat", ((2, 8, 1, 4), (2, 8, 2, 4)), (2, 8, 3, 4))
    assert [(f.needs, f.kernel) for f in firings(joined)] == [
        (((0,), ()), 0),
        (((), (0,)), 1),
        (((), (1,)), 1),
        (((1,), ()), 0),
        (((), (2,)), 1),
        (((), (3,)), 1),
    ]


def test_concat_along_channels_meets_object_by_object() -> None:
    op = op_of("Concat", {"axis": 1})
    joined = geometry(op, "concat", ((1, 8, 2, 4), (1, 16, 2, 4)), (1, 24, 2, 4))
    assert [f.needs for f in firings(joined)] == [((0,), (0,)), ((1,), (1,))]


def test_nothing_is_held_where_nothing_is_needed_any_more() -> None:
    fired = (Firing(needs=((0,),)), Firing(needs=((),)))
    assert [(w.first, w.last, w.keep) for w in windows(fired, 0, 3)] == [(0, 0, 3), (3, 2, 3)]
