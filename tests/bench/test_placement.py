import json
from fractions import Fraction
from pathlib import Path

import pytest
from click.testing import CliRunner

from optimize.placement.solve import Solution
from tests.bench.placement import Row, best_stored, main, totals
from tests.optimize.placement.test_problem import VALUE


def run(path: Path, *options: str) -> list[str]:
    result = CliRunner().invoke(main, ["--problems", str(path), "--limit-s", "2", *options])
    assert result.exit_code == 0, result.output
    return result.output.splitlines()


@pytest.fixture
def two(tmp_path: Path) -> Path:
    free = {**VALUE, "nodes": [{**node, "anchor": None} for node in VALUE["nodes"]]}
    results = {
        "x_bnb_default": {"cost": 3.1},
        "x_nopins": {"cost": 0.5},
        "x_bnb_reduced": {"cost": None},
    }
    wide = {**free, "id": "wide", "grid": {"name": "g", "W": 2, "H": 3}}
    path = tmp_path / "problems.json"
    path.write_text(json.dumps({"problems": [{**free, "results": results}, wide]}), encoding="utf-8")
    return path


def test_a_row_per_problem_and_the_totals_the_same_in_two_runs(two: Path) -> None:
    first, second = run(two), run(two)
    assert first[1].split()[:7] == ["p", "1.10", "1.10", "0.0%", "optimal", "3.10", "win"]
    assert first[2].split()[:7] == ["wide", "-", "-", "-", "infeasible", "-", "tie"]
    assert first[3] == "2 problems: 1 optimal, 1 infeasible, 0 feasible, 0 unknown"
    assert "1 wins, 1 ties, 0 losses: met" in first
    assert first[-1].startswith("reproducible 2 of 2, sha256 of the table without seconds ")
    assert first[-1] == second[-1]
    assert len(run(two, "--only", "wide")) == 1 + 1 + 6
    assert run(two, "--only", "nothing")[-1] == "no problem is called so"


def test_stored_results_under_other_rules_do_not_count() -> None:
    runs = {
        "a_bnb": {"cost": 4.0},
        "b_annealing_4s": {"cost": 3.05},
        "c_densepins": {"cost": 3.5},
        "nopins": {"cost": 1.0},
    }
    assert best_stored(runs) == Fraction(61, 20)
    assert best_stored({"nopins": {"cost": 1.0}, "a_bnb": {"cost": None}}) is None


@pytest.mark.parametrize(
    ("cost", "stored", "outcome"),
    [(3, 4, "win"), (4, 4, "tie"), (5, 4, "loss"), (3, None, "win"), (None, 4, "loss"), (None, None, "tie")],
)
def test_who_is_better(cost: int | None, stored: int | None, outcome: str) -> None:
    solution = Solution(
        status="unknown" if cost is None else "feasible",
        cost=None if cost is None else Fraction(cost),
        bound=Fraction(2),
        reproducible=False,
    )
    row = Row(name="p", solution=solution, stored=None if stored is None else Fraction(stored))
    assert row.outcome == outcome
    assert row.text().endswith("  not reproducible")
    lines = totals([row])
    assert ("MISSED" in lines[3]) is (outcome == "loss")
    assert "MISSED" in lines[2]
