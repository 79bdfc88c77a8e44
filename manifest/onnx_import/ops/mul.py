"""Mul by a constant and com.microsoft QLinearMul by a constant."""

from typing import Final

import numpy as np

from manifest.model import Requantization
from manifest.onnx_import.accumulate import accumulator
from manifest.onnx_import.builder import Builder, Units
from manifest.onnx_import.emit import Draft, emit_chain, emit_codes, reference_of, unit_ratios
from manifest.onnx_import.graph import Constant, Node, refusal
from manifest.onnx_import.linear import stated_output
from manifest.onnx_import.operands import Operand, check_real, exact_constant, operand
from manifest.onnx_import.ops import add
from manifest.onnx_import.requantize import Output, kernel_ratios, per_channel

LARGE: Final = 1 << 44

shape = add.shape
shape_qlinear = add.shape_qlinear


def _constant_position(b: Builder, node: Node, second: int) -> int:
    """Position of the constant factor; refuses a product of two activations by name."""
    for position in (second, 0):
        if node.input(position) in b.graph.constants:
            return position
    raise refusal(
        node,
        "ONNX-MUL-ACTIVATIONS",
        f"{node.type} of two activations is not supported",
        expected="one constant factor",
        got=f"{node.input(0)!r} and {node.input(second)!r}",
    )


def lower(node: Node, b: Builder) -> None:
    """Mul of a dequantised value or exact tensor by a constant."""
    position = _constant_position(b, node, 1)
    name = node.input(position)
    value = b.value(node, 1 - position)
    check_real(b, node, value)
    units = b.units.get(value.tensor) if value.kind == "exact" else None
    constant = b.graph.constants[name]
    whole = units is not None and _is_large(units, exact_constant(node, constant))
    factor = add.constant_operand(b, node, constant, name, whole=whole)
    chain = b.plan.chains[node.index]
    if value.kind == "real":
        emit_chain(b, _product(b, node, operand(b, value.tensor), factor, qoperator=False), chain)
        return
    if units is None or len(units.values) > 1:
        raise refusal(
            node,
            "ONNX-UNITS",
            f"input {node.input(1 - position)!r} is exact with one scale per channel",
            expected="a QuantizeLinear in front of the Mul",
            remedy="quantize the input of the Mul, or its producer's weights per tensor",
        )
    reach = None if units.reach is None else units.reach * factor.reach
    scaled = Units(values=(units.values[0] * factor.scale,), integral=units.integral, reach=reach)
    emit_chain(b, _draft(node, (value.tensor, factor.name), scaled, powers=True), chain)


def _is_large(units: Units, factor: Constant) -> bool:
    """Whether the product's integers leave no room for a multiplier in 62 bits."""
    largest = int(np.abs(factor.array.astype(np.int64)).max(initial=0))
    return units.reach is not None and units.reach / min(units.values) * largest >= LARGE


def _draft(node: Node, inputs: tuple[str, ...], units: Units, *, powers: bool) -> Draft:
    def requant(output: Output) -> Requantization:
        kind = reference_of(units, output) if powers else "rational"
        return per_channel(unit_ratios(units, output), output, kind)

    return Draft(node=node, type="Mul", inputs=inputs, requant=requant, units=units)


def _product(b: Builder, node: Node, x: Operand, factor: Operand, *, qoperator: bool) -> Draft:
    """A product of codes."""
    units = Units(values=(x.scale * factor.scale,), reach=x.reach * factor.reach)
    powers = x.power_of_two and factor.power_of_two

    def requant(output: Output) -> Requantization:
        kind = reference_of(units, output) if powers else "rational"
        if qoperator:
            ratios = kernel_ratios(x.scale, factor.quant.scales, 1.0, output)
            return per_channel(ratios, output, "scale_f32", inside=True)
        return per_channel(unit_ratios(units, output), output, kind)

    return Draft(
        node=node,
        type="Mul",
        inputs=(x.name, factor.name),
        requant=requant,
        units=units,
        origin="qoperator" if qoperator else "qdq",
        accumulator=accumulator(x.largest * factor.largest),
    )


def lower_qlinear(node: Node, b: Builder) -> None:
    """QLinearMul by a constant: zero point inside the rounding."""
    position = _constant_position(b, node, 3)
    factor = add.codes_operand(b, node, position)
    x = add.codes_operand(b, node, 3 - position)
    output = stated_output(b, node, 6, 7)
    draft = _product(b, node, x, factor, qoperator=True)
    emit_codes(b, draft, output, node.outputs[0], b.shape(node.outputs[0]))
