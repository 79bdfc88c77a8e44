"""GlobalAveragePool and com.microsoft QLinearGlobalAveragePool."""

import math

from manifest.onnx_import.average import Average, lower_average, lower_qlinear_average
from manifest.onnx_import.builder import Builder
from manifest.onnx_import.graph import Node, Shape, refusal
from manifest.onnx_import.linear import stated_output
from manifest.onnx_import.rules import Facts


def shape(node: Node, facts: Facts) -> tuple[Shape, ...]:
    """(N, C, 1, 1)."""
    x = facts.shape(node, 0)
    if len(x) != 4:
        raise refusal(node, "ONNX-SPATIAL-RANK", f"{len(x) - 2}-D {node.type} is not supported", expected="2-D")
    return ((*x[:2], 1, 1),)


def _average(node: Node, b: Builder) -> Average:
    count = math.prod(b.shape(node.inputs[0])[2:])
    return Average(node=node, type="GlobalAveragePool", counts=(count,), attributes={})


def lower(node: Node, b: Builder) -> None:
    """The mean over the image, times a fused constant."""
    lower_average(b, _average(node, b))


def lower_qlinear(node: Node, b: Builder) -> None:
    """QLinearGlobalAveragePool: x, scale, zero point, y scale, zero point."""
    lower_qlinear_average(b, _average(node, b), stated_output(b, node, 3, 4))
