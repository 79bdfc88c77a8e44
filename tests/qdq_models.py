"""Quantized models for tests, written down node by node."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

from manifest.io import manifest_from_json, manifest_to_json
from manifest.model import QRANGE, Manifest, Op
from manifest.onnx_import import Imported, import_bytes
from manifest.onnx_import.instrument import expose, quantized_outputs
from oracle.run import Oracle

FLOAT = onnx.TensorProto.FLOAT


class Sketch:
    """An ONNX graph under construction; every method returns the name of the tensor it made."""

    def __init__(self, opset: int = 13) -> None:
        self.opset = opset
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: list[onnx.TensorProto] = []
        self.inputs: list[onnx.ValueInfoProto] = []
        self.outputs: list[onnx.ValueInfoProto] = []
        self._count = 0

    def _fresh(self, base: str) -> str:
        self._count += 1
        return f"{base}_{self._count}"

    def input(self, name: str, shape: Sequence[int | str | None], elem_type: int = FLOAT) -> str:
        """A graph input."""
        self.inputs.append(helper.make_tensor_value_info(name, elem_type, list(shape)))
        return name

    def output(self, name: str, shape: Sequence[int | str | None] | None = None, elem_type: int = FLOAT) -> str:
        """A graph output; without a shape that of onnx's own inference."""
        self.outputs.append(helper.make_tensor_value_info(name, elem_type, shape))
        return name

    def const(self, value: Any, dtype: Any = np.float32, name: str = "") -> str:
        """An initializer."""
        name = name or self._fresh("c")
        self.initializers.append(numpy_helper.from_array(np.asarray(value, dtype=dtype), name))
        return name

    def node(
        self, op_type: str, inputs: Sequence[str], out: str = "", *, name: str = "", domain: str = "", **attributes: Any
    ) -> str:
        """A node with one output."""
        out = out or self._fresh(op_type.lower())
        made = helper.make_node(op_type, list(inputs), [out], name=name or f"{out}.node", domain=domain, **attributes)
        self.nodes.append(made)
        return out

    def q(self, x: str, scale: Any, zero: Any = 0, dtype: Any = np.int8, out: str = "", **attributes: Any) -> str:
        """QuantizeLinear."""
        return self.node(
            "QuantizeLinear", [x, self.const(scale), self.const(zero, dtype)], out or self._fresh("q"), **attributes
        )

    def dq(self, x: str, scale: Any, zero: Any = 0, dtype: Any = np.int8, out: str = "", **attributes: Any) -> str:
        """DequantizeLinear."""
        return self.node(
            "DequantizeLinear", [x, self.const(scale), self.const(zero, dtype)], out or self._fresh("dq"), **attributes
        )

    def qdq(self, x: str, scale: Any, zero: Any = 0, dtype: Any = np.int8, out: str = "") -> str:
        """QuantizeLinear and DequantizeLinear; the codes are called `<out>.q`."""
        out = out or self._fresh("v")
        return self.dq(self.q(x, scale, zero, dtype, out=f"{out}.q"), scale, zero, dtype, out=out)

    def weight(
        self, value: Any, scale: Any, zero: Any = 0, dtype: Any = np.int8, name: str = "", **attributes: Any
    ) -> str:
        """A dequantised initializer."""
        zeros = np.broadcast_to(np.asarray(zero), np.asarray(scale).shape)
        return self.dq(self.const(value, dtype, name or self._fresh("w")), scale, zeros, dtype, **attributes)

    def proto(self, ir_version: int = 8) -> onnx.ModelProto:
        """The model."""
        graph = helper.make_graph(self.nodes, "g", self.inputs, self.outputs, self.initializers)
        domains = {n.domain for n in self.nodes if n.domain}
        imports = [helper.make_opsetid("", self.opset), *(helper.make_opsetid(d, 1) for d in sorted(domains))]
        made = helper.make_model(graph, opset_imports=imports)
        made.ir_version = ir_version
        if any(not v.type.tensor_type.HasField("shape") for v in made.graph.output):
            inferred = onnx.shape_inference.infer_shapes(made)
            del made.graph.output[:]
            made.graph.output.extend(inferred.graph.output)
        return made

    def load(self, **options: Any) -> Imported:
        """The imported model; its manifest reads back from its file as it was written."""
        data: bytes = self.proto().SerializeToString()
        imported = import_bytes(data, **options)
        assert manifest_from_json(manifest_to_json(imported.manifest)) == imported.manifest
        return imported


def op_of(manifest: Manifest, op_type: str) -> Op:
    """The only op of a type."""
    found = [op for op in manifest.ops if op.type == op_type]
    assert len(found) == 1, [(op.type, op.name) for op in manifest.ops]
    return found[0]


def types(manifest: Manifest) -> list[str]:
    """Op types in order."""
    return [op.type for op in manifest.ops]


def array_of(imported: Imported, name: str) -> np.ndarray[Any, Any]:
    """The array of a constant tensor."""
    key = imported.manifest.tensor(name).array
    assert key is not None
    return imported.arrays[key]


def linear(
    weight: Any,
    *,
    x_scale: float = 0.5,
    w_scale: Any = 0.25,
    y_scale: float = 1.0,
    bias: str = "",
    options: Mapping[str, Any] | None = None,
    sketch: Sketch | None = None,
) -> Sketch:
    """x [1, K] -> Q/DQ -> Gemm(weight [K, N]) -> Q/DQ -> y; the node is called `gemm`, its codes `y.q`."""
    s = sketch or Sketch()
    array = np.asarray(weight)
    x = s.qdq(s.input("x", (1, array.shape[0])), x_scale, out="xd")
    axis = {"axis": 1} if np.ndim(w_scale) else {}
    inputs = [x, s.weight(array, w_scale, name="w", **axis), *([bias] if bias else [])]
    g = s.node("Gemm", inputs, "g", name="gemm", **(options or {}))
    s.qdq(g, y_scale, out="y")
    s.output("y", (1, array.shape[1]))
    return s


def feeds_for(imported: Imported, count: int = 4, seed: int = 0) -> dict[str, np.ndarray[Any, Any]]:
    """Random inputs with a leading feed axis that reach a little beyond the representable range."""
    manifest, rng = imported.manifest, np.random.default_rng(seed)
    found = {}
    for name in manifest.model.inputs:
        tensor = manifest.tensor(name)
        reader = next((op for op in manifest.ops if op.type == "QuantizeLinear" and op.inputs[0] == name), None)
        if tensor.quant is not None:
            low, high = QRANGE[tensor.dtype]
            found[name] = rng.integers(low, high + 1, (count, *tensor.shape)).astype(tensor.dtype)
        elif reader is None:
            found[name] = rng.integers(-100, 101, (count, *tensor.shape)).astype(np.float32)
        else:
            codes = manifest.tensor(reader.outputs[0])
            assert codes.quant is not None
            low, high = QRANGE[codes.dtype]
            integers = rng.integers(low - 3, high + 4, (count, *tensor.shape)) - codes.quant.zero_points[0]
            found[name] = (integers * codes.quant.scales[0]).astype(np.float32)
    return found


def assert_exact(sketch: Sketch, *, count: int = 4, target: bool = True, **options: Any) -> Imported:
    """The imported model equals onnxruntime without optimisation on every quantised tensor and every output.

    With `target` the target arithmetic has to give the same codes too.
    """
    imported = sketch.load(**options)
    manifest = imported.manifest
    feeds = feeds_for(imported, count)
    names = [n for n in quantized_outputs(imported.model_bytes) if n in manifest.by_name()]
    wanted = list(dict.fromkeys([*names, *manifest.model.outputs]))
    session_options = onnxruntime.SessionOptions()
    session_options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session_options.intra_op_num_threads = 1
    session_options.log_severity_level = 3
    data = expose(imported.model_bytes, [n for n in names if n not in manifest.model.outputs])
    session = onnxruntime.InferenceSession(data, session_options, providers=["CPUExecutionProvider"])
    oracle = Oracle(manifest, imported.arrays)
    for arithmetic in ("reference", "target") if target else ("reference",):
        got = oracle.run(feeds, arithmetic=arithmetic, keep="all")
        for feed in range(count):
            expected = session.run(wanted, {k: v[feed] for k, v in feeds.items()})
            for name, values in zip(wanted, expected, strict=True):
                np.testing.assert_array_equal(got[name][feed], values, err_msg=f"{arithmetic} {name}")
    return imported
