"""Where Q/DQ pairs go, and which tensors share a scale.

A tensor between a producer and the only Relu or Clip behind it gets no pair, so that a kernel clamps before its one
rounding; nor does one between a MatMul and the constant row added to it, which is its bias. What an op merely hands on
(MaxPool, layout ops, Concat, a Relu on its own) keeps the scale of what came in.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from manifest.onnx_import.graph import Graph, Node
from manifest.onnx_import.quantize.support import AVERAGES, CLAMPS, LINEAR, PASSING, data_inputs

FUSING = LINEAR | AVERAGES | CLAMPS | {":Add", ":Mul"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The plan.

    Attributes:
        quantized: tensors that get a Q/DQ pair, in graph order.
        group: tensor -> first tensor of those that share its scale.
        seen: first tensor of a group -> tensors whose values decide the scale (the others only repeat them).
        biases: result of a MatMul or Gemm -> constant that the node behind it adds as bias.
        host: indices of nodes left in float.
    """

    quantized: tuple[str, ...]
    group: Mapping[str, str]
    seen: Mapping[str, tuple[str, ...]]
    biases: Mapping[str, str]
    host: frozenset[int]


class _Groups:
    """Union-find over tensor names; the representative is the first in graph order."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self.order = {name: index for index, name in enumerate(names)}
        self.parent = {name: name for name in names}

    def find(self, name: str) -> str:
        while self.parent[name] != name:
            self.parent[name] = self.parent[self.parent[name]]
            name = self.parent[name]
        return name

    def join(self, a: str, b: str) -> None:
        first, second = sorted((self.find(a), self.find(b)), key=self.order.__getitem__)
        self.parent[second] = first


def make_plan(graph: Graph, floats: frozenset[str], host: frozenset[int]) -> Plan:
    """The plan for a folded graph.

    Args:
        graph: folded.
        floats: names of the float32 tensors.
        host: indices of nodes left in float.
    """
    biases = _biases(graph, host)
    quantized = _quantized(graph, floats, host, biases)
    groups = _Groups(quantized)
    repeats: set[str] = set()
    for node in graph.nodes:
        output = node.outputs[0] if node.outputs else ""
        if node.index in host or output not in groups.parent or not _passes(node, graph, groups):
            continue
        repeats.add(output)
        for name in data_inputs(node):
            groups.join(name, output)
    group = {name: groups.find(name) for name in quantized}
    seen: dict[str, tuple[str, ...]] = {}
    for name in quantized:
        if name not in repeats:
            seen[group[name]] = (*seen.get(group[name], ()), name)
    return Plan(quantized=quantized, group=group, seen=seen, biases=biases, host=host)


def _passes(node: Node, graph: Graph, groups: _Groups) -> bool:
    """Whether a node hands on quantized tensors: a clamp that stands on its own does too."""
    return node.key in PASSING or (node.key in CLAMPS and node.inputs[0] in groups.parent)


def _biases(graph: Graph, host: frozenset[int]) -> dict[str, str]:
    """Constants added to the last axis of a MatMul or Gemm that has no bias and no other reader."""
    consumers = graph.consumers()
    found = {}
    for node in graph.nodes:
        weights = graph.constants.get(node.input(1))
        readers = consumers.get(node.outputs[0], []) if node.outputs else []
        if node.key not in (":MatMul", ":Gemm") or node.input(2) or weights is None or weights.array.ndim != 2:
            continue
        if node.index in host or len(readers) != 1 or readers[0].key != ":Add" or readers[0].index in host:
            continue
        other = readers[0].inputs[1 - readers[0].inputs.index(node.outputs[0])]
        row = graph.constants.get(other)
        channels = weights.array.shape[1 - node.integer("transB", 0)]
        if row is not None and row.array.ndim and row.array.size == channels == row.array.shape[-1]:
            found[node.outputs[0]] = other
    return {name: bias for name, bias in found.items() if name not in graph.output_names()}


def _quantized(
    graph: Graph, floats: frozenset[str], host: frozenset[int], biases: Mapping[str, str]
) -> tuple[str, ...]:
    consumers = graph.consumers()
    outputs = set(graph.output_names())

    def read_by_array(name: str) -> bool:
        return any(node.index not in host for node in consumers.get(name, []))

    names = [port.name for port in graph.inputs if read_by_array(port.name)]
    for node in graph.nodes:
        for name in node.outputs:
            if not name or name not in floats:
                continue
            if node.index in host:
                if read_by_array(name):
                    names.append(name)
            elif name not in biases and not _is_fused(node, name, consumers.get(name, []), outputs, host):
                names.append(name)
    return tuple(name for name in names if name in floats)


def _is_fused(node: Node, name: str, readers: list[Node], outputs: set[str], host: frozenset[int]) -> bool:
    """Whether the only reader of a producer's result is a clamp that is computed with it."""
    if node.key not in FUSING or name in outputs or len(readers) != 1:
        return False
    return readers[0].key in CLAMPS and readers[0].index not in host
