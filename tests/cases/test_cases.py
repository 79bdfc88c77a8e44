"""Every model case: an acceptable verdict, reached as `cases/README.md` says, none of those that are wrong."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from phases import api
from tests.cases.driver import Array, Run, Verdict, baseline, judge, oracle_outputs

SHARED = Path(__file__).resolve().parents[3] / "shared"
EXPECTED = SHARED / "cases" / "expected.json"
CASES: dict[str, Any] = json.loads(EXPECTED.read_text())["cases"] if EXPECTED.is_file() else {}
NAMES = sorted(CASES) or ["absent"]

BEYOND: dict[str, str] = {
    "m26_resize_linear_qdq": "Resize",
    "m71_split_conv_concat": "Split",
}
"""Cases with ops that are not supported: refused by name."""


def files_below(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def run_case(shared: Path, name: str, folder: Path) -> tuple[Run, Path]:
    port = folder / "case.port"
    run = baseline(shared / "cases" / "models" / CASES[name]["file"], "--device", "npu2", "--out", port)
    assert "Traceback" not in run.text, run.text
    return run, port


def golden(shared: Path, name: str, port: Path) -> tuple[dict[str, Array], dict[str, Array]]:
    """(inputs by ONNX name, expected outputs by ONNX name); hand-made expectations rule over the golden."""
    info = api.load(port).manifest.model
    with np.load(shared / "cases" / CASES[name]["golden"]) as stored:
        arrays = {key: stored[key] for key in stored.files}
    inputs = {onnx_name: arrays[f"in_{k}"] for k, onnx_name in enumerate(info.inputs)}
    outputs = {onnx_name: arrays[f"out_{k}"] for k, onnx_name in enumerate(info.outputs)}
    by_hand = CASES[name]["hand_expected"]
    if by_hand is not None:
        for key, values in CASES[name]["feed"].items():
            assert np.array_equal(inputs[key], np.asarray(values, inputs[key].dtype)), (
                "golden and hand case differ in feed"
            )
        (only,) = outputs
        outputs[only] = np.asarray(by_hand, outputs[only].dtype)
    return inputs, outputs


def compare(shared: Path, name: str, port: Path, folder: Path) -> Verdict:
    """The oracle on the golden's inputs, given by position as the golden has them."""
    inputs, expected = golden(shared, name, port)
    by_position = {f"in_{k}": array for k, array in enumerate(inputs.values())}
    got = oracle_outputs(port, by_position, folder)
    assert list(got) == list(expected)
    return judge(port, inputs, got, expected)


@pytest.mark.parametrize("name", NAMES)
def test_case(shared: Path, tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    case = CASES[name]
    acceptable = set(case["acceptable"])
    run, port = run_case(shared, name, tmp_path)
    if run.code == 2:
        assert acceptable & {"refuse", "invalid"}, f"{name} has to be ported:\n{run.text}"
        assert all(word in run.text for word in case["message_must_name"]), run.text
        assert not files_below(tmp_path)
        return
    assert acceptable & {"exact", "warn"}, f"{name} has to be refused"
    assert run.code == 1, run.text
    assert (port / "manifest.json").is_file()
    assert {path.split("/")[0] for path in files_below(tmp_path)} == {"case.port"}
    if acceptable == {"warn"}:
        assert all(word in run.text for word in case["message_must_name"]), run.text
    verdict = compare(shared, name, port, tmp_path)
    with capsys.disabled():
        if verdict.near_ties:
            print(f"\n{name}: {verdict.elements} elements, {verdict.near_ties} explained by a rounding tie")
    assert verdict.elements > 0
    assert verdict.unexplained == ()
    noted = case.get("exact_rational_check", {"ort_off_differs": verdict.elements // 20})
    allowed = noted["ort_off_differs"] if case["hand_expected"] is None else 0
    assert verdict.near_ties <= allowed, "more ties than onnxruntime is known to decide by noise"


def test_cases_with_unsupported_ops_are_refused_by_op(shared: Path, tmp_path: Path) -> None:
    for name, op_type in BEYOND.items():
        run, port = run_case(shared, name, tmp_path)
        assert run.code == 2, name
        assert op_type in run.text
        assert not port.exists()


def test_number_of_cases_is_that_of_the_folder(shared: Path) -> None:
    models = {path.name for path in (shared / "cases" / "models").glob("*.onnx")}
    assert models == {case["file"] for case in CASES.values()}
    assert len(models) >= 40


def test_without_data_the_gate_is_not_run_and_says_what_to_do(shared: Path, tmp_path: Path) -> None:
    run, port = run_case(shared, "m17_relu_symmetric_int8", tmp_path)
    gate = json.loads((port / "gates" / "baseline.json").read_text())
    assert run.code == 1
    assert gate["verdict"] == "NOT_RUN"
    assert not [item["code"] for item in gate["items"] if item["verdict"] == "FAIL"]
    assert "--data" in run.text


def test_depthwise_cliff_is_ported_with_a_warning_about_channels(shared: Path, tmp_path: Path) -> None:
    run, port = run_case(shared, "m52_depthwise_per_tensor_cliff", tmp_path)
    assert run.code == 1
    texts = [note.text for note in api.load(port).manifest.notes]
    assert any("channel" in text for text in texts)
    assert "channel" in run.text


def test_hostile_names_reach_no_path_and_break_no_report(shared: Path, tmp_path: Path) -> None:
    run, port = run_case(shared, "m45_hostile_names", tmp_path)
    assert run.code == 1
    assert {path.split("/")[0] for path in files_below(tmp_path)} == {"case.port"}
    names = {tensor.name for tensor in api.load(port).manifest.tensors}
    assert any(".." in name for name in names), "the names themselves are kept"
    assert not any("etc" in path or "evil" in path for path in files_below(port))
    ElementTree.parse(port / "reports" / "junit.xml")
    json.loads((port / "reports" / "baseline.ipynb").read_text())
    assert all(line.isprintable() for line in run.text.splitlines())


def test_names_that_collide_as_identifiers_stay_apart(shared: Path, tmp_path: Path) -> None:
    _, port = run_case(shared, "m44_names_collide_when_sanitised", tmp_path)
    names = [tensor.name for tensor in api.load(port).manifest.tensors]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(("name", "code"), [("m01_weight_dq_no_zero_point", 1), ("m63_truncated_file", 2)])
def test_the_same_from_a_shell(shared: Path, tmp_path: Path, root: Path, name: str, code: int) -> None:
    """One case of each kind through real processes."""
    port = tmp_path / "case.port"
    model = shared / "cases" / "models" / CASES[name]["file"]
    line = [sys.executable, "-m", "phases.baseline", str(model), "--device", "npu2", "--out", str(port)]
    done = subprocess.run(line, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    assert port.exists() is (code == 1)
    if code == 1:
        np.savez(tmp_path / "in.npz", in_0=golden(shared, name, port)[0]["x"])
        line = [sys.executable, "-m", "phases", "oracle", str(port), "--inputs", "in.npz", "--outputs", "out.npz"]
        environment = {"PYTHONPATH": str(root), "PATH": ""}
        subprocess.run(line, cwd=tmp_path, env=environment, check=True, capture_output=True)
        inputs, expected = golden(shared, name, port)
        with np.load(tmp_path / "out.npz") as found:
            assert judge(port, inputs, dict(found), expected).unexplained == ()
