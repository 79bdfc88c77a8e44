"""Depths: what a path has to keep while another one fills, exact on both sides."""

from dataclasses import replace

import pytest

from presim.design import Design
from presim.simulate.run import simulate
from tests.presim.plan.harness import GOOD, assert_exact, plan_of, with_figures
from tests.presim.plan.models import mixer, residual


def reader_depth(design: Design, fifo: str, worker: str) -> int:
    found = next(f for f in design.fifos if f.name == fifo)
    depth = next(c.depth for c in found.consumers if c.actor == worker)
    assert depth is not None
    return depth


def with_depth(design: Design, fifo: str, worker: str, depth: int) -> Design:
    fifos = tuple(
        replace(
            f,
            consumers=tuple(replace(c, depth=depth) if c.actor == worker else c for c in f.consumers),
        )
        if f.name == fifo
        else f
        for f in design.fifos
    )
    return replace(design, fifos=fifos)


def fork_and_join(design: Design) -> tuple[str, str]:
    """(fifo with two readers, worker where its paths meet)."""
    (fork,) = [f for f in design.fifos if len(f.consumers) == 2]
    join = next(
        w.name for w in design.workers if any(k.name.startswith(w.name) and k.type == "add" for k in design.kernels)
    )
    return fork.name, join


@pytest.mark.parametrize(("convolutions", "least"), [(1, 2), (2, 3), (3, 4), (4, 5)])
def test_a_skip_is_as_deep_as_the_rows_that_the_other_path_needs_first(convolutions: int, least: int) -> None:
    design = plan_of(residual(convolutions).manifest)
    fork, join = fork_and_join(design)
    assert reader_depth(design, fork, join) == least
    assert simulate(design).verdict in GOOD


@pytest.mark.parametrize("convolutions", [2, 3, 4])
def test_one_object_less_is_a_deadlock_and_the_fix_is_the_planned_depth(convolutions: int) -> None:
    design = plan_of(residual(convolutions).manifest)
    fork, join = fork_and_join(design)
    depth = reader_depth(design, fork, join)
    result = simulate(with_depth(design, fork, join, depth - 1))
    assert result.verdict == "deadlock"
    assert [(f.fifo, f.after) for f in result.fixes] == [(fork, depth)]


def test_what_waits_on_the_skip_itself_keeps_objects_too() -> None:
    plain, busy = (plan_of(residual(4, on_skip=flag).manifest) for flag in (False, True))
    fork, join = fork_and_join(plain)
    fork_busy = next(f for f in busy.fifos if len(f.consumers) == 2)
    depths = [c.depth or 0 for c in fork_busy.consumers if c.actor != busy.workers[1].name]
    assert simulate(busy).verdict in GOOD
    assert max(depths) < reader_depth(plain, fork, join) + 2


@pytest.mark.parametrize("height", [1, 2, 3, 9])
def test_short_images(height: int) -> None:
    imported = residual(3, height=height)
    assert_exact(imported.manifest, imported.arrays)


def test_a_skip_that_the_core_cannot_hold_goes_through_a_memory_tile() -> None:
    imported = residual(4)
    descriptors = 5 + 2 + 2
    enough, one_less = (with_figures(core_bds=n) for n in (descriptors, descriptors - 1))
    assert not plan_of(imported.manifest, enough).links
    design = assert_exact(imported.manifest, imported.arrays, one_less)
    fork, join = fork_and_join(plan_of(imported.manifest))
    (link,) = design.links
    assert (link.kind, link.sources, link.targets) == ("forward", (fork,), (f"{fork}>{join}",))
    assert any("in a memory tile" in note for note in design.notes)


@pytest.mark.parametrize(("tokens", "features"), [(4, 8), (16, 64), (40, 24)])
def test_a_skip_over_a_transpose_keeps_the_whole_tensor(tokens: int, features: int) -> None:
    imported = mixer(tokens, features)
    design = assert_exact(imported.manifest, imported.arrays)
    for fifo in design.fifos:
        for end in (fifo.producer, *fifo.consumers):
            if end.kind == "mem":
                assert (end.depth or fifo.depth) <= 12
