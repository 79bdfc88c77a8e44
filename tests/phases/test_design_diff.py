"""Designs that differ in one thing: named by dispatch, part and field; equal ones differ in nothing."""

import dataclasses
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from phases.design_diff import ABSENT, design_diff
from presim.design import Design, Tile
from tests.presim_designs import copy_design, every_part

OTHER = Tile(column=3, row=4)


def moved(design: Design) -> Design:
    return replace(design, workers=(replace(design.workers[0], tile=OTHER), *design.workers[1:]))


def deeper(design: Design) -> Design:
    return replace(design, fifos=(replace(design.fifos[0], depth=3), *design.fifos[1:]))


def elsewhere(design: Design) -> Design:
    producer = replace(design.fifos[0].producer, tile=OTHER)
    return replace(design, fifos=(replace(design.fifos[0], producer=producer), *design.fifos[1:]))


def consumer(design: Design) -> Design:
    consumers = (replace(design.fifos[0].consumers[0], tile=OTHER),)
    return replace(design, fifos=(replace(design.fifos[0], consumers=consumers), *design.fifos[1:]))


def halves(design: Design) -> Design:
    return replace(design, splits=(replace(design.splits[0], parts=2),))


def waits(design: Design) -> Design:
    return replace(design, sequence=(replace(design.sequence[0], objects=9), *design.sequence[1:]))


CASES: list[tuple[Callable[[Design], Design], tuple[str, str, str, str]]] = [
    (moved, ("design 'd0', worker 'w'", "tile", "(0, 2)", "(3, 4)")),
    (deeper, ("design 'd0', fifo 'x'", "depth", "2", "3")),
    (elsewhere, ("design 'd0', fifo 'x'", "producer.tile", "(0, 0)", "(3, 4)")),
    (consumer, ("design 'd0', fifo 'x'", "consumers[0] (1 of 1 moved).tile", "(0, 2)", "(3, 4)")),
    (halves, ("design 'd0', split 'copy'", "parts", "1", "2")),
    (waits, ("design 'd0', transfer fill 'x'", "objects", "4", "9")),
    (lambda d: replace(d, device="npu1"), ("design 'd0'", "device", "npu2", "npu1")),
    (lambda d: replace(d, workers=()), ("design 'd0', worker 'w'", "removed", "on tile (0, 2)", ABSENT)),
    (lambda d: replace(d, fifos=d.fifos[::-1]), ("design 'd0'", "order of fifos[0] (2 of 2 moved)", "'x'", "'y'")),
]


@pytest.mark.parametrize(("change", "row"), CASES)
def test_one_change_is_one_row(change: Callable[[Design], Design], row: tuple[str, str, str, str]) -> None:
    one = copy_design()
    (found,) = design_diff([one], [change(one)])
    assert (found.where, found.what, found.before, found.after) == row
    (back,) = design_diff([change(one)], [one])
    assert (back.before, back.after) == (row[3], row[2])


@pytest.mark.parametrize("design", [copy_design(), every_part()])
def test_the_same_differs_in_nothing(design: Design) -> None:
    assert design_diff([design], [design]) == ()
    assert design_diff([], []) == ()


def test_no_field_of_a_design_is_left_out() -> None:
    """Whatever list is emptied shows."""
    whole = every_part()
    for field in dataclasses.fields(Design):
        value: Any = getattr(whole, field.name)
        other: Any = () if isinstance(value, tuple) else value + 1 if isinstance(value, int) else f"{value}x"
        if value != other:
            assert design_diff([whole], [replace(whole, **{field.name: other})]), field.name


def test_dispatches_of_one_side_and_their_order() -> None:
    one, two = copy_design(), replace(copy_design(), dispatch="d1")
    (row,) = design_diff([one], [one, two])
    assert (row.where, row.before, row.after) == ("design 'd1'", ABSENT, "1 worker, 2 fifos")
    (row,) = design_diff([one, two], [two, one])
    assert (row.where, row.what) == ("designs", "order")


def test_parts_of_one_key_are_told_apart() -> None:
    one = copy_design()
    twice = replace(one, sequence=(one.sequence[0], *one.sequence))
    (row,) = [r for r in design_diff([one], [twice]) if r.what == "added"]
    assert row.where == "design 'd0', transfer fill 'x' (2)"
