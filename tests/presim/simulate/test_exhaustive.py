"""Random designs of pools and streams against every interleaving; fixes and margins against counting up."""

from collections import Counter
from typing import Any

import pytest

from presim.simulate import SimOptions, margins, simulate
from tests.presim.exhaustive import pipeline_runs
from tests.presim.random_pipelines import design_of, random_pipeline

CHUNKS = 8
SEEDS_PER_TEST = 25


def side_name(case: dict[str, Any], fifo: str, side: str) -> str:
    return "produce" if case["fifos"][fifo]["producer"] == side else f"consume:{side}"


def ends_of(case: dict[str, Any]) -> list[tuple[str, str]]:
    return [(name, side) for name, f in case["fifos"].items() for side in f["depths"] if side != "host"]


def least(case: dict[str, Any], end: tuple[str, str], most: int) -> int | None:
    """The least depth of one end that runs, others as they are, found by counting up."""
    return next((d for d in range(1, most + 1) if pipeline_runs(case, {end: d})), None)


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_random_designs_agree_with_every_interleaving(chunk: int) -> None:
    seen: Counter[str] = Counter()
    for seed in range(chunk * SEEDS_PER_TEST, (chunk + 1) * SEEDS_PER_TEST):
        case = random_pipeline(seed)
        result = simulate(design_of(case), options=SimOptions(inferences=case["inferences"], schedules=2))
        runs = pipeline_runs(case)
        seen["runs" if runs else "hangs"] += 1
        assert (result.verdict in {"completes", "completes_leaving"}) == runs, (seed, result.text)
        if not runs:
            check_fix(case, result, seed)
    assert seen["runs"] >= 5
    assert seen["hangs"] >= 2


def check_fix(case: dict[str, Any], result: Any, seed: int) -> None:
    objects = next(iter(case["fifos"].values()))["objects"]
    deepest = {end: least(case, end, objects) for end in ends_of(case)}
    singles = {
        (fifo, side_name(case, fifo, side)): depth
        for (fifo, side), depth in deepest.items()
        if depth is not None and depth > case["fifos"][fifo]["depths"][side]
    }
    assert result.verdict in {"deadlock", "starvation"}, seed
    if not singles:
        assert len(result.fixes) != 1, (seed, result.text)
        return
    (fix,) = result.fixes
    assert singles[fix.fifo, fix.side] == fix.after, (seed, result.text)
    before = {(n, side_name(case, n, s)): case["fifos"][n]["depths"][s] for n, s in ends_of(case)}
    assert fix.after - fix.before == min(depth - before[end] for end, depth in singles.items()), (seed, result.text)


@pytest.mark.parametrize("seed", range(0, 40, 2))
def test_margins_are_the_least_depths_that_run(seed: int) -> None:
    case = random_pipeline(seed)
    found = {(m.fifo, m.side): m for m in margins(design_of(case), options=SimOptions(inferences=case["inferences"]))}
    for fifo, side in ends_of(case):
        margin = found[fifo, side_name(case, fifo, side)]
        assert margin.depth == case["fifos"][fifo]["depths"][side]
        assert margin.least == least(case, (fifo, side), margin.depth), (seed, fifo, side)


def test_random_designs_and_topologies_are_more_than_five_hundred() -> None:
    assert CHUNKS * SEEDS_PER_TEST >= 200
