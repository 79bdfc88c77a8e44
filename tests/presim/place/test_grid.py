"""Tiles of every device."""

import itertools

import pytest

from manifest.device import DEVICES, load_device
from presim.adjacency import beside
from presim.place.grid import grid_of


@pytest.mark.parametrize("name", DEVICES)
def test_all_tiles_of_every_kind_once(name: str) -> None:
    device = load_device(name)
    grid = grid_of(device)
    assert len(set(grid.cores())) == len(grid.cores()) == device.core_tiles.value
    assert len(set(grid.memories())) == len(grid.memories()) == device.memtiles.value
    columns = device.shim_dma_columns.value
    assert len(grid.shims()) == (device.columns.value if columns is None else len(columns))
    for tile in (*grid.cores(), *grid.memories(), *grid.shims()):
        assert grid.kind(tile.row) == tile.kind
    for tile in grid.cores():
        assert grid.has_core(tile.column, tile.row)
    assert grid.core_row + grid.core_rows == device.rows.value


@pytest.mark.parametrize("name", DEVICES)
def test_the_edge_of_the_array(name: str) -> None:
    grid = grid_of(load_device(name))
    top = grid.core_row + grid.core_rows - 1
    assert grid.has_core(0, grid.core_row)
    assert grid.has_core(grid.columns - 1, top)
    for column, row in ((-1, top), (grid.columns, top), (0, top + 1), (0, grid.core_row - 1)):
        assert not grid.has_core(column, row)


@pytest.mark.parametrize("name", DEVICES)
def test_the_snake_goes_from_neighbour_to_neighbour(name: str) -> None:
    """But for the jump to the columns west of the first one that reaches the host."""
    grid = grid_of(load_device(name))
    assert grid.cores()[0].column == grid.shim_columns[0]
    jumps = sum(not beside(a, b) for a, b in itertools.pairwise(grid.cores()))
    assert jumps == (1 if grid.shim_columns[0] else 0)


def test_columns_to_the_host() -> None:
    grid = grid_of(load_device("vek280"))
    assert [grid.to_host(c) for c in (0, 2, 3, 5, 7, 11, 37)] == [2, 0, 0, 1, 0, 3, 2]
    assert {grid_of(load_device("vek385")).to_host(c) for c in range(36)} == {0}
