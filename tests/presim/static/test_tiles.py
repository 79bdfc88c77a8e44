"""Placement: tiles exist and reach what they have to reach."""

import dataclasses

import pytest

from manifest.device import load_device
from presim.design import Cascade, Tile
from presim.static import budget_rows, scope_of
from tests.presim.checking import changed, device, found, plain, severities
from tests.presim.sketches import Sketch, loop, move, put


def test_mliraie_26_a_shim_without_a_way_to_memory_is_refused_naming_those_with_one() -> None:
    s = plain()
    (finding,) = found(s, "shim_columns", device("vc1902"))
    assert "column 0" in finding.text
    assert "those with one: 2, 3, 6, 7, 10, 11" in finding.text
    allowed = plain()
    for fifo in list(allowed.fifos):
        allowed.fifos.remove(fifo)
    allowed.place("shim0", 2, 0).fifo("x", "shim0", "w").fifo("y", "w", "shim0")
    assert found(allowed, "shim_columns", device("vc1902")) == []
    assert severities(s, "shim_columns", device("vek385")) == ["unknown"]


def test_two_workers_on_a_tile_are_refused_by_name() -> None:
    s = Sketch().place("a", 0, 2).place("b", 0, 2)
    for name in "ab":
        s.worker(name, loop(1, *put(f"{name}y"))).fifo(f"{name}y", name, "shim0").drain(f"{name}y", 1)
    (finding,) = found(s, "placement")
    assert "2 workers (a, b)" in finding.text
    s = Sketch().place("a", 0, 2).place("b", 0, 3)
    for name in "ab":
        s.worker(name, loop(1, *put(f"{name}y"))).fifo(f"{name}y", name, "shim0").drain(f"{name}y", 1)
    assert found(s, "placement") == []


@pytest.mark.parametrize(
    ("actor", "column", "row", "fine"),
    [
        ("w", 7, 5, True),
        ("w", 8, 5, False),
        ("w", 7, 6, False),
        ("w", 7, 1, False),
        ("shim0", 0, 1, False),
        ("w", -1, 2, False),
    ],
)
def test_tiles_exist(actor: str, column: int, row: int, fine: bool) -> None:
    s = Sketch().place("shim0", 0, 0).place("w", 0, 2).place(actor, column, row)
    s.worker("w", loop(4, *move("x", "y"))).fifo("x", "shim0", "w").fifo("y", "w", "shim0").fill("x", 4).drain("y", 4)
    assert (found(s, "placement") == []) == fine


def test_what_is_not_placed_is_a_warning_and_counts_nowhere() -> None:
    s = Sketch()
    s.tiles = dict.fromkeys(("w", "shim0"))
    s.worker("w", loop(4, *move("x", "y"))).fifo("x", "shim0", "w").fifo("y", "w", "shim0").fill("x", 4).drain("y", 4)
    assert severities(s, "placement") == ["warning"]
    assert budget_rows(scope_of(s.design(), load_device("npu2"))) == ()


def test_an_end_that_is_not_where_its_worker_is() -> None:
    design = plain().design()
    moved = dataclasses.replace(design.fifos[1].producer, tile=Tile(column=1, row=2))
    assert len(found(changed(design, "fifos", 1, producer=moved), "broadcast")) == 1


def test_two_consumers_of_a_broadcast_on_one_tile() -> None:
    s = Sketch().place("a", 0, 2).place("b", 0, 2).place("shim0", 0, 0)
    for name in "ab":
        s.worker(name, loop(1, *move("x", f"{name}y"))).fifo(f"{name}y", name, "shim0").drain(f"{name}y", 1)
    s.fifo("x", "shim0", "a", "b").fill("x", 1)
    assert [f.used for f in found(s, "broadcast")] == [2]


@pytest.mark.parametrize(
    ("arch", "step", "fine"),
    [
        ("npu2", (1, 0), True), ("npu2", (0, -1), True), ("npu2", (0, 1), False), ("npu2", (-1, 0), False),
        ("npu2", (2, 0), False), ("vc1902", (0, -1), False),
    ],
)  # fmt: skip
def test_cascades_lead_south_or_east(arch: str, step: tuple[int, int], fine: bool) -> None:
    s = Sketch().place("a", 3, 4).place("b", 3 + step[0], 4 + step[1])
    for name in "ab":
        s.worker(name, loop(1, *put(f"{name}y"))).fifo(f"{name}y", name, "shim0").drain(f"{name}y", 1)
    s.cascades.append(Cascade(source="a", target="b"))
    assert (found(s, "cascades", device(arch)) == []) == fine
