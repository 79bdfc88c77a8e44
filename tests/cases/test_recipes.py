"""Recipes of `cases/cases.jsonl`, built and tried; each with the verdict that the public thread deserved."""

import hashlib
import json
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

from manifest.device import DEVICES
from manifest.onnx_import import import_bytes
from oracle.evidence import Comparison
from oracle.reference import compare_model
from phases import api
from tests.cases.driver import Array, baseline, judge, oracle_outputs, phases
from tests.onnx_models import model, node, qdq_pair, tensor, value

T = onnx.TensorProto


def save(made: onnx.ModelProto, folder: Path, name: str = "model.onnx") -> Path:
    path = folder / name
    path.write_bytes(made.SerializeToString())
    return path


def port_of(made: onnx.ModelProto, folder: Path, *options: object) -> Path:
    """A port made without data: exit 1, since the real-data items did not run."""
    port = folder / "model.port"
    run = baseline(save(made, folder), "--out", port, *options)
    assert run.code == 1, run.text
    return port


def reference(made: onnx.ModelProto, inputs: dict[str, Array]) -> dict[str, Array]:
    """onnxruntime with optimisation off."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(made.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [item.name for item in session.get_outputs()]
    return dict(zip(names, session.run(None, inputs), strict=True))


def assert_equals_reference(made: onnx.ModelProto, folder: Path, inputs: dict[str, Array]) -> dict[str, Array]:
    port = port_of(made, folder)
    got = oracle_outputs(port, inputs, folder)
    verdict = judge(port, inputs, got, reference(made, inputs))
    assert verdict.elements > 0
    assert verdict.unexplained == ()
    return got


# --- ORT-24705: initializer duplication ignores an existing tensor name

TAKEN_NAMES = ("b0", "b_0", "b#exact", "b#target", "c2#exact")


def shared_bias_model(between: str) -> onnx.ModelProto:
    """Two Convs sharing int32 bias `b` with two scales; the tensor between them is called `between`."""
    nodes = [
        *qdq_pair("x", "a"),
        node("DequantizeLinear", ["w", "ws"], ["w1"]),
        node("DequantizeLinear", ["w", "ws"], ["w2"]),
        node("DequantizeLinear", ["b", "bs1"], ["b1"]),
        node("DequantizeLinear", ["b", "bs2"], ["b2"]),
        node("Conv", ["a", "w1", "b1"], ["c1"], "conv1"),
        node("QuantizeLinear", ["c1", "s1", "z"], [f"{between}"]),
        node("DequantizeLinear", [between, "s1", "z"], ["d1"]),
        node("Conv", ["d1", "w2", "b2"], ["c2"], "conv2"),
        *qdq_pair("c2", "y"),
    ]
    weights = np.array([[2, -1], [3, 4]]).reshape(2, 2, 1, 1)
    initializers = [
        tensor("s", 0.5),
        tensor("s1", 1.0),
        tensor("z", 0, np.int8),
        tensor("w", weights, np.int8),
        tensor("ws", 0.25),
        tensor("b", [4, -9], np.int32),
        tensor("bs1", 0.125),
        tensor("bs2", 0.25),
    ]
    return model(nodes, initializers, inputs=[value("x", (1, 2, 3, 3))], outputs=[value("y", (1, 2, 3, 3))])


@pytest.mark.parametrize("between", TAKEN_NAMES)
def test_ORT_24705_fresh_names_avoid_every_name_of_the_file(tmp_path: Path, between: str) -> None:
    inputs = {"x": np.arange(-9, 9, dtype=np.float32).reshape(1, 2, 3, 3)}
    assert_equals_reference(shared_bias_model(between), tmp_path, inputs)


def test_ORT_24705_quantizing_a_float_model_with_a_shared_bias(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    made = model(
        [node("Conv", ["x", "w", "b"], ["b0"], "conv1"), node("Conv", ["b0", "w", "b"], ["y"], "conv2")],
        [tensor("w", rng.normal(size=(2, 2, 1, 1))), tensor("b", rng.normal(size=2))],
        inputs=[value("x", (1, 2, 3, 3))],
        outputs=[value("y", (1, 2, 3, 3))],
    )
    feeds = rng.normal(size=(32, 1, 2, 3, 3)).astype(np.float32)
    np.savez(tmp_path / "data.npz", x=feeds)
    port = tmp_path / "model.port"
    run = baseline(save(made, tmp_path), "--data", tmp_path / "data.npz", "--out", port)
    assert run.code == 0, run.text
    got = oracle_outputs(port, {"x": feeds}, tmp_path)["y"]
    true = np.stack([reference(made, {"x": feed})["y"] for feed in feeds])
    assert 10 * np.log10(float((true**2).sum()) / float(((true - got) ** 2).sum())) > 25


# --- ORT-1950: Q/DQ below opset 10


def test_ORT_1950_message_is_about_the_opset_not_about_clip(tmp_path: Path) -> None:
    nodes = [node("Clip", ["x", "lo"], ["c"], "bounded"), *qdq_pair("c", "y")]
    made = model(nodes, [tensor("lo", 0.0), tensor("s", 0.5), tensor("z", 0, np.uint8)], opset=9)
    run = baseline(save(made, tmp_path), "--out", tmp_path / "p")
    assert run.code == 2
    assert "Q/DQ need opset 10 (per-axis 13)" in run.text
    assert "opset 9" in run.text
    assert "Clip" not in run.text
    assert not (tmp_path / "p").exists()


# --- MLIRAIE-2993: saturation beyond both rails, on each device generation


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("arithmetic", ["reference", "target"])
def test_MLIRAIE_2993_both_rails(tmp_path: Path, device: str, arithmetic: str) -> None:
    nodes = [
        *qdq_pair("x", "a", scale="one"),
        node("DequantizeLinear", ["w", "one"], ["wd"]),
        node("MatMul", ["a", "wd"], ["m"], "identity"),
        *qdq_pair("m", "y", scale="half"),
    ]
    initializers = [tensor("one", 1.0), tensor("half", 0.5), tensor("z", 0, np.int8), tensor("w", np.eye(4), np.int8)]
    port = port_of(model(nodes, initializers), tmp_path, "--device", device)
    inputs = {"x": np.array([[127, -127, 63, -64]], np.float32)}
    got = oracle_outputs(port, inputs, tmp_path, "--all-tensors", "--arithmetic", arithmetic)
    assert got["y_q"].tolist() == [[127, -128, 126, -128]]
    assert got["y"].tolist() == [[63.5, -64.0, 63.0, -64.0]]


# --- HLS4ML-995: pool of size 1 with stride 2 is a strided pick


@pytest.mark.parametrize("op_type", ["AveragePool", "MaxPool"])
def test_HLS4ML_995_pool_of_size_1_is_a_strided_pick(tmp_path: Path, op_type: str) -> None:
    nodes = [
        *qdq_pair("x", "a"),
        node(op_type, ["a"], ["p"], "pool", kernel_shape=[1, 1], strides=[2, 2]),
        *qdq_pair("p", "y"),
    ]
    shapes = {"inputs": [value("x", (1, 2, 5, 5))], "outputs": [value("y", (1, 2, 3, 3))]}
    made = model(nodes, [tensor("s", 0.5), tensor("z", 3, np.uint8)], **shapes)  # type: ignore[arg-type]
    inputs = {"x": (np.arange(50, dtype=np.float32) / 2).reshape(1, 2, 5, 5)}
    got = assert_equals_reference(made, tmp_path, inputs)
    assert np.array_equal(got["y"], inputs["x"][:, :, ::2, ::2])


# --- HLS4ML-324: accumulator width from K and the actual weights


def test_HLS4ML_324_accumulator_is_derived_and_printed(tmp_path: Path) -> None:
    nodes = [
        *qdq_pair("x", "a", scale="one"),
        node("DequantizeLinear", ["w", "one"], ["wd"]),
        node("MatMul", ["a", "wd"], ["m"], "dense"),
        *qdq_pair("m", "y", scale="coarse"),
    ]
    weights = tensor("w", np.full((64, 1), 127), np.int8)
    initializers = [tensor("one", 1.0), tensor("coarse", 2.0**13), tensor("z", 0, np.int8), weights]
    made = model(nodes, initializers, inputs=[value("x", (1, 64))], outputs=[value("y", (1, 1))])
    inputs = {"x": np.full((1, 64), 127, np.float32)}
    got = assert_equals_reference(made, tmp_path, inputs)
    assert got["y"].tolist() == [[round(1_032_256 / 2**13) * 2.0**13]]
    (op,) = [op for op in api.load(tmp_path / "model.port").manifest.ops if op.accumulator is not None]
    assert op.accumulator is not None
    assert op.accumulator.bound == 64 * 127 * 128
    assert op.accumulator.bits >= 21
    gate = (tmp_path / "model.port" / "gates" / "baseline.json").read_text()
    assert str(64 * 127 * 128) in gate, "the bound has to be told"


# --- VAI-124: a kernel that no core holds at once


@pytest.mark.parametrize("channels", [128])
def test_VAI_124_wide_kernel_is_named_with_its_size_and_limit(tmp_path: Path, channels: int) -> None:
    nodes = [
        *qdq_pair("x", "a"),
        node("DequantizeLinear", ["w", "s"], ["wd"]),
        node("Conv", ["a", "wd"], ["c"], "wide", kernel_shape=[1, 60]),
        *qdq_pair("c", "y"),
    ]
    weights = np.ones((channels, 512, 1, 60), np.int8)
    initializers = [tensor("s", 0.25), tensor("z", 0, np.int8), tensor("w", weights, np.int8)]
    shapes = {"inputs": [value("x", (1, 512, 1, 64))], "outputs": [value("y", (1, channels, 1, 5))]}
    made = model(nodes, initializers, **shapes)  # type: ignore[arg-type]
    run = baseline(save(made, tmp_path), "--device", "npu1", "--out", tmp_path / "p")
    assert run.code == 1, run.text
    gate = json.loads((tmp_path / "p" / "gates" / "baseline.json").read_text())
    (item,) = [item for item in gate["items"] if "budget" in item["title"].lower()]
    assert "wide" in item["summary"]
    assert "split" in item["summary"]
    assert weights.size in item["figures"].values(), "bytes of the weights"


# --- RAI-318: one unsupported layer, one reason, at that node only


def resize_chain(mode: str) -> onnx.ModelProto:
    nodes = [
        *qdq_pair("x", "a"),
        node("Relu", ["a"], ["r"], "before"),
        *qdq_pair("r", "b"),
        node("Resize", ["b", "", "scales"], ["u"], "upsample", mode=mode),
        *qdq_pair("u", "c"),
        node("MaxPool", ["c"], ["p"], "after", kernel_shape=[2, 2], strides=[2, 2]),
        *qdq_pair("p", "y"),
    ]
    initializers = [tensor("s", 0.5), tensor("z", 0, np.int8), tensor("scales", [1, 1, 2, 2])]
    shapes = {"inputs": [value("x", (1, 1, 4, 4))], "outputs": [value("y", (1, 1, 4, 4))]}
    return model(nodes, initializers, **shapes)  # type: ignore[arg-type]


@pytest.mark.parametrize("mode", ["linear", "nearest"])
def test_RAI_318_reason_is_given_at_the_one_node(tmp_path: Path, mode: str) -> None:
    run = baseline(save(resize_chain(mode), tmp_path), "--out", tmp_path / "p")
    assert run.code == 2
    (problem,) = [line for line in run.text.splitlines() if line.startswith("[")]
    assert "Resize" in problem
    assert "'upsample'" in problem
    assert "before" not in run.text
    assert "after" not in run.text


# --- VAI-1069: one layer altered after conversion


def two_branches(second: Sequence[int] = (1, 2, 3, 4)) -> onnx.ModelProto:
    """Two branches over a shared input, joined by Add; `second` is the diagonal of the second branch's weights."""
    nodes = [
        *qdq_pair("x", "a"),
        node("DequantizeLinear", ["w1", "s"], ["w1d"]),
        node("DequantizeLinear", ["w2", "s"], ["w2d"]),
        node("MatMul", ["a", "w1d"], ["m1"], "left"),
        *qdq_pair("m1", "d1"),
        node("MatMul", ["a", "w2d"], ["m2"], "right"),
        *qdq_pair("m2", "d2"),
        node("Add", ["d1", "d2"], ["j"], "join"),
        *qdq_pair("j", "y"),
    ]
    initializers = [
        tensor("s", 0.5),
        tensor("z", 0, np.int8),
        tensor("w1", np.eye(4) * 2, np.int8),
        tensor("w2", np.diag(second), np.int8),
    ]
    return model(nodes, initializers)


def unexplained(comparisons: Sequence[Comparison]) -> dict[str, int]:
    """op -> elements that differ without explanation."""
    found: dict[str, int] = {}
    for comparison in comparisons:
        for row in comparison.tensors:
            if row.unexplained:
                found[row.op] = found.get(row.op, 0) + row.unexplained
    return found


def test_VAI_1069_altered_layer_is_named(tmp_path: Path) -> None:
    imported = import_bytes(two_branches().SerializeToString())
    feeds = {"x": np.arange(-20, 20, dtype=np.float32).reshape(10, 1, 4)}
    right = compare_model(imported.model_bytes, imported.manifest, imported.arrays, feeds)
    assert unexplained(right) == {}
    assert sum(comparison.elements for comparison in right) > 0
    altered = dict(imported.arrays)
    key = imported.manifest.tensor("w2").array
    assert key is not None
    altered[key] = altered[key] + np.int8(1)
    wrong = unexplained(compare_model(imported.model_bytes, imported.manifest, altered, feeds))
    (op,) = [op for op in imported.manifest.ops if op.name in wrong]
    assert "right" in op.nodes
    assert sum(wrong.values()) > 0


def test_VAI_1069_diff_names_the_weights_and_check_the_file(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    first = port_of(two_branches(), tmp_path / "a")
    second = port_of(two_branches((1, 2, 3, 5)), tmp_path / "b")
    run = phases("diff", first, second)
    assert run.code == 1
    assert "w2" in run.text
    assert re.search(r"(?<!\w)w1(?!\w)", run.text) is None
    before = phases("check", first)
    assert before.code == 3, "without data the gate is NOT_RUN"
    assert "tensors.npz" not in before.text
    (first / "tensors.npz").write_bytes((second / "tensors.npz").read_bytes())
    run = phases("check", first)
    assert run.code == 3
    assert "tensors.npz" in run.text


# --- MONSTER-1777: two builds at once


def test_MONSTER_1777_two_builds_at_once_share_nothing(tmp_path: Path, root: Path) -> None:
    widths = (4, 6)
    running = []
    for width in widths:
        folder = tmp_path / str(width)
        folder.mkdir()
        weights = tensor("w", np.eye(width) * 2, np.int8)
        nodes = [
            *qdq_pair("x", "a"),
            node("DequantizeLinear", ["w", "s"], ["wd"]),
            node("MatMul", ["a", "wd"], ["m"]),
            *qdq_pair("m", "y"),
        ]
        shapes = {"inputs": [value("x", (1, width))], "outputs": [value("y", (1, width))]}
        made = model(nodes, [tensor("s", 0.5), tensor("z", 0, np.int8), weights], **shapes)  # type: ignore[arg-type]
        save(made, folder)
        line = [sys.executable, "-m", "phases.baseline", "model.onnx"]
        environment = {"PYTHONPATH": str(root), "PATH": "", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        running.append(
            subprocess.Popen(line, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        )
    for process in running:
        out, _ = process.communicate(timeout=120)
        assert process.returncode == 1, out.decode()
    for width in widths:
        port = tmp_path / str(width) / "model.port"
        loaded = api.load(port)
        assert loaded.manifest.tensor("x").shape == (1, width)
        digest = hashlib.sha256((tmp_path / str(width) / "model.onnx").read_bytes()).hexdigest()
        assert digest in (port / "port.json").read_text()
        got = loaded.run({"x": np.ones((1, width), np.float32)})["y"]
        assert got.tolist() == [[1.0] * width]


# --- RAI-171: a device that does not exist


def test_RAI_171_unknown_device_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    run = baseline(save(two_branches(), tmp_path), "--device", "npu9", "--out", tmp_path / "p")
    assert run.code == 2
    assert "npu9" in run.text
    assert all(name in run.text for name in DEVICES)
    assert not (tmp_path / "p").exists()


RECIPES = "ORT-24705 ORT-1950 MLIRAIE-2993 HLS4ML-995 HLS4ML-324 VAI-124 RAI-318 VAI-1069 MONSTER-1777 RAI-171"


def test_every_recipe_is_here_and_in_the_list(shared: Path, root: Path) -> None:
    known = {json.loads(line)["id"] for line in (shared / "cases" / "cases.jsonl").read_text().splitlines()}
    source = (root / "tests" / "cases" / "test_recipes.py").read_text()
    for recipe in RECIPES.split():
        assert recipe in known
        assert f"def test_{recipe.replace('-', '_')}_" in source
