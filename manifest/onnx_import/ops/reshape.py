"""Reshape, Squeeze and Unsqueeze: one op Reshape with the resolved shape."""

import math
from dataclasses import replace

from manifest.onnx_import.builder import Builder, Units
from manifest.onnx_import.graph import Node, Shape
from manifest.onnx_import.passing import Passing, lower_passing
from manifest.onnx_import.rules import Facts
from manifest.onnx_import.shapes import reshape, squeeze, unsqueeze


def shape(node: Node, facts: Facts) -> tuple[Shape, ...]:
    """The resolved target."""
    target = facts.integers(node, 1, "shape") or ()
    return (reshape(node, facts.shape(node, 0), target, allow_zero=bool(node.integer("allowzero", 0))),)


def shape_squeeze(node: Node, facts: Facts) -> tuple[Shape, ...]:
    """Without axes of size 1."""
    return (squeeze(node, facts.shape(node, 0), facts.integers(node, 1, "axes")),)


def shape_unsqueeze(node: Node, facts: Facts) -> tuple[Shape, ...]:
    """With new axes of size 1."""
    return (unsqueeze(node, facts.shape(node, 0), facts.integers(node, 1, "axes") or ()),)


def moved_units(units: Units, source: Shape, target: Shape) -> Units | None:
    """Units behind a reshape: the channel axis is followed where a single axis still is the channel."""
    if units.axis is None:
        return units
    before = math.prod(source[: units.axis])
    for axis, size in enumerate(target):
        if size == source[units.axis] and math.prod(target[:axis]) == before:
            return replace(units, axis=axis)
    return None


def lower(node: Node, b: Builder) -> None:
    """Reshape on codes, dequantised values or exact tensors."""
    source, target = b.shape(node.inputs[0]), b.shape(node.outputs[0])
    lower_passing(
        b,
        Passing(
            node=node,
            type="Reshape",
            attributes={"shape": target},
            remap=lambda units: moved_units(units, source, target),
        ),
    )
