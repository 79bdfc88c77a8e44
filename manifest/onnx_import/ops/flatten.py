"""Flatten."""

import math

from manifest.onnx_import.builder import Builder
from manifest.onnx_import.graph import Node, Shape
from manifest.onnx_import.ops.reshape import moved_units
from manifest.onnx_import.passing import Passing, lower_passing
from manifest.onnx_import.rules import Facts
from manifest.onnx_import.shapes import normalize_axis


def _axis(node: Node, x: Shape) -> int:
    return normalize_axis(node, node.integer("axis", 1), len(x), last=len(x))


def shape(node: Node, facts: Facts) -> tuple[Shape, ...]:
    """A matrix: axes in front of `axis`, the others."""
    x = facts.shape(node, 0)
    axis = _axis(node, x)
    return ((math.prod(x[:axis]), math.prod(x[axis:])),)


def lower(node: Node, b: Builder) -> None:
    """Flatten on codes, dequantised values or exact tensors."""
    source, target = b.shape(node.inputs[0]), b.shape(node.outputs[0])
    lower_passing(
        b,
        Passing(
            node=node,
            type="Flatten",
            attributes={"axis": _axis(node, source)},
            remap=lambda units: moved_units(units, source, target),
        ),
    )
