"""Small ONNX models for tests."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import helper, numpy_helper

FLOAT = onnx.TensorProto.FLOAT
Array = npt.NDArray[Any]


def tensor(name: str, value: Any, dtype: Any = np.float32) -> onnx.TensorProto:
    """An initializer."""
    return numpy_helper.from_array(np.asarray(value, dtype=dtype), name)


def value(name: str, shape: Sequence[int | str | None] = (1, 4), elem_type: int = FLOAT) -> onnx.ValueInfoProto:
    """A graph input or output."""
    return helper.make_tensor_value_info(name, elem_type, list(shape))


def node(op_type: str, inputs: Sequence[str], outputs: Sequence[str], name: str = "", **attributes: Any) -> Any:
    """A node; `domain` is taken as such, everything else as attributes."""
    return helper.make_node(op_type, list(inputs), list(outputs), name=name or None, **attributes)


def model(
    nodes: Iterable[Any],
    initializers: Iterable[onnx.TensorProto] = (),
    *,
    inputs: Sequence[onnx.ValueInfoProto] | None = None,
    outputs: Sequence[onnx.ValueInfoProto] | None = None,
    opset: int = 13,
    ir_version: int = 8,
    imports: Mapping[str, int] | None = None,
) -> onnx.ModelProto:
    """A model from x [1, 4] to y [1, 4] float32 unless other inputs and outputs are given."""
    graph = helper.make_graph(
        list(nodes),
        "g",
        [value("x")] if inputs is None else list(inputs),
        [value("y")] if outputs is None else list(outputs),
        list(initializers),
    )
    domains = [helper.make_opsetid("", opset)]
    domains += [helper.make_opsetid(domain, version) for domain, version in (imports or {}).items()]
    made = helper.make_model(graph, opset_imports=domains)
    made.ir_version = ir_version
    return made


def qdq_pair(
    source: str, target: str, *, scale: str = "s", zero_point: str = "z", domain: str = "", **attributes: Any
) -> list[Any]:
    """Quantize and Dequantize between two float tensors; the codes are called `<target>_q`."""
    parameters = [scale, zero_point] if zero_point else [scale]
    return [
        node("QuantizeLinear", [source, *parameters], [f"{target}_q"], f"{target}_Q", domain=domain, **attributes),
        node("DequantizeLinear", [f"{target}_q", *parameters], [target], f"{target}_DQ", domain=domain, **attributes),
    ]


def linear_model(
    *, opset: int = 13, weight_scale: Any = 0.5, weight_axis: int | None = None, domain: str = "", ir_version: int = 8
) -> onnx.ModelProto:
    """x [1, 4] -> Q/DQ -> MatMul with int8 weights [4, 3] -> Q/DQ -> y [1, 3]; all uint8 activations."""
    attributes = {} if weight_axis is None else {"axis": weight_axis}
    weights = (np.arange(12).reshape(4, 3) - 6).astype(np.int8)
    nodes = [
        *qdq_pair("x", "a", domain=domain),
        node("DequantizeLinear", ["w", "ws"], ["wd"], "w_DQ", domain=domain, **attributes),
        node("MatMul", ["a", "wd"], ["m"], "mm"),
        *qdq_pair("m", "y", scale="sy", domain=domain),
    ]
    initializers = [
        tensor("s", 0.25),
        tensor("z", 128, np.uint8),
        tensor("w", weights, np.int8),
        tensor("ws", weight_scale),
        tensor("sy", 1.0),
    ]
    imports = {domain: 1} if domain else None
    outputs = [value("y", (1, 3))]
    return model(nodes, initializers, outputs=outputs, opset=opset, imports=imports, ir_version=ir_version)
