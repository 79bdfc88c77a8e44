"""Placement of whole designs: what becomes direct, what does not, and every refusal one unit beyond its limit."""

import dataclasses
import itertools
from typing import Any

import pytest

from manifest.device import DEVICES, load_device
from manifest.errors import RefusedError
from presim.adjacency import reaches
from presim.design import Design, Link, Tile
from presim.place import place
from presim.pools import shares_memory, wire
from presim.routes import routes
from presim.simulate import simulate
from tests.presim.place.webs import array, chain, changed, net, web

NPU1 = load_device("npu1")


def tiles(design: Design) -> dict[str, Tile]:
    found = {w.name: w.tile for w in design.workers}
    return {name: tile for name, tile in found.items() if tile is not None}


def codes(error: pytest.ExceptionInfo[RefusedError]) -> set[str]:
    return {p.code for p in error.value.problems}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("count", [1, 2, 5, 16])
def test_a_chain_is_direct_from_end_to_end(device: str, count: int) -> None:
    placed = place(chain(count, device=device), load_device(device))
    assert routes(placed)["direct"] == count - 1
    assert routes(placed)["stream"] == 0
    assert len(set(tiles(placed).values())) == count
    ends = [e for f in placed.fifos for e in (f.producer, *f.consumers)]
    assert all(e.tile == tiles(placed)[e.actor] for e in ends if e.kind == "worker")
    assert {e.tile.column for e in ends if e.kind == "shim" and e.tile} <= set(
        load_device(device).shim_dma_columns.value or range(99)
    )


@pytest.mark.parametrize("device", ["npu1", "npu2"])
def test_a_full_array_is_one_snake(device: str) -> None:
    count = load_device(device).core_tiles.value or 0
    placed = place(chain(count, device=device), load_device(device))
    assert routes(placed)["direct"] == count - 1
    with pytest.raises(RefusedError, match=f"core tiles: need {count + 1}, have {count}") as refused:
        place(chain(count + 1, device=device), load_device(device))
    assert codes(refused) == {"PLACE-CORES"}


def test_the_same_design_gets_the_same_tiles() -> None:
    design = web([net("host", "a"), net("a", "b", "c"), net("b", "d"), net("c", "d"), net("d", "host")])
    assert place(design, NPU1) == place(design, NPU1)
    placed = place(design, NPU1)
    assert place(placed, NPU1) == placed


@pytest.mark.parametrize(
    "options",
    [
        {"via_dma": True},
        {"repeat_count": 2},
        {"consumer_shape": (4,)},
        {"init_array": "weights:a:0", "init_objects": 1},
    ],
)
def test_what_needs_a_dma_keeps_it_beside_its_neighbour(options: dict[str, Any]) -> None:
    design = web([net("host", "a"), net("a", "b", **options), net("b", "host")])
    placed = place(design, NPU1)
    assert routes(placed)["stream"] == 1
    a, b = tiles(placed)["a"], tiles(placed)["b"]
    assert abs(a.column - b.column) + abs(a.row - b.row) == 1


def test_dims_and_broadcasts_are_no_direct_edges() -> None:
    design = web([net("host", "a"), net("a", "b", "c"), net("b", "host"), net("c", "host")])
    assert routes(place(design, NPU1))["stream"] == 2
    design = web([net("host", "a"), net("a", "b"), net("b", "host")])
    inner = design.fifos[1]
    for changed_fifo in (
        dataclasses.replace(inner, producer=dataclasses.replace(inner.producer, dims=((8, 1),))),
        dataclasses.replace(inner, consumers=(dataclasses.replace(inner.consumers[0], dims=((8, 1),)),)),
    ):
        fifos = (design.fifos[0], changed_fifo, design.fifos[2])
        assert routes(place(dataclasses.replace(design, fifos=fifos), NPU1))["direct"] == 0


def test_a_shared_pool_holds_what_both_ends_held() -> None:
    placed = place(web([net("host", "a"), net("a", "b", depths={"a": 2, "b": 5}), net("b", "host")]), NPU1)
    pools = wire(placed).pools
    assert pools["f1:shared"].depth == pools["f1:shared"].allocated == 7
    one = place(web([net("host", "a"), net("a", "b", depth=3), net("b", "host")]), NPU1)
    assert wire(one).pools["f1:shared"].allocated == 3


def test_a_loop_inside_a_worker_stays() -> None:
    design = web([net("host", "a"), net("a", "host")])
    loop = dataclasses.replace(
        design.fifos[0], name="loop", producer=design.fifos[0].consumers[0], depth=3, init_objects=1
    )
    design = dataclasses.replace(design, fifos=(*design.fifos, loop))
    placed = place(design, NPU1)
    assert routes(placed)["inside"] == 1
    assert placed.fifos[2].depth == 3


@pytest.mark.parametrize(("outside", "fits"), [(2, True), (3, False)])
def test_channels_into_a_core(outside: int, fits: bool) -> None:
    design = web([*(net("host", "a") for _ in range(outside)), net("a", "host")])
    if fits:
        assert place(design, NPU1)
        return
    with pytest.raises(RefusedError, match="S2MM channels: needs 3, the tile has 2") as refused:
        place(design, NPU1)
    assert codes(refused) == {"PLACE-CHANNELS"}
    assert "worker 'a'" in str(refused.value)


@pytest.mark.parametrize(("outside", "fits"), [(2, True), (3, False)])
def test_channels_out_of_a_core(outside: int, fits: bool) -> None:
    design = web([net("host", "a"), *(net("a", "host") for _ in range(outside))])
    if fits:
        assert place(design, NPU1)
        return
    with pytest.raises(RefusedError, match="MM2S channels: needs 3, the tile has 2") as refused:
        place(design, NPU1)
    assert codes(refused) == {"PLACE-CHANNELS"}


@pytest.mark.parametrize(("sources", "fits"), [(4, True), (6, True), (7, False)])
def test_neighbours_spare_channels(sources: int, fits: bool) -> None:
    """Four neighbours share a memory with a core, two more streams may come from further away."""
    names = [f"p{i}" for i in range(sources)]
    design = web([*(net("host", n) for n in names), *(net(n, "sum") for n in names), net("sum", "host")])
    if fits:
        assert routes(place(design, NPU1))["direct"] >= sources - 2
        return
    with pytest.raises(RefusedError, match="S2MM channels: needs 3") as refused:
        place(design, NPU1)
    assert codes(refused) == {"PLACE-CHANNELS"}


@pytest.mark.parametrize(("device", "channels"), [("npu1", 8), ("npu2", 16), ("vek280", 24), ("vc1902", 32)])
def test_transfers_of_the_host_use_all_shim_channels_and_no_more(device: str, channels: int) -> None:
    def design(count: int) -> Design:
        nets = [net("host", f"w{i // 2}") for i in range(count)]
        return web([*nets, *(net(f"w{i}", "host") for i in range(-(-count // 2)))], device=device)

    allowed = load_device(device).shim_dma_columns.value or ()
    placed = place(design(channels), load_device(device))
    used = [f.producer.tile.column for f in placed.fifos if f.producer.kind == "shim" and f.producer.tile]
    assert sorted(used) == sorted([*allowed, *allowed])
    with pytest.raises(
        RefusedError, match=f"MM2S channels of all .* reach the host: need {channels + 1}, have {channels}"
    ) as refused:
        place(design(channels + 1), load_device(device))
    assert codes(refused) == {"PLACE-SHIM"}


def through_memory(count: int, *, device: str = "npu1", depth: int = 1, size: int = 8) -> Design:
    """Workers in a ring, each sends two fifos through memory tiles, `count` in all."""
    nets, links = [net("host", "w0"), net("w0", "host")], []
    workers = -(-count // 2)
    for i in range(count):
        a, b = f"w{i // 2}", f"w{(i // 2 + 1) % workers}"
        shape: dict[str, Any] = {"shape": (size,), "depth": depth}
        nets += [net(a, f"mem{i}", name=f"in{i}", **shape), net(f"mem{i}", b, name=f"out{i}", **shape)]
        links.append(Link(kind="forward", sources=(f"in{i}",), targets=(f"out{i}",)))
    return web(nets[2:], device=device, links=links)


@pytest.mark.parametrize(("count", "fits"), [(6, True), (24, True), (25, False)])
def test_memory_tiles_by_channels(count: int, fits: bool) -> None:
    if not fits:
        with pytest.raises(RefusedError, match="S2MM channels of all 4 memory tiles: need 25, have 24") as refused:
            place(through_memory(count), NPU1)
        assert codes(refused) == {"PLACE-MEMTILE"}
        return
    placed = place(through_memory(count), NPU1)
    by_tile = [link.tile for link in placed.links]
    assert all(tile is not None and tile.kind == "mem" for tile in by_tile)
    assert max(by_tile.count(tile) for tile in set(by_tile)) <= 6
    fifos = {f.name: f for f in placed.fifos}
    for link in placed.links:
        assert fifos[link.sources[0]].consumers[0].tile == link.tile == fifos[link.targets[0]].producer.tile


@pytest.mark.parametrize(("depth", "tiles_needed"), [(12, 1), (13, 2), (24, 2), (25, 0)])
def test_memory_tiles_by_halves_of_descriptors(depth: int, tiles_needed: int) -> None:
    """Two fifos through memory take 4 chains of `depth` descriptors; even and odd channels have 24 each."""
    if not tiles_needed:
        with pytest.raises(RefusedError, match="buffer descriptors of one tile: need 50, have 48") as refused:
            place(through_memory(2, depth=depth), NPU1)
        assert codes(refused) == {"PLACE-MEMTILE"}
        return
    placed = place(through_memory(2, depth=depth), NPU1)
    assert len({link.tile for link in placed.links}) == tiles_needed


@pytest.mark.parametrize(("size", "fits"), [(524288, True), (524320, False)])
def test_memory_tiles_by_bytes(size: int, fits: bool) -> None:
    design = web(
        [net("host", "mem", name="a", shape=(size,), depth=1), net("mem", "host", name="b", shape=(size,), depth=1)],
        links=[Link(kind="forward", sources=("a",), targets=("b",))],
    )
    if fits:
        assert place(design, NPU1).links[0].tile == Tile(column=0, row=1, kind="mem")
        return
    with pytest.raises(RefusedError, match="bytes of data memory of one tile: need 524320, have 524288"):
        place(design, NPU1)


def test_objects_for_two_readers_meet_in_two_memory_tiles() -> None:
    """A stream ends on a tile once."""
    nets = [net("host", "mem:b", "mem:c", name="x")]
    nets += [net("mem:b", "b", name="xb"), net("mem:c", "c", name="xc"), net("b", "host"), net("c", "host")]
    links = [Link(kind="forward", sources=("x",), targets=(name,)) for name in ("xb", "xc")]
    placed = place(web(nets, links=links), NPU1)
    assert placed.links[0].tile != placed.links[1].tile
    assert [c.tile for c in placed.fifos[0].consumers] == [link.tile for link in placed.links]
    with pytest.raises(RefusedError) as refused:
        place(web(nets, links=links), array(1, 4))
    assert codes(refused) == {"PLACE-MEMTILE"}


def test_a_device_without_memory_tiles() -> None:
    with pytest.raises(RefusedError, match="vc1902 has no memory tiles") as refused:
        place(through_memory(1, device="vc1902"), load_device("vc1902"))
    assert codes(refused) == {"PLACE-MEMTILE"}


def test_unknown_figures_limit_nothing() -> None:
    device = load_device("vek385")
    assert place(web([*(net("host", "a") for _ in range(3)), net("a", "host")], device="vek385"), device)


def big(size: int, depth: int, **buffers: int) -> Design:
    nets = [net("host", "a"), net("a", "b", shape=(size,), depths={"a": 1, "b": depth}), net("b", "host")]
    return web(nets, buffers=buffers)


def test_a_pool_that_fits_no_tile_goes_by_dma_again() -> None:
    """3 + 1 objects of 16 KiB are too much for one memory, 1 and 3 beside the stack fit one each."""
    placed = place(big(16384, 3), NPU1)
    fifo = placed.fifos[1]
    assert fifo.via_dma
    assert (fifo.producer.depth, fifo.consumers[0].depth) == (1, 3)
    assert not place(big(15000, 3), NPU1).fifos[1].via_dma


def test_a_pool_that_fits_neither_way_is_refused() -> None:
    with pytest.raises(RefusedError, match="bytes of data memory: needs") as refused:
        place(big(16384, 4), NPU1)
    assert codes(refused) == {"PLACE-MEMORY"}


@pytest.mark.parametrize("device", ["npu1", "vc1902"])
def test_a_buffer_that_does_not_fit_goes_to_a_neighbour(device: str) -> None:
    figure = load_device(device)
    size = figure.l1_bytes.value or 0
    design = web([net("host", "a"), net("a", "host")], buffers={"a": size - 512}, device=device)
    placed = place(design, figure)
    tile = placed.buffers[0].tile
    assert tile is not None
    assert tile != placed.workers[0].tile
    assert placed.workers[0].tile is not None
    assert reaches(placed.workers[0].tile, tile, figure.arch)
    small = place(web([net("host", "a"), net("a", "host")], buffers={"a": size - 2048}, device=device), figure)
    assert small.buffers[0].tile is None
    with pytest.raises(RefusedError) as refused:
        place(web([net("host", "a"), net("a", "host")], buffers={"a": size + 32}, device=device), figure)
    assert codes(refused) == {"PLACE-MEMORY"}


@pytest.mark.parametrize(("locks", "fits"), [(6, True), (5, False)])
def test_locks_of_a_core(locks: int, fits: bool) -> None:
    """Three pools on a core, two semaphores each."""
    design = web([net("host", "a"), net("host", "a"), net("a", "host")])
    device = changed("npu1", core_locks=locks)
    if fits:
        assert place(design, device)
        return
    with pytest.raises(RefusedError) as refused:
        place(design, device)
    assert codes(refused) == {"PLACE-LOCKS"}


def test_a_design_without_sound_structure_is_refused() -> None:
    design = web([net("host", "a"), net("a", "host")])
    double = dataclasses.replace(design, fifos=(design.fifos[0], design.fifos[0]))
    with pytest.raises(RefusedError) as refused:
        place(double, NPU1)
    assert codes(refused) == {"PLACE-DESIGN"}


def test_an_array_of_unknown_size_is_refused() -> None:
    with pytest.raises(RefusedError, match="core_rows is not known") as refused:
        place(chain(2), changed("npu1", core_rows=None))
    assert codes(refused) == {"PLACE-DEVICE"}


@pytest.mark.parametrize("seed", range(4))
def test_small_arrays_are_placed_as_well_as_any_search_could(seed: int) -> None:
    """Direct edges of trees of six workers on 2 x 3 cores, against all 720 placements."""
    parents = [[(i * (seed + 2) + 1) % i if i > 1 else 0 for i in range(1, 6)][i] for i in range(5)]
    edges = [(f"w{p}", f"w{i + 1}") for i, p in enumerate(parents)]
    leaves = [f"w{i}" for i in range(6) if i not in parents]
    device = array(2, 3)
    placed = place(web([net("host", "w0"), *(net(*e) for e in edges), *(net(leaf, "host") for leaf in leaves)]), device)
    spots = [(c, r) for c in range(2) for r in range(3)]

    def direct(order: tuple[tuple[int, int], ...]) -> int:
        at = {f"w{i}": spot for i, spot in enumerate(order)}
        return sum(abs(at[a][0] - at[b][0]) + abs(at[a][1] - at[b][1]) == 1 for a, b in edges)

    best = max(direct(order) for order in itertools.permutations(spots))
    assert sum(shares_memory(f) for f in placed.fifos) == best


def test_what_runs_by_dma_runs_from_shared_memory() -> None:
    nets = [net("host", "a"), net("a", "b", depths={"a": 1, "b": 1}), net("a", "c", depths={"a": 1, "b": 1})]
    design = web([*nets, net("b", "c"), net("c", "host")])
    assert simulate(design).verdict == "completes"
    placed = place(design, NPU1)
    assert routes(placed)["direct"] >= 2
    assert simulate(placed).verdict == "completes"
