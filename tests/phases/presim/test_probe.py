import json
from pathlib import Path
from typing import Any

import pytest

from manifest.errors import RefusedError
from phases.__main__ import main
from phases.presim.probe import read_probe, run_probe
from presim.design_io import design_to_json
from tests.presim_designs import copy_design

BARE: dict[str, Any] = {"dispatch": "d", "device": "npu2", "fifos": [], "kernels": [], "sequence": []}
STEP_OF_NO_NAME: dict[str, Any] = {"name": "w", "tile": None, "program": [{"step": []}]}
VALUES = [[1, 2, 3, 4, 5, 6, 7, 8], [9, 9, 9, 9, 9, 9, 9, 9]]


def value(**fields: Any) -> dict[str, Any]:
    made = {
        "name": "copy",
        "design": json.loads(design_to_json((copy_design(2),)))[0],
        "expect": {"verdict": "completes"},
        "inputs": [{"x": VALUES}],
        "outputs": [{"y": VALUES}],
    }
    return {k: v for k, v in {**made, **fields}.items() if v is not None}


def write(folder: Path, content: Any) -> Path:
    path = folder / "probe.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_values_are_compared(tmp_path: Path) -> None:
    outcome = run_probe(read_probe(write(tmp_path, value())))
    assert outcome.passed
    record = outcome.record("f" * 64)
    assert record["elements"] == 16
    assert record["schedules"] == 4
    assert record["passed"] is True


def test_whole_floats_and_the_ends_of_the_range_are_numbers_of_the_type(tmp_path: Path) -> None:
    rows = [[-128.0, 127, 1.0, 0, -1, 2, 3, 4]] * 2
    assert run_probe(read_probe(write(tmp_path, value(inputs=[{"x": rows}], outputs=[{"y": rows}])))).passed


def test_without_inputs_only_the_flow_is_judged(tmp_path: Path) -> None:
    outcome = run_probe(read_probe(write(tmp_path, value(inputs=None, outputs=None))))
    assert outcome.passed
    assert outcome.result.compared == {}


def test_another_verdict_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["probe", str(write(tmp_path, value(expect={"verdict": ["deadlock", "starvation"]})))]) == 1
    assert "not as expected: expected deadlock or starvation, got completes" in capsys.readouterr().out


def test_a_fix_has_to_be_the_one_found(tmp_path: Path) -> None:
    expect = {"verdict": ["completes", "deadlock"], "fix": {"fifo": "x", "depth": 3}}
    outcome = run_probe(read_probe(write(tmp_path, value(expect=expect))))
    assert outcome.why == "expected depth 3 of fifo 'x' as the fix, got none"


def test_an_outcome_is_kept_in_a_port(port: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, value())
    assert main(["probe", str(path), "--port", str(port)]) == 0
    assert "recorded" in capsys.readouterr().out
    assert len(list((port / "evidence/probes").iterdir())) == 1
    assert main(["check", str(port)]) == 0
    assert main(["probe", str(path), "--port", str(tmp_path / "none.port")]) == 2


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "is no JSON"),
        ("[" * 100_000, "is no JSON"),
        ("[]", "is no JSON object"),
        ('{"name": "a", "name": "b"}', "stands twice"),
        ({"design": {}}, "key 'name' is missing"),
        (value(surprise=1), "no such key: 'surprise'"),
        (value(name=" "), "expected a few words"),
        (value(name=3), "expected a few words"),
        (value(design={"dispatch": "d"}), "missing fields"),
        (value(design=7), "expected the fields of Design"),
        (value(design={**BARE, "workers": [STEP_OF_NO_NAME]}), "expected a step"),
        (value(expect="completes"), "expected an object"),
        (value(expect={"verdict": "fine"}), "no such verdict"),
        (value(expect={"verdict": []}), "no such verdict"),
        (value(expect={"verdict": [["x"]]}), "no such verdict"),
        (value(expect={"verdict": "completes", "fix": 3}), "fix"),
        (value(expect={"verdict": "deadlock", "fix": {"fifo": "x"}}), "it is no fix"),
        (value(expect={"verdict": "deadlock", "fix": {"fifo": "x", "depth": 0}}), "it is no fix"),
        (value(expect={"verdict": "deadlock", "fix": {"fifo": "x", "depth": True}}), "it is no fix"),
        (value(expect={"verdict": "deadlock", "fix": {"fifo": 5, "depth": 3}}), "it is no fix"),
        (value(expect={"verdict": "deadlock", "fix": {"fifo": "z", "depth": 3}}), "the design has no fifo 'z'"),
        (value(expect={"verdict": "completes", "fix": {"fifo": "x", "depth": 3}}), "only a deadlock has a fix"),
        (value(inputs={"x": VALUES}), "expected a list"),
        (value(inputs=[{"x": [[1.5] * 8] * 2}]), "no numbers of int8: got 1.5"),
        (value(inputs=[{"x": [[True] * 8] * 2}]), "expected numbers, got True"),
        (value(inputs=[{"x": [["1"] * 8] * 2}]), "expected numbers, got '1'"),
        (value(inputs=[{"x": [[None] * 8] * 2}]), "expected numbers, got None"),
        (value(inputs=[{"x": [[-129] * 8] * 2}]), "no numbers of int8: got -129"),
        (value(inputs=[{"x": [[1e400] * 8] * 2}]), "no numbers of int8: got inf"),
        (value(outputs=[{"y": [[0.25] * 8] * 2}]), "no numbers of int8: got 0.25"),
        (value(inputs=[7]), "expected an object of numbers"),
        (value(inputs=[{"z": VALUES}]), "the design has no 'z'"),
        (value(inputs=[{"x": [[300] * 8] * 2}]), "no numbers of int8"),
        (value(inputs=[{"x": "words"}]), "no numbers of int8"),
        (value(inputs=None), "outputs without inputs"),
        (value(arrays={"k": [1]}), "the design has no 'k'"),
    ],
)
def test_a_wrong_file_is_refused_by_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: Any, words: str
) -> None:
    assert main(["probe", str(write(tmp_path, content))]) == 2
    assert words in capsys.readouterr().err


def test_an_unknown_kernel_type_is_refused(tmp_path: Path) -> None:
    design = value()["design"]
    design["kernels"][0]["type"] = "magic"
    with pytest.raises(RefusedError, match="no such kernel type: magic"):
        read_probe(write(tmp_path, value(design=design)))


def test_inputs_of_the_wrong_length_are_no_traceback(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["probe", str(write(tmp_path, value(inputs=[{"x": [1, 2]}])))])
    assert code in (1, 2)
    assert "Traceback" not in capsys.readouterr().err


def test_a_design_without_sense_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    design = value()["design"]
    design["sequence"][0]["fifo"] = "nowhere"
    assert main(["probe", str(write(tmp_path, value(design=design)))]) == 2
    assert "DESIGN-STRUCTURE" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["missing.json", "."])
def test_no_file_is_refused(tmp_path: Path, name: str) -> None:
    assert main(["probe", str(tmp_path / name)]) == 2
