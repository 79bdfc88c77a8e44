"""Concat and com.microsoft QLinearConcat."""

from dataclasses import replace

from manifest.model import ReferenceKind, Requantization
from manifest.onnx_import.builder import Builder, Units
from manifest.onnx_import.emit import Draft, emit_chain, emit_codes, emit_real, unary_requant
from manifest.onnx_import.graph import Node, Shape, refusal
from manifest.onnx_import.linear import stated_output
from manifest.onnx_import.operands import Operand, operand
from manifest.onnx_import.ops.add import codes_operand, constant_operand
from manifest.onnx_import.quant import qrange
from manifest.onnx_import.requantize import Output, identity
from manifest.onnx_import.rules import Facts
from manifest.onnx_import.shapes import normalize_axis


def _joined(node: Node, shapes: list[Shape]) -> Shape:
    axis = normalize_axis(node, node.integer("axis", 1), len(shapes[0]))
    rest = {(*s[:axis], *s[axis + 1 :]) for s in shapes}
    if len(rest) != 1 or len({len(s) for s in shapes}) != 1:
        raise refusal(node, "ONNX-SHAPE", "shapes do not fit", got=", ".join(str(list(s)) for s in shapes))
    return (*shapes[0][:axis], sum(s[axis] for s in shapes), *shapes[0][axis + 1 :])


def shape(node: Node, facts: Facts) -> tuple[Shape, ...]:
    """Sizes added along `axis`."""
    return (_joined(node, [facts.shape(node, i) for i in range(len(node.inputs))]),)


def shape_qlinear(node: Node, facts: Facts) -> tuple[Shape, ...]:
    """Sizes added along `axis`; operands are inputs 2, 5, 8, ..."""
    return (_joined(node, [facts.shape(node, i) for i in range(2, len(node.inputs), 3)]),)


def _requant(parts: list[Operand], output: Output, reference: ReferenceKind | None) -> Requantization:
    """One (multiplier, shift) per input, each proved where it can be; identity where no input changes."""
    each = [unary_requant(part, output, kernel=reference is not None) for part in parts]
    if all(r.target == "identity" for r in each):
        return identity(output)
    kinds = {r.target for r in each} - {"identity"}
    references = {r.reference for r in each} - {"identity"}
    return Requantization(
        reference=reference or ("srs" if references == {"srs"} else "rational"),
        target="srs" if kinds == {"srs"} else "multiplier_shift",
        qmin=output.qmin,
        qmax=output.qmax,
        multipliers=tuple(r.multipliers[0] for r in each),
        shifts=tuple(r.shifts[0] for r in each),
        proof="; ".join(r.proof for r in each if r.proof)
        if all(r.proof or r.target == "identity" for r in each)
        else "",
    )


def _draft(node: Node, parts: list[Operand], rank: int, reference: ReferenceKind | None) -> Draft:
    scales = {p.scale for p in parts}
    return Draft(
        node=node,
        type="Concat",
        inputs=tuple(p.name for p in parts),
        requant=lambda output: _requant(parts, output, reference),
        units=Units(values=(parts[0].scale,), reach=max(p.reach for p in parts)) if len(scales) == 1 else None,
        attributes={"axis": normalize_axis(node, node.integer("axis", 1), rank)},
        origin="qdq" if reference is None else "qoperator",
    )


def _part(b: Builder, node: Node, position: int) -> Operand:
    """An operand of a float Concat."""
    name = node.input(position)
    if name in b.graph.constants:
        return constant_operand(b, node, b.graph.constants[name], name)
    value = b.value(node, position)
    if value.kind in ("exact", "float"):
        raise refusal(
            node,
            "ONNX-NOT-QUANTIZED",
            f"input {name!r} of Concat is not quantised",
            remedy="put QuantizeLinear and DequantizeLinear in front of it",
        )
    return operand(b, value.tensor)


def lower(node: Node, b: Builder) -> None:
    """Concat of codes of one quantization, or of dequantised values."""
    parts = [_part(b, node, i) for i in range(len(node.inputs))]
    rank = len(b.shape(node.outputs[0]))
    kinds = {b.values[n].kind for n in node.inputs if n in b.values}
    same = all(p.quant == parts[0].quant and p.tensor.dtype == parts[0].tensor.dtype for p in parts)
    draft = _draft(node, parts, rank, None)
    if "codes" in kinds:
        if not same or kinds != {"codes"}:
            raise refusal(node, "ONNX-CONCAT-SCALES", "integers of different scales are concatenated")
        low, high = qrange(parts[0].tensor.dtype)
        output = Output(quant=parts[0].quant, dtype=parts[0].tensor.dtype, qmin=low, qmax=high)
        emit_codes(b, draft, output, node.outputs[0], b.shape(node.outputs[0]))
        return
    chain = b.plan.chains[node.index]
    if chain.quantize is None and same:
        lows, highs = zip(*(p.code_range for p in parts), strict=True)
        widest = replace(parts[0], code_range=(min(lows), max(highs)))
        emit_real(b, draft, widest, qrange(parts[0].tensor.dtype))
    else:
        emit_chain(b, draft, chain)


def lower_qlinear(node: Node, b: Builder) -> None:
    """QLinearConcat: y scale, zero point, then x, scale, zero point of each operand."""
    parts = [codes_operand(b, node, i) for i in range(2, len(node.inputs), 3)]
    rank = len(b.shape(node.outputs[0]))
    output = stated_output(b, node, 0, 1)
    draft = _draft(node, parts, rank, "scale_f32")
    emit_codes(b, draft, output, node.outputs[0], b.shape(node.outputs[0]))
