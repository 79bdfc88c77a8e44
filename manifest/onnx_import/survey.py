"""What kind of model it is: float, QDQ, QOperator or both; opset imports that nothing uses."""

from collections import Counter
from collections.abc import Iterable
from typing import Final, Literal

from manifest.errors import Problem
from manifest.model import Note, Op
from manifest.onnx_import.graph import DEQUANTIZE, QUANTIZE, Graph

_QONNX: Final = frozenset({"Quant", "BipolarQuant", "Trunc", "IntQuant"})
_INTEGER_OPS: Final = frozenset({"ConvInteger", "MatMulInteger", "MatMulIntegerToFloat", "DynamicQuantizeLinear"})
_ROUNDING: Final = frozenset({"Conv", "Gemm", "MatMul", "Add", "Mul", "AveragePool", "GlobalAveragePool", "Concat"})


def is_quantized(graph: Graph) -> bool:
    """Whether any node quantizes, dequantizes or computes on codes."""
    return any(
        node.key in (QUANTIZE, DEQUANTIZE)
        or node.type.startswith("QLinear")
        or node.type in ("QGemm", "QAttention", *_INTEGER_OPS, *_QONNX)
        for node in graph.nodes
    )


def float_model(graph: Graph) -> tuple[Problem, ...]:
    """The problem of an entirely float model, listing its op types."""
    if not graph.nodes or is_quantized(graph):
        return ()
    counts = Counter(node.type for node in graph.nodes)
    ops = ", ".join(f"{kind} x{count}" if count > 1 else kind for kind, count in sorted(counts.items()))
    return (
        Problem(
            code="ONNX-FLOAT",
            where="model",
            what="the model is float: it has no QuantizeLinear, DequantizeLinear or QOperator node",
            expected="a quantized model, or --data with real inputs so that phase 1 can quantize it",
            got=ops,
            remedy="give --data inputs.npz",
        ),
    )


def format_of(ops: Iterable[Op]) -> Literal["qdq", "qoperator", "mixed"]:
    """Which meaning the ops that round have; a file without QOperator nodes is QDQ."""
    listed = list(ops)
    stated = any(op.origin == "qoperator" for op in listed)
    grouped = any(
        op.origin == "qdq" and op.requant is not None and op.where == "npu" and op.type in _ROUNDING
        for op in listed
        if op.requant is not None and op.requant.reference != "identity"
    )
    if stated:
        return "mixed" if grouped else "qoperator"
    return "qdq"


def import_notes(graph: Graph) -> tuple[Note, ...]:
    """A note on opset imports that no node uses."""
    used = {node.domain for node in graph.nodes} | {"", "ai.onnx"}
    unused = sorted(domain for domain in graph.opsets if domain not in used)
    if not unused:
        return ()
    return (Note(code="OPSET-UNUSED", where="model", text=f"unused opset imports ignored: {', '.join(unused)}"),)
