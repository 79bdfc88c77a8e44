"""Models that do not fit one dispatch, and models with an op that only the host can run."""

import json
import re
import shlex
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from manifest.io import manifest_from_json, read_npz
from manifest.model import Manifest
from phases.__main__ import main as phases_main
from phases.baseline.__main__ import main as baseline_main
from phases.presim.__main__ import main as presim_main
from presim.design_io import DESIGN_FILE, design_from_json

LAYERS, WIDTH = 12, 512


def item(port: Path, code: str) -> dict[str, Any]:
    gate = json.loads((port / "gates/baseline.json").read_text())
    found: dict[str, Any] = next(i for i in gate["items"] if i["code"] == code)
    return found


def manifest_of(port: Path) -> Manifest:
    return manifest_from_json((port / "manifest.json").read_bytes())


@pytest.fixture(scope="module")
def deep(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve dense layers of 512 x 512: 3 MiB of weights, more than one dispatch of npu1 holds."""
    random = np.random.default_rng(7)
    nodes, initializers, name = [], [], "x"
    for layer in range(LAYERS):
        weights = (random.standard_normal((WIDTH, WIDTH)) * (2 / WIDTH) ** 0.5).astype(np.float32)
        initializers.append(numpy_helper.from_array(weights, f"w{layer}"))
        nodes.append(helper.make_node("MatMul", [name, f"w{layer}"], [f"h{layer}"], name=f"dense{layer}"))
        nodes.append(helper.make_node("Relu", [f"h{layer}"], [f"r{layer}"], name=f"relu{layer}"))
        name = f"r{layer}"
    shape = [1, WIDTH]
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, shape) for n in ("x", name)]
    graph = helper.make_graph(nodes, "deep", ends[:1], ends[1:], initializers)
    folder = tmp_path_factory.mktemp("deep")
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, folder / "deep.onnx")
    np.savez(folder / "deep.npz", x=random.standard_normal((24, *shape)).astype(np.float32))
    return folder


def declared(port: Path) -> Path:
    """A port whose owner says that the largest of the 512 outputs means nothing."""
    port.mkdir()
    (port / "port.toml").write_text("[thresholds]\nmin_top1_agreement = 0.0\n")
    return port


def test_model_too_large_for_one_dispatch_is_cut_and_the_dispatches_equal_the_whole(deep: Path, tmp_path: Path) -> None:
    port = declared(tmp_path / "p")
    code = baseline_main(
        [str(deep / "deep.onnx"), "--data", str(deep / "deep.npz"), "--device", "npu1", "--out", str(port)]
    )
    assert code == 0
    manifest = manifest_of(port)
    on_array = [d for d in manifest.dispatches if d.where == "npu"]
    assert len(on_array) >= 2
    assert item(port, "BL004")["verdict"] == "PASS"
    whole = item(port, "BL013")
    assert whole["verdict"] == "PASS"
    assert whole["figures"]["mismatches"] == 0
    assert whole["figures"]["elements"] >= 24 * WIDTH
    for before, after in pairwise(on_array):
        assert set(before.outputs) & set(after.inputs), "each dispatch hands a tensor to the next"


def test_phase_2_places_what_phase_1_cut_by_itself(deep: Path, tmp_path: Path) -> None:
    port = declared(tmp_path / "p")
    arguments = [str(deep / "deep.onnx"), "--data", str(deep / "deep.npz"), "--device", "npu1", "--out", str(port)]
    assert baseline_main(arguments) == 0
    assert json.loads((port / "port.json").read_text())["options"]["cuts"] == []
    assert presim_main([str(port)]) == 0
    gate = json.loads((port / "gates/presim.json").read_text())
    items = {i["code"]: i for i in gate["items"]}
    assert (gate["verdict"], items["PS003"]["verdict"]) == ("PASS", "PASS")
    whole = item(port, "BL013")
    assert (whole["verdict"], whole["figures"]["mismatches"]) == ("PASS", 0)
    on_array = [d.name for d in manifest_of(port).dispatches if d.where == "npu"]
    assert len(on_array) >= 2
    assert items["PS003"]["figures"]["mismatches"] == 0
    assert {d.dispatch for d in design_from_json((port / DESIGN_FILE).read_bytes())} == set(on_array)


def test_a_refusal_of_phase_2_prints_the_command_that_makes_it_fit(
    deep: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    port = declared(tmp_path / "p")
    arguments = [str(deep / "deep.onnx"), "--data", str(deep / "deep.npz"), "--device", "npu1", "--out", str(port)]
    assert baseline_main(arguments) == 0
    wide = tmp_path / "wide.json"
    wide.write_text(json.dumps({"dense0": {"parallelism": {"cas_num": 4, "cas_length": 4}}}))
    capsys.readouterr()
    assert presim_main([str(port), "--directives", str(wide)]) == 2
    (line,) = [t for t in capsys.readouterr().err.splitlines() if t.startswith("[PLAN-")]
    assert "[PLAN-CORES]" in line
    assert "at most 16 cores; got 21 cores, 16 of them for op 'dense0'" in line
    assert "fits without the directives of op 'dense0' (verified by planning)" in line
    (command,) = re.findall(r"`(.*?)`", line)
    program, *given = shlex.split(command.removeprefix("python -m "))
    assert program == "phases.baseline"
    assert baseline_main(given) == 0
    assert presim_main([str(port), "--directives", str(wide)]) == 0


def test_the_same_model_fits_the_larger_device_in_one(deep: Path, tmp_path: Path) -> None:
    port = declared(tmp_path / "p")
    arguments = [str(deep / "deep.onnx"), "--data", str(deep / "deep.npz"), "--device", "vek280", "--out", str(port)]
    assert baseline_main(arguments) == 0
    assert len([d for d in manifest_of(port).dispatches if d.where == "npu"]) == 1


@pytest.fixture(scope="module")
def softmax_tail(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundled model with a Softmax behind it."""
    model = onnx.load(root / "examples/digits/digits_cnn.onnx")
    logits = model.graph.output[0].name
    model.graph.node.append(helper.make_node("Softmax", [logits], ["probabilities"], name="tail", axis=-1))
    del model.graph.output[:]
    model.graph.output.append(helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, [1, 10]))
    path = tmp_path_factory.mktemp("tail") / "tail.onnx"
    onnx.save(model, path)
    return path


def test_unsupported_tail_is_refused_by_name_and_with_the_option(
    softmax_tail: Path, root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = root / "examples/digits/digits.npz"
    assert baseline_main([str(softmax_tail), "--data", str(data), "--out", str(tmp_path / "p")]) == 2
    error = capsys.readouterr().err
    assert "Softmax" in error
    assert "--host-ops" in error
    assert not (tmp_path / "p").exists()


def test_unsupported_tail_runs_on_the_host(softmax_tail: Path, root: Path, tmp_path: Path) -> None:
    port, data = tmp_path / "p", root / "examples/digits/digits.npz"
    assert baseline_main([str(softmax_tail), "--data", str(data), "--host-ops", "--out", str(port)]) == 0
    manifest = manifest_of(port)
    (tail,) = [op for op in manifest.ops if op.type == "Softmax"]
    assert tail.where == "host"
    assert tail.name in {name for d in manifest.dispatches if d.where == "host" for name in d.ops}
    np.savez(tmp_path / "x.npz", x=read_npz(data)["x"][:5])
    arguments = ["oracle", str(port), "--inputs", str(tmp_path / "x.npz"), "--outputs", str(tmp_path / "y.npz")]
    assert phases_main(arguments) == 0
    got = read_npz(tmp_path / "y.npz")["probabilities"]
    np.testing.assert_allclose(got.sum(-1), 1, rtol=1e-6)
