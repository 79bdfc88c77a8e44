"""Access patterns and the tiler, against their order written out."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from presim.iron.errors import WrongValueError
from presim.iron.taps import TensorAccessPattern, TensorTiler2D


@st.composite
def tilings(draw: st.DrawFn) -> tuple[tuple[int, int], ...]:
    """(tensor, block, repeats, steps), each divisible by the next."""
    block, repeats, steps, groups = ((draw(st.integers(1, 3)), draw(st.integers(1, 3))) for _ in range(4))
    tensor = tuple(b * r * s * g for b, r, s, g in zip(block, repeats, steps, groups, strict=True))
    return (tensor[0], tensor[1]), block, repeats, steps


def written_out(tiling: tuple[tuple[int, int], ...], first: tuple[int, ...], columns: tuple[bool, bool]) -> list[int]:
    """Elements of the group whose first block is `first`, in order."""
    tensor, block, repeats, steps = tiling
    inside = list(itertools.product(range(block[0]), range(block[1])))
    between = list(itertools.product(range(repeats[0]), range(repeats[1])))
    if columns[0]:
        inside.sort(key=lambda p: (p[1], p[0]))
    if columns[1]:
        between.sort(key=lambda p: (p[1], p[0]))
    found = []
    for group, (r, c) in itertools.product(between, inside):
        row = (first[0] + group[0] * steps[0]) * block[0] + r
        column = (first[1] + group[1] * steps[1]) * block[1] + c
        found.append(row * tensor[1] + column)
    return found


@given(tiling=tilings(), inside=st.booleans(), between=st.booleans(), over=st.booleans())
def test_step_tiler(tiling: tuple[tuple[int, int], ...], inside: bool, between: bool, over: bool) -> None:
    tensor, block, repeats, steps = tiling
    firsts = [
        [n // s * s * r + n % s for n in range(t // b // r)]
        for t, b, r, s in zip(tensor, block, repeats, steps, strict=True)
    ]
    places = list(itertools.product(*firsts))
    if over:
        places.sort(key=lambda p: (firsts[1].index(p[1]), firsts[0].index(p[0])))
    made = TensorTiler2D.step_tiler(
        tensor,
        block,
        repeats,
        steps,
        tile_col_major=inside,
        tile_group_col_major=between,
        iter_col_major=over,
    )
    assert [list(t.access_generator()) for t in made] == [
        written_out(tiling, place, (inside, between)) for place in places
    ]
    assert all(len(t.sizes) == 4 for t in made)


def test_all_patterns_cover_the_tensor_once() -> None:
    made = TensorTiler2D.group_tiler((8, 12), (2, 3), (2, 2))
    seen = sorted(i for t in made for i in t.access_generator())
    assert seen == list(range(96))


def test_simple_tiler_takes_the_whole_and_repeats_it() -> None:
    (made,) = TensorTiler2D.simple_tiler((1, 6), pattern_repeat=3)
    assert list(made.access_generator()) == list(range(6)) * 3


@pytest.mark.parametrize(("block", "groups"), [((3, 4), (1, 1)), ((2, 4), (3, 1)), ((2, 4), (1, 4))])
def test_groups_that_do_not_divide_are_refused(block: tuple[int, int], groups: tuple[int, int]) -> None:
    with pytest.raises(WrongValueError, match="no whole number of groups"):
        TensorTiler2D.group_tiler((8, 8), block, groups)


def test_bounds_of_a_pattern() -> None:
    assert list(TensorAccessPattern((2, 4), 4, [4], [1]).access_generator()) == [4, 5, 6, 7]
    with pytest.raises(WrongValueError, match="element 8 of a tensor of 8"):
        TensorAccessPattern((2, 4), 5, [4], [1])


def test_default_is_all_of_it_in_order() -> None:
    made = TensorAccessPattern((2, 3))
    assert made.transformation_dims == [(2, 3), (3, 1)]
    assert np.array_equal(list(made.access_generator()), np.arange(6))
