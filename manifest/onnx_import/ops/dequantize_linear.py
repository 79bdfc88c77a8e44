"""DequantizeLinear: an alias of the codes, a Reinterpret where its quantization differs from the producer's."""

from manifest.onnx_import import quant as quantities
from manifest.onnx_import.builder import Builder
from manifest.onnx_import.graph import Node, Shape, refusal
from manifest.onnx_import.operands import check_same_type, one_scale, reinterpreted
from manifest.onnx_import.rules import Facts


def shape(node: Node, facts: Facts) -> tuple[Shape, ...]:
    """The shape of the input."""
    return (facts.shape(node, 0),)


def lower(node: Node, b: Builder) -> None:
    """(code - zero point) * scale, without an op of its own."""
    value = b.value(node, 0)
    if value.kind != "codes":
        raise refusal(node, "ONNX-DEQUANTIZE-INPUT", f"input {node.input(0)!r} is float", expected="an integer tensor")
    tensor = b.tensors[value.tensor]
    rank = len(tensor.shape)
    quant, dtype = quantities.read(b.graph, node, 1, 2, tensor.dtype, axis=node.integer("axis", 1), rank=rank)
    one_scale(node, quant, node.input(0))
    check_same_type(node, node.input(0), tensor.dtype, dtype)
    output = node.outputs[0]
    name = reinterpreted(b, value.tensor, quant, node, as_name="" if b.is_output(output) else output)
    b.set(output, "real", name)
