"""MatMul and QLinearMatMul: with a constant weight, or of two activations; any rank."""

from fractions import Fraction

from manifest.model import Requantization
from manifest.onnx_import.accumulate import accumulator
from manifest.onnx_import.builder import Builder, Units
from manifest.onnx_import.emit import Draft, emit_chain, emit_codes, reference_of, unit_ratios
from manifest.onnx_import.graph import Node, Shape, refusal
from manifest.onnx_import.linear import (
    Linear,
    Weight,
    lower_qdq,
    lower_qoperator,
    qdq_weight,
    stated_output,
    stated_weight,
)
from manifest.onnx_import.operands import Operand, codes, quantised
from manifest.onnx_import.requantize import Output, kernel_ratios, per_channel
from manifest.onnx_import.rules import Facts
from manifest.onnx_import.shapes import matmul


def shape(node: Node, facts: Facts) -> tuple[Shape, ...]:
    """Shape of numpy.matmul."""
    return (matmul(node, facts.shape(node, 0), facts.shape(node, 1)),)


def shape_qlinear(node: Node, facts: Facts) -> tuple[Shape, ...]:
    """Shape of numpy.matmul of the codes."""
    return (matmul(node, facts.shape(node, 0), facts.shape(node, 3)),)


def _channel_axis(b: Builder, node: Node, position: int, *, right: bool) -> int | None:
    """Axis of the output channels of a constant factor: the last one of a right factor, none of a left one."""
    name = node.input(position)
    rank = b.graph.constants[name].array.ndim if name in b.graph.constants else 0
    return rank - 1 if right and rank > 1 else None


def _check_scales(b: Builder, node: Node, weight: Weight) -> None:
    """Refuse one scale per column where the weight is no matrix or the activation a vector."""
    rows = b.shape(node.inputs[0])
    if len(weight.quant.scales) > 1 and (weight.constant.array.ndim != 2 or len(rows) < 2):
        raise refusal(
            node,
            "ONNX-WEIGHT-AXIS",
            "one scale per column of a batch of matrices, or on a vector, is not supported",
            expected="one scale, or a matrix times a matrix",
            got=f"shapes {list(rows)} and {list(weight.constant.array.shape)}",
            remedy="quantize the weight per tensor",
        )


def _linear(node: Node, x: Operand, weight: Weight, out_rank: int, bias: str, *, x_first: bool) -> Linear:
    return Linear(
        node=node,
        type="MatMul",
        x=x,
        weight=weight,
        bias=bias,
        out_axis=out_rank - 1 if weight.axis is not None else None,
        attributes={},
        x_first=x_first,
    )


def lower(node: Node, b: Builder) -> None:
    """MatMul between DequantizeLinear and QuantizeLinear (or an exact result).

    A third input, which ONNX does not have, is the bias of a folded BatchNormalization.
    """
    rank = len(b.shape(node.outputs[0]))
    if node.input(1) in b.graph.constants:
        weight = qdq_weight(b, node, 1, _channel_axis(b, node, 1, right=True))
        _check_scales(b, node, weight)
        lower_qdq(b, _linear(node, quantised(b, node, 0), weight, rank, node.input(2), x_first=True))
    elif node.input(0) in b.graph.constants:
        weight = qdq_weight(b, node, 0, None)
        lower_qdq(b, _linear(node, quantised(b, node, 1), weight, rank, "", x_first=False))
    else:
        _two_activations(node, b, quantised(b, node, 0), quantised(b, node, 1), None)


def lower_qlinear(node: Node, b: Builder) -> None:
    """QLinearMatMul: a, scale, zero point, b, scale, zero point, y scale, zero point."""
    rank = len(b.shape(node.outputs[0]))
    output = stated_output(b, node, 6, 7)
    if node.input(3) in b.graph.constants:
        weight = stated_weight(b, node, 3, _channel_axis(b, node, 3, right=True))
        _check_scales(b, node, weight)
        lower_qoperator(b, _linear(node, codes(b, node, 0, 1, 2), weight, rank, "", x_first=True), output)
    elif node.input(0) in b.graph.constants:
        weight = stated_weight(b, node, 0, None)
        lower_qoperator(b, _linear(node, codes(b, node, 3, 4, 5), weight, rank, "", x_first=False), output)
    else:
        _two_activations(node, b, codes(b, node, 0, 1, 2), codes(b, node, 3, 4, 5), output)


def lower_integer_to_float(node: Node, b: Builder) -> None:
    """MatMulIntegerToFloat of onnxruntime: a, b, their scales, their zero points; the result stays exact."""
    if node.input(6):
        raise refusal(node, "ONNX-FUSED", "MatMulIntegerToFloat with a bias is not supported", got=repr(node.input(6)))
    rank = len(b.shape(node.outputs[0]))
    if node.input(1) not in b.graph.constants:
        raise refusal(
            node,
            "ONNX-WEIGHT-DYNAMIC",
            "MatMulIntegerToFloat of two activations is not supported",
            got=repr(node.input(1)),
        )
    axis = _channel_axis(b, node, 1, right=True)
    weight = stated_weight(b, node, 1, axis, scale=3, zero_point=5)
    _check_scales(b, node, weight)
    lower_qoperator(b, _linear(node, codes(b, node, 0, 2, 4), weight, rank, "", x_first=True), None)


def _two_activations(node: Node, b: Builder, left: Operand, right: Operand, output: Output | None) -> None:
    """A product of two activations: one scale each, so one unit."""
    unit: Fraction = left.scale * right.scale
    bound = left.tensor.shape[-1] * left.largest * right.largest
    units = Units(values=(unit,), reach=bound * unit)
    powers = left.power_of_two and right.power_of_two

    def requant(target: Output) -> Requantization:
        if output is not None:
            return per_channel(kernel_ratios(left.scale, right.quant.scales, 1.0, target), target, "scale_f32")
        kind = reference_of(units, target) if powers else "rational"
        return per_channel(unit_ratios(units, target), target, kind)

    draft = Draft(
        node=node,
        type="MatMul",
        inputs=(left.name, right.name, ""),
        requant=requant,
        units=units,
        origin="qdq" if output is None else "qoperator",
        accumulator=accumulator(bound),
    )
    if output is not None:
        emit_codes(b, draft, output, node.outputs[0], b.shape(node.outputs[0]))
        return
    emit_chain(b, draft, b.plan.chains[node.index])
