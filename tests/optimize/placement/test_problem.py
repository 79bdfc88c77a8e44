import json
from copy import deepcopy
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from manifest.errors import RefusedError
from optimize.placement.problem import Keepout, problem_from_json, read_problems
from tests.optimize.placement.rectangles import block, edge, problem

FACE = {"side": "left", "start": 0, "end": 1}
VALUE: dict[str, Any] = {
    "id": "p",
    "grid": {"name": "g", "W": 6, "H": 4},
    "objective": {"lam": 1.0, "mu": 0.05},
    "nodes": [
        {
            "name": name,
            "w": 1,
            "h": 2,
            "input_face": FACE,
            "output_face": {**FACE, "side": "right"},
            "keepout": {"left": 1, "right": 0, "top": 0, "bottom": 0},
            "anchor": anchor,
        }
        for name, anchor in (("a", None), ("b", [2, 1]))
    ],
    "edges": [{"src": "a", "dst": "b", "direct": True, "producer_exclusive": False, "port_pairs": None}],
    "results": {},
}


def test_a_problem_of_the_benchmark() -> None:
    found = problem_from_json(VALUE)
    assert (found.rules.columns, found.rules.rows) == (6, 4)
    assert (found.rules.row_step, found.rules.height) == (Fraction(1), Fraction(1, 20))
    assert [b.anchor for b in found.blocks] == [None, (2, 1)]
    assert found.blocks[0].keepout == Keepout(left=1)
    assert (found.blocks[0].output_face.side, found.blocks[0].output_face.end) == ("right", 1)
    assert found.edges == (edge("a", "b", exclusive=False),)


def test_the_benchmark_is_read(shared: Path) -> None:
    found = read_problems(shared / "bench" / "placement.json")
    assert len(found) == 55
    assert len({p.name for p in found}) == 55


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("grid", "W"), 0),
        (("grid", "W"), 2000),
        (("grid", "H"), True),
        (("grid",), None),
        (("objective", "mu"), "x"),
        (("objective", "mu"), -1.0),
        (("objective", "mu"), float("nan")),
        (("objective", "lam"), 1e9),
        (("objective", "lam"), 1e-9),
        (("nodes",), []),
        (("nodes",), 3),
        (("nodes", 0, "w"), 0),
        (("nodes", 0, "w"), 1.5),
        (("nodes", 0, "name"), "b"),
        (("nodes", 0, "name"), 5),
        (("nodes", 0, "anchor"), [1]),
        (("nodes", 0, "anchor"), [-1, 0]),
        (("nodes", 0, "input_face", "side"), "north"),
        (("nodes", 0, "input_face", "end"), 2),
        (("nodes", 0, "keepout", "left"), -1),
        (("edges", 0, "src"), "c"),
        (("edges", 0, "direct"), 1),
        (("edges", 0), None),
    ],
)
def test_other_forms_are_refused(path: tuple[str | int, ...], value: object) -> None:
    wrong = deepcopy(VALUE)
    here: Any = wrong
    for key in path[:-1]:
        here = here[key]
    here[path[-1]] = value
    with pytest.raises(RefusedError, match="PLACEMENT-PROBLEM"):
        problem_from_json(wrong)


def test_files_that_are_none(tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    for text in ("", "[1]", '{"problems": 3}', "[" * 100_000):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(RefusedError, match="PLACEMENT-FILE"):
            read_problems(path)
    with pytest.raises(RefusedError, match="PLACEMENT-FILE"):
        read_problems(tmp_path / "absent.json")
    path.write_text(json.dumps({"problems": [VALUE]}), encoding="utf-8")
    assert len(read_problems(path)) == 1


def test_all_faults_of_a_problem_are_named() -> None:
    with pytest.raises(RefusedError) as caught:
        problem([block("a", 1, 1), block("a", 1, 1), block("c", 0, 1)], [edge("a", "d")], columns=0)
    assert len(caught.value.problems) == 4
