"""Search: what a person asked for stays, limits hold, pruning drops nothing, the same result every time."""

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from manifest.device import Device, load_device
from manifest.errors import RefusedError
from manifest.onnx_import import Imported
from optimize import candidates
from optimize.bounds import whole_of
from optimize.candidates import Space, space_of
from optimize.pareto import front_of
from optimize.search import GOALS, Goal, SearchContext, SearchResult, goal_key, search
from presim.design import Design
from presim.directives import Directive, Directives, Parallelism, Placement
from presim.place import place
from presim.plan import design_of
from presim.timing import load_calibration, time_design
from tests.bench.design_models import DenseNet
from tests.bench.design_search import context_of
from tests.presim.plan.harness import assert_exact, whole, with_figures
from tests.presim.plan.models import residual

VEK280 = load_device("vek280")
CALIBRATION = load_calibration()
FEW: Mapping[str, tuple[int, ...]] = {"BESIDE": (1, 2), "ALONG": (1, 2), "STREAMS": (2,), "DEPTHS": (4,)}


@pytest.fixture(scope="module")
def two() -> Imported:
    """Two dense layers, 8 rows."""
    net = DenseNet(8, 32)
    return net.done(net.dense(net.dense(net.x, 32, 64, "a"), 64, 32, "b"))


@pytest.fixture(autouse=True)
def _few_choices(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, values in FEW.items():
        monkeypatch.setattr(candidates, name, values)


def context(imported: Imported, given: Directives | None = None, device: Device = VEK280) -> SearchContext:
    return context_of(imported, device, CALIBRATION, given or Directives())


def space(imported: Imported, given: Directives | None = None, max_tiles: int | None = None) -> Space:
    dispatch = whole(imported.manifest)
    return space_of(imported.manifest, dispatch, VEK280, CALIBRATION, given or Directives(), max_tiles=max_tiles)


def spread(count: int, length: int = 1, **rest: Any) -> Directive:
    return Directive(parallelism=Parallelism(cas_num=count, cas_length=length), **rest)


def triples(result: SearchResult) -> list[tuple[float, float, float]]:
    return [row.triple for row in result.front]


@pytest.fixture(scope="module")
def enumerated(two: Imported) -> list[tuple[float, float, float]]:
    """The front of every combination, planned without a bound in the way."""
    with pytest.MonkeyPatch.context() as patch:
        for name, values in FEW.items():
            patch.setattr(candidates, name, values)
        made, work = space(two), context(two)
    found = []
    for row in itertools.product(*made.choices.values()):
        directives = {op: c.directive for op, c in zip(made.choices, row, strict=True) if c.directive != Directive()}
        try:
            design = work.plan(Directives(by_op=directives))
        except RefusedError:
            continue
        timing = work.time(design)
        found.append((float(len(design.workers)), -(-timing.interval_cycles // 1), -(-timing.latency_cycles // 1)))
    return list(front_of(found, lambda t: t))


@pytest.mark.parametrize("goal", GOALS)
def test_pruning_drops_nothing_that_a_full_enumeration_finds(
    two: Imported, enumerated: list[tuple[float, float, float]], goal: Goal
) -> None:
    result = search(context(two), goal, None, 1000)
    assert result.complete
    assert result.plans < result.space
    assert triples(result) == enumerated
    assert any(row.reason.startswith("not planned") for row in result.candidates)


def test_bounds_are_never_above_the_times(two: Imported) -> None:
    for imported in (two, residual(channels=16)):
        result = search(context(imported), "throughput", None, 20)
        planned = [row for row in result.candidates if row.design is not None]
        assert len(planned) > 5
        for row in planned:
            assert all(low <= got for low, got in zip(row.bound.triple, row.triple, strict=True)), row.changed


def test_the_best_is_the_best_of_the_front_for_each_goal(two: Imported) -> None:
    best: list[tuple[float, float, float]] = []
    for goal in GOALS:
        result = search(context(two), goal, None, 12)
        assert result.best is not None
        assert result.best.triple == min(triples(result), key=lambda t: goal_key(goal, t))
        assert goal_key(goal, result.best.triple) <= goal_key(goal, result.candidates[0].triple)
        best.append(result.best.triple)
    latency, throughput, tiles = best
    assert throughput[1] < tiles[1]
    assert tiles[0] < throughput[0]
    assert latency[2] < tiles[2]


def test_the_same_arguments_give_the_same_result(two: Imported) -> None:
    assert search(context(two), "throughput", None, 8) == search(context(two), "throughput", None, 8)


@pytest.mark.parametrize("budget", [1, 2, 7])
def test_the_budget_counts_plans(two: Imported, budget: int) -> None:
    calls: Counter[str] = Counter()
    work = context(two)

    def planned(directives: Directives) -> Design:
        calls["plan"] += 1
        return work.plan(directives)

    result = search(replace(work, plan=planned), "throughput", None, budget)
    assert calls["plan"] == result.plans == budget
    assert result.candidates[0].changed.startswith("nothing")
    assert not result.complete


def test_no_budget_is_no_search(two: Imported) -> None:
    with pytest.raises(ValueError, match="at least 1 plan"):
        search(context(two), "throughput", None, 0)


@pytest.mark.parametrize("most", [2, 3, 5])
def test_max_tiles_is_never_exceeded(two: Imported, most: int) -> None:
    result = search(context(two), "throughput", most, 30)
    assert result.front
    assert all(row.tiles <= most for row in result.front)
    assert all(row.tiles <= most for row in result.candidates if row.design is not None)
    more = search(context(two), "throughput", most + 3, 30)
    assert more.best is not None
    assert result.best is not None
    assert more.best.interval_cycles <= result.best.interval_cycles


def test_fewer_tiles_than_the_planner_needs_leave_nothing(two: Imported) -> None:
    result = search(context(two), "tiles", 1, 5)
    assert result.best is None
    assert result.front == ()
    assert result.candidates[0].reason == "needs 2 core tiles, 1 are allowed"


def kept(given: Directive, found: Directive) -> bool:
    """Whether every key of a person is in a directive as it was."""
    names = ("parallelism", "placement", "layout", "weights", "depth", "edges", "host_streams")
    return all(getattr(given, n) in (None, getattr(found, n)) for n in names)


@pytest.mark.parametrize(
    "given",
    [
        spread(2),
        spread(2, 2, host_streams=2),
        Directive(weights="streamed"),
        Directive(placement=Placement(row=3, col=5)),
        Directive(depth=3),
        Directive(layout="dense_kn_blocks"),
    ],
)
def test_directives_of_the_person_are_never_overridden(two: Imported, given: Directive) -> None:
    asked = Directives(by_op={"a": given})
    result = search(context(two, asked), "throughput", None, 10)
    assert result.best is not None
    assert len({row.tiles for row in result.candidates}) > 1
    for row in result.candidates:
        assert kept(given, row.directives.of("a"))
        if row.design is not None and given.parallelism is not None:
            mine = [w for w in row.design.workers if w.stage == "a"]
            assert len(mine) == given.parallelism.cas_num * given.parallelism.cas_length


def test_what_a_budget_of_the_device_forbids_is_refused_with_its_reason(two: Imported) -> None:
    small = with_figures(VEK280, mem_mm2s=1)
    result = search(context(two, device=small), "throughput", None, 30)
    refused = [row for row in result.candidates if row.reason.startswith("refused: [")]
    assert all(row.design is None and not row.accepted for row in refused)
    assert all(row.reason for row in result.candidates if not row.accepted)
    assert result.best is not None


def test_a_planner_that_refuses_everything_leaves_reasons(two: Imported) -> None:
    def refusing(directives: Directives) -> Design:
        return design_of(two.manifest, with_figures(VEK280, core_tiles=0), directives, whole(two.manifest))

    result = search(replace(context(two), plan=refusing), "throughput", None, 3)
    assert result.best is None
    assert all("PLAN-CORES" in row.reason for row in result.candidates if "refused" in row.reason)
    assert result.plans == 3


def test_work_follows_the_ranking(two: Imported) -> None:
    def order(ops: Sequence[str]) -> list[str]:
        result = search(replace(context(two), rank=lambda design: ops), "latency", 3, 14)
        return list(dict.fromkeys(row.group for row in result.candidates if row.group))

    first, second = order(["a", "b"]), order(["b", "a"])
    assert first[:1] == ["a"]
    assert second[:1] == ["b"]


def test_the_ranking_of_the_result_is_by_ablation(two: Imported) -> None:
    result = search(context(two), "throughput", None, 1)
    assert set(result.ranking) == {"a", "b"}


def test_searched_designs_are_exact(two: Imported) -> None:
    result = search(context(two), "throughput", None, 8)
    for row in result.front[-2:]:
        assert_exact(two.manifest, two.arrays, VEK280, row.directives)


def test_paths_of_different_length_get_room() -> None:
    imported = residual(channels=16)
    result = search(context(imported), "throughput", None, 10)
    best = result.best
    assert best is not None
    assert best.interval_cycles < result.candidates[0].interval_cycles
    assert any(directive.depth for directive in best.directives.by_op.values())


def test_choices_hold_the_limits_of_their_op(two: Imported) -> None:
    found = space(two)
    assert found.size == len(found.choices["a"]) * len(found.choices["b"])
    assert found.choices["a"][0].directive == Directive()
    workers = [c.bound.workers for c in found.choices["b"][1:]]
    assert workers == sorted(workers)
    assert max(workers) == 4
    assert max(c.bound.workers for c in space(two, max_tiles=3).choices["b"]) <= 3
    streamed = [c for c in found.choices["a"] if c.directive.weights == "streamed"]
    assert streamed


def test_the_bound_of_a_chain_is_its_slowest_op_and_every_first_object(two: Imported) -> None:
    found = space(two)
    bounds = {op: choices[0].bound for op, choices in found.choices.items()}
    total = whole_of(found.graph, bounds)
    assert total.tiles == 2
    assert total.interval == max(b.interval for b in bounds.values())
    a, b = bounds["a"], bounds["b"]
    assert total.latency == max(a.interval + b.first, a.first + b.interval)


def test_alike_ops_have_the_same_choices() -> None:
    net = DenseNet(4, 32)
    y = net.x
    for name in "abcd":
        y = net.dense(y, 32, 32, name)
    found = space(net.done(y)).choices
    assert found["b"] is found["c"]
    assert found["a"] is not found["b"]


def test_times_are_those_of_the_placed_design(two: Imported) -> None:
    result = search(context(two), "throughput", None, 4)
    assert result.best is not None
    design = place(
        design_of(two.manifest, VEK280, result.best.directives, whole(two.manifest)), VEK280, result.best.directives
    )
    assert design == result.best.design
    timing = time_design(design, VEK280, CALIBRATION, inferences=2)
    assert result.best.interval_cycles == -(-timing.interval_cycles // 1)
