"""Phase 1 from the command line on real models and real data: gate, files, determinism, target equals reference."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from manifest.io import load_arrays, manifest_from_json, read_npz
from phases.__main__ import main as phases_main
from phases.baseline.__main__ import main as baseline_main

FLOAT_MODELS = ("digits_mlp", "digits_cnn", "mnist_resnet", "cntk_mnist")


def baseline(*arguments: object) -> int:
    return baseline_main([str(a) for a in arguments])


def gate(port: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((port / "gates/baseline.json").read_text())
    return found


def items(port: Path) -> dict[str, str]:
    return {i["code"]: i["verdict"] for i in gate(port)["items"]}


@pytest.fixture(scope="module")
def digits(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A port of the bundled example."""
    port = tmp_path_factory.mktemp("digits") / "digits_cnn.port"
    folder = root / "examples/digits"
    assert baseline(folder / "digits_cnn.onnx", "--data", folder / "digits.npz", "--out", port) == 0
    return port


def test_bundled_example_passes_with_every_file(digits: Path) -> None:
    assert gate(digits)["verdict"] == "PASS"
    assert set(items(digits).values()) <= {"PASS", "NOT_APPLICABLE"}
    expected = {
        "port.json",
        "model.qdq.onnx",
        "manifest.json",
        "tensors.npz",
        "data/canary.npz",
        "data/canary.json",
        "gates/baseline.json",
        "reports/report.html",
        "reports/baseline.md",
        "reports/baseline.ipynb",
        "reports/junit.xml",
        "reports/run.json",
        "state.json",
    }
    assert expected <= {str(p.relative_to(digits)) for p in digits.rglob("*") if p.is_file()}


def test_phase1_scheme_is_power_of_two_int8(digits: Path) -> None:
    manifest = manifest_from_json((digits / "manifest.json").read_bytes())
    assert manifest.scheme.power_of_two
    assert manifest.model.quantized_by_phase1
    for tensor in manifest.tensors:
        if tensor.quant is not None:
            assert tensor.quant.exponents is not None
            assert [2.0**k for k in tensor.quant.exponents] == list(tensor.quant.scales)


def test_every_layer_is_held_against_the_float_model(digits: Path) -> None:
    (found,) = [item for item in gate(digits)["items"] if item["code"] == "BL003"]
    layers = {row.rsplit(": ", 1)[0] for row in found["figures"]["worst_layers_sqnr_db"]}
    manifest = manifest_from_json((digits / "manifest.json").read_bytes())
    assert layers == {t.name for t in manifest.tensors if t.role == "activation"}


def test_check_and_rerun_agree(digits: Path) -> None:
    assert phases_main(["check", str(digits)]) == 0
    assert phases_main(["check", str(digits), "--rerun"]) == 0


def test_same_inputs_give_the_same_bytes(digits: Path, root: Path, tmp_path: Path) -> None:
    folder = root / "examples/digits"
    again = tmp_path / "digits_cnn.port"
    # another process and another hash seed: nothing may depend on either
    command = [sys.executable, "-m", "phases.baseline", str(folder / "digits_cnn.onnx")]
    command += ["--data", str(folder / "digits.npz"), "--out", str(again)]
    subprocess.run(command, check=True, cwd=root, capture_output=True)
    for name in ("manifest.json", "tensors.npz", "model.qdq.onnx", "data/canary.npz"):
        assert (again / name).read_bytes() == (digits / name).read_bytes(), name
    first, second = (gate(p)["items"] for p in (digits, again))
    assert first == second


def test_oracle_command_gives_the_labels(digits: Path, root: Path, tmp_path: Path) -> None:
    data = read_npz(root / "examples/digits/digits.npz")
    images = data["x_eval"] if "x_eval" in data else data["x"]
    labels = data["y_eval"] if "y_eval" in data else data["y"]
    np.savez(tmp_path / "x.npz", x=images)
    arguments = ["oracle", str(digits), "--inputs", str(tmp_path / "x.npz"), "--outputs", str(tmp_path / "y.npz")]
    assert phases_main(arguments) == 0
    (logits,) = read_npz(tmp_path / "y.npz").values()
    assert logits.dtype == np.float32
    assert np.mean(logits.reshape(len(images), -1).argmax(1) == labels) > 0.95


def test_target_arithmetic_is_the_reference_for_powers_of_two(digits: Path, root: Path, tmp_path: Path) -> None:
    images = read_npz(root / "examples/digits/digits.npz")["x"]
    np.savez(tmp_path / "x.npz", x=images)
    for arithmetic in ("reference", "target"):
        arguments = ["oracle", str(digits), "--inputs", str(tmp_path / "x.npz"), "--all-tensors"]
        arguments += ["--outputs", str(tmp_path / f"{arithmetic}.npz"), "--arithmetic", arithmetic]
        assert phases_main(arguments) == 0
    reference, target = (read_npz(tmp_path / f"{a}.npz") for a in ("reference", "target"))
    assert set(reference) == set(target)
    assert len(reference) > 5
    for name, array in reference.items():
        np.testing.assert_array_equal(array, target[name], err_msg=name)


def test_canary_is_what_the_oracle_says(digits: Path) -> None:
    names = json.loads((digits / "data/canary.json").read_text())
    arrays = load_arrays(digits / "data/canary.npz")
    assert set(names["inputs"]) == {"x"}
    assert arrays[names["inputs"]["x"]].shape == (4, 1, 1, 8, 8)
    assert len(names["tensors"]) > 5


def test_without_data_the_gate_is_not_run_and_says_what_to_do(
    shared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    port = tmp_path / "p"
    assert baseline(shared / "corpus/models/digits_cnn.qdq_u8s8_pc.onnx", "--out", port) == 1
    out = capsys.readouterr().out
    assert "NOT_RUN" in out
    assert "--data" in out
    verdicts = items(port)
    assert gate(port)["verdict"] == "NOT_RUN"
    for code in ("BL003", "BL009", "BL011", "BL012"):
        assert verdicts[code] == "NOT_RUN"
    assert phases_main(["check", str(port)]) == 3


def test_float_model_without_data_is_refused(root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert baseline(root / "examples/digits/digits_cnn.onnx", "--out", tmp_path / "p") == 2
    assert "--data" in capsys.readouterr().err
    assert not (tmp_path / "p").exists()


def test_data_that_changed_makes_the_port_stale(root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = root / "examples/digits"
    for name in ("digits_cnn.onnx", "digits.npz"):
        shutil.copy(folder / name, tmp_path / name)
    port = tmp_path / "p"
    assert baseline(tmp_path / "digits_cnn.onnx", "--data", tmp_path / "digits.npz", "--out", port) == 0
    arrays = read_npz(tmp_path / "digits.npz")
    np.savez(tmp_path / "digits.npz", **{n: a[:100] for n, a in arrays.items()})  # type: ignore[arg-type]
    assert phases_main(["check", str(port)]) == 3
    assert "digits.npz" in "".join(capsys.readouterr())


@pytest.mark.parametrize("name", ["mnist_resnet"])
def test_float_corpus_model_passes(shared: Path, tmp_path: Path, name: str) -> None:
    model, feed = (shared / "corpus" / f for f in (f"models/{name}.onnx", f"feeds/{name}.npz"))
    assert baseline(model, "--data", feed, "--out", tmp_path / "p") == 0


def test_branching_example_passes(root: Path, tmp_path: Path) -> None:
    folder = root / "examples/branching"
    assert baseline(folder / "branching.onnx", "--data", folder / "branching.npz", "--out", tmp_path / "p") == 0
