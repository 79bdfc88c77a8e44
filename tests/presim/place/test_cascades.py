"""Cascades: along paths of neighbours, in tight arrays too."""

import itertools

import pytest

from manifest.device import load_device
from manifest.errors import RefusedError
from presim.adjacency import cascades_to
from presim.design import Design
from presim.place import place
from presim.place.units import paths_from, units_of
from tests.presim.place.webs import array, net, web


def chains(*lengths: int, device: str = "npu1") -> Design:
    """Cascades of these lengths, all fed by one stream."""
    names = [[f"c{i}k{k}" for k in range(n)] for i, n in enumerate(lengths)]
    cascades = [(a, b) for chain in names for a, b in itertools.pairwise(chain)]
    ends = [net(chain[-1], "host") for chain in names[:4]]
    return web([net("host", *(n for chain in names for n in chain)), *ends], device=device, cascades=cascades)


def check(design: Design, arch: str) -> None:
    tiles = {worker.name: worker.tile for worker in design.workers}
    assert len(set(tiles.values())) == len(tiles)
    for cascade in design.cascades:
        source, target = tiles[cascade.source], tiles[cascade.target]
        assert source is not None
        assert target is not None
        assert cascades_to(source, target, arch)


@pytest.mark.parametrize(
    "lengths", [(2,), (7,), (4, 4, 4, 4), (3, 3, 3, 3, 4), (2,) * 8, (7, 5, 3, 1), (6, 6), (1, 1, 7, 3, 2), (5, 5, 4)]
)
def test_cascades_fill_the_array(lengths: tuple[int, ...]) -> None:
    check(place(chains(*lengths), load_device("npu1")), "aie2")


@pytest.mark.parametrize(("lengths", "what"), [((8,), "cascade of 8 cores"), ((7, 7), "cascade of 7 cores")])
def test_cascades_for_which_there_is_no_path(lengths: tuple[int, ...], what: str) -> None:
    """A path that leads east and south has at most 4 + 4 - 1 cores on 4 x 4, all of those from corner to corner."""
    with pytest.raises(RefusedError, match=what) as refused:
        place(chains(*lengths), load_device("npu1"))
    assert {p.code for p in refused.value.problems} == {"PLACE-CASCADE"}


def test_cascades_of_the_first_generation_stay_in_a_row() -> None:
    placed = place(chains(8, 8, 3, device="vc1902"), load_device("vc1902"))
    check(placed, "aie1")
    tiles = [worker.tile for worker in placed.workers[:8] if worker.tile]
    assert len({tile.row for tile in tiles}) == 1


def test_a_core_has_one_cascade_each_way() -> None:
    for cascades in ([("a", "b"), ("a", "c")], [("b", "a"), ("c", "a")]):
        with pytest.raises(RefusedError, match="two cascades lead") as refused:
            units_of(web([net("host", "a", "b", "c")], cascades=cascades))
        assert {p.code for p in refused.value.problems} == {"PLACE-CASCADE"}
    with pytest.raises(RefusedError, match="ends where it begins"):
        units_of(web([net("host", "a", "b")], cascades=[("a", "b"), ("b", "a")]))


def test_units_hold_every_worker_once() -> None:
    design = web([net("host", "a", "b", "c", "d")], cascades=[("c", "a"), ("a", "d")])
    assert units_of(design) == ((1,), (2, 0, 3))


def test_paths_straight_first_and_only_over_free_spots() -> None:
    free = {(c, r) for c in range(3) for r in range(3)}
    found = list(paths_from((0, 2), 3, "aie2", free, 9))
    assert found[:2] == [((0, 2), (1, 2), (2, 2)), ((0, 2), (0, 1), (0, 0))]
    assert len(found) == 4
    assert list(paths_from((0, 2), 3, "aie2", free, 0)) == found[:2]
    assert list(paths_from((0, 2), 3, "aie2", free - {(1, 2)}, 9)) == found[1:2] + found[3:]
    assert not list(paths_from((5, 5), 1, "aie2", free, 9))
    assert list(paths_from((1, 2), 2, "aie1", free, 9)) == [((1, 2), (2, 2))]
    assert list(paths_from((1, 1), 2, "aie1", free, 9)) == [((1, 1), (0, 1))]


def test_a_single_row_holds_one_cascade_of_its_length() -> None:
    device = array(4, 1)
    check(place(chains(4), device), "aie2")
    with pytest.raises(RefusedError):
        place(chains(5), device)
