"""Pins of directives: exact, and refused by name where they cannot hold."""

import dataclasses

import pytest

from manifest.device import load_device
from manifest.errors import RefusedError
from presim.design import Call, Loop, Tile
from presim.directives import Directives
from presim.place import place
from presim.place.grid import grid_of
from presim.place.pins import pins_of
from presim.routes import routes
from tests.presim.place.webs import chain, net, pinned, web

NPU1 = load_device("npu1")
GRID = grid_of(NPU1)


def refusal(directives: Directives, count: int = 3) -> str:
    with pytest.raises(RefusedError) as refused:
        place(chain(count), NPU1, directives)
    assert {p.code for p in refused.value.problems} == {"PLACE-PIN"}
    return str(refused.value)


@pytest.mark.parametrize(("row", "col"), [(0, 0), (3, 3), (3, 0), (0, 3)])
def test_a_pinned_worker_is_where_it_was_asked_for(row: int, col: int) -> None:
    placed = place(chain(5), NPU1, pinned(w2=(row, col)))
    assert placed.workers[2].tile == Tile(column=col, row=row + 2)
    assert routes(placed)["direct"] == 4


@pytest.mark.parametrize(("row", "col"), [(4, 0), (0, 4), (99, 99)])
def test_a_place_outside_the_array(row: int, col: int) -> None:
    text = refusal(pinned(w1=(row, col)))
    assert "node 'w1', placement" in text
    assert "row 0 to 3, col 0 to 3 on npu1" in text
    assert f"row {row}, col {col}" in text


def test_two_pins_on_one_place_name_both() -> None:
    text = refusal(pinned(w0=(1, 1), w2=(1, 1)))
    assert "node 'w2'" in text
    assert "taken by node 'w0'" in text


def test_all_wrong_pins_are_said_at_once() -> None:
    with pytest.raises(RefusedError) as refused:
        place(chain(3), NPU1, pinned(w0=(9, 0), w1=(0, 9), w2=(0, 0)))
    assert len(refused.value.problems) == 2


def test_neighbours_by_pins_are_direct_and_a_gap_is_not() -> None:
    together = place(chain(3, device="vek280"), load_device("vek280"), pinned(w0=(1, 7), w1=(1, 8), w2=(1, 9)))
    assert (routes(together)["direct"], routes(together)["stream"]) == (2, 0)
    apart = place(chain(3, device="vek280"), load_device("vek280"), pinned(w0=(1, 7), w1=(1, 9), w2=(1, 11)))
    assert (routes(apart)["direct"], routes(apart)["stream"]) == (0, 2)


def test_ops_on_one_core_take_one_place() -> None:
    """A worker that computes two ops: the same pin twice is one, another is refused."""
    design = chain(2)
    first, second = design.workers
    body = (*first.program, Loop(times=1, body=(Call(kernel="k:w1", arguments=()),)))
    both = dataclasses.replace(design, workers=(dataclasses.replace(first, program=body), second))
    assert pins_of(both, pinned(w0=(1, 1), w1=(1, 1)), GRID).fixed == {"w0": Tile(column=1, row=3)}
    with pytest.raises(RefusedError, match="runs on one core with 'w0', which is elsewhere"):
        pins_of(both, pinned(w0=(1, 1), w1=(1, 2)), GRID)


def test_what_is_placed_already_stays_and_is_in_the_way() -> None:
    design = chain(3)
    here = dataclasses.replace(design.workers[1], tile=Tile(column=3, row=5))
    design = dataclasses.replace(design, workers=(design.workers[0], here, design.workers[2]))
    assert place(design, NPU1).workers[1].tile == Tile(column=3, row=5)
    with pytest.raises(RefusedError, match="taken by worker 'w1'"):
        place(design, NPU1, pinned(w0=(3, 3)))
    with pytest.raises(RefusedError, match="which is elsewhere"):
        place(design, NPU1, pinned(w1=(3, 2)))


def test_a_pin_of_an_op_without_a_core_is_said() -> None:
    placed = place(chain(2), NPU1, pinned(flatten=(0, 0)))
    assert placed.notes == ("placement of 'flatten' not used: it has no core in this dispatch",)


def test_the_workers_of_a_pinned_op_form_a_block() -> None:
    """Two cascades of three, side by side: summands to the east, output channels to the north."""
    names = [f"n{n}k{k}" for n in range(2) for k in range(3)]
    cascades = [(f"n{n}k{k}", f"n{n}k{k + 1}") for n in range(2) for k in range(2)]
    design = web([net("host", *names), net("n0k2", "host"), net("n1k2", "host")], cascades=cascades)
    kernels = tuple(dataclasses.replace(kernel, op="fc") for kernel in design.kernels)
    placed = place(dataclasses.replace(design, kernels=kernels), NPU1, pinned(fc=(1, 1)))
    assert {w.name: (w.tile.column, w.tile.row) for w in placed.workers if w.tile} == {
        f"n{n}k{k}": (1 + k, 3 + n) for n in range(2) for k in range(3)
    }


def test_a_cascade_that_cannot_pass_its_pins() -> None:
    design = web([net("host", "a", "b"), net("b", "host")], cascades=[("a", "b")])
    assert place(design, NPU1, pinned(a=(1, 1), b=(0, 1)))
    assert place(design, NPU1, pinned(a=(1, 1), b=(1, 2)))
    for pins in (pinned(a=(1, 1), b=(2, 1)), pinned(a=(1, 1), b=(1, 0)), pinned(b=(3, 0))):
        with pytest.raises(RefusedError, match="no free path leads") as refused:
            place(design, NPU1, pins)
        assert {p.code for p in refused.value.problems} == {"PLACE-CASCADE"}
