"""Transpose."""

from dataclasses import replace

from manifest.onnx_import.builder import Builder, Units
from manifest.onnx_import.graph import Node, Shape
from manifest.onnx_import.passing import Passing, lower_passing
from manifest.onnx_import.rules import Facts
from manifest.onnx_import.shapes import permutation


def shape(node: Node, facts: Facts) -> tuple[Shape, ...]:
    """The permuted shape."""
    x = facts.shape(node, 0)
    return (tuple(x[axis] for axis in permutation(node, len(x))),)


def lower(node: Node, b: Builder) -> None:
    """Transpose on codes, dequantised values or exact tensors."""
    perm = permutation(node, len(b.shape(node.inputs[0])))

    def remap(units: Units) -> Units:
        axis = None if units.axis is None else perm.index(units.axis)
        return replace(units, axis=axis)

    lower_passing(b, Passing(node=node, type="Transpose", attributes={"perm": perm}, remap=remap))
