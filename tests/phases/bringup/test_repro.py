"""`repro`: one op as a file of its own, which onnxruntime agrees with."""

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

from phases import api
from phases.__main__ import main


@pytest.fixture
def beside(digits_port: Path, root: Path) -> Path:
    """The port with its own quantised model in it: phase 1 made it."""
    assert (digits_port / "model.qdq.onnx").is_file()
    return digits_port


@pytest.mark.parametrize("kind", ["Conv", "MaxPool", "Gemm"])
def test_the_files_stand_alone(kind: str, beside: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    op = [o for o in api.load(beside).manifest.ops if o.type == kind][-1]
    folder = tmp_path / "one"
    assert main(["repro", str(beside), "--op", op.name, "--output", str(folder)]) == 0
    assert "onnxruntime differs in 0 of" in capsys.readouterr().out
    model = onnx.load(folder / "model.onnx")
    onnx.checker.check_model(model)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    with np.load(folder / "inputs.npz") as inputs, np.load(folder / "expected.npz") as expected:
        (name,) = expected.files
        for index in range(len(expected[name])):
            got = session.run([name], {n: inputs[n][index] for n in inputs.files})[0]
            assert np.array_equal(got, expected[name][index])
        assert len({expected[name][i].tobytes() for i in range(3)}) == 3


def test_an_unknown_op_and_a_folder_that_is_there_are_refused(
    beside: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["repro", str(beside), "--op", "nobody", "--output", str(tmp_path / "a")]) == 2
    assert "REPRO-OP" in capsys.readouterr().err
    assert not (tmp_path / "a").exists()
    assert main(["repro", str(beside), "--op", "nobody", "--output", str(tmp_path)]) == 2
    assert "OPTION-OUTPUTS" in capsys.readouterr().err


@pytest.mark.parametrize("where", ["file/below", "dangling", "there", "n" * 300])
def test_a_folder_that_cannot_be_made_is_refused_and_nothing_is_left(
    where: str, digits_port: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "dangling").symlink_to(tmp_path / "none")
    (tmp_path / "there").mkdir()
    before = sorted(p.name for p in tmp_path.iterdir())
    op = api.load(digits_port).manifest.ops[2].name
    assert main(["repro", str(digits_port), "--op", op, "--output", str(tmp_path / where)]) == 2
    assert "1 problem; nothing was written" in capsys.readouterr().err
    assert sorted(p.name for p in tmp_path.iterdir()) == before
