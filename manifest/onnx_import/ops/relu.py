"""Relu on dequantised values and exact tensors; on codes it is a Clip at 0."""

from manifest.onnx_import.builder import Builder
from manifest.onnx_import.fuse import Bounds
from manifest.onnx_import.graph import Node, Shape
from manifest.onnx_import.passing import Passing, keep_units, lower_passing
from manifest.onnx_import.rules import Facts


def shape(node: Node, facts: Facts) -> tuple[Shape, ...]:
    """The shape of the input."""
    return (facts.shape(node, 0),)


def lower(node: Node, b: Builder) -> None:
    """Relu: the real value 0 is the zero point, so max(code, zero point)."""
    lower_passing(b, Passing(node=node, type="Relu", attributes={}, remap=keep_units, own=Bounds(low=0.0)))
