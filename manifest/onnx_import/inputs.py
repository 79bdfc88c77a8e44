"""Graph inputs: open dimensions, inputs that nothing reads, and the model file with both settled."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import onnx
from onnx.numpy_helper import from_array

from manifest.errors import Problem
from manifest.model import Note
from manifest.onnx_import.graph import STANDARD_DOMAINS, Graph, Port, Shape
from manifest.onnx_import.validate_text import node_label

_MAX_DIM: Final = 1 << 24
_NO_BATCH: Final = re.compile("seq|len|time|step|width|height", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fixed:
    """Shapes of the graph inputs that are known, and what is wrong with the others."""

    shapes: Mapping[str, Shape]
    problems: tuple[Problem, ...]


def resolve(graph: Graph, given: Mapping[str, Shape]) -> Fixed:
    """Shapes of the graph inputs that something reads, from the file and from `given` (input name -> shape)."""
    shapes: dict[str, Shape] = {}
    problems: list[Problem] = []
    names = [p.name for p in graph.inputs]
    problems += [
        Problem(
            code="ONNX-SHAPE-OPTION",
            where=f"--shape {name}",
            what="the model has no such input",
            expected=", ".join(names),
        )
        for name in given
        if name not in names
    ]
    read = {name for node in graph.nodes for name in node.inputs} | set(graph.output_names())
    for port in graph.inputs:
        if port.name not in read:
            continue
        problem = _given_problem(port, given[port.name]) if port.name in given else _open_problem(port)
        if problem is not None:
            problems.append(problem)
        elif port.name in given:
            shapes[port.name] = tuple(given[port.name])
        else:
            shapes[port.name] = tuple(int(d) for d in port.dims or ())
    return Fixed(shapes=shapes, problems=tuple(problems))


def _given_problem(port: Port, shape: Shape) -> Problem | None:
    """Why a given shape does not fit an input."""
    fits = all(0 < d <= _MAX_DIM for d in shape)
    if port.dims is not None:
        same = len(shape) == len(port.dims)
        fits = fits and same and all(isinstance(d, str) or d == s for d, s in zip(port.dims, shape, strict=True))
    if fits:
        return None
    return Problem(
        code="ONNX-SHAPE-OPTION",
        where=f"--shape {port.name}",
        what="the shape does not fit the input",
        expected=_dims_text(port),
        got=",".join(str(d) for d in shape),
    )


def _dims_text(port: Port) -> str:
    """`[N, 3, 224, 224]`, with `?` for a dimension without a name."""
    return "any shape" if port.dims is None else f"[{', '.join(str(d) or '?' for d in port.dims)}]"


def _open_problem(port: Port) -> Problem | None:
    """Which dimensions are open and how to fix them."""
    if port.dims is None:
        what, example = "the input has no shape", "1,..."
    else:
        still = [(i, d) for i, d in enumerate(port.dims) if isinstance(d, str)]
        if not still:
            return None
        what = ", ".join(_dim_text(i, d) for i, d in still) + (" is open" if len(still) == 1 else " are open")
        example = ",".join("1" if i == 0 else "<n>" if isinstance(d, str) else str(d) for i, d in enumerate(port.dims))
    return Problem(
        code="ONNX-OPEN-DIM",
        where=f"graph input {port.name!r}",
        what=what,
        expected="fixed dimensions",
        got=_dims_text(port),
        remedy=f"fix them with --shape {port.name}={example}, or give --data, which fixes them",
    )


def _dim_text(position: int, name: str) -> str:
    """`dim 0 ('N', probably the batch)`."""
    guess = "probably the batch" if position == 0 and not _NO_BATCH.search(name) else ""
    inside = ", ".join(part for part in (repr(name) if name else "", guess) if part)
    return f"dim {position} ({inside})" if inside else f"dim {position}"


def prune(graph: Graph, model: onnx.ModelProto) -> tuple[Graph, tuple[Note, ...]]:
    """The graph without inputs that no node needs that reaches an output; a note for each, and for such nodes."""
    live = live_nodes(model.graph)
    nodes = model.graph.node
    read = {name for i in live for name in nodes[i].input} | set(graph.output_names())
    unused = [p.name for p in graph.inputs if p.name not in read]
    notes = tuple(
        Note(code="INPUT-UNUSED", where=name, text="no node reads this graph input: it was left out") for name in unused
    )
    dead = [i for i in range(len(nodes)) if i not in live]
    if dead:
        text = f"{len(dead)} nodes reach no graph output and were left out, first {node_label(nodes[dead[0]])}"
        notes += (Note(code="NODES-UNUSED", where="graph", text=text),)
    notes += tuple(
        Note(
            code="INPUT-CONSTANT", where=value.name, text="initializer that is also a graph input: taken as a constant"
        )
        for value in model.graph.input
        if value.name in graph.constants and model.ir_version >= 4
    )
    return replace(graph, inputs=tuple(p for p in graph.inputs if p.name not in unused)), notes


def settle_shapes(model: onnx.ModelProto, shapes: Mapping[str, Shape]) -> None:
    """Put constants in the place of Shape nodes on graph inputs of known shape, in place.

    Why: an input that is read only to ask for its shape is then unused, and onnxruntime does not want it fed.
    """
    for node in model.graph.node:
        if node.op_type != "Shape" or node.domain not in STANDARD_DOMAINS or node.input[0] not in shapes:
            continue
        given = {a.name: a.i for a in node.attribute}
        dims = np.asarray(shapes[node.input[0]][given.get("start", 0) : given.get("end")], np.int64)
        made = onnx.helper.make_node("Constant", [], list(node.output), name=node.name, value=from_array(dims))
        node.CopyFrom(made)


def unused_inputs(graph: onnx.GraphProto) -> tuple[str, ...]:
    """Graph inputs without a stored value that no node needs that reaches an output; nodes in topological order."""
    read = {name for i in live_nodes(graph) for name in graph.node[i].input} | {value.name for value in graph.output}
    constants = {tensor.name for tensor in graph.initializer}
    return tuple(value.name for value in graph.input if value.name not in read | constants)


def drop_unused(model: onnx.ModelProto) -> tuple[str, ...]:
    """Take unused inputs and nodes that reach no output out of a sorted model, in place; names of the inputs."""
    graph = model.graph
    unused, live = unused_inputs(graph), live_nodes(graph)
    inputs = [value for value in graph.input if value.name not in unused]
    nodes = [onnx.NodeProto.FromString(graph.node[i].SerializeToString()) for i in sorted(live)]
    del graph.input[:]
    graph.input.extend(inputs)
    if len(nodes) < len(graph.node):
        del graph.node[:]
        graph.node.extend(nodes)
    return unused


def live_nodes(graph: onnx.GraphProto) -> frozenset[int]:
    """Positions of the nodes that reach a graph output; nodes in topological order."""
    needed = {value.name for value in graph.output}
    live = set()
    for index in range(len(graph.node) - 1, -1, -1):
        node = graph.node[index]
        if needed.intersection(node.output):
            live.add(index)
            needed.update(name for name in node.input if name)
    return frozenset(live)


def fix_shapes(model: onnx.ModelProto, graph: Graph) -> onnx.ModelProto:
    """A copy of the model with fixed input shapes, without inputs that are constants or unused and without dead nodes.

    Why: onnxruntime takes an initializer that is also an input for a value that may change, and then fuses nothing
    that depends on it; and a quantised tensor that nothing needs is none to compare.
    """
    fixed = onnx.ModelProto()
    fixed.CopyFrom(model)
    kept = {p.name for p in graph.inputs}
    live = live_nodes(fixed.graph)
    if len(live) < len(fixed.graph.node):
        nodes = [onnx.NodeProto.FromString(fixed.graph.node[i].SerializeToString()) for i in sorted(live)]
        del fixed.graph.node[:]
        fixed.graph.node.extend(nodes)
    inputs = [value for value in fixed.graph.input if value.name in kept]
    del fixed.graph.input[:]
    fixed.graph.input.extend(inputs)
    if any(isinstance(d, str) for value in model.graph.input for d in _open(value)):
        del fixed.graph.value_info[:]
    for value in (*fixed.graph.input, *fixed.graph.output):
        shape = graph.shapes.get(value.name)
        if shape is not None:
            _set_shape(value, shape)
    return fixed


def _open(value: onnx.ValueInfoProto) -> list[str]:
    """Names of open dimensions."""
    return [d.dim_param for d in value.type.tensor_type.shape.dim if not d.HasField("dim_value")]


def _set_shape(value: onnx.ValueInfoProto, shape: Shape) -> None:
    """Write fixed dimensions."""
    dims = value.type.tensor_type.shape
    dims.ClearField("dim")
    for size in shape:
        dims.dim.add().dim_value = size
