"""What is known about a graph's tensors before any lowering: constants, element types, shapes as declared."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import onnx
from onnx import numpy_helper

from manifest.onnx_import.validate_tensors import BITS, header_problem, payload_problem

Array = npt.NDArray[Any]

_T: Final = onnx.TensorProto
QUANTIZE: Final = "QuantizeLinear"
DEQUANTIZE: Final = "DequantizeLinear"
Q_DOMAINS: Final = ("", "com.microsoft")
PER_AXIS_OPSET: Final = 13
"""From this opset on the standard Q/DQ have an axis."""

_KEEPS_TYPE: Final = frozenset(
    [
        "Identity",
        "Reshape",
        "Flatten",
        "Transpose",
        "Squeeze",
        "Unsqueeze",
        "Slice",
        "Concat",
        "Clip",
        "Relu",
        "MaxPool",
    ]
)
_FLOAT_ATTRIBUTES: Final = ("value_float", "value_floats")
_INT_ATTRIBUTES: Final = ("value_int", "value_ints")


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Known facts by tensor name.

    Attributes:
        tensors: constants that are stored as a tensor (initializers, Constant nodes, either behind Identity).
        numbers: constants given as numbers (`value_float`, `value_ints`, ...), as arrays.
        types: ONNX element types.
        shapes: shapes whose every dim is known.
        constant: every tensor that does not depend on a graph input.
    """

    tensors: Mapping[str, onnx.TensorProto]
    numbers: Mapping[str, Array]
    types: Mapping[str, int]
    shapes: Mapping[str, tuple[int, ...]]
    constant: frozenset[str]

    def array(self, name: str) -> Array | None:
        """Values of a constant; None where they are unknown, damaged, or of a type that numpy lacks."""
        if name in self.numbers:
            return self.numbers[name]
        tensor = self.tensors.get(name)
        if tensor is None or header_problem("", tensor) is not None or payload_problem("", tensor) is not None:
            return None
        return numpy_helper.to_array(tensor) if BITS[tensor.data_type] >= 8 else None


def is_quantize(node: onnx.NodeProto) -> bool:
    """QuantizeLinear of the standard domain or of com.microsoft."""
    return node.op_type == QUANTIZE and node.domain in Q_DOMAINS


def is_dequantize(node: onnx.NodeProto) -> bool:
    """DequantizeLinear of the standard domain or of com.microsoft."""
    return node.op_type == DEQUANTIZE and node.domain in Q_DOMAINS


def integer(node: onnx.NodeProto, name: str, default: int) -> int:
    """An integer attribute of a node."""
    return next((attribute.i for attribute in node.attribute if attribute.name == name), default)


def gather(graph: onnx.GraphProto) -> Facts:
    """Facts of a graph whose nodes are in topological order (in another order less is known)."""
    tensors = {tensor.name: tensor for tensor in graph.initializer}
    numbers: dict[str, Array] = {}
    types = {value.name: value.type.tensor_type.elem_type for value in (*graph.value_info, *graph.input, *graph.output)}
    types |= {name: tensor.data_type for name, tensor in tensors.items()}
    shapes = {}
    for value in (*graph.value_info, *graph.input):
        dims = value.type.tensor_type.shape.dim
        if value.type.tensor_type.HasField("shape") and all(dim.dim_value > 0 for dim in dims):
            shapes[value.name] = tuple(dim.dim_value for dim in dims)
    constant = {"", *tensors}
    for node in graph.node:
        if all(name in constant for name in node.input) and node.op_type != "RandomNormal":
            constant.update(node.output)
        if not node.output:
            continue
        if node.op_type == "Constant":
            _constant_node(node, tensors, numbers)
        elif node.op_type == "Identity" and node.input and node.input[0] in tensors:
            tensors[node.output[0]] = tensors[node.input[0]]
        _node_type(node, tensors, types)
    shapes |= {name: tuple(tensor.dims) for name, tensor in tensors.items()}
    return Facts(tensors=tensors, numbers=numbers, types=types, shapes=shapes, constant=frozenset(constant - {""}))


def _constant_node(node: onnx.NodeProto, tensors: dict[str, onnx.TensorProto], numbers: dict[str, Array]) -> None:
    """Note the value of a Constant node."""
    for attribute in node.attribute:
        if attribute.name == "value" and attribute.HasField("t"):
            tensors[node.output[0]] = attribute.t
        elif attribute.name in _FLOAT_ATTRIBUTES:
            values = attribute.floats if attribute.name.endswith("s") else attribute.f
            numbers[node.output[0]] = np.asarray(values, dtype=np.float32)
        elif attribute.name in _INT_ATTRIBUTES:
            ints = attribute.ints if attribute.name.endswith("s") else attribute.i
            numbers[node.output[0]] = np.asarray(ints, dtype=np.int64)


def _node_type(node: onnx.NodeProto, tensors: Mapping[str, onnx.TensorProto], types: dict[str, int]) -> None:
    """Element type of a node's first output, where it follows from the inputs."""
    output = node.output[0]
    if is_quantize(node):
        types[output] = code_type(node, types)
    elif is_dequantize(node):
        types[output] = integer(node, "output_dtype", _T.FLOAT) or _T.FLOAT
    elif output in tensors:
        types[output] = tensors[output].data_type
    elif node.op_type in _KEEPS_TYPE and node.domain == "" and node.input and node.input[0] in types:
        types[output] = types[node.input[0]]


def code_type(node: onnx.NodeProto, types: Mapping[str, int]) -> int:
    """Element type of the codes of a Q or DQ node; 0 where it is unknown."""
    if is_dequantize(node):
        return types.get(node.input[0], 0) if node.input else 0
    if len(node.input) > 2 and node.input[2]:
        return types.get(node.input[2], 0)
    return integer(node, "output_dtype", 0) or _T.UINT8
