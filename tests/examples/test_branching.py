"""The branching example is what its README says, and its files are those that its script writes."""

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from numpy.typing import NDArray
from onnx import numpy_helper


@pytest.fixture
def folder(root: Path) -> Path:
    return root / "examples" / "branching"


@pytest.fixture
def model(folder: Path) -> onnx.ModelProto:
    loaded: onnx.ModelProto = onnx.load(folder / "branching.onnx")
    return loaded


def constants(model: onnx.ModelProto) -> dict[str, NDArray[Any]]:
    return {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}


def test_the_committed_files_are_those_of_the_script(folder: Path, tmp_path: Path) -> None:
    spec = importlib.util.spec_from_file_location("branching_build", folder / "build.py")
    assert spec is not None
    assert spec.loader is not None
    build = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(build)
    build.main(tmp_path)
    for name in ("branching.onnx", "branching.npz"):
        assert (tmp_path / name).read_bytes() == (folder / name).read_bytes()


def test_six_dense_layers_with_the_stated_scales_and_types(model: onnx.ModelProto) -> None:
    stored = constants(model)
    found: dict[tuple[str, float, str], int] = {}
    for node in model.graph.node:
        if node.op_type in ("QuantizeLinear", "DequantizeLinear"):
            kind = "constant" if node.input[0] in stored else node.op_type
            key = (str(stored[node.input[2]].dtype), float(stored[node.input[1]]), kind)
            found[key] = found.get(key, 0) + 1
            assert not stored[node.input[2]]
    weights, biases = [stored[f"{n}_w"] for n in LAYERS], [stored[f"{n}_b"] for n in LAYERS]
    assert all(w.dtype == np.int8 for w in (*weights, *biases))
    assert [w.shape for w in weights] == [(64, 64), (64, 64), (16, 64), (64, 64), (64, 64), (64, 64)]
    assert found == {
        ("int16", 2**-9, "QuantizeLinear"): 1,
        ("int16", 2**-9, "DequantizeLinear"): 1,
        ("int8", 2**-7, "constant"): 6,
        ("int8", 2**-5, "constant"): 6,
        ("uint8", 2**-8, "QuantizeLinear"): 4,
        ("uint8", 2**-8, "DequantizeLinear"): 4,
        ("int8", 2**-5, "QuantizeLinear"): 2,
        ("int8", 2**-5, "DequantizeLinear"): 2,
    }


LAYERS = ("trunk_fc", "b1_fc1", "b1_fc2", "b2_fc1", "b2_fc2", "b2_fc3")


def run(model: onnx.ModelProto, feeds: NDArray[np.float32], names: list[str]) -> list[NDArray[Any]]:
    known = {o.name for o in model.graph.output}
    model.graph.output.extend(onnx.ValueInfoProto(name=n) for n in names if n not in known)
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = ort.InferenceSession(model.SerializeToString(), options)
    rows = [session.run(names, {"in": feed}) for feed in feeds]
    return [np.stack(values) for values in zip(*rows, strict=True)]


def test_onnxruntime_gives_integer_arithmetic_on_every_layer(folder: Path, model: onnx.ModelProto) -> None:
    """The layers by hand: accumulator, bias shifted to its scale, Relu, shift with ties to even."""
    stored = {name: value.astype(np.int64) for name, value in constants(model).items() if value.dtype == np.int8}
    with np.load(folder / "branching.npz") as data:
        feeds = data["in"]
    hidden = ["trunk_fc_out_q", "b1_fc1_out_q", "b2_fc1_out_q", "b2_fc2_out_q"]
    got = dict(
        zip(
            ["in_real_q", *hidden, "branch1_q", "branch2_q"],
            run(model, feeds, ["in_real_q", *hidden, "branch1_q", "branch2_q"]),
            strict=True,
        )
    )

    def dense(x: NDArray[np.int64], name: str, source: int, target: int) -> NDArray[np.int64]:
        total = x @ stored[f"{name}_w"] + (stored[f"{name}_b"] << (-5 - (source - 7)))
        shift = target - (source - 7)
        return np.rint(total / (1 << shift)).astype(np.int64)

    def relu8(x: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.clip(x, 0, 255)

    trunk = relu8(dense(np.clip(np.rint(feeds * 512), -32768, 32767).astype(np.int64), "trunk_fc", -9, -8))
    np.testing.assert_array_equal(got["trunk_fc_out_q"], trunk)
    assert trunk.max() == 255
    turned = relu8(dense(trunk, "b1_fc1", -8, -8)).transpose(0, 1, 3, 2)
    first = np.clip(dense(turned, "b1_fc2", -8, -5), -128, 127)
    np.testing.assert_array_equal(got["branch1_q"], first)
    chain = relu8(dense(relu8(dense(trunk, "b2_fc1", -8, -8)), "b2_fc2", -8, -8))
    second = np.clip(dense(chain, "b2_fc3", -8, -5), -128, 127)
    np.testing.assert_array_equal(got["branch2_q"], second)
    assert len(np.unique(first)) > 60
    assert len(np.unique(second)) > 60


def test_shapes_and_feeds(folder: Path, model: onnx.ModelProto) -> None:
    shapes = [[d.dim_value for d in o.type.tensor_type.shape.dim] for o in model.graph.output]
    assert shapes == [[1, 64, 64], [1, 16, 64]]
    assert [o.version for o in model.opset_import] == [21]
    with np.load(folder / "branching.npz") as data:
        assert data["in"].shape == (64, 1, 16, 64)
