"""Ops that pass values on (layout, MaxPool, Relu, Clip): on codes, on dequantised values, on exact tensors."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from manifest.model import AttributeValue, Requantization
from manifest.onnx_import.builder import Builder, Units
from manifest.onnx_import.emit import (
    Draft,
    code_of,
    emit_chain,
    emit_codes,
    emit_real,
    reference_of,
    unary_requant,
    unit_ratios,
)
from manifest.onnx_import.fuse import Bounds
from manifest.onnx_import.graph import Node, refusal
from manifest.onnx_import.operands import Operand, operand
from manifest.onnx_import.quant import qrange
from manifest.onnx_import.requantize import Output, identity, per_channel

Remap = Callable[[Units], Units | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Passing:
    """A node that passes values on.

    Attributes:
        node: the node.
        type: op type in the manifest.
        attributes: all defaults filled in.
        remap: where the channel axis of an exact tensor goes; None where it is lost.
        own: clamp of the node itself (Relu, Clip), None for others.
    """

    node: Node
    type: str
    attributes: Mapping[str, AttributeValue]
    remap: Remap
    own: Bounds | None = None


def keep_units(units: Units) -> Units:
    """The channel axis stays where it is."""
    return units


def clamped(units: Units, own: Bounds | None) -> Units:
    """Units behind a clamp: a finite bound may lie beyond what the values reach."""
    if own is None or units.reach is None:
        return units
    ends = [abs(Fraction(end)) for end in (own.low, own.high) if math.isfinite(end)]
    return replace(units, reach=max([units.reach, *ends]))


def lower_passing(b: Builder, item: Passing) -> None:
    """Emit the op in the form that its input asks for."""
    value = b.value(item.node, 0)
    if value.kind == "codes":
        _on_codes(b, item, operand(b, value.tensor))
    elif value.kind == "real":
        _on_real(b, item, operand(b, value.tensor))
    elif value.kind == "float":
        _on_float(b, item, value.tensor)
    else:
        _on_exact(b, item, value.tensor)


def _on_codes(b: Builder, item: Passing, source: Operand) -> None:
    """Between QuantizeLinear and DequantizeLinear: codes in, codes out."""
    low, high = qrange(source.tensor.dtype)
    if item.own is not None:
        low, high = int(max(low, item.own.low)), int(min(high, item.own.high))
    output = Output(quant=source.quant, dtype=source.tensor.dtype, qmin=low, qmax=high)
    attributes = dict(item.attributes)
    kind = item.type
    if item.own is not None:
        kind, attributes = "Clip", {"qmin": low, "qmax": high}
    draft = Draft(node=item.node, type=kind, inputs=(source.name,), requant=identity, attributes=attributes)
    emit_codes(b, draft, output, item.node.outputs[0], b.shape(item.node.outputs[0]))


def _on_float(b: Builder, item: Passing, source: str) -> None:
    """On float32 values: the host does it."""
    name = item.node.outputs[0]
    b.add_tensor(name, b.shape(name), b.tensors[source].dtype, onnx_dtype=b.tensors[source].onnx_dtype)
    b.set(name, "float", name)
    b.host_op(item.node.name, item.type, (source,), (name,), nodes=(item.node.name,), attributes=item.attributes)


def _on_real(b: Builder, item: Passing, source: Operand) -> None:
    """On dequantised values: requantised where QuantizeLinear follows, else the codes are kept."""
    chain = b.plan.chains[item.node.index]
    draft = Draft(
        node=item.node,
        type=item.type,
        inputs=(source.name,),
        requant=lambda output: unary_requant(source, output),
        units=clamped(Units(values=(source.scale,), reach=source.reach), item.own),
        attributes=item.attributes,
    )
    if chain.quantize is not None:
        emit_chain(b, draft, chain, own=item.own)
        return
    bounds = _code_bounds(source, item.own)
    if bounds is None:
        emit_chain(b, draft, chain, own=item.own)
    else:
        emit_real(b, draft, source, bounds)


def _code_bounds(source: Operand, own: Bounds | None) -> tuple[int, int] | None:
    """The clamp in codes; None where it gives values that are none: a bound between two codes or past the far end."""
    low, high = qrange(source.tensor.dtype)
    if own is None:
        return low, high
    ends = []
    for bound, end, side in ((own.low, low, -1), (own.high, high, 1)):
        code = code_of(bound, source.quant, low, high)
        exact = (code - source.zero_point) * source.scale
        binds_nothing = code == end and side * bound >= side * exact
        if exact != bound and not binds_nothing:
            return None
        ends.append(code)
    return ends[0], ends[1]


def _on_exact(b: Builder, item: Passing, source: str) -> None:
    """On an exact tensor: rounded where QuantizeLinear follows."""
    chain = b.plan.chains[item.node.index]
    units = b.units.get(source)
    moved = None if units is None else item.remap(clamped(units, item.own))

    def requant(output: Output) -> Requantization:
        if moved is None:
            raise refusal(
                item.node,
                "ONNX-UNITS",
                "scales per channel do not survive this node between producer and QuantizeLinear",
                remedy="put QuantizeLinear in front of it",
            )
        return per_channel(unit_ratios(moved, output), output, reference_of(moved, output))

    draft = Draft(
        node=item.node,
        type=item.type,
        inputs=(source,),
        requant=requant,
        units=moved,
        attributes=item.attributes,
    )
    emit_chain(b, draft, chain, own=item.own)
