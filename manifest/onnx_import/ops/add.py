"""Add and com.microsoft QLinearAdd: two activations or an activation and a constant, one rounding."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Final

from manifest.model import Accumulator, Origin, Requantization
from manifest.onnx_import import quant as quantities
from manifest.onnx_import.accumulate import accumulator
from manifest.onnx_import.builder import Builder, Units
from manifest.onnx_import.emit import Draft, emit_chain, emit_codes, reference_of
from manifest.onnx_import.graph import Constant, Node, Shape, refusal
from manifest.onnx_import.linear import stated_output
from manifest.onnx_import.operands import (
    Operand,
    check_real,
    check_same_type,
    codes,
    exact_constant,
    one_scale,
    operand,
)
from manifest.onnx_import.quant import dtype_of
from manifest.onnx_import.requantize import Output, aligned, kernel_ratio, shift_of
from manifest.onnx_import.rules import Facts
from manifest.onnx_import.shapes import broadcast

FAR_APART: Final = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """One operand.

    Attributes:
        name: the tensor.
        unit: exact value of a unit.
        largest: largest |integer| of codes; None for an exact tensor.
        reach: no |value| is larger; None where that is not known.
        integral: every value is a whole number of units.
    """

    name: str
    unit: Fraction
    largest: int | None
    reach: Fraction | None
    integral: bool = True


def shape(node: Node, facts: Facts) -> tuple[Shape, ...]:
    """The broadcast of both shapes."""
    return (broadcast(node, [facts.shape(node, 0), facts.shape(node, 1)]),)


def shape_qlinear(node: Node, facts: Facts) -> tuple[Shape, ...]:
    """The broadcast of both shapes of QLinearAdd and QLinearMul."""
    return (broadcast(node, [facts.shape(node, 0), facts.shape(node, 3)]),)


def _of(item: Operand) -> Term:
    return Term(name=item.name, unit=item.scale, largest=item.largest, reach=item.reach)


def constant_operand(b: Builder, node: Node, constant: Constant, alias: str, *, whole: bool = False) -> Operand:
    """A constant operand as integers with one scale; `whole` as in `exact_constant`."""
    fixed = exact_constant(node, constant, whole=whole)
    if fixed.quant is None:
        raise TypeError(constant.origin)
    one_scale(node, fixed.quant, constant.origin)
    tensor = b.add_constant(fixed, "constant", alias=alias)
    return operand(b, tensor.name)


def _term(b: Builder, node: Node, position: int) -> Term:
    """An operand of a float Add."""
    name = node.input(position)
    if name in b.graph.constants:
        return _of(constant_operand(b, node, b.graph.constants[name], name))
    value = b.value(node, position)
    check_real(b, node, value)
    if value.kind == "real":
        return _of(operand(b, value.tensor))
    units = b.units.get(value.tensor)
    if units is None or len(units.values) > 1:
        raise refusal(
            node,
            "ONNX-UNITS",
            f"input {name!r} is exact with one scale per channel",
            expected="a QuantizeLinear in front of the Add",
            remedy="quantize the input of the Add, or its producer's weights per tensor",
        )
    return Term(name=value.tensor, unit=units.values[0], largest=None, reach=units.reach, integral=units.integral)


def codes_operand(b: Builder, node: Node, position: int) -> Operand:
    """An operand of a QLinearAdd or QLinearMul: activation or constant, then scale, then zero point."""
    name = node.input(position)
    constant = b.graph.constants.get(name)
    if constant is None:
        return codes(b, node, position, position + 1, position + 2)
    array = constant.array
    own = dtype_of(array)
    quant, dtype = quantities.read(b.graph, node, position + 1, position + 2, own, axis=None, rank=array.ndim)
    check_same_type(node, name, own, dtype)
    one_scale(node, quant, name)
    return operand(b, b.add_constant(constant, "constant", alias=name, quant=quant).name)


def _warn_far_apart(b: Builder, node: Node, terms: tuple[Term, Term]) -> None:
    """Note scales so far apart that the alignment shift eats one operand."""
    small, large = sorted((t.unit, t.name) for t in terms)
    ratio = large[0] / small[0]
    if ratio >= 1 << FAR_APART:
        bits = ratio.numerator.bit_length() - ratio.denominator.bit_length()
        b.note(
            "ADD-SCALES-FAR-APART",
            node.name,
            f"scale {float(small[0]):g} of {small[1]!r} and scale {float(large[0]):g} of {large[1]!r} are about "
            f"2**{bits} apart: aligning them takes a shift of {bits} and the smaller one may vanish in the output",
        )


def _draft(b: Builder, node: Node, terms: tuple[Term, Term], origin: Origin, *, zero_point: int = 0) -> Draft:
    """The op without its output."""
    _warn_far_apart(b, node, terms)
    units = _common(terms)
    ratios = [t.unit for t in terms]
    inside = origin == "qoperator"

    def requant(output: Output) -> Requantization:
        kind = "scale_f32" if inside else reference_of(units, output) if _powers(terms) else "rational"
        scaled = [kernel_ratio(r, output) if inside else r / output.scale for r in ratios]
        return aligned(scaled, output, kind, inside=inside, sizes=_sizes(terms))

    return Draft(
        node=node,
        type="Add",
        inputs=(terms[0].name, terms[1].name),
        requant=requant,
        units=units,
        origin=origin,
        accumulator=partial(_bound, terms, zero_point),
    )


def _powers(terms: tuple[Term, Term]) -> bool:
    """Whether both units are powers of two."""
    return all(shift_of(t.unit) is not None and t.integral for t in terms)


def _common(terms: tuple[Term, Term]) -> Units:
    """The largest unit of which both operands are whole multiples."""
    first, second = (t.unit for t in terms)
    step = Fraction(
        math.gcd(first.numerator * second.denominator, second.numerator * first.denominator),
        first.denominator * second.denominator,
    )
    reaches = [t.reach for t in terms if t.reach is not None]
    reach = sum(reaches, Fraction(0)) if len(reaches) == len(terms) else None
    return Units(values=(step,), integral=all(t.integral for t in terms), reach=reach)


def _sizes(terms: tuple[Term, Term]) -> list[int] | None:
    """The largest |integer| of each operand, None where one is not known."""
    known = [math.ceil(t.reach / t.unit) for t in terms if t.reach is not None]
    return known if len(known) == len(terms) else None


def _bound(terms: tuple[Term, Term], zero_point: int, requant: Requantization) -> Accumulator | None:
    """Bound of the aligned sum (with the zero point where it goes inside), where both ranges are known."""
    sizes = [m * t.largest for m, t in zip(requant.multipliers, terms, strict=True) if t.largest is not None]
    if len(sizes) < len(terms):
        return None
    offset = abs(zero_point) << requant.shifts[0] if requant.zero_point_inside else 0
    return accumulator(sum(sizes) + offset)


def lower(node: Node, b: Builder) -> None:
    """Add of dequantised values, exact tensors and constants."""
    terms = (_term(b, node, 0), _term(b, node, 1))
    emit_chain(b, _draft(b, node, terms, "qdq"), b.plan.chains[node.index])


def lower_qlinear(node: Node, b: Builder) -> None:
    """QLinearAdd: a, scale, zero point, b, scale, zero point, y scale, zero point; zero point inside the rounding."""
    terms = (_of(codes_operand(b, node, 0)), _of(codes_operand(b, node, 3)))
    output = stated_output(b, node, 6, 7)
    draft = _draft(b, node, terms, "qoperator", zero_point=output.zero_point)
    emit_codes(b, draft, output, node.outputs[0], b.shape(node.outputs[0]))
