"""Conv, QLinearConv and onnxruntime's FusedConv: 2-D, with groups, depthwise, dilation and uneven pads."""

from manifest.model import AttributeValue
from manifest.onnx_import.builder import Builder
from manifest.onnx_import.fuse import Bounds
from manifest.onnx_import.graph import Node, Shape, refusal
from manifest.onnx_import.linear import Linear, lower_qdq, lower_qoperator, qdq_weight, stated_output, stated_weight
from manifest.onnx_import.operands import codes, quantised
from manifest.onnx_import.ops.clip import activation_bounds
from manifest.onnx_import.rules import Facts
from manifest.onnx_import.shapes import Window, window


def _window(node: Node, x: Shape, w: Shape) -> Window:
    """The sliding window; checks channels and groups."""
    found = window(node, x, node.integers("kernel_shape") or w[2:])
    group = node.integer("group", 1)
    fits = len(w) == 4 and group >= 1 and w[0] % group == 0 and x[1] == w[1] * group and found.kernel == w[2:]
    if not fits:
        raise refusal(
            node,
            "ONNX-SHAPE",
            "weight does not fit the input",
            expected=f"{x[1]} input channels in {group} groups, kernel {list(found.kernel)}",
            got=f"weight shape {list(w)}",
        )
    return found


def _shape(node: Node, x: Shape, w: Shape) -> tuple[Shape, ...]:
    found = _window(node, x, w)
    return ((x[0], w[0], *found.output),)


def shape(node: Node, facts: Facts) -> tuple[Shape, ...]:
    """NCHW output of a Conv or FusedConv."""
    return _shape(node, facts.shape(node, 0), facts.shape(node, 1))


def shape_qlinear(node: Node, facts: Facts) -> tuple[Shape, ...]:
    """NCHW output of a QLinearConv."""
    if node.integer("channels_last", 0):
        raise refusal(node, "ONNX-LAYOUT", "channels_last is not supported", expected="NCHW")
    return _shape(node, facts.shape(node, 0), facts.shape(node, 3))


def _attributes(node: Node, found: Window) -> dict[str, AttributeValue]:
    return {
        "kernel_shape": found.kernel,
        "strides": found.strides,
        "pads": found.pads,
        "dilations": found.dilations,
        "group": node.integer("group", 1),
    }


def _lower(node: Node, b: Builder, own: Bounds | None) -> None:
    x = quantised(b, node, 0)
    weight = qdq_weight(b, node, 1, 0)
    found = _window(node, x.tensor.shape, weight.constant.array.shape)
    item = Linear(
        node=node,
        type="Conv",
        x=x,
        weight=weight,
        bias=node.input(2),
        out_axis=1,
        attributes=_attributes(node, found),
        own=own,
    )
    lower_qdq(b, item)


def lower(node: Node, b: Builder) -> None:
    """A Conv between DequantizeLinear and QuantizeLinear (or an exact result)."""
    _lower(node, b, None)


def lower_fused(node: Node, b: Builder) -> None:
    """A FusedConv of onnxruntime: Conv with an activation; the residual input is refused."""
    if node.input(3):
        raise refusal(node, "ONNX-FUSED", "FusedConv with a residual input is not supported", got=repr(node.input(3)))
    _lower(node, b, activation_bounds(node))


def lower_qlinear(node: Node, b: Builder) -> None:
    """QLinearConv: x, its scale and zero point, w, its scale and zero point, y scale and zero point, bias."""
    x = codes(b, node, 0, 1, 2)
    weight = stated_weight(b, node, 3, 0)
    found = _window(node, x.tensor.shape, weight.constant.array.shape)
    item = Linear(
        node=node,
        type="Conv",
        x=x,
        weight=weight,
        bias=node.input(8),
        out_axis=1,
        attributes=_attributes(node, found),
    )
    lower_qoperator(b, item, stated_output(b, node, 6, 7))
