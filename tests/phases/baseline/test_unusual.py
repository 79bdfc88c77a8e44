"""Models that are rare and real: inputs that nothing depends on, nodes that onnxruntime has no kernel for."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from checklists.report import load_report
from manifest.io import write_npz
from phases.__main__ import main as phases
from phases.baseline.__main__ import main
from tests.qdq_models import Sketch

GATE = "gates/baseline.json"


def run(*arguments: object) -> int:
    return main([str(a) for a in arguments])


@pytest.mark.parametrize("quantised", [False, True])
def test_inputs_that_no_output_depends_on_need_no_data(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], quantised: bool
) -> None:
    s = Sketch()
    x = s.input("x", (1, 8))
    s.input("u", ("N", 2))
    shaped = s.node("Shape", [s.input("z", (2, 4))])
    if quantised:
        r = s.node("Relu", [s.qdq(x, 0.5, out="a")])
        y = s.qdq(r, 0.5, out="y")
    else:
        y = s.node("MatMul", [x, s.const(np.eye(8))], "y")
    s.output(s.node("Reshape", [y, shaped], "out"), (2, 4))
    (tmp_path / "m.onnx").write_bytes(s.proto().SerializeToString())
    rng = np.random.default_rng(0)
    feeds = rng.integers(-60, 60, (6, 1, 8)).astype(np.float32) / 4
    data: dict[str, Any] = {"x": feeds} if quantised else {"x": feeds, "z": np.zeros((6, 2, 4), np.float32)}
    write_npz(tmp_path / "real.npz", data)
    assert run(tmp_path / "m.onnx", "--data", tmp_path / "real.npz", "--out", tmp_path / "p") in (0, 1)
    out, err = capsys.readouterr()
    assert "INPUT-UNUSED u" in out
    assert "INPUT-UNUSED z" in out
    items = {item.code: item.verdict for item in load_report((tmp_path / "p" / GATE).read_bytes()).items}
    assert (items["BL008"], items["BL009"], items["BL012"]) == ("PASS", "PASS", "PASS"), out + err
    write_npz(tmp_path / "all.npz", {"x": feeds, "u": np.zeros((6, 1, 2)), "z": np.zeros((6, 2, 4))})
    given = ["--inputs", str(tmp_path / "all.npz"), "--outputs", str(tmp_path / "y.npz")]
    assert phases(["oracle", str(tmp_path / "p"), *given]) == 0
    assert "array 'u' is no input and was left out" in capsys.readouterr().out


@pytest.mark.parametrize(("dilations", "code"), [([1, 1], 1), ([2, 2], 2)])
def test_a_model_that_onnxruntime_does_not_run_is_refused_by_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], dilations: list[int], code: int
) -> None:
    """It has no SAME padding with dilations; ONNX has."""
    s = Sketch()
    x = s.qdq(s.input("x", (1, 1, 6, 6)), 0.5, out="a")
    weight = s.weight(np.ones((1, 1, 3, 3)), 0.5)
    made = s.node("Conv", [x, weight], "c", auto_pad="SAME_UPPER", dilations=dilations)
    s.qdq(made, 8.0, out="y")
    s.output("y", (1, 1, 6, 6))
    onnx.save(s.proto(), tmp_path / "m.onnx")
    write_npz(tmp_path / "real.npz", {"x": np.ones((2, 1, 6, 6), np.float32)})
    out = tmp_path / "m.port"
    assert run(tmp_path / "m.onnx", "--data", tmp_path / "real.npz", "--out", out) in ((0, 1) if code == 1 else (2,))
    said = capsys.readouterr().err
    assert ("[MODEL-ONNXRUNTIME]" in said) == (code == 2) == (not out.exists())
    if code == 2:
        assert "Dilation not supported" in said
        assert "1 problem; nothing was written" in said
