"""Float functions of host ops against onnxruntime, with the tolerance that is promised for them."""

from dataclasses import replace
from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from manifest.errors import RefusedError
from oracle.run import Oracle
from oracle.sketch import Sketch

SHAPE = (2, 3, 4)
FEEDS = 3
RELATIVE = 1e-6


def run_both(
    op_type: str, *, constants: tuple[Any, ...] = (), opset: int = 20, domain: str = "", **attributes: Any
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """(oracle, onnxruntime) of one op on random float32 feeds; `constants` are further inputs."""
    rng = np.random.default_rng(7)
    x = rng.uniform(-4, 4, (FEEDS, *SHAPE)).astype(np.float32)
    x = np.abs(x) + np.float32(0.1) if op_type in ("Log", "Sqrt", "Pow") else x
    initializers = [numpy_helper.from_array(np.asarray(c), f"c{i}") for i, c in enumerate(constants)]
    names = ["x", *(i.name for i in initializers)]
    node = helper.make_node(op_type, names, ["y"], domain=domain, **attributes)
    graph = helper.make_graph(
        [node],
        "host",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, SHAPE)],
        [helper.make_tensor_value_info("y", TensorProto.INT64 if op_type == "ArgMax" else TensorProto.FLOAT, None)],
        initializers,
    )
    imports = [helper.make_opsetid("", opset), *([helper.make_opsetid(domain, 1)] if domain else [])]
    model = helper.make_model(graph, opset_imports=imports)
    model.ir_version = 9
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    want = np.stack([session.run(None, {"x": feed})[0] for feed in x])
    sketch = Sketch()
    sketch.activation("x", SHAPE, "float32", role="input")
    for i, c in enumerate(constants):
        sketch.constant(f"c{i}", np.asarray(c), role="constant")
    sketch.activation("y", want.shape[1:], "int64" if op_type == "ArgMax" else "float32", role="output")
    plain = {k: tuple(v) if isinstance(v, list) else v for k, v in attributes.items()}
    sketch.op(op_type, names, "y", attributes=plain, host=True)
    manifest = sketch.manifest(["x"], ["y"])
    manifest = replace(manifest, model=replace(manifest.model, opset=opset))
    return Oracle(manifest, sketch.arrays).run({"x": x})["y"], want


CASES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("Sigmoid", {}),
    ("Tanh", {}),
    ("HardSigmoid", {"alpha": 0.3, "beta": 0.4}),
    ("HardSigmoid", {}),
    ("HardSwish", {}),
    ("LeakyRelu", {"alpha": 0.1}),
    ("Elu", {"alpha": 1.5}),
    ("Exp", {}),
    ("Log", {}),
    ("Sqrt", {}),
    ("Erf", {}),
    ("Gelu", {}),
    ("Gelu", {"approximate": "tanh"}),
    ("Softplus", {}),
    ("Softmax", {"axis": 1}),
    ("Softmax", {}),
    ("LogSoftmax", {"axis": -2}),
    ("Softmax", {"axis": 1, "opset": 11}),
    ("Softmax", {"opset": 11}),
    ("LogSoftmax", {"axis": 0, "opset": 11}),
    ("ReduceMean", {"constants": (np.array([1, -1]),)}),
    ("ReduceMean", {"axes": [2], "keepdims": 0, "opset": 13}),
    ("ReduceSum", {"constants": (np.array([0]),), "keepdims": 0}),
    ("ReduceSum", {"noop_with_empty_axes": 1}),
    ("ReduceMax", {}),
    ("ArgMax", {"axis": 1}),
    ("ArgMax", {"axis": -1, "keepdims": 0, "select_last_index": 1}),
    ("Add", {"constants": (np.linspace(-1, 1, 4, dtype=np.float32),)}),
    ("Sub", {"constants": (np.ones((3, 1), np.float32),)}),
    ("Mul", {"constants": (np.float32(0.3),)}),
    ("Div", {"constants": (np.full((2, 1, 1), 3, np.float32),)}),
    ("Pow", {"constants": (np.float32(1.5),)}),
    ("Relu", {}),
)


@pytest.mark.parametrize(("op_type", "options"), CASES, ids=[f"{i}-{t}" for i, (t, _) in enumerate(CASES)])
def test_float_functions(op_type: str, options: dict[str, Any]) -> None:
    got, want = run_both(op_type, **options)
    assert got.dtype == want.dtype
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=RELATIVE, atol=RELATIVE)


def test_contrib_gelu() -> None:
    got, want = run_both("Gelu", domain="com.microsoft")
    np.testing.assert_allclose(got, want, rtol=RELATIVE, atol=RELATIVE)


def test_two_float_activations() -> None:
    sketch = Sketch()
    sketch.activation("a", (2, 3), "float32", role="input")
    sketch.activation("b", (3,), "float32", role="input")
    sketch.activation("y", (2, 3), "float32", role="output")
    sketch.op("Sub", ("a", "b"), "y", host=True)
    a, b = np.arange(12, dtype=np.float32).reshape(2, 2, 3), np.ones((2, 3), np.float32)
    got = Oracle(sketch.manifest(["a", "b"], ["y"]), {}).run({"a": a, "b": b})["y"]
    np.testing.assert_array_equal(got, a - b[:, None])


def test_clip_on_floats() -> None:
    sketch = Sketch()
    sketch.activation("x", (3,), "float32", role="input")
    sketch.activation("y", (3,), "float32", role="output")
    sketch.op("Clip", ("x",), "y", attributes={"minimum": -1.0, "maximum": 1.5}, host=True)
    got = Oracle(sketch.manifest(["x"], ["y"]), {}).run({"x": np.array([[-2, 0.25, 2]], np.float32)})["y"]
    assert got.tolist() == [[-1.0, 0.25, 1.5]]


def test_an_unknown_float_op_is_refused_by_name() -> None:
    sketch = Sketch()
    sketch.activation("x", (3,), "float32", role="input")
    sketch.activation("y", (3,), "float32", role="output")
    sketch.op("Conv", ("x",), "y", host=True)
    with pytest.raises(RefusedError, match=r"op 'conv_0' \(Conv\): has no function on float32 tensors"):
        Oracle(sketch.manifest(["x"], ["y"]), {}).run({"x": np.zeros((1, 3), np.float32)})
