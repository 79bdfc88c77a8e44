"""A light view of an ONNX graph: nodes with Python attributes, constants as numpy, producers and consumers.

Why not work on the protobuf: every later step asks for producers, consumers and constants by name, and
protobuf messages are mutable; these values are frozen.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import onnx
from onnx import numpy_helper

from manifest.errors import Problem, RefusedError
from manifest.model import Quantization
from manifest.onnx_import.names import Names

Array = npt.NDArray[Any]
Shape = tuple[int, ...]
Dims = tuple[int | str, ...]

STANDARD_DOMAINS: Final = ("", "ai.onnx")
ELEMENT_TYPES: Final[Mapping[int, str]] = {
    value: "float32" if name == "FLOAT" else name.lower() for name, value in onnx.TensorProto.DataType.items()
}
QUANTIZE: Final = ":QuantizeLinear"
DEQUANTIZE: Final = ":DequantizeLinear"
_SAME_MEANING: Final[Mapping[str, str]] = {
    "com.microsoft:QuantizeLinear": QUANTIZE,
    "com.microsoft:DequantizeLinear": DEQUANTIZE,
    "com.microsoft:QLinearConv": ":QLinearConv",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One ONNX node.

    Attributes:
        index: position in the sorted graph.
        name: unique; the file's name where it has a usable one.
        key: `domain:type`, domain "" for ai.onnx; Quantize and Dequantize of com.microsoft are the standard ones.
        domain: domain as in the file.
        type: op type as in the file.
        inputs: tensor names, "" = absent.
        outputs: tensor names, "" = unused.
        attributes: Python values; tensors as numpy arrays; subgraphs are left out.
        folded: names of nodes folded into this one.
    """

    index: int
    name: str
    key: str
    domain: str
    type: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    folded: tuple[str, ...] = ()

    def label(self) -> str:
        """Name and op type for messages."""
        return f"{self.name!r} ({self.type})"

    def input(self, position: int) -> str:
        """Name of an input, "" where it is absent."""
        return self.inputs[position] if position < len(self.inputs) else ""

    def integer(self, name: str, default: int) -> int:
        """An integer attribute."""
        value = self.attributes.get(name, default)
        if not isinstance(value, int):
            raise _attribute_type(self, name, "an integer", value)
        return value

    def real(self, name: str, default: float) -> float:
        """A float attribute (float32 value)."""
        value = self.attributes.get(name, default)
        if not isinstance(value, int | float):
            raise _attribute_type(self, name, "a number", value)
        return float(value)

    def text(self, name: str, default: str) -> str:
        """A string attribute."""
        return str(self.attributes.get(name, default))

    def integers(self, name: str) -> tuple[int, ...] | None:
        """A list of integers, None where the attribute is absent."""
        value = self.attributes.get(name)
        if value is None:
            return None
        if not isinstance(value, list | tuple) or not all(isinstance(v, int) for v in value):
            raise _attribute_type(self, name, "a list of integers", value)
        return tuple(value)


def _attribute_type(node: Node, name: str, expected: str, value: Any) -> RefusedError:
    """The refusal of an attribute of the wrong type (onnx.checker knows those of the standard ops only)."""
    return refusal(node, "ONNX-ATTRIBUTE", f"attribute {name}", expected=expected, got=type(value).__name__)


def refusal(node: Node, code: str, what: str, *, expected: str = "", got: str = "", remedy: str = "") -> RefusedError:
    """The error that refuses one node: where is its op type and name."""
    problem = Problem(code=code, where=f"node {node.label()}", what=what, expected=expected, got=got, remedy=remedy)
    return RefusedError((problem,))


@dataclass(frozen=True, slots=True, kw_only=True)
class Constant:
    """A constant of the graph.

    Attributes:
        array: the values, or the codes where `quant` is set.
        quant: set: the value is (code - zero point) * scale.
        origin: name of the initializer, Constant output or folded node output that holds the codes.
        nodes: ONNX nodes folded into it.
    """

    array: Array
    quant: Quantization | None = None
    origin: str
    nodes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Port:
    """A graph input or output: element type and dimensions (a string or "" is an open one, None: no shape at all)."""

    name: str
    dtype: str
    dims: Dims | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """The graph. `inputs` leaves out initializers that the file lists as inputs too."""

    nodes: tuple[Node, ...]
    constants: Mapping[str, Constant]
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    opsets: Mapping[str, int]
    shapes: Mapping[str, Shape] = field(default_factory=dict)

    @property
    def opset(self) -> int:
        """Version of the standard domain, 0 where it is not imported."""
        return self.opsets.get("", 0)

    def output_names(self) -> tuple[str, ...]:
        """Names of the graph outputs in order."""
        return tuple(p.name for p in self.outputs)

    def consumers(self) -> dict[str, list[Node]]:
        """Nodes that read each tensor, once per use."""
        found: dict[str, list[Node]] = {}
        for node in self.nodes:
            for name in node.inputs:
                if name:
                    found.setdefault(name, []).append(node)
        return found

    def producers(self) -> dict[str, Node]:
        """The node that writes each tensor."""
        return {name: node for node in self.nodes for name in node.outputs if name}

    def names(self) -> Iterable[str]:
        """Every tensor, initializer and node name."""
        yield from self.constants
        for port in (*self.inputs, *self.outputs):
            yield port.name
        for node in self.nodes:
            yield node.name
            yield from node.outputs


def live(graph: Graph) -> Graph:
    """The graph without nodes that reach no graph output."""
    needed = set(graph.output_names())
    kept = []
    for node in reversed(graph.nodes):
        if needed.intersection(node.outputs):
            kept.append(node)
            needed.update(n for n in node.inputs if n)
    return replace(graph, nodes=tuple(reversed(kept)))


def _attribute(proto: onnx.AttributeProto) -> Any:
    """Python value of an attribute; None for graphs and sparse tensors."""
    if proto.type in (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS):
        return None
    value = onnx.helper.get_attribute_value(proto)
    if isinstance(value, onnx.TensorProto):
        return numpy_helper.to_array(value)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value


def _key(domain: str, op_type: str) -> str:
    """`domain:type` with the standard domain as "" and com.microsoft Q/DQ mapped to the standard ones."""
    key = f"{'' if domain in STANDARD_DOMAINS else domain}:{op_type}"
    return _SAME_MEANING.get(key, key)


def _nodes(graph: onnx.GraphProto, names: Names) -> tuple[Node, ...]:
    """Nodes in order, each with a unique name."""
    nodes = []
    used: set[str] = set()
    for index, proto in enumerate(graph.node):
        name = proto.name
        if not name or name in used:
            base = name or next((o for o in proto.output if o), proto.op_type)
            name = names.fresh(base, proto.op_type)
        used.add(name)
        nodes.append(
            Node(
                index=index,
                name=name,
                key=_key(proto.domain, proto.op_type),
                domain=proto.domain,
                type=proto.op_type,
                inputs=tuple(proto.input),
                outputs=tuple(proto.output),
                attributes={a.name: _attribute(a) for a in proto.attribute},
            )
        )
    return tuple(nodes)


def _port(proto: onnx.ValueInfoProto) -> Port:
    """A graph input or output."""
    tensor = proto.type.tensor_type
    dims: list[int | str] = [
        d.dim_value if d.HasField("dim_value") and d.dim_value > 0 else d.dim_param for d in tensor.shape.dim
    ]
    return Port(
        name=proto.name,
        dtype=ELEMENT_TYPES.get(tensor.elem_type, "undefined"),
        dims=tuple(dims) if tensor.HasField("shape") else None,
    )


def build(model: onnx.ModelProto) -> Graph:
    """The graph of a model whose nodes are in topological order and whose tensors are embedded."""
    proto = model.graph
    taken = {name for node in proto.node for name in (node.name, *node.input, *node.output)}
    taken.update(i.name for i in proto.initializer)
    taken.update(p.name for p in (*proto.input, *proto.output))
    constants = {i.name: Constant(array=np.asarray(numpy_helper.to_array(i)), origin=i.name) for i in proto.initializer}
    return Graph(
        nodes=_nodes(proto, Names(taken)),
        constants=constants,
        inputs=tuple(_port(p) for p in proto.input if p.name not in constants),
        outputs=tuple(_port(p) for p in proto.output),
        opsets={"" if o.domain in STANDARD_DOMAINS else o.domain: o.version for o in model.opset_import},
    )
