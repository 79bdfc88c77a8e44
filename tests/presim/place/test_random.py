"""Random designs: legal by rules that are written down here once more, or refused with a reason."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manifest.device import DEVICES, load_device
from manifest.errors import Problem, RefusedError
from presim.design import Design, Link
from presim.directives import Directives
from presim.place import place
from presim.place.grid import grid_of
from presim.simulate import simulate
from presim.static import check_design
from tests.presim.place.legal import require_legal
from tests.presim.place.webs import Net, net, pinned, web

CODES = {
    "PLACE-CORES",
    "PLACE-CHANNELS",
    "PLACE-MEMTILE",
    "PLACE-SHIM",
    "PLACE-CASCADE",
    "PLACE-MEMORY",
    "PLACE-LOCKS",
    "PLACE-DESCRIPTORS",
    "PLACE-PIN",
}


@st.composite
def designs(draw: st.DrawFn, *, plain: bool = False) -> Design:
    """Workers whose edges lead forward; some by broadcast, by way of a memory tile, in cascades.

    Args:
        draw: of hypothesis.
        plain: no cascades, few fifos, so that most of them fit.
    """
    device = draw(st.sampled_from(DEVICES))
    count = draw(st.integers(1, 10 if plain else 18))
    names = [f"w{i}" for i in range(count)]
    nets: list[Net] = []
    links: list[Link] = []
    for i in range(1, count):
        for source in draw(st.sets(st.integers(max(0, i - 6), i - 1), min_size=1, max_size=2)):
            depths = {f"w{source}": draw(st.integers(1, 3)), f"w{i}": draw(st.integers(1, 4))}
            size = draw(st.sampled_from([8, 4096]))
            if draw(st.integers(0, 5)) == 0:
                mem = f"mem{len(links)}"
                links.append(Link(kind="forward", sources=(f"a{mem}",), targets=(f"b{mem}",)))
                nets.append(net(f"w{source}", mem, name=f"a{mem}", shape=(size,)))
                nets.append(net(mem, f"w{i}", name=f"b{mem}", shape=(size,)))
            else:
                nets.append(net(f"w{source}", f"w{i}", depths=depths, shape=(size,)))
    readers = draw(st.sets(st.sampled_from(names), min_size=1, max_size=3))
    nets.append(net("host", *sorted({"w0", *readers})))
    nets += [net(name, "host") for name in names if all(one.producer != name for one in nets)]
    cascades: list[tuple[str, str]] = []
    if not plain:
        for i in range(count - 1):
            if draw(st.integers(0, 5)) == 0 and not (cascades and cascades[-1][1] == names[i] and len(cascades) > 5):
                cascades.append((names[i], names[i + 1]))
    return web(nets, device=device, links=links, cascades=cascades)


def placed_or_refused(design: Design, directives: Directives) -> Design | None:
    """The placed design; None where it is refused with a reason of the placer."""
    problems: tuple[Problem, ...] = ()
    try:
        return place(design, load_device(design.device), directives)
    except RefusedError as error:
        problems = error.problems
    assert {p.code for p in problems} <= CODES
    return None


@given(designs())
def test_random_designs_are_legal_or_refused(design: Design) -> None:
    device = load_device(design.device)
    placed = placed_or_refused(design, pinned())
    if placed is None:
        return
    require_legal(placed, device)
    assert place(design, device) == placed
    decided = {"placement", "shim_columns", "cascades", "dma_channels", "data_memory", "locks", "descriptor_halves"}
    for checked in check_design(placed, device):
        if checked.rule in decided:
            assert not [f for f in checked.findings if f.severity == "error"]


@given(designs(), st.dictionaries(st.integers(0, 21), st.tuples(st.integers(0, 4), st.integers(0, 5)), max_size=3))
def test_random_pins_hold_or_are_refused(design: Design, pins: dict[int, tuple[int, int]]) -> None:
    device = load_device(design.device)
    names = [w.name for w in design.workers]
    asked = {names[i]: place for i, place in pins.items() if i < len(names)}
    placed = placed_or_refused(design, pinned(**asked))
    if placed is None:
        return
    require_legal(placed, device)
    first = grid_of(device).core_row
    for worker in placed.workers:
        if worker.name in asked:
            row, col = asked[worker.name]
            assert worker.tile is not None
            assert (worker.tile.row - first, worker.tile.column) == (row, col)


@given(designs(plain=True))
def test_what_runs_by_dma_runs_where_it_is_placed(design: Design) -> None:
    """Shared pools hold what both ends held, so nothing that ran hangs."""
    if simulate(design).verdict != "completes":
        return
    placed = placed_or_refused(design, pinned())
    assert placed is None or simulate(placed).verdict == "completes"


@pytest.mark.parametrize("device", DEVICES)
def test_most_plain_designs_are_placed(device: str) -> None:
    """The tests above would hold for a placer that refuses everything."""
    for count in (2, 7, 12):
        nets = [net(f"w{i}", f"w{i + 1}") for i in range(count - 1)]
        nets += [net(f"w{i}", f"w{i + 2}") for i in range(0, count - 2, 2)]
        require_legal(
            place(web([net("host", "w0"), *nets, net(f"w{count - 1}", "host")], device=device), load_device(device)),
            load_device(device),
        )
