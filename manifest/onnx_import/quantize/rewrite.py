"""Float ops written as ops that can be quantized: Sub and Div of constants, Dropout, normalization on its own.

Folding has already put a BatchNormalization into the Conv in front of it; one that follows anything else, or a Conv
whose result something else reads too, is a depthwise Conv of 1x1.
"""

from typing import Any, Final

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

EPSILON: Final = 1e-5
"""ONNX's default."""


class _Graph:
    """Constants by name and names that are taken."""

    def __init__(self, graph: onnx.GraphProto) -> None:
        self.graph = graph
        self.constants = {t.name: t for t in graph.initializer if t.data_type == onnx.TensorProto.FLOAT}
        self.stored = {t.name: t for t in graph.initializer}
        self.read = {name for node in graph.node for name in node.input} | {value.name for value in graph.output}
        self.taken = set(self.constants) | {name for node in graph.node for name in (*node.input, *node.output)}
        values = (*graph.input, *graph.output, *graph.value_info)
        self.ranks = {value.name: len(value.type.tensor_type.shape.dim) for value in values}

    def array(self, name: str) -> NDArray[Any]:
        return np.asarray(numpy_helper.to_array(self.constants[name]))

    def store(self, base: str, suffix: str, array: NDArray[Any]) -> str:
        name = f"{base}_{suffix}"
        while name in self.taken:
            name += "_"
        self.taken.add(name)
        self.graph.initializer.append(numpy_helper.from_array(array, name))
        return name


def rewritten(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with such ops rewritten in place.

    Args:
        model: folded, with inferred shapes.
    """
    graph = _Graph(model.graph)
    for node in model.graph.node:
        if node.domain:
            continue
        if node.op_type in ("Sub", "Div"):
            _invert(node, graph)
        elif node.op_type == "BatchNormalization":
            _normalize(node, graph)
        elif node.op_type == "Dropout":
            _pass_on(node, graph)
    return model


def _invert(node: onnx.NodeProto, graph: _Graph) -> None:
    """Subtraction of a constant as Add of its negative, division by one as Mul by its inverse."""
    if node.input[1] not in graph.constants:
        return
    values = graph.array(node.input[1])
    with np.errstate(divide="ignore", over="ignore"):
        changed = -values if node.op_type == "Sub" else np.float32(1) / values
    if not np.isfinite(changed).all():
        return
    node.input[1] = graph.store(node.input[1], "negative" if node.op_type == "Sub" else "inverse", np.asarray(changed))
    node.op_type = "Add" if node.op_type == "Sub" else "Mul"


def _pass_on(node: onnx.NodeProto, graph: _Graph) -> None:
    """Dropout at inference as Identity: folding leaves it where it writes a graph output."""
    training = node.input[2] if len(node.input) > 2 else ""
    off = not training or (training in graph.stored and not numpy_helper.to_array(graph.stored[training]).any())
    if off and not any(name in graph.read for name in node.output[1:]):
        node.CopyFrom(helper.make_node("Identity", node.input[:1], node.output[:1], name=node.name))


def _normalize(node: onnx.NodeProto, graph: _Graph) -> None:
    """Normalization of an NCHW tensor as a depthwise Conv."""
    attributes = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
    fixed = all(name in graph.constants for name in node.input[1:])
    if not fixed or graph.ranks.get(node.input[0]) != 4 or attributes.get("training_mode") or len(node.output) > 1:
        return
    scale, bias, mean, variance = (graph.array(name).astype(np.float64) for name in node.input[1:])
    with np.errstate(divide="ignore", invalid="ignore"):
        factor = scale / np.sqrt(variance + attributes.get("epsilon", EPSILON))
    offset = bias - mean * factor
    if not (np.isfinite(factor).all() and np.isfinite(offset).all()):
        return
    weight = graph.store(node.input[1], "weight", factor.astype(np.float32).reshape(-1, 1, 1, 1))
    added = graph.store(node.input[2], "bias", offset.astype(np.float32))
    name, source, target = node.name, node.input[0], node.output[0]
    node.CopyFrom(helper.make_node("Conv", [source, weight, added], [target], name=name, group=factor.size))
