from dataclasses import replace

import pytest

from manifest.device import load_device
from phases.bringup.shims import with_shims
from presim.design import Design, Endpoint, Fifo, Tile

CORE = Tile(column=2, row=2)


def fifo(name: str, *, fills: bool) -> Fifo:
    host, core = Endpoint(actor=f"host {name}", kind="shim"), Endpoint(actor="w", tile=CORE)
    ends = (host, core) if fills else (core, host)
    return Fifo(name=name, shape=(4,), dtype="int8", producer=ends[0], consumers=(ends[1],))


def design(count: int, *, fills: bool) -> Design:
    fifos = tuple(fifo(f"f{n}", fills=fills) for n in range(count))
    return Design(dispatch="d0", device="npu1", workers=(), fifos=fifos)


def columns(made: Design, *, fills: bool) -> list[int | None]:
    ends = [f.producer if fills else f.consumers[0] for f in made.fifos]
    return [None if e.tile is None else e.tile.column for e in ends]


@pytest.mark.parametrize("fills", [True, False])
def test_the_nearest_column_first_and_two_channels_each(fills: bool) -> None:
    made = with_shims(design(5, fills=fills), load_device("npu1"))
    assert columns(made, fills=fills) == [2, 2, 1, 1, 3]


def test_beyond_all_channels_an_end_stays_without() -> None:
    found = columns(with_shims(design(9, fills=True), load_device("npu1")), fills=True)
    assert found.count(None) == 1
    assert sorted(c for c in found if c is not None) == [0, 0, 1, 1, 2, 2, 3, 3]


def test_ends_that_have_a_tile_keep_it_and_use_its_channels() -> None:
    one = design(3, fills=True)
    placed = replace(one.fifos[0], producer=replace(one.fifos[0].producer, tile=Tile(column=2, row=0, kind="shim")))
    made = with_shims(replace(one, fifos=(placed, *one.fifos[1:])), load_device("npu1"))
    assert columns(made, fills=True) == [2, 2, 1]


def test_only_columns_with_a_dma_are_taken_on_a_large_array() -> None:
    made = with_shims(design(3, fills=True), load_device("vek280"))
    assert set(columns(made, fills=True)) <= set(load_device("vek280").shim_dma_columns.value or ())
