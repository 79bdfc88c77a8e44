"""Adjacency of every device, against tables written from the target models, both sides of every edge."""

import itertools

import pytest

from manifest.device import DEVICES, load_device
from presim.adjacency import beside, cascade_steps, cascades_to, reaches, shared_tile
from presim.design import Tile
from presim.place.grid import grid_of

OWN = {(0, 0), (0, 1), (0, -1)}


def memories(arch: str, row: int) -> set[tuple[int, int]]:
    """(columns east, rows north) of the memories that a core of an absolute row reaches."""
    if arch == "aie1":
        return OWN | {(1, 0) if row % 2 == 0 else (-1, 0)}
    return OWN | {(-1, 0)}


@pytest.mark.parametrize("name", DEVICES)
def test_reach_of_every_core_to_every_tile_around_it(name: str) -> None:
    grid = grid_of(load_device(name))
    for row in range(grid.core_row, grid.core_row + grid.core_rows):
        core = Tile(column=5, row=row)
        for east, north in itertools.product(range(-2, 3), repeat=2):
            there = Tile(column=5 + east, row=row + north)
            assert reaches(core, there, grid.arch) == ((east, north) in memories(grid.arch, row))
            assert beside(core, there) == (abs(east) + abs(north) <= 1)


@pytest.mark.parametrize("name", DEVICES)
def test_neighbours_share_a_memory_that_both_reach(name: str) -> None:
    grid = grid_of(load_device(name))
    for a, b in itertools.permutations([t for t in grid.cores() if t.column < 4], 2):
        if beside(a, b):
            shared = shared_tile(a, b, grid.arch)
            assert shared in (a, b)
            assert shared is not None
            assert reaches(a, shared, grid.arch)
            assert reaches(b, shared, grid.arch)
            assert shared == a or not reaches(b, a, grid.arch)
        else:
            assert not reaches(a, b, grid.arch)


def test_the_side_of_the_shared_memory() -> None:
    west, east = Tile(column=3, row=2), Tile(column=4, row=2)
    for arch in ("aie2", "aie2p", "aie2ps"):
        assert shared_tile(west, east, arch) == shared_tile(east, west, arch) == west
    assert shared_tile(west, east, "aie1") == shared_tile(east, west, "aie1") == east
    odd = Tile(column=3, row=3), Tile(column=4, row=3)
    assert shared_tile(*odd, "aie1") == shared_tile(odd[1], odd[0], "aie1") == odd[0]
    north = Tile(column=3, row=3)
    assert shared_tile(west, north, "aie2") == west
    assert shared_tile(north, west, "aie2") == north
    assert shared_tile(None, west, "aie2") is None


@pytest.mark.parametrize("kind", ["mem", "shim"])
def test_memory_and_shim_tiles_are_beside_nothing(kind: str) -> None:
    core = Tile(column=0, row=2)
    other = Tile(column=0, row=1, kind=kind)  # type: ignore[arg-type]
    assert not beside(core, other)
    assert not reaches(core, other, "aie2")


@pytest.mark.parametrize("name", DEVICES)
def test_cascades_lead_to_few_neighbours(name: str) -> None:
    grid = grid_of(load_device(name))
    for row in range(grid.core_row, grid.core_row + grid.core_rows):
        source = Tile(column=5, row=row)
        allowed = {(1, 0), (0, -1)} if grid.arch != "aie1" else {(1, 0)} if row % 2 == 0 else {(-1, 0)}
        assert set(cascade_steps(row, grid.arch)) == allowed
        for east, north in itertools.product(range(-2, 3), repeat=2):
            there = Tile(column=5 + east, row=row + north)
            assert cascades_to(source, there, grid.arch) == ((east, north) in allowed)
