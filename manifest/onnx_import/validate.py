"""All problems of a parsed model in one list.

`onnx.checker` stops at the first fault, refuses what onnxruntime loads (unsorted nodes, initializers of old files that
are no inputs) and knows nothing of scales; so it runs last, over a model that is otherwise right.
"""

from collections.abc import Iterator
from typing import Final

import onnx
import onnx.defs

from manifest.errors import Problem
from manifest.onnx_import.order import sort_nodes
from manifest.onnx_import.validate_checker import checker_problems
from manifest.onnx_import.validate_facts import PER_AXIS_OPSET, is_dequantize, is_quantize
from manifest.onnx_import.validate_graph import graph_problems
from manifest.onnx_import.validate_names import encoding_problems, name_problems
from manifest.onnx_import.validate_nodes import arity_problems
from manifest.onnx_import.validate_quant import quantization_problems
from manifest.onnx_import.validate_tensors import tensor_problems, tensors
from manifest.onnx_import.validate_text import capped, node_label, quoted, type_name

MIN_OPSET: Final = 7
QUANTIZED_OPSET: Final = 10
_CONVERT: Final = "convert the source to opset 13 or later first (onnx.version_converter), then quantize again"

_T: Final = onnx.TensorProto
_FLOAT16: Final = (_T.FLOAT16, _T.BFLOAT16)
_NEEDS_OPSET_10: Final = frozenset(
    ["QuantizeLinear", "DequantizeLinear", "QLinearConv", "QLinearMatMul", "ConvInteger", "MatMulInteger"]
)
_QONNX_OPS: Final = frozenset(["Quant", "BipolarQuant", "Trunc", "IntQuant", "FloatQuant"])
_GROUPED: Final = ("ONNX-OPSET-INT16", "ONNX-QUANTIZED-TYPE", "ONNX-BLOCK-SIZE")

BROKEN: Final = frozenset(
    [
        "ONNX-ARITY",
        "ONNX-CHECKER",
        "ONNX-CYCLE",
        "ONNX-DUPLICATE-TENSOR",
        "ONNX-EMPTY",
        "ONNX-INPUT-MISSING",
        "ONNX-MORE",
        "ONNX-NAME-ENCODING",
        "ONNX-OPSET-AMBIGUOUS",
        "ONNX-OPSET-MISSING",
        "ONNX-OPSET-QDQ",
        "ONNX-OPSET-RANGE",
        "ONNX-OUTPUT-MISSING",
        "ONNX-SUBGRAPH",
        "ONNX-TENSOR-DATA",
        "ONNX-TENSOR-DIMS",
        "ONNX-TENSOR-SIZE",
        "ONNX-TENSOR-TYPE",
        "ONNX-VALUE-TYPE",
    ]
)
"""Codes of problems after which a graph is no ground for further analysis: what it would find would be their echo."""


def validate(model: onnx.ModelProto) -> list[Problem]:
    """Every problem of `model`, none raised; empty for a model that the lowering may look at.

    Args:
        model: parsed, external data embedded; nodes in any order. It is not changed.
    """
    problems = encoding_problems(model)
    if problems:
        return capped(problems)
    versions = list(_version_problems(model))
    problems = [
        *versions,
        *_domain_problems(model),
        *name_problems(model),
        *graph_problems(model),
        *([] if versions else arity_problems(model)),  # in another opset every op may look wrong
        *tensor_problems(model.graph),
        *_half_precision(model.graph),
    ]
    problems += _grouped(quantization_problems(_in_order(model)))
    if not problems and all(tensor.data_location != _T.EXTERNAL for _, tensor in tensors(model.graph)):
        problems = checker_problems(_in_order(model))  # which would look for the files of external data
    return capped(list(dict.fromkeys(problems)))


def _in_order(model: onnx.ModelProto) -> onnx.ModelProto:
    """`model` if its nodes are in order, else a sorted copy."""
    made = {tensor.name for tensor in model.graph.initializer} | {value.name for value in model.graph.input}
    outputs = {name for node in model.graph.node for name in node.output}
    for node in model.graph.node:
        if any(name in outputs and name not in made for name in node.input):
            ordered = onnx.ModelProto()
            ordered.CopyFrom(model)
            sort_nodes(ordered.graph)
            return ordered
        made.update(node.output)
    return model


def _version_problems(model: onnx.ModelProto) -> Iterator[Problem]:
    """IR version and opset of the standard domain."""
    if not 3 <= model.ir_version <= onnx.IR_VERSION:
        yield Problem(
            code="ONNX-IR-VERSION",
            where="model",
            what="IR version is not known",
            expected=f"3 to {onnx.IR_VERSION}",
            got=str(model.ir_version),
            remedy="export the model again with a current exporter",
        )
    versions: dict[str, set[int]] = {}
    for entry in model.opset_import:
        versions.setdefault(entry.domain, set()).add(entry.version)
    for domain, found in versions.items():
        if len(found) > 1:
            got = ", ".join(str(version) for version in sorted(found))
            where = f"opset import of domain {quoted(domain)}"
            yield Problem(code="ONNX-OPSET-AMBIGUOUS", where=where, what="has two versions", expected="one", got=got)
    if "" not in versions:
        expected = "an opset import of the standard domain"
        yield Problem(code="ONNX-OPSET-MISSING", where="model", what="does not say its opset", expected=expected)
        return
    opset = max(versions[""])
    newest = onnx.defs.onnx_opset_version()
    if not MIN_OPSET <= opset <= newest:
        old = "convert the source to opset 13 or later first"
        yield Problem(
            code="ONNX-OPSET-RANGE",
            where="model",
            what=f"opset {opset} is not supported",
            expected=f"{MIN_OPSET} to {newest}",
            got=f"opset {opset}",
            remedy=old if opset < MIN_OPSET else "export with an older opset",
        )
    yield from _quantized_opset(model, opset)


def _quantized_opset(model: onnx.ModelProto, opset: int) -> Iterator[Problem]:
    """Quantized ops of the standard domain, and per-axis ones, against the opset that introduced them."""
    standard = [node for node in model.graph.node if node.domain == "" and node.op_type in _NEEDS_OPSET_10]
    if standard and opset < QUANTIZED_OPSET:
        yield Problem(
            code="ONNX-OPSET-QDQ",
            where=_nodes_text(standard),
            what=f"Q/DQ need opset {QUANTIZED_OPSET} (per-axis {PER_AXIS_OPSET})",
            expected=f"opset {QUANTIZED_OPSET} or later",
            got=f"opset {opset}",
            remedy=_CONVERT,
        )
        return
    sizes = {tensor.name: tuple(tensor.dims) for tensor in model.graph.initializer}
    per_axis = [node for node in standard if _is_per_axis(node, sizes)]
    if per_axis and opset < PER_AXIS_OPSET:
        yield Problem(
            code="ONNX-OPSET-PER-AXIS",
            where=_nodes_text(per_axis),
            what=f"per-axis Q/DQ need opset {PER_AXIS_OPSET}",
            expected=f"opset {PER_AXIS_OPSET} or later",
            got=f"opset {opset}",
            remedy=_CONVERT,
        )


def _is_per_axis(node: onnx.NodeProto, sizes: dict[str, tuple[int, ...]]) -> bool:
    """A Q or DQ with an axis attribute or with several scales."""
    if not (is_quantize(node) or is_dequantize(node)):
        return False
    shape = sizes.get(node.input[1], ()) if len(node.input) > 1 else ()
    return any(attribute.name == "axis" for attribute in node.attribute) or shape not in ((), (1,))


def _nodes_text(nodes: list[onnx.NodeProto]) -> str:
    """Up to three nodes by name and how many more there are."""
    shown = ", ".join(node_label(node) for node in nodes[:3])
    return f"{shown} and {len(nodes) - 3} more" if len(nodes) > 3 else shown


def _domain_problems(model: onnx.ModelProto) -> Iterator[Problem]:
    """Domains that nodes use without import, and QONNX's quantizers; unused imports mean nothing."""
    imported = {entry.domain for entry in model.opset_import} | {""}
    unknown: dict[str, list[onnx.NodeProto]] = {}
    quant: dict[tuple[str, str], list[onnx.NodeProto]] = {}
    for node in model.graph.node:
        if node.domain not in imported:
            unknown.setdefault(node.domain, []).append(node)
        if node.domain and node.domain != "com.microsoft" and node.op_type in _QONNX_OPS:
            quant.setdefault((node.domain, node.op_type), []).append(node)
    for domain, nodes in unknown.items():
        yield Problem(
            code="ONNX-OPSET-DOMAIN",
            where=_nodes_text(nodes),
            what=f"domain {quoted(domain)} is used without opset import",
            expected=f"an opset import of {quoted(domain)}",
            remedy="export the model again; files without it mean nothing",
        )
    for (domain, op_type), nodes in quant.items():
        yield Problem(
            code="ONNX-QONNX",
            where=_nodes_text(nodes),
            what=f"{op_type} of domain {quoted(domain)} (QONNX) is not supported",
            expected="QuantizeLinear, Clip and DequantizeLinear (QCDQ)",
            got=f"{len(nodes)} {op_type} nodes",
            remedy="export as QCDQ: brevitas.export.export_onnx_qcdq, or qonnx's QuantToQCDQ on this file",
        )


def _half_precision(graph: onnx.GraphProto) -> Iterator[Problem]:
    """float16 and bfloat16 anywhere: values, constants, casts; one problem per type that names the first places."""
    places: dict[int, list[str]] = {}
    for kind in ("input", "output", "value_info"):
        for value in getattr(graph, kind):
            if value.type.tensor_type.elem_type in _FLOAT16:
                places.setdefault(value.type.tensor_type.elem_type, []).append(f"{kind} {quoted(value.name)}")
    for label, tensor in tensors(graph):
        if tensor.data_type in _FLOAT16:
            places.setdefault(tensor.data_type, []).append(label)
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.name in ("to", "output_dtype", "dtype", "precision") and attribute.i in _FLOAT16:
                places.setdefault(attribute.i, []).append(f"{node_label(node)} attribute {quoted(attribute.name)}")
    for kind_number, where in places.items():
        more = f" and {len(where) - 3} more" if len(where) > 3 else ""
        yield Problem(
            code="ONNX-FLOAT16",
            where=", ".join(where[:3]) + more,
            what=f"{type_name(kind_number)} is not supported",
            expected="float32 or quantized integers",
            got=type_name(kind_number),
            remedy="export the model in float32",
        )


def _grouped(problems: list[Problem]) -> list[Problem]:
    """Problems of a kind that tends to hit every node are joined: three nodes named, the rest counted."""
    groups: dict[tuple[str, str, str], list[Problem]] = {}
    for problem in problems:
        own = problem.where if problem.code not in _GROUPED else ""
        groups.setdefault((problem.code, f"{own}{problem.what}", problem.got), []).append(problem)
    return [_joined(group) for group in groups.values()]


def _joined(group: list[Problem]) -> Problem:
    first = group[0]
    if len(group) == 1:
        return first
    more = f" and {len(group) - 3} more" if len(group) > 3 else ""
    return Problem(
        code=first.code,
        where=", ".join(problem.where for problem in group[:3]) + more,
        what=first.what,
        expected=first.expected,
        got=first.got,
        remedy=first.remedy,
    )
