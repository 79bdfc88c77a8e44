"""Topologies: recorded verdicts, agreement with an exhaustive search, the format, the bounds."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from manifest.errors import RefusedError
from presim.topology import Judgement, difference, judge_topology
from presim.topology_file import read_topologies
from tests.presim.exhaustive import least_depths, topology_runs
from tests.presim.random_topologies import random_topology

SEEDS_PER_TEST = 75
CHUNKS = 10


def judge(case: dict[str, Any], max_steps: int = 100_000) -> Judgement:
    (read,) = read_topologies(json.dumps({"case": case}).encode(), "cases.json")
    return judge_topology(read, max_steps=max_steps)


def chain(depth: int, *, writes: int, reads: int, init: int = 0) -> dict[str, Any]:
    return {
        "nodes": {"a": [[writes, [["w", "e", 1]]]], "b": [[reads, [["r", "e", 1]]]]},
        "edges": {"e": {"depth": depth, "init": init}},
    }


def test_every_visible_topology_gets_the_recorded_verdict_and_least_depth(shared: Path) -> None:
    path = shared / "cases" / "fifo_cases.json"
    cases = read_topologies(path.read_bytes(), str(path))
    assert len(cases) >= 8
    for case in cases:
        judged = judge_topology(case)
        assert difference(case, judged) == "", case.case
        if case.expected_depths:
            assert {judged.edge: judged.least_depth} == dict(case.expected_depths)


def test_left_tokens_and_the_cycle_of_the_visible_cases_are_those_recorded(shared: Path) -> None:
    path = shared / "cases" / "fifo_cases.json"
    recorded = json.loads(path.read_text())
    for case in read_topologies(path.read_bytes(), str(path)):
        judged = judge_topology(case)
        simulated = recorded[case.case]["simulated"]
        if judged.verdict in {"runs", "deadlock"}:
            assert dict(judged.left) == simulated["left"], case.case
        for node, step, edge, _, _ in judged.cycle:
            assert simulated["stuck"][node][:2] == [step, edge]


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_random_topologies_agree_with_an_exhaustive_search(chunk: int) -> None:
    seen: Counter[str] = Counter()
    for seed in range(chunk * SEEDS_PER_TEST, (chunk + 1) * SEEDS_PER_TEST):
        case = random_topology(seed)
        judged = judge(case)
        seen[judged.verdict] += 1
        tokens = {name: edge.get("init", 0) + 8 for name, edge in case["edges"].items()}
        if judged.verdict == "rejected":
            legal = all(e["init"] <= e["depth"] for e in case["edges"].values())
            assert legal, seed
            assert not topology_runs(case)[0], seed
            continue
        runs, left = topology_runs(case)
        assert dict(judged.left) == left, seed
        if judged.verdict in {"runs", "runs_leaving_tokens"}:
            kept = {n: c for n, c in left.items() if c != case["edges"][n]["init"]}
            assert runs, seed
            assert (judged.verdict == "runs_leaving_tokens") == bool(kept), seed
            continue
        assert judged.verdict == "deadlock", seed
        assert not runs, seed
        depths = least_depths(case, max(tokens.values()))
        best = min((d - case["edges"][n]["depth"] for n, d in depths.items()), default=None)
        if best is None:
            assert (judged.edge, judged.least_depth) == (None, None), seed
        else:
            assert judged.edge in depths, seed
            assert depths[judged.edge] == judged.least_depth, seed
            assert depths[judged.edge] - case["edges"][judged.edge]["depth"] == best, seed
    assert seen["runs"] > 5
    assert seen["deadlock"] > 5


def test_random_topologies_are_enough_and_of_every_kind() -> None:
    assert SEEDS_PER_TEST * CHUNKS >= 500
    verdicts = Counter(judge(random_topology(seed)).verdict for seed in range(SEEDS_PER_TEST * CHUNKS))
    assert set(verdicts) == {"runs", "runs_leaving_tokens", "deadlock", "rejected"}


@pytest.mark.parametrize(("depth", "verdict"), [(3, "deadlock"), (4, "runs_leaving_tokens")])
def test_surplus_tokens_need_places(depth: int, verdict: str) -> None:
    judged = judge(chain(depth, writes=8, reads=4))
    assert judged.verdict == verdict
    assert (judged.edge, judged.least_depth) == (("e", 4) if verdict == "deadlock" else (None, None))


def test_more_wanted_than_sent_is_rejected_with_both_counts() -> None:
    judged = judge(chain(2, writes=4, reads=5))
    assert judged.verdict == "rejected"
    assert "4 tokens are sent, 5 are wanted" in judged.reason
    assert judge(chain(2, writes=4, reads=5, init=1)).verdict == "runs"


def test_an_edge_that_no_node_fills_is_rejected_unless_its_first_tokens_suffice() -> None:
    case = {"nodes": {"b": [[2, [["r", "e", 1]]]]}, "edges": {"e": {"depth": 2, "init": 1}}}
    judged = judge(case)
    assert judged.verdict == "rejected"
    assert "no node puts any" in judged.reason
    assert judge({**case, "edges": {"e": {"depth": 2, "init": 2}}}).verdict == "runs"


@pytest.mark.parametrize(("window", "verdict"), [(2, "runs"), (3, "rejected")])
def test_a_window_above_the_depth_can_never_run(window: int, verdict: str) -> None:
    case = {
        "nodes": {"a": [[4, [["w", "e", 1]]]], "b": [[1, [["p", "e", window], ["r", "e", 4]]]]},
        "edges": {"e": {"depth": 2}},
    }
    assert judge(case).verdict == verdict


def test_a_window_that_slides_over_all_tokens_runs_and_one_past_them_is_rejected() -> None:
    def case(times: int) -> dict[str, Any]:
        reader = [[times, [["p", "e", 3], ["r", "e", 1]]], [2, [["r", "e", 1]]]]
        return {"nodes": {"a": [[6, [["w", "e", 1]]]], "b": reader}, "edges": {"e": {"depth": 3}}}

    assert judge(case(4)).verdict == "runs"
    assert judge(case(5)).verdict == "rejected"
    past = case(5)
    past["nodes"]["b"][1][0] = 1  # six takes in all, but the fifth window would see the seventh token
    assert judge(past).verdict == "rejected"
    assert "6 tokens are sent, 7 are wanted" in judge(past).reason


def test_two_writers_of_one_edge_are_rejected() -> None:
    case = chain(2, writes=2, reads=4)
    case["nodes"]["c"] = [[2, [["w", "e", 1]]]]
    assert judge(case).verdict == "rejected"


def test_a_loop_without_a_first_token_says_how_many_it_needs() -> None:
    loop = [[3, [["r", "e", 2], ["w", "e", 2]]]]
    judged = judge({"nodes": {"cell": loop}, "edges": {"e": {"depth": 2}}})
    assert (judged.verdict, judged.edge, judged.least_depth) == ("deadlock", None, None)
    assert "2 tokens at the start" in judged.reason
    assert judge({"nodes": {"cell": loop}, "edges": {"e": {"depth": 2, "init": 2}}}).verdict == "runs"


def test_two_edges_that_have_to_be_deepened_together_are_both_named() -> None:
    case = {
        "nodes": {
            "s": [[4, [["w", "a", 1]]], [4, [["w", "b", 1]]], [4, [["w", "c", 1]]]],
            "t": [[4, [["r", "c", 1], ["r", "b", 1], ["r", "a", 1]]]],
        },
        "edges": {"a": {"depth": 1}, "b": {"depth": 1}, "c": {"depth": 1}},
    }
    judged = judge(case)
    assert (judged.verdict, judged.edge, judged.least_depth) == ("deadlock", None, None)
    assert "together: a 4, b 4" in judged.reason


def test_hls4ml_1049_the_least_depth_is_never_above_the_tokens_of_one_inference() -> None:
    tokens = 6500
    case = {
        "nodes": {
            "s": [[tokens, [["w", "skip", 1]]], [1, [["w", "main", 1]]]],
            "t": [[1, [["r", "main", 1]]], [tokens, [["r", "skip", 1]]]],
        },
        "edges": {"skip": {"depth": 2}, "main": {"depth": 2}},
    }
    judged = judge(case, 50_000_000)
    assert (judged.edge, judged.least_depth) == ("skip", tokens)


def test_finn_1435_a_bound_is_inconclusive_and_names_the_knob() -> None:
    case = {
        "nodes": {
            "fast": [[4096 * 8, [["w", "e", 1]]]],
            "slow": [[8, [["r", "e", 4096], ["w", "f", 1]]]],
            "end": [[8, [["r", "f", 1]]]],
        },
        "edges": {"e": {"depth": 2}, "f": {"depth": 2}},
    }
    short = judge(case, 10_000)
    assert short.verdict == "inconclusive"
    assert "--max-steps" in short.reason
    assert judge(case, 10_000_000).verdict == "runs"


def test_a_step_more_than_the_bound_is_inconclusive_and_one_less_is_not() -> None:
    case = chain(2, writes=50, reads=50)
    least = next(n for n in range(1, 10_000) if judge(case, n).verdict == "runs")
    assert judge(case, least - 1).verdict == "inconclusive"
    assert judge(case, least).verdict == "runs"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"", "no JSON"),
        (b"[]", "an object of cases"),
        (b'{"a": 1}', "case 'a'"),
        (b'{"a": {"nodes": {}}}', "edges"),
        (b'{"a": {"nodes": {}, "edges": {"e": {}}}}', "depth"),
        (b'{"a": {"nodes": {}, "edges": {"e": {"depth": 0}}}}', "a whole number from 1"),
        (b'{"a": {"nodes": {}, "edges": {"e": {"depth": true}}}}', "a whole number from 1"),
        (b'{"a": {"nodes": {}, "edges": {"e": {"depth": 2.0}}}}', "a whole number from 1"),
        (b'{"a": {"nodes": {"n": [[1, [["x", "e", 1]]]]}, "edges": {"e": {"depth": 2}}}}', '"w" | "r" | "p"'),
        (b'{"a": {"nodes": {"n": [[1, [["w", "f", 1]]]]}, "edges": {"e": {"depth": 2}}}}', "the name of an edge"),
        (b'{"a": {"nodes": {"n": [[1, [["w", "e", -1]]]]}, "edges": {"e": {"depth": 2}}}}', "a whole number from 0"),
        (b'{"a": {"nodes": {"n": [[1]]}, "edges": {}}}', "[times, [steps]]"),
        (b'{"a": {"nodes": {}, "edges": {}}, "a": {"nodes": {}, "edges": {}}}', "stands twice"),
        (b'{"a": ' + b"[" * 100_000, "no JSON"),
    ],
)
def test_a_malformed_file_is_refused_naming_the_place(text: bytes, words: str) -> None:
    with pytest.raises(RefusedError) as caught:
        read_topologies(text, "cases.json")
    assert len(caught.value.problems) == 1
    line = caught.value.problems[0].line()
    assert words in line
    assert "cases.json" in line


def test_a_file_may_have_no_case() -> None:
    assert read_topologies(b"{}", "cases.json") == ()


def test_the_search_for_a_fix_is_bounded_and_the_verdict_stands() -> None:
    rounds = 3000
    case = {
        "nodes": {
            "a": [[rounds, [["w", "x", 1]]], [rounds, [["w", "y", 1]]]],
            "b": [[rounds, [["r", "y", 1], ["r", "x", 1]]]],
        },
        "edges": {"x": {"depth": 1}, "y": {"depth": 1}},
    }
    found = judge(case, max_steps=10_000_000)
    assert (found.verdict, found.edge, found.least_depth) == ("deadlock", "x", rounds)
    cut = judge(case, max_steps=60_000)
    assert (cut.verdict, cut.edge, cut.least_depth) == ("deadlock", None, None)
    assert "the search was cut short" in cut.reason
    assert cut.cycle == found.cycle
    assert cut == judge(case, max_steps=60_000)
