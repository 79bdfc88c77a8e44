"""How nodes, tensors and element types are called in messages.

Why a module: names come from files that may be hostile, so they are shortened here and escaped by `Problem.line`.
"""

from typing import Final

import onnx

from manifest.errors import Problem

SHOWN_CHARACTERS: Final = 120
"""Names longer than this are cut in messages (never in the manifest)."""

MAX_PROBLEMS: Final = 200
"""Problems kept of one model; the rest is counted in a last line."""

_SPELLED: Final = {"float": "float32", "double": "float64"}


def quoted(name: str) -> str:
    """`name` in single quotes, cut to `SHOWN_CHARACTERS` characters."""
    text = name if len(name) <= SHOWN_CHARACTERS else f"{name[: SHOWN_CHARACTERS - 1]}…"
    return f"'{text}'"


def node_label(node: onnx.NodeProto) -> str:
    """`node 'name' (OpType)`; a node without a name is known by its first output."""
    if node.name:
        return f"node {quoted(node.name)} ({node.op_type})"
    output = next((name for name in node.output if name), "")
    return f"unnamed node ({node.op_type} -> {quoted(output)})"


def type_name(elem_type: int) -> str:
    """numpy-like name of an ONNX element type (`float32`, `int4`, `bfloat16`); `type 77` where it is unknown."""
    try:
        name = str(onnx.TensorProto.DataType.Name(elem_type)).lower()
    except ValueError:
        return f"type {elem_type}"
    return _SPELLED.get(name, name)


def capped(problems: list[Problem]) -> list[Problem]:
    """At most `MAX_PROBLEMS` problems and, where some were left out, one more that counts them."""
    if len(problems) <= MAX_PROBLEMS:
        return problems
    left = len(problems) - MAX_PROBLEMS
    more = Problem(code="ONNX-MORE", where="model", what=f"{left} more problems of this model are not shown")
    return [*problems[:MAX_PROBLEMS], more]
