"""Designs: legal by rules written down apart, never worse than the constructive placement, and saying which it is."""

import itertools
from fractions import Fraction

import pytest

from manifest.device import DEVICES, Device, load_device
from manifest.errors import RefusedError
from optimize.placement import designs
from optimize.placement.designs import place_design, quality
from optimize.placement.solve import Solution
from presim.design import Design
from presim.directives import Directives
from presim.place import place
from presim.plan import design_of
from presim.pools import shares_memory
from tests.presim.place.legal import require_legal
from tests.presim.place.test_plans import BRANCHING, imported
from tests.presim.place.webs import array, chain, changed, net, pinned, web


def placed(
    design: Design, device: Device, directives: Directives | None = None, units: float = 2.0
) -> tuple[Design, Solution]:
    made, found = place_design(design, device, directives, deterministic_limit=units, wall_limit_s=300.0)
    require_legal(made, device)
    assert found.cost is not None
    assert found.placement is not None
    assert found.bound is None or found.bound <= found.cost
    spots = tuple((w.tile.column, w.tile.row) for w in made.workers if w.tile)
    assert found.placement.spots == spots
    return made, found


@pytest.mark.parametrize("name", DEVICES)
def test_a_chain_stays_as_it_is_and_is_proved(name: str) -> None:
    device = load_device(name)
    design = chain(5, device=name)
    made, found = placed(design, device)
    assert made == place(design, device)
    assert found.status == "optimal"
    assert found.cost == found.bound == 0
    assert found.note.startswith("constructive, CP-SAT found nothing better: 0 fifos")


def grid_of_workers(columns: int, rows: int, order: list[int]) -> Design:
    """Workers in a grid, each joined with those east and north of it; listed so that a greedy start is misled."""
    name = [[f"w{c}_{r}" for r in range(rows)] for c in range(columns)]
    nets = [net(name[c][r], name[c + 1][r]) for c in range(columns - 1) for r in range(rows)]
    nets += [net(name[c][r], name[c][r + 1]) for c in range(columns) for r in range(rows - 1)]
    nets = [nets[i % len(nets)] for i in order] if order else nets
    return web([net("host", name[0][0]), *nets, net(name[-1][-1], "host")])


def test_a_grid_of_workers_is_direct_throughout() -> None:
    device = load_device("npu1")
    made, found = placed(grid_of_workers(3, 3, []), device)
    assert quality(made)[0] == 0
    assert found.status == "optimal"


def test_better_than_the_constructive_placement_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """The constructive placer is made to leave the workers where a pin put one of them, far from the others."""
    device = load_device("npu1")
    design = chain(3)
    far = place(design, device, pinned(w1=(3, 3), w0=(0, 0), w2=(0, 2)))
    monkeypatch.setattr(designs, "place", lambda *_: far)
    made, found = placed(design, device)
    assert quality(far)[0] == 2
    assert quality(made) < quality(far)
    assert quality(made)[0] == 0
    assert found.note.startswith("by CP-SAT: 0 fifos")
    assert "constructive: 2 fifos" in found.note


def test_places_what_the_constructive_placer_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    device = load_device("npu1")
    design = chain(4)
    refusal: list[RefusedError] = []
    try:
        place(chain(17), array(2, 2))
    except RefusedError as error:
        refusal.append(error)

    def refused(*_: object) -> Design:
        problem = type(refusal[0].problems[0])(code="PLACE-CHANNELS", where="w0", what="none left")
        raise RefusedError((problem,))

    monkeypatch.setattr(designs, "place", refused)
    made, found = placed(design, device)
    assert quality(made)[0] == 0
    assert found.note == "by CP-SAT"


def test_what_no_tiles_can_mend_is_refused_as_before() -> None:
    with pytest.raises(RefusedError, match="PLACE-CORES"):
        place_design(chain(5), array(2, 2))
    with pytest.raises(RefusedError, match="PLACE-PIN"):
        place_design(chain(3), load_device("npu1"), pinned(w0=(0, 40)))
    few = changed("npu1", core_s2mm=1)
    star = web([net("host", "a", name="p"), net("host", "a", name="q"), net("a", "host")])
    with pytest.raises(RefusedError, match="PLACE-CHANNELS"):
        place_design(star, few)


def test_pins_and_cascades_hold() -> None:
    device = load_device("npu1")
    nets = [net("host", "a"), net("host", "b"), net("c", "d"), net("d", "host")]
    design = web(nets, cascades=[("a", "b"), ("b", "c")])
    made, found = placed(design, device, pinned(a=(3, 0)))
    at = {w.name: (w.tile.column, w.tile.row) for w in made.workers if w.tile}
    assert at["a"] == (0, 5)
    assert found.status == "optimal"
    assert len(set(at.values())) == 4


def test_first_generation_cascades_run_along_their_row() -> None:
    name = next(n for n in DEVICES if load_device(n).arch == "aie1")
    device = load_device(name)
    nets = [net("host", "a"), net("host", "b"), net("c", "host")]
    placed(web(nets, device=name, cascades=[("a", "b"), ("b", "c")]), device)


def test_a_ring_of_three_cannot_be_direct_all_around() -> None:
    """Neighbouring cores differ in colour, so one of three is two tiles away; the bound knows."""
    nets = [net("host", "a"), net("a", "b"), net("b", "c"), net("a", "c"), net("c", "host")]
    made, found = placed(web(nets), load_device("npu1"))
    assert quality(made)[0] == 1
    assert (found.status, found.cost) == ("optimal", Fraction(44))


def test_two_runs_are_the_same() -> None:
    device = load_device("npu2")
    names = [f"w{i}" for i in range(9)]
    nets = [net(a, b) for a, b in itertools.pairwise(names)] + [net(names[i], names[i + 3]) for i in range(0, 6, 2)]
    design = web([net("host", "w0"), *nets, net("w8", "host")], device="npu2")
    (one, first), (two, second) = (placed(design, device, units=0.5) for _ in range(2))
    assert one == two
    assert (first.status, first.cost, first.bound, first.note) == (
        second.status,
        second.cost,
        second.bound,
        second.note,
    )
    assert first.reproducible


def test_what_the_wall_clock_cuts_is_said_and_is_the_constructive_placement() -> None:
    device = load_device("npu1")
    design = grid_of_workers(3, 3, [])
    made, found = place_design(design, device, deterministic_limit=50.0, wall_limit_s=0.0)
    assert made == place(design, device)
    assert not found.reproducible
    assert found.note.endswith("not reproducible: cut by the wall clock")


def test_large_designs_are_left_to_the_constructive_placer() -> None:
    device = load_device("vek280")
    design = chain(designs.MOST_WORKERS + 1, device="vek280")
    made, found = placed(design, device)
    assert made == place(design, device)
    assert (found.status, found.bound) == ("feasible", None)
    assert found.note == f"constructive: more than {designs.MOST_WORKERS} workers"
    assert any(shares_memory(fifo) for fifo in made.fifos)


def test_notes_of_pins_without_a_core_stay() -> None:
    made, _ = placed(chain(2), load_device("npu1"), pinned(nobody=(0, 0)))
    assert made.notes == ("placement of 'nobody' not used: it has no core in this dispatch",)


@pytest.mark.parametrize("name", ["npu1", "vek280"])
def test_a_planned_model_keeps_what_the_constructive_placer_made_direct(name: str) -> None:
    device = load_device(name)
    design = design_of(imported(BRANCHING, name), device, Directives(), "d0")
    made, found = placed(design, device, units=1.0)
    assert quality(made) <= quality(place(design, device))
    assert quality(made)[0] == 0
    assert found.reproducible
