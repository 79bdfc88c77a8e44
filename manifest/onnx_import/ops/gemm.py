"""Gemm, com.microsoft QGemm and onnxruntime's FusedGemm."""

import math
from fractions import Fraction

from manifest.model import AttributeValue
from manifest.onnx_import.builder import Builder
from manifest.onnx_import.fuse import Bounds
from manifest.onnx_import.graph import Node, Shape, refusal
from manifest.onnx_import.linear import Linear, lower_qdq, lower_qoperator, qdq_weight, stated_output, stated_weight
from manifest.onnx_import.operands import codes, quantised
from manifest.onnx_import.ops.clip import activation_bounds
from manifest.onnx_import.rules import Facts


def _shape(node: Node, a: Shape, w: Shape) -> tuple[Shape, ...]:
    if len(a) != 2 or len(w) != 2:
        raise refusal(node, "ONNX-SHAPE", "Gemm takes matrices", got=f"shapes {list(a)} and {list(w)}")
    rows, inner = reversed(a) if node.integer("transA", 0) else a
    other, columns = reversed(w) if node.integer("transB", 0) else w
    if inner != other:
        raise refusal(node, "ONNX-SHAPE", "Gemm shapes do not fit", got=f"shapes {list(a)} and {list(w)}")
    return ((rows, columns),)


def shape(node: Node, facts: Facts) -> tuple[Shape, ...]:
    """(M, N) of a Gemm or FusedGemm."""
    return _shape(node, facts.shape(node, 0), facts.shape(node, 1))


def shape_qgemm(node: Node, facts: Facts) -> tuple[Shape, ...]:
    """(M, N) of a QGemm."""
    return _shape(node, facts.shape(node, 0), facts.shape(node, 3))


def _attributes(node: Node) -> dict[str, AttributeValue]:
    return {
        "transA": node.integer("transA", 0),
        "transB": node.integer("transB", 0),
        "alpha": node.real("alpha", 1.0),
        "beta": node.real("beta", 1.0),
    }


def _factor(node: Node, name: str) -> Fraction:
    """Alpha or beta as an exact rational."""
    value = node.real(name, 1.0)
    if not math.isfinite(value):
        raise refusal(node, "ONNX-GEMM-FACTORS", f"{name} of Gemm", expected="a finite number", got=str(value))
    return Fraction(value)


def _lower(node: Node, b: Builder, own: Bounds | None) -> None:
    attributes = _attributes(node)
    alpha, beta = _factor(node, "alpha"), _factor(node, "beta")
    if alpha <= 0:
        raise refusal(
            node,
            "ONNX-GEMM-FACTORS",
            "alpha of Gemm",
            expected="> 0",
            got=str(float(alpha)),
            remedy="multiply it into the weight before quantizing",
        )
    item = Linear(
        node=node,
        type="Gemm",
        x=quantised(b, node, 0),
        weight=qdq_weight(b, node, 1, 0 if attributes["transB"] else 1),
        bias=node.input(2) if beta else "",
        out_axis=1,
        attributes=attributes,
        alpha=alpha,
        beta=beta,
        own=own,
    )
    lower_qdq(b, item)


def lower(node: Node, b: Builder) -> None:
    """A Gemm between DequantizeLinear and QuantizeLinear (or an exact result)."""
    _lower(node, b, None)


def lower_fused(node: Node, b: Builder) -> None:
    """A FusedGemm of onnxruntime: Gemm with an activation."""
    _lower(node, b, activation_bounds(node))


def lower_qgemm(node: Node, b: Builder) -> None:
    """QGemm: a, its scale and zero point, b, its scale and zero point, bias, y scale and zero point (or float)."""
    attributes = _attributes(node)
    alpha = _factor(node, "alpha")
    if alpha <= 0:
        raise refusal(node, "ONNX-GEMM-FACTORS", "alpha of QGemm", expected="> 0", got=str(float(alpha)))
    item = Linear(
        node=node,
        type="Gemm",
        x=codes(b, node, 0, 1, 2),
        weight=stated_weight(b, node, 3, 0 if attributes["transB"] else 1),
        bias=node.input(6),
        out_axis=1,
        attributes=attributes,
        alpha=alpha,
    )
    lower_qoperator(b, item, stated_output(b, node, 7, 8) if node.input(7) else None)
