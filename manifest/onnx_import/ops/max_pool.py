"""MaxPool, 2-D, on codes, dequantised values and exact tensors."""

from manifest.model import AttributeValue
from manifest.onnx_import.builder import Builder, Units
from manifest.onnx_import.graph import Node, Shape, refusal
from manifest.onnx_import.passing import Passing, lower_passing
from manifest.onnx_import.rules import Facts
from manifest.onnx_import.shapes import Window, window


def _window(node: Node, x: Shape) -> Window:
    return window(node, x, node.integers("kernel_shape"), ceil_mode=bool(node.integer("ceil_mode", 0)))


def shape(node: Node, facts: Facts) -> tuple[Shape, ...]:
    """NCHW output, for Indices too."""
    x = facts.shape(node, 0)
    output = (*x[:2], *_window(node, x).output)
    return (output,) * len(node.outputs)


def _channels_kept(units: Units) -> Units | None:
    """A channel axis that is pooled over is lost."""
    return units if units.axis is None or units.axis < 2 else None


def lower(node: Node, b: Builder) -> None:
    """MaxPool; padding never wins. The Indices output is refused."""
    indices = node.outputs[1] if len(node.outputs) > 1 else ""
    if indices and (indices in b.graph.consumers() or b.is_output(indices)):
        raise refusal(node, "ONNX-MAXPOOL-INDICES", f"the Indices output {indices!r} is not supported")
    found = _window(node, b.shape(node.inputs[0]))
    attributes: dict[str, AttributeValue] = {
        "kernel_shape": found.kernel,
        "strides": found.strides,
        "pads": found.pads,
        "dilations": found.dilations,
        "ceil_mode": node.integer("ceil_mode", 0),
    }
    lower_passing(b, Passing(node=node, type="MaxPool", attributes=attributes, remap=_channels_kept))
