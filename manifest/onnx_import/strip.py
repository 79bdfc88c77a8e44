"""The float meaning of a quantised file: rounding removed, weights as the floats that their codes stand for.

Why not simply drop the pairs: quantizers remove a Relu (or a Relu6) in front of a Q whose codes begin at the zero
point, because the Q clips there anyway. Without the Q the clip has to come back, or the float model is another model.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import onnx
from onnx import numpy_helper

from manifest.errors import Problem, RefusedError
from manifest.model import QRANGE
from manifest.onnx_import.as_qdq import as_qdq
from manifest.onnx_import.names import Names
from manifest.onnx_import.order import sort_nodes
from manifest.onnx_import.validate_facts import (
    Facts,
    code_type,
    gather,
    integer,
    is_dequantize,
    is_quantize,
)
from manifest.onnx_import.validate_text import node_label, type_name

Array = npt.NDArray[Any]

_SAME_ON_FLOATS: Final = frozenset(
    [
        "Identity",
        "Reshape",
        "Flatten",
        "Transpose",
        "Squeeze",
        "Unsqueeze",
        "MaxPool",
        "Slice",
        "Gather",
        "Split",
        "Concat",
    ]
)
_INTEGER_OPS: Final = frozenset(["ConvInteger", "MatMulInteger", "MatMulIntegerToFloat", "QGemm"])
_RELU6: Final = 6.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Codes:
    """What a tensor of codes is replaced by, and the quantization that its codes have."""

    scale: Array
    zero: Array


class _Stripper:
    """One pass over a sorted graph; `alias` maps removed tensors to those that stand for them."""

    def __init__(self, graph: onnx.GraphProto) -> None:
        self.facts: Facts = gather(graph)
        self.names = Names(
            [name for node in graph.node for name in (node.name, *node.input, *node.output)]
            + [tensor.name for tensor in graph.initializer]
        )
        self.alias: dict[str, str] = {}
        self.codes: dict[str, _Codes] = {}
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: dict[str, Array] = {}

    def resolve(self, name: str) -> str:
        """The tensor that stands for `name`."""
        return self.alias.get(name, name)

    def add(self, op_type: str, inputs: list[str], base: str) -> str:
        """A new node; returns its output's fresh name."""
        output = self.names.fresh(base, op_type.lower())
        self.nodes.append(onnx.helper.make_node(op_type, inputs, [output], name=self.names.fresh(base, "node")))
        return output

    def number(self, base: str, value: float | Array) -> str:
        """A new float32 initializer; returns its fresh name."""
        name = self.names.fresh(base, "value")
        self.initializers[name] = np.asarray(value, dtype=np.float32)
        return name

    def visit(self, node: onnx.NodeProto) -> None:
        """Keep, replace or remove one node."""
        if is_quantize(node):
            self._quantize(node)
        elif is_dequantize(node):
            self._dequantize(node)
        elif any(name in self.codes for name in node.input):
            self._integer_side(node)
        else:
            self._keep(node)

    def _keep(self, node: onnx.NodeProto) -> None:
        kept = onnx.NodeProto()
        kept.CopyFrom(node)
        kept.input[:] = [self.resolve(name) for name in node.input]
        self.nodes.append(kept)

    def _quantization(self, node: onnx.NodeProto) -> _Codes:
        """Scale and zero point of a Q or DQ node as float64 and int64 arrays."""
        scale = self.facts.array(node.input[1])
        zero_name = node.input[2] if len(node.input) > 2 else ""
        zero = self.facts.array(zero_name) if zero_name else np.zeros(1, dtype=np.int64)
        if scale is None or zero is None:
            raise _refused(node, "scale or zero point is not a stored constant")
        return _Codes(scale=scale.astype(np.float64).ravel(), zero=zero.astype(np.int64).ravel())

    def _quantize(self, node: onnx.NodeProto) -> None:
        quant = self._quantization(node)
        source = self.resolve(node.input[0])
        if node.input[0] not in self.facts.constant:
            source = self._clipped(node, source, quant)
        self.alias[node.output[0]] = source
        self.codes[node.output[0]] = quant

    def _clipped(self, node: onnx.NodeProto, source: str, quant: _Codes) -> str:
        """The Relu or Relu6 that a Q takes over when its lowest code means 0."""
        low, high = QRANGE[type_name(code_type(node, self.facts.types))]
        if not (quant.zero == low).all():
            return source
        clipped = self.add("Relu", [source], node.output[0])
        top = (high - low) * quant.scale
        if (np.abs(top - _RELU6) <= quant.scale / 2).all():
            six = self.number(node.output[0], _RELU6)
            clipped = self.add("Min", [clipped, six], node.output[0])
        return clipped

    def _dequantize(self, node: onnx.NodeProto) -> None:
        quant = self._quantization(node)
        source = node.input[0]
        stored = self.facts.array(source)
        if source in self.codes:
            self.alias[node.output[0]] = self._reinterpreted(node, self.codes[source], quant)
        elif stored is not None:
            self.initializers[node.output[0]] = _dequantized(node, stored, quant)
        else:
            self._keep(node)

    def _reinterpreted(self, node: onnx.NodeProto, written: _Codes, read: _Codes) -> str:
        """What a DQ yields; one whose scale or zero point is not that of the Q scales and shifts the value."""
        value = self.resolve(node.input[0])
        if np.array_equal(written.scale, read.scale) and (written.zero == read.zero).all():
            return value
        if written.scale.size != 1 or read.scale.size != 1:
            raise _refused(node, "its per-channel scales differ from those that the codes were made with")
        base = node.output[0]
        scaled = self.add("Mul", [value, self.number(base, read.scale[0] / written.scale[0])], base)
        offset = (written.zero[0] - read.zero[0]) * read.scale[0]
        return self.add("Add", [scaled, self.number(base, offset)], base) if offset else scaled

    def _integer_side(self, node: onnx.NodeProto) -> None:
        """An op between Q and DQ: layout ops and MaxPool work on floats too, a Clip of codes is dropped."""
        first = self.codes.get(node.input[0])
        data = node.input if node.op_type == "Concat" else node.input[:1]
        if first is None or any(name not in self.codes for name in data):
            raise _refused(node, "mixes codes with other integers")
        if node.op_type == "Clip":
            self.alias[node.output[0]] = self.resolve(node.input[0])
        elif node.op_type in _SAME_ON_FLOATS and node.domain == "":
            self._keep(node)
        else:
            raise _refused(node, "works on codes and has no meaning on floats")
        for name in node.output:
            self.codes[name] = first


@dataclass(frozen=True, slots=True, kw_only=True)
class FloatMeaning:
    """The float model that a quantised file means.

    Attributes:
        model_bytes: the model; graph inputs and outputs have the names of the file.
        floats: tensor of codes -> the float tensor that it is the rounding of.
    """

    model_bytes: bytes
    floats: Mapping[str, str]


def strip_quantization(model_bytes: bytes) -> FloatMeaning:
    """The float model that a quantised file means.

    Every Q/DQ pair on an activation is removed (a clip at 0 or at 0 and 6 that the Q had taken over comes back as
    Relu and Min), as is a Clip of codes between them; weights and biases become float32; outputs that were codes
    become floats of the same name. QOperator nodes become the float ops that their scales stand for.

    Raises:
        RefusedError: a node that means nothing on floats.
    """
    model: onnx.ModelProto = onnx.ModelProto.FromString(model_bytes)
    graph = model.graph
    sort_nodes(graph)
    as_qdq(graph)
    for node in graph.node:
        if node.op_type.startswith("QLinear") or node.op_type in _INTEGER_OPS:
            raise _refused(node, "has no float meaning here")
    stripper = _Stripper(graph)
    for node in graph.node:
        stripper.visit(node)
    floats = {name: stripper.resolve(name) for name in stripper.codes}
    _finish(graph, stripper)
    return FloatMeaning(model_bytes=bytes(model.SerializeToString(deterministic=True)), floats=floats)


def _finish(graph: onnx.GraphProto, stripper: _Stripper) -> None:
    """Write the nodes back, give graph outputs their names again, drop initializers that nothing reads."""
    for value in graph.output:
        if value.name in stripper.alias:
            source = stripper.resolve(value.name)
            name = stripper.names.fresh(value.name, "output")
            stripper.nodes.append(onnx.helper.make_node("Identity", [source], [value.name], name=name))
        if value.name in stripper.codes:
            value.type.tensor_type.elem_type = onnx.TensorProto.FLOAT
    read = {name for node in stripper.nodes for name in node.input} | {value.name for value in graph.output}
    kept = [tensor for tensor in graph.initializer if tensor.name in read and tensor.name not in stripper.initializers]
    new = [numpy_helper.from_array(array, name) for name, array in stripper.initializers.items() if name in read]
    inputs = [value for value in graph.input if value.name in read or not _has_default(graph, value.name)]
    fresh = onnx.GraphProto(name=graph.name)
    fresh.node.extend(stripper.nodes)
    fresh.initializer.extend([*kept, *new])
    fresh.input.extend(inputs)
    fresh.output.extend(graph.output)
    graph.CopyFrom(fresh)


def _has_default(graph: onnx.GraphProto, name: str) -> bool:
    return any(tensor.name == name for tensor in graph.initializer)


def _dequantized(node: onnx.NodeProto, codes: Array, quant: _Codes) -> Array:
    """f32(f32(q - z) * s) of stored codes, per tensor or along the node's axis."""
    shape = [1] * codes.ndim
    if quant.scale.size > 1:
        shape[integer(node, "axis", 1)] = quant.scale.size
    scale = quant.scale.astype(np.float32).reshape(shape)
    zero = np.broadcast_to(quant.zero, quant.scale.shape).reshape(shape)
    return np.asarray((codes.astype(np.int64) - zero).astype(np.float32) * scale, dtype=np.float32)


def _refused(node: onnx.NodeProto, what: str) -> RefusedError:
    """A node that has no float meaning here."""
    problem = Problem(code="ONNX-NO-FLOAT-MEANING", where=node_label(node), what=what)
    return RefusedError((problem,))
