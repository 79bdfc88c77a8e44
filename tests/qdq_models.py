"""Quantized models for tests, written down node by node."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from manifest.model import Manifest, Op
from manifest.onnx_import import Imported, import_bytes

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
        """A graph output."""
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

    def weight(self, value: Any, scale: Any, zero: Any = 0, dtype: Any = np.int8, name: str = "", **attributes: Any) -> str:
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
        return made

    def load(self, **options: Any) -> Imported:
        """The imported model."""
        data: bytes = self.proto().SerializeToString()
        return import_bytes(data, **options)


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
