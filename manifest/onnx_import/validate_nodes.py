"""Number of inputs and outputs of each node against its op's schema.

Why beside onnx.checker, which knows this too: the checker stops at the first fault and runs only on models that are
otherwise right; everything behind `validate` takes it for granted that a node has the inputs that its op needs.
"""

from collections.abc import Iterator
from typing import Final

import onnx
import onnx.defs

from manifest.errors import Problem
from manifest.onnx_import.validate_facts import is_dequantize, is_quantize
from manifest.onnx_import.validate_text import node_label

_SINGLE: Final = onnx.defs.OpSchema.FormalParameterOption.Single
_QDQ_OPSET: Final = 13

_MICROSOFT_INPUTS: Final[dict[str, tuple[int, int]]] = {
    "FusedConv": (2, 4),
    "FusedGemm": (2, 3),
    "FusedMatMul": (2, 2),
    "MatMulIntegerToFloat": (4, 7),
    "NhwcMaxPool": (1, 1),
    "QGemm": (6, 9),
    "QLinearAdd": (7, 8),
    "QLinearAveragePool": (4, 5),
    "QLinearConcat": (5, 2**31),
    "QLinearConv": (8, 9),
    "QLinearGlobalAveragePool": (4, 5),
    "QLinearLeakyRelu": (4, 5),
    "QLinearMul": (7, 8),
    "QLinearReduceMean": (4, 5),
    "QLinearSigmoid": (4, 5),
    "QLinearSoftmax": (5, 5),
}
"""Least and most inputs of onnxruntime's own ops, whose schemas onnx does not have; each has one output."""


def arity_problems(model: onnx.ModelProto) -> Iterator[Problem]:
    """Nodes without output, and nodes of known ops with too few, too many or left out inputs or outputs."""
    versions = {entry.domain: entry.version for entry in model.opset_import}
    for node in model.graph.node:
        schema = _schema(node, versions)
        if node.domain == "com.microsoft" and node.op_type in _MICROSOFT_INPUTS:
            yield from _counted(node, "input", len(node.input), *_MICROSOFT_INPUTS[node.op_type])
            yield from _counted(node, "output", len(node.output), 1, 1)
        elif schema is None:
            if not any(node.output):
                yield _problem(node, "output", "at least 1", 0)
        else:
            yield from _against(node, schema)


def _against(node: onnx.NodeProto, schema: onnx.defs.OpSchema) -> Iterator[Problem]:
    """Counts, and inputs and outputs that the schema wants but the node leaves out by an empty name."""
    yield from _counted(node, "input", len(node.input), schema.min_input, schema.max_input)
    yield from _counted(node, "output", len(node.output), schema.min_output, schema.max_output)
    for kind, names, formal in (("input", node.input, schema.inputs), ("output", node.output, schema.outputs)):
        for name, parameter in zip(names, formal, strict=False):
            if not name and parameter.option == _SINGLE:
                yield _problem(node, kind, f"{kind} {parameter.name}", "an empty name")


def _schema(node: onnx.NodeProto, versions: dict[str, int]) -> onnx.defs.OpSchema | None:
    """The schema of a node's op, None where onnx has none (other domains, unknown ops)."""
    if (is_quantize(node) or is_dequantize(node)) and (node.domain or versions.get("", 0) < _QDQ_OPSET):
        return onnx.defs.get_schema(node.op_type, _QDQ_OPSET, "")
    version = versions.get(node.domain, 0)
    try:
        return onnx.defs.get_schema(node.op_type, version, node.domain) if version > 0 else None
    except onnx.defs.SchemaError:
        return None


def _counted(node: onnx.NodeProto, kind: str, have: int, least: int, most: int) -> Iterator[Problem]:
    if not least <= have <= most:
        yield _problem(node, kind, f"{least}" if least == most else f"{least} to {most}", have)


def _problem(node: onnx.NodeProto, kind: str, expected: str, got: int | str) -> Problem:
    return Problem(
        code="ONNX-ARITY",
        where=node_label(node),
        what=f"{node.op_type} has the wrong {kind}s",
        expected=expected,
        got=str(got),
        remedy="export the model again",
    )
