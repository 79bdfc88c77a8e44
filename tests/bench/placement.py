"""Placement problems side by side with what others reached: `python -m tests.bench.placement`.

A row per problem: J (lower is better), what every placement costs at least, gap, status, the best J that is stored for
a placer under the same or stricter rules, and who is better. `--limit-s` is time of a free machine: it is handed to
the solver in its own deterministic units, so that two runs print the same table whatever else the machine does; only
the seconds differ, and they are not part of the hash. Every placement and its cost are checked by `legality`.
"""

import hashlib
import json
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

import click

from optimize.placement.problem import Problem, problem_from_json
from optimize.placement.solve import Solution, solve

FILE: Final = Path(__file__).resolve().parents[3] / "shared" / "bench" / "placement.json"
UNITS: Final = 1.3
"""Deterministic units to a second of two workers on two free cores: a unit took 1.3 to 1.8 seconds of a processor."""

GUARD: Final = 20
"""The wall clock stops a problem after so many times its limit."""

AIM_PROVED: Final = 48
AIM_GAP: Final = 0.15
SAME_RULES: Final = ("bnb", "annealing", "densepins")
HEAD: Final = f"{'problem':44} {'J':>7} {'bound':>7} {'gap':>6}  {'status':10} {'stored':>7}  {'':6}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One problem; `stored` = the best J of others, None = they found no placement."""

    name: str
    solution: Solution
    stored: Fraction | None

    @property
    def outcome(self) -> str:
        """Who is better."""
        cost = self.solution.cost
        if cost is None:
            return "loss" if self.stored is not None else "tie"
        if self.stored is None or cost < self.stored:
            return "win"
        return "tie" if cost == self.stored else "loss"

    def text(self) -> str:
        """The row without seconds."""
        s = self.solution
        gap = "-" if s.gap is None else f"{100 * s.gap:.1f}%"
        numbers = f"{_number(s.cost)} {_number(s.bound)} {gap:>6}"
        by = "" if s.reproducible else "  not reproducible"
        return f"{self.name:44} {numbers}  {s.status:10} {_number(self.stored)}  {self.outcome:6}{by}"


def _number(value: Fraction | None) -> str:
    return f"{'-' if value is None else f'{float(value):.2f}':>7}"


def best_stored(results: dict[str, Any]) -> Fraction | None:
    """Lowest J under the same or stricter rules."""
    found = [
        Fraction(repr(run["cost"]))
        for name, run in results.items()
        if run["cost"] is not None and any(word in name for word in SAME_RULES)
    ]
    return min(found, default=None)


def measure(problem: Problem, stored: Fraction | None, limit_s: float) -> Row:
    """Place one problem."""
    found = solve(problem, deterministic_limit=UNITS * limit_s, wall_limit_s=GUARD * limit_s)
    return Row(name=problem.name, solution=found, stored=stored)


def totals(rows: list[Row]) -> list[str]:
    """What the aims are about."""
    status = Counter(row.solution.status for row in rows)
    outcome = Counter(row.outcome for row in rows)
    proved = status["optimal"] + status["infeasible"]
    gaps = [row.solution.gap for row in rows if row.solution.status == "feasible" and row.solution.gap is not None]
    table = "\n".join(row.text() for row in rows)
    return [
        f"{len(rows)} problems: {status['optimal']} optimal, {status['infeasible']} infeasible, "
        f"{status['feasible']} feasible, {status['unknown']} unknown",
        f"proved {proved}, aim {AIM_PROVED} of 55: {_met(proved >= AIM_PROVED)}",
        f"gap of the rest at most {100 * max(gaps, default=0.0):.1f}%, aim {100 * AIM_GAP:.0f}%: "
        f"{_met(max(gaps, default=0.0) <= AIM_GAP and not status['unknown'])}",
        f"{outcome['win']} wins, {outcome['tie']} ties, {outcome['loss']} losses: {_met(not outcome['loss'])}",
        f"seconds in all {sum(row.solution.seconds for row in rows):.0f}, "
        f"longest {max(row.solution.seconds for row in rows):.0f}",
        f"reproducible {sum(row.solution.reproducible for row in rows)} of {len(rows)}, "
        f"sha256 of the table without seconds {hashlib.sha256(table.encode()).hexdigest()}",
    ]


def _met(met: bool) -> str:
    return "met" if met else "MISSED"


@click.command()
@click.option("--problems", type=click.Path(path_type=Path, exists=True, dir_okay=False), default=FILE)
@click.option("--limit-s", type=float, default=10.0, help="Per problem, on a free machine.")
@click.option("--only", default="", help="Part of the names of problems.")
def main(problems: Path, limit_s: float, only: str) -> None:
    """Print a row per problem and the totals."""
    click.echo(f"{HEAD} {'seconds':>8}")
    rows = []
    for value in json.loads(problems.read_text(encoding="utf-8"))["problems"]:
        if only in value["id"]:
            row = measure(problem_from_json(value), best_stored(value["results"]), limit_s)
            click.echo(f"{row.text()} {row.solution.seconds:8.1f}")
            rows.append(row)
    for line in totals(rows) if rows else ["no problem is called so"]:
        click.echo(line)


if __name__ == "__main__":
    main()
