"""Runs on counts: they end where the simulator's end, and say which pool is in the way."""

from dataclasses import replace

import pytest

from presim.design import Acquire, Call, Design, Endpoint, Fifo, Release, Transfer, Worker
from presim.plan.tokens import Run, StuckError
from presim.pools import wire
from presim.simulate.run import simulate
from tests.presim.plan.harness import GOOD, plan_of, with_figures
from tests.presim.plan.models import mixer, residual
from tests.presim.plan.test_settle import fork_and_join, reader_depth, with_depth


@pytest.mark.parametrize("core_bds", [16, 8])
@pytest.mark.parametrize("convolutions", [1, 3, 4])
def test_planned_designs_need_no_deeper_pool(convolutions: int, core_bds: int) -> None:
    design = plan_of(residual(convolutions).manifest, with_figures(core_bds=core_bds))
    assert Run(design).finish() == {}
    assert simulate(design).verdict in GOOD


@pytest.mark.parametrize("less", [1, 2, 3])
def test_what_is_missing_is_found_where_the_simulator_hangs(less: int) -> None:
    design = plan_of(residual(4).manifest)
    fork, join = fork_and_join(design)
    depth = reader_depth(design, fork, join)
    shallow = with_depth(design, fork, join, depth - less)
    assert simulate(shallow).verdict == "deadlock"
    assert Run(shallow).finish() == {f"{fork}:consume:{join}": depth}


def test_larger_objects_and_pieces_of_objects() -> None:
    assert Run(plan_of(mixer(40, 24).manifest)).finish() == {}


def ring() -> Design:
    """Two workers that wait for each other's first object."""

    def worker(name: str, source: str, target: str) -> Worker:
        steps = (Acquire(fifo=source, count=1), Release(fifo=source, count=1))
        out = (Acquire(fifo=target, count=1), Release(fifo=target, count=1))
        return Worker(name=name, tile=None, program=(*steps, *out))

    def fifo(name: str, source: str, target: str) -> Fifo:
        kinds = [Endpoint(actor=a, kind="shim" if a == "host" else "worker") for a in (source, target)]
        return Fifo(name=name, shape=(8,), dtype="int8", producer=kinds[0], consumers=(kinds[1],))

    out = fifo("out", "a", "host")
    first = worker("a", "ba", "ab")
    program = (*first.program, Acquire(fifo="out", count=1), Release(fifo="out", count=1))
    return Design(
        dispatch="d0",
        device="npu2",
        workers=(replace(first, program=program), worker("b", "ab", "ba")),
        fifos=(fifo("ab", "a", "b"), fifo("ba", "b", "a"), out),
        sequence=(Transfer(fifo="out", direction="drain", tensor="t", objects=1, wait=True),),
    )


def test_a_ring_without_a_first_object_is_stuck() -> None:
    design = ring()
    assert simulate(design).verdict in ("deadlock", "starvation")
    with pytest.raises(StuckError):
        Run(design).finish()


def test_links_that_share_a_fifo_have_pools_of_their_own() -> None:
    design = plan_of(mixer(16, 64).manifest)
    pools = [p for p in wire(design).pools.values() if p.kind == "link"]
    assert len(pools) == len(design.links) == len({p.actor for p in pools})


def test_calls_do_not_count() -> None:
    design = plan_of(residual(1).manifest)
    bare = tuple(replace(w, program=tuple(s for s in w.program if not isinstance(s, Call))) for w in design.workers)
    assert Run(replace(design, workers=bare)).finish() == {}
