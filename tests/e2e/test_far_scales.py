"""Scales so far apart that no accumulator holds the sum: a FAIL that names the op, never a fault of the tool."""

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from phases.baseline.__main__ import main as baseline_main


def add_of_scales(folder: Path, low: int, high: int) -> tuple[Path, Path]:
    """An Add of an input at 2**low and one at 2**high, and data that fills both."""
    values = {"low": 2.0**low, "high": 2.0**high}
    constants = [numpy_helper.from_array(np.array(v, np.float32), n) for n, v in values.items()]
    constants.append(numpy_helper.from_array(np.array(0, np.int8), "zero"))
    nodes = []
    for source, scale, target in (("x", "low", "a"), ("y", "high", "b"), ("sum", "high", "z")):
        if source == "sum":
            nodes.append(helper.make_node("Add", ["a", "b"], ["sum"], name="add"))
        nodes.append(
            helper.make_node("QuantizeLinear", [source, scale, "zero"], [f"{target}_q"], name=f"{target}_quant")
        )
        nodes.append(
            helper.make_node("DequantizeLinear", [f"{target}_q", scale, "zero"], [target], name=f"{target}_deq")
        )
    shape = [1, 8]
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, shape) for n in ("x", "y", "z")]
    graph = helper.make_graph(nodes, "far", ends[:2], ends[2:], constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), folder / "m.onnx")
    random = np.random.default_rng(3)
    feeds = {
        n: (random.normal(size=(16, *shape)) * 40 * s).astype(np.float32)
        for n, s in zip("xy", values.values(), strict=True)
    }
    np.savez(folder / "d.npz", **feeds)  # type: ignore[arg-type]
    return folder / "m.onnx", folder / "d.npz"


@pytest.mark.parametrize(("low", "high", "code"), [(-20, 20, 0), (-40, 40, 1)])
def test_add_of_scales_far_apart(tmp_path: Path, low: int, high: int, code: int) -> None:
    model, data = add_of_scales(tmp_path, low, high)
    assert baseline_main([str(model), "--data", str(data), "--out", str(tmp_path / "p")]) == code
    gate = json.loads((tmp_path / "p/gates/baseline.json").read_text())
    items = {i["code"]: i for i in gate["items"]}
    if code:
        assert items["BL007"]["verdict"] == "FAIL"
        assert "'add'" in items["BL007"]["summary"]
    else:
        assert items["BL007"]["verdict"] == "PASS"
