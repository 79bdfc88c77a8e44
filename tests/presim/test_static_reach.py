"""Static check of buffers: in the memory of their worker or of a neighbour that it reaches, nowhere else."""

import dataclasses

import pytest

from manifest.device import load_device
from presim.design import Call, Tile
from presim.place import place
from presim.static import check_design
from presim.steps import steps_of
from tests.presim.place.webs import chain, net, web


def faults(device: str, core: Tile, home: Tile) -> list[str]:
    design = web([net("host", "a"), net("a", "host")], device=device, buffers={"a": 64})
    worker = dataclasses.replace(design.workers[0], tile=core)
    placed = place(dataclasses.replace(design, workers=(worker,)), load_device(device))
    placed = dataclasses.replace(placed, buffers=(dataclasses.replace(placed.buffers[0], tile=home),))
    found = next(c for c in check_design(placed, load_device(device)) if c.rule == "placement")
    return [f.text for f in found.findings if f.severity == "error" and f.where == "buffer 'a.w'"]


@pytest.mark.parametrize(
    ("device", "east", "north", "row", "good"),
    [
        ("npu1", 0, 0, 3, True),
        ("npu1", -1, 0, 3, True),
        ("npu1", 1, 0, 3, False),
        ("npu1", 0, 1, 3, True),
        ("npu1", 0, -1, 3, True),
        ("npu1", -2, 0, 3, False),
        ("npu1", -1, 1, 3, False),
        ("vc1902", 1, 0, 2, True),
        ("vc1902", -1, 0, 2, False),
        ("vc1902", -1, 0, 3, True),
        ("vc1902", 1, 0, 3, False),
    ],
)
def test_reach_of_a_buffer(device: str, east: int, north: int, row: int, good: bool) -> None:
    texts = faults(device, Tile(column=2, row=row), Tile(column=2 + east, row=row + north))
    assert bool(texts) != good


def test_a_buffer_of_two_workers_is_within_reach_of_both() -> None:
    """Without a tile it lies in the memory of the first that uses it."""
    design = place(chain(3), load_device("npu1"))
    tiles = [w.tile for w in design.workers]
    buffered = web([net("host", "a"), net("a", "b"), net("b", "c"), net("c", "host")], buffers={"a": 64})
    for reader, good in ((1, True), (2, False)):
        workers = [dataclasses.replace(w, tile=t) for w, t in zip(buffered.workers, tiles, strict=True)]
        call = next(step for step in steps_of(workers[0].program) if isinstance(step, Call))
        again = dataclasses.replace(call, arguments=(call.arguments[-1],))
        program = (*workers[reader].program, again)
        workers[reader] = dataclasses.replace(workers[reader], program=program)
        placed = dataclasses.replace(buffered, workers=tuple(workers))
        found = next(c for c in check_design(placed, load_device("npu1")) if c.rule == "placement")
        texts = [f.text for f in found.findings if f.where == "buffer 'a.w'"]
        assert bool(texts) != good
