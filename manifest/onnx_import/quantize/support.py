"""Which ops of a float model can be quantized, and the reason for every one that cannot."""

from collections.abc import Mapping
from typing import Final

import numpy as np

from manifest.errors import Problem
from manifest.onnx_import.fuse import clamp_bounds, scalar
from manifest.onnx_import.graph import Graph, Node

LINEAR: Final = frozenset({":Conv", ":Gemm", ":MatMul"})
AVERAGES: Final = frozenset({":AveragePool", ":GlobalAveragePool"})
CLAMPS: Final = frozenset({":Relu", ":Clip"})
PASSING: Final = frozenset(
    {":MaxPool", ":Reshape", ":Flatten", ":Transpose", ":Squeeze", ":Unsqueeze", ":Concat", ":Identity"}
)
"""Ops that hand values on: their output keeps the scale of their inputs."""
SUPPORTED: Final = LINEAR | AVERAGES | CLAMPS | PASSING | {":Add", ":Mul"}
VANISHING: Final = frozenset(
    {":BatchNormalization", ":Cast", ":Constant", ":Div", ":Dropout", ":Expand", ":Pad", ":Sub"}
)
"""Ops that folding takes away where it can: they are judged by what is left."""
ALWAYS_CONSTANT: Final = frozenset({":Constant", ":Shape", ":Size"})
"""Ops whose result is known once shapes are fixed."""
HANDED_ON: Final = "it hands on what the host computes"
_SPATIAL: Final = frozenset({":Conv", ":MaxPool"}) | AVERAGES


def problem(node: Node, what: str) -> Problem:
    """The problem of one node."""
    known = ", ".join(sorted(key.removeprefix(":") for key in SUPPORTED))
    remedy = "leave it to the host with --host-ops, or replace it in the float model"
    return Problem(code="QUANT-OP", where=f"node {node.label()}", what=what, expected=known, remedy=remedy)


def unsupported(node: Node) -> str:
    """Why an op type is refused, in words."""
    if node.key == ":BatchNormalization":
        return "op BatchNormalization of anything but an NCHW tensor cannot be quantized"
    return f"op {node.key.removeprefix(':')} cannot be quantized"


def source_problems(graph: Graph) -> dict[str, Problem]:
    """Problems of the nodes as the person's file has them, by first output: folding may rename, split or merge nodes.

    Args:
        graph: of the model before folding.
    """
    constant = set(graph.constants)
    found = {}
    for node in graph.nodes:
        if node.key in ALWAYS_CONSTANT or all(name in constant for name in node.inputs if name):
            constant.update(node.outputs)
        elif node.key not in SUPPORTED | VANISHING:
            found[node.outputs[0]] = problem(node, unsupported(node))
    return found


def reasons(graph: Graph, shapes: Mapping[str, tuple[int, ...]], floats: frozenset[str]) -> dict[int, str]:
    """Why nodes of the folded graph cannot be quantized, by node index; empty where all can.

    Args:
        graph: folded.
        shapes: of every tensor.
        floats: names of the float32 tensors.
    """
    found: dict[int, str] = {}
    made: set[str] = set()
    for node in graph.nodes:
        why = _reason(node, graph, shapes, floats)
        data = [name for name in data_inputs(node) if name]
        if not why and node.key in PASSING and data and made.issuperset(data):
            why = HANDED_ON
        if why:
            found[node.index] = why
            made.update(node.outputs)
    return found


def _reason(node: Node, graph: Graph, shapes: Mapping[str, tuple[int, ...]], floats: frozenset[str]) -> str:
    if node.key not in SUPPORTED:
        return unsupported(node)
    data = [name for name in data_inputs(node) if name]
    if not all(name in floats for name in (*data, node.outputs[0])):
        return f"{node.type} on other values than float32 cannot be quantized"
    constants = [name for name in data if name in graph.constants]
    for name in constants:
        if not np.isfinite(graph.constants[name].array).all():
            return f"its constant {name!r} holds NaN or infinite values"
    if node.key in _SPATIAL and len(shapes[node.inputs[0]]) != 4:
        return f"{len(shapes[node.inputs[0]]) - 2}-D {node.type} cannot be quantized, only 2-D"
    if node.key in LINEAR:
        return _linear_reason(node, graph)
    return _other_reason(node, graph, constants)


def _linear_reason(node: Node, graph: Graph) -> str:
    if node.inputs[0] in graph.constants:
        return f"{node.type} of a constant with an activation cannot be quantized"
    fixed = [node.input(1), node.input(2)] if node.key != ":MatMul" else []
    if any(name and name not in graph.constants for name in fixed):
        return f"{node.type} whose weights or bias are computed at run time cannot be quantized"
    if node.key == ":Gemm" and node.integer("transA", 0):
        return "Gemm with transA = 1 cannot be quantized"
    return ""


def _other_reason(node: Node, graph: Graph, constants: list[str]) -> str:
    if node.key == ":Mul" and not any(scalar(graph.constants.get(name)) is not None for name in node.inputs):
        return "Mul by anything but one constant number cannot be quantized"
    if node.key == ":Add" and len(constants) > 1:
        return "Add of constants cannot be quantized"
    if node.key == ":Concat" and constants:
        return "Concat with a constant cannot be quantized"
    if node.key == ":Clip" and clamp_bounds(node, graph) is None:
        return "Clip with limits computed at run time cannot be quantized"
    if len([name for name in node.outputs if name]) > 1:
        return f"{node.type} with indices as second output cannot be quantized"
    return ""


def data_inputs(node: Node) -> tuple[str, ...]:
    """The inputs that hold values, not shapes, axes or limits."""
    if node.key in LINEAR | {":Concat", ":Add", ":Mul"}:
        return node.inputs
    return node.inputs[:1]
