"""Names in the file: data, never paths. Odd ones are kept, impossible ones are refused."""

from collections.abc import Iterator
from typing import Final

import onnx

from manifest.errors import Problem
from manifest.onnx_import.validate_text import quoted

MAX_NAME_BYTES: Final = 4096


def names(model: onnx.ModelProto) -> Iterator[tuple[str, str]]:
    """(what it names, name) of everything in the model that the tool may look at or show."""
    yield "producer name", model.producer_name
    for entry in model.opset_import:
        yield "opset domain", entry.domain
    for function in model.functions:
        yield "function", function.name
        yield "function domain", function.domain
    for node in model.graph.node:
        yield from _node_names(node)
    for tensor in model.graph.initializer:
        yield "initializer", tensor.name
    for sparse in model.graph.sparse_initializer:
        yield "sparse initializer", sparse.values.name
    for kind in ("input", "output", "value_info"):
        for value in getattr(model.graph, kind):
            yield f"graph {kind}", value.name
            if value.type.HasField("tensor_type"):
                for dim in value.type.tensor_type.shape.dim:
                    yield "dim", dim.dim_param


def _node_names(node: onnx.NodeProto) -> Iterator[tuple[str, str]]:
    yield "node", node.name
    yield "op type", node.op_type
    yield "domain", node.domain
    for name in node.input:
        yield "node input", name
    for name in node.output:
        yield "node output", name
    for attribute in node.attribute:
        yield "attribute", attribute.name


def encoding_problems(model: onnx.ModelProto) -> list[Problem]:
    """Names that are not valid UTF-8; protobuf hands these out as bytes, so nothing else may touch them."""
    found: dict[bytes, Problem] = {}
    for kind, name in names(model):
        if isinstance(name, bytes) and name not in found:
            shown = quoted(name.decode("utf-8", errors="backslashreplace"))
            found[name] = Problem(
                code="ONNX-NAME-ENCODING", where=f"{kind} {shown}", what="name is not valid UTF-8", remedy="rename it"
            )
    return list(found.values())


def name_problems(model: onnx.ModelProto) -> list[Problem]:
    """Names that no file and no message could carry: a NUL inside, or more than `MAX_NAME_BYTES` bytes."""
    found: dict[str, Problem] = {}
    for kind, name in names(model):
        if name in found:
            continue
        if "\0" in name:
            found[name] = Problem(
                code="ONNX-NAME-NUL", where=f"{kind} {quoted(name)}", what="name has a NUL inside", remedy="rename it"
            )
        elif len(name) > MAX_NAME_BYTES or len(name.encode()) > MAX_NAME_BYTES:
            found[name] = Problem(
                code="ONNX-NAME-LENGTH",
                where=f"{kind} {quoted(name)}",
                what="name is too long",
                expected=f"at most {MAX_NAME_BYTES} bytes",
                got=f"{len(name.encode())} bytes",
                remedy="rename it",
            )
    return list(found.values())
