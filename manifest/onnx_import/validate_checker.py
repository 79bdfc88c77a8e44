"""The first complaint of onnx.checker, with the node or tensor that it is about: its own words often leave that out."""

import re
from collections.abc import Iterator

import onnx

from manifest.errors import Problem
from manifest.onnx_import.validate_text import node_label, quoted


def checker_problems(ordered: onnx.ModelProto) -> list[Problem]:
    """onnx.checker's first complaint on one line, with the rule of IR 4 on initializers.

    Args:
        ordered: a model whose nodes are sorted.
    """
    if ordered.ir_version < 4:
        copy = onnx.ModelProto()
        copy.CopyFrom(ordered)
        copy.ir_version = 4
        ordered = copy
    try:
        onnx.checker.check_model(ordered)
    except (onnx.checker.ValidationError, ValueError, RuntimeError) as error:
        text = " ".join(line.strip() for line in str(error).splitlines() if line.strip())
        what = (text or type(error).__name__)[:500]
        remedy = "export the model again; `onnx.checker.check_model` has to accept it"
        return [Problem(code="ONNX-CHECKER", where=_where(ordered.graph, str(error)), what=what, remedy=remedy)]
    return []


def _where(graph: onnx.GraphProto, text: str) -> str:
    """The place that a complaint is about."""
    if "Bad node spec" in text:
        return next((node_label(node) for node in graph.node if _is_named(node, text)), f"graph {quoted(graph.name)}")
    if "'shape' of 'type'" in text or "'type' of 'value_info'" in text or "elem_type" in text:
        return next(_untyped(graph), f"graph {quoted(graph.name)}")
    found = [(name, label) for label, name in _names(graph) if name and re.search(_whole(name), text)]
    return max(found, key=lambda pair: len(pair[0]))[1] if found else f"graph {quoted(graph.name)}"


def _whole(name: str) -> str:
    """A pattern of a name that is not part of a longer word."""
    return rf"(?<![\w.]){re.escape(name)}(?!\w)"


def _is_named(node: onnx.NodeProto, text: str) -> bool:
    """Whether a node is the one that the checker's context names."""
    context = text[text.rindex("Bad node spec") :]
    return f"Name: {node.name} OpType: {node.op_type}".strip() in context and (bool(node.name) or "Name:  " in context)


def _untyped(graph: onnx.GraphProto) -> Iterator[str]:
    """Inputs and outputs that lack a type, an element type or a shape."""
    for kind, values in (("input", graph.input), ("output", graph.output)):
        for value in values:
            tensor = value.type.tensor_type
            if not value.HasField("type") or not tensor.elem_type or not tensor.HasField("shape"):
                yield f"graph {kind} {quoted(value.name)}"


def _names(graph: onnx.GraphProto) -> Iterator[tuple[str, str]]:
    """What a complaint may quote: nodes and tensors, as (label, name)."""
    for node in graph.node:
        yield node_label(node), node.name
    for kind in ("input", "output", "initializer"):
        for value in getattr(graph, kind):
            yield f"graph {kind} {quoted(value.name)}", value.name
