"""QuantizeLinear: of a float32 input on the host, or of integers and exact tensors (a requantization)."""

from manifest.model import Op
from manifest.onnx_import.builder import Builder
from manifest.onnx_import.emit import Draft, emit_codes, quantize_output, reference_of, unary_requant, unit_ratios
from manifest.onnx_import.fuse import Bounds
from manifest.onnx_import.graph import Node, Shape, refusal
from manifest.onnx_import.operands import operand
from manifest.onnx_import.requantize import Output, per_channel
from manifest.onnx_import.rules import Facts


def shape(node: Node, facts: Facts) -> tuple[Shape, ...]:
    """The shape of the input."""
    return (facts.shape(node, 0),)


def lower(node: Node, b: Builder) -> None:
    """Codes: clip(rint(x / scale) + zero point)."""
    value = b.value(node, 0)
    dims = b.shape(node.outputs[0])
    output = quantize_output(b, node, Bounds(), len(dims))
    if value.kind == "float":
        _from_float(node, b, value.tensor, output, dims)
        return
    if value.kind == "codes":
        raise refusal(node, "ONNX-INTEGER-INPUT", f"input {value.tensor!r} is integer", expected="a float tensor")
    if value.kind == "real":
        source = operand(b, value.tensor)
        draft = Draft(
            node=node, type="QuantizeLinear", inputs=(source.name,), requant=lambda o: unary_requant(source, o)
        )
    else:
        units = b.units.get(value.tensor)
        if units is None:
            raise refusal(node, "ONNX-UNITS", f"input {value.tensor!r} has no common scale")
        known = units
        draft = Draft(
            node=node,
            type="QuantizeLinear",
            inputs=(value.tensor,),
            requant=lambda o: per_channel(unit_ratios(known, o), o, reference_of(known, o)),
        )
    emit_codes(b, draft, output, node.outputs[0], dims)


def _from_float(node: Node, b: Builder, source: str, output: Output, dims: Shape) -> None:
    """A QuantizeLinear of float32 values, on the host."""
    name = node.outputs[0]
    if b.tensors[source].dtype != "float32":
        raise refusal(node, "ONNX-QUANTIZE-INPUT", f"input {source!r}", expected="float32", got=b.tensors[source].dtype)
    b.add_tensor(name, dims, output.dtype, onnx_dtype=output.dtype, quant=output.quant)
    b.set(name, "codes", name)
    b.add_op(
        Op(name=node.name, type="QuantizeLinear", inputs=(source,), outputs=(name,), nodes=(node.name,), where="host")
    )
