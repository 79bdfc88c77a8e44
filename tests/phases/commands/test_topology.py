"""`python -m phases topology`."""

import json
from pathlib import Path

import pytest

from phases.__main__ import main

CASE = {
    "nodes": {"a": [[8, [["w", "x", 1]]], [8, [["w", "y", 1]]]], "b": [[8, [["r", "x", 1], ["r", "y", 1]]]]},
    "edges": {"x": {"depth": 2}, "y": {"depth": 2}},
}


def written(path: Path, **cases: object) -> str:
    file = path / "cases.json"
    file.write_text(json.dumps(cases), encoding="utf-8")
    return str(file)


def test_every_case_is_a_line_in_the_order_of_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    deep = {**CASE, "edges": {"x": {"depth": 7}, "y": {"depth": 2}}}
    assert main(["topology", written(tmp_path, second=CASE, first=deep)]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["case"] for line in lines] == ["second", "first"]
    assert [line["verdict"] for line in lines] == ["deadlock", "runs"]
    assert (lines[0]["edge"], lines[0]["least_depth"], lines[0]["left"]) == ("x", 7, {"x": 2})
    assert lines[0]["cycle"] == [["a", "w", "x", 0, 1], ["b", "r", "y", 0, 1]]
    assert set(lines[1]) == {"case", "verdict", "cycle", "edge", "least_depth", "left", "reason"}


def test_the_visible_cases_are_judged_as_recorded(shared: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = shared / "cases" / "fifo_cases.json"
    assert main(["topology", str(file), "--fail-on-difference"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    recorded = json.loads(file.read_text(encoding="utf-8"))
    assert [line["case"] for line in lines] == list(recorded)
    for line in lines:
        assert line["verdict"] == recorded[line["case"]]["verdict_class"]


@pytest.mark.parametrize(
    ("expected", "depths", "code"), [("deadlock", {"x": 7}, 0), ("deadlock", {"x": 8}, 1), ("runs", None, 1)]
)
def test_a_difference_is_an_exit_code_only_where_it_is_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], expected: str, depths: object, code: int
) -> None:
    case = {**CASE, "verdict_class": expected, "least_depth_that_runs": depths}
    file = written(tmp_path, case=case)
    assert main(["topology", file]) == 0
    assert capsys.readouterr().err == ""
    assert main(["topology", file, "--fail-on-difference"]) == code
    assert ("case 'case': expected" in capsys.readouterr().err) == (code == 1)


def test_a_malformed_file_is_exit_2_with_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = {"nodes": {"a": [[1, [["x", "e", 1]]]]}, "edges": {"e": {"depth": 0}}}
    assert main(["topology", written(tmp_path, good=CASE, case=wrong)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert [line for line in err.splitlines() if line.startswith("[")] == err.splitlines()[:1]
    assert "TOPOLOGY-FORMAT" in err
    assert "edge 'e': depth" in err


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"edge": {}}, "no such key: 'edge'"),
        ({"edges": {"x": {"depth": 2, "dept": 3}, "y": {"depth": 2}}}, "edge 'x': no such key: 'dept'"),
        ({"verdict_class": 3}, "verdict_class"),
        ({"least_depth_that_runs": 7}, "least_depth_that_runs"),
        ({"least_depth_that_runs": {"x": "7"}}, "least_depth_that_runs: 'x'"),
    ],
)
def test_a_key_that_means_nothing_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], change: dict[str, object], words: str
) -> None:
    remarks = {"case": "x", "vary": "y", "verdict": "z", "simulated": 1, "text": "t"}
    assert main(["topology", written(tmp_path, case={**CASE, **remarks})]) == 0
    capsys.readouterr()
    assert main(["topology", written(tmp_path, case={**CASE, **change})]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "case 'case'" in err
    assert words in err
    assert len(err.splitlines()) == 2


@pytest.mark.parametrize("name", ["absent.json", "."])
def test_a_file_that_is_none_is_exit_2(tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["topology", str(tmp_path / name)]) == 2
    assert "TOPOLOGY-FILE" in capsys.readouterr().err


def test_the_bound_is_an_option(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["topology", written(tmp_path, case=CASE), "--max-steps", "5"]) == 0
    line = json.loads(capsys.readouterr().out)
    assert line["verdict"] == "inconclusive"
    assert "--max-steps" in line["reason"]
    assert main(["topology", written(tmp_path, case=CASE), "--max-steps", "0"]) == 2
