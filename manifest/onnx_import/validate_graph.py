"""Structure of the graph: who makes which tensor, and that every name stands for one thing."""

from collections import Counter
from collections.abc import Iterator
from typing import Final

import onnx

from manifest.errors import Problem
from manifest.onnx_import.order import topological_order
from manifest.onnx_import.validate_tensors import MAX_ELEMENTS, element_count
from manifest.onnx_import.validate_text import node_label, quoted

_CONSTANT: Final = "Constant"


def graph_problems(model: onnx.ModelProto) -> list[Problem]:
    """Every structural problem of the main graph."""
    graph = model.graph
    if not graph.node:
        return [Problem(code="ONNX-EMPTY", where="graph", what="has no nodes", expected="a model that computes")]
    problems = [*_unsupported_parts(model), *_duplicate_tensors(graph), *_duplicate_nodes(graph)]
    problems += [*_missing(graph), *_value_types(graph)]
    cycle = cycle_problem(graph)
    return [*problems, cycle] if cycle is not None else problems


def cycle_problem(graph: onnx.GraphProto) -> Problem | None:
    """The first cycle of a graph, its nodes named in their data flow."""
    _, cycle = topological_order(graph.node)
    if not cycle:
        return None
    shown = ", ".join(node_label(graph.node[index]) for index in cycle[:4])
    rest = f" and {len(cycle) - 4} more" if len(cycle) > 4 else ""
    return Problem(code="ONNX-CYCLE", where=f"{shown}{rest}", what="nodes depend on each other in a cycle")


def _unsupported_parts(model: onnx.ModelProto) -> Iterator[Problem]:
    """Subgraphs, functions and sparse initializers, named where they are used."""
    functions = {(function.domain, function.name) for function in model.functions}
    sparse = {item.values.name for item in model.graph.sparse_initializer}
    for node in model.graph.node:
        if any(attribute.HasField("g") or attribute.graphs for attribute in node.attribute):
            yield Problem(
                code="ONNX-SUBGRAPH",
                where=node_label(node),
                what=f"{node.op_type} holds a subgraph (control flow), which has no place in a static dataflow",
                remedy="export the model without control flow",
            )
        if (node.domain, node.op_type) in functions:
            yield Problem(
                code="ONNX-FUNCTION",
                where=node_label(node),
                what=f"calls the model's own function {quoted(node.op_type)} of domain {quoted(node.domain)}",
                remedy="inline it: onnx.inliner.inline_local_functions",
            )
        if any(attribute.HasField("sparse_tensor") or attribute.sparse_tensors for attribute in node.attribute):
            yield _sparse(f"attribute of {node_label(node)}")
        for name in node.input:
            if name and name in sparse:
                sparse.discard(name)
                yield _sparse(f"initializer {quoted(name)}")


def _sparse(where: str) -> Problem:
    return Problem(code="ONNX-SPARSE", where=where, what="is a sparse tensor", remedy="store it dense")


def _duplicate_tensors(graph: onnx.GraphProto) -> Iterator[Problem]:
    """Names with two producers, and graph outputs listed twice."""
    for name, by in _makers(graph).items():
        if len(by) > 1:
            yield Problem(
                code="ONNX-DUPLICATE-TENSOR",
                where=f"tensor {quoted(name)}",
                what=f"name is produced {len(by)} times",
                expected="one producer",
                got=", ".join(by[:3]),
                remedy="give each tensor a name of its own",
            )
    for name, count in Counter(value.name for value in graph.output).items():
        if count > 1:
            where = f"graph output {quoted(name)}"
            yield Problem(code="ONNX-DUPLICATE-OUTPUT", where=where, what=f"name is listed {count} times")


def _makers(graph: onnx.GraphProto) -> dict[str, list[str]]:
    """What produces each tensor. An initializer and a graph input of one name are one: the input's default value."""
    defaults = {tensor.name for tensor in graph.initializer}
    once: set[str] = set()
    makers: dict[str, list[str]] = {}
    for tensor in graph.initializer:
        makers.setdefault(tensor.name, []).append("an initializer")
    for value in graph.input:
        if value.name not in defaults or value.name in once:
            makers.setdefault(value.name, []).append("a graph input")
        once.add(value.name)
    for node in graph.node:
        for name in node.output:
            if name:
                makers.setdefault(name, []).append(node_label(node))
    return makers


def _duplicate_nodes(graph: onnx.GraphProto) -> Iterator[Problem]:
    """Two nodes of one name; onnxruntime refuses them too, unless they are Constant nodes."""
    found = Counter(node.name for node in graph.node if node.name and node.op_type != _CONSTANT)
    for name, count in found.items():
        if count > 1:
            yield Problem(
                code="ONNX-DUPLICATE-NODE",
                where=f"node {quoted(name)}",
                what=f"name is used by {count} nodes",
                remedy="give each node a name of its own, or none",
            )


def _missing(graph: onnx.GraphProto) -> Iterator[Problem]:
    """Inputs and graph outputs that nothing produces, and tensors without a name."""
    made = {tensor.name for tensor in graph.initializer} | {value.name for value in graph.input}
    made |= {item.values.name for item in graph.sparse_initializer}
    made |= {name for node in graph.node for name in node.output}
    for node in graph.node:
        for name in dict.fromkeys(node.input):
            if name and name not in made:
                yield Problem(
                    code="ONNX-INPUT-MISSING", where=node_label(node), what=f"nothing produces its input {quoted(name)}"
                )
    for kind, values in (("input", graph.input), ("output", graph.output), ("initializer", graph.initializer)):
        if any(not value.name for value in values):
            yield Problem(code="ONNX-NAME-EMPTY", where=f"graph {kind}", what="has no name")
    if not graph.output:
        yield Problem(code="ONNX-NO-OUTPUT", where="graph", what="has no outputs")
    for value in graph.output:
        if value.name and value.name not in made:
            yield Problem(
                code="ONNX-OUTPUT-MISSING", where=f"graph output {quoted(value.name)}", what="nothing produces it"
            )


def _value_types(graph: onnx.GraphProto) -> Iterator[Problem]:
    """Graph inputs and outputs are tensors of sane size."""
    defaults = {tensor.name for tensor in graph.initializer}
    inputs = [value for value in graph.input if value.name not in defaults]
    for kind, values in (("input", inputs), ("output", graph.output)):
        for value in values:
            where = f"graph {kind} {quoted(value.name)}"
            which = value.type.WhichOneof("value")
            if which != "tensor_type" and (which is not None or kind == "input"):
                got = (which or "no type").removesuffix("_type")
                yield Problem(code="ONNX-VALUE-TYPE", where=where, what="is no tensor", expected="tensor", got=got)
            elif which == "tensor_type":
                yield from _value_shape(where, value.type.tensor_type)


def _value_shape(where: str, kind: onnx.TypeProto.Tensor) -> Iterator[Problem]:
    """No fixed dim is 0 and the fixed dims together are not absurd."""
    dims = [dim.dim_value for dim in kind.shape.dim if dim.HasField("dim_value")]
    if 0 in dims:
        yield Problem(code="ONNX-SHAPE-EMPTY", where=where, what="is an empty tensor", got=f"dims {dims}")
    elif element_count(dims) > MAX_ELEMENTS:
        yield Problem(
            code="ONNX-SHAPE-SIZE",
            where=where,
            what="is too large",
            expected=f"at most {MAX_ELEMENTS} elements",
            got=f"dims {dims}",
        )
