"""What AveragePool and GlobalAveragePool share: possible sums, rounding, proof."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from manifest.model import AttributeValue, Requantization
from manifest.onnx_import.accumulate import accumulator
from manifest.onnx_import.builder import Builder, Units
from manifest.onnx_import.emit import Draft, emit_chain, emit_codes, reference_of, unit_ratios
from manifest.onnx_import.graph import Node, refusal
from manifest.onnx_import.operands import Operand, check_real, codes, operand
from manifest.onnx_import.requantize import I64, Expected, Output, Sums, dyadic, enumerated, per_channel


@dataclass(frozen=True, slots=True, kw_only=True)
class Average:
    """An average.

    Attributes:
        node: the node.
        type: AveragePool or GlobalAveragePool.
        counts: distinct numbers of elements that a window is divided by, ascending.
        attributes: all defaults filled in, without `factor`.
    """

    node: Node
    type: str
    counts: Sequence[int]
    attributes: Mapping[str, AttributeValue]

    @property
    def common(self) -> int:
        """The least common multiple of the counts."""
        return math.lcm(*self.counts)


def _sums(item: Average, x: Operand, output: Output, factor: Fraction) -> Sums:
    """Every possible sum, weighed by common / number of elements (padded elements count as the zero point)."""
    low, high = (c - x.zero_point for c in x.code_range)
    low, high = min(low, 0), max(high, 0)
    common = item.common
    return Sums(
        low=low * common,
        high=high * common,
        ratio=x.scale * factor / (common * output.scale),
        steps=tuple(sorted({common // n for n in item.counts})),
    )


def _draft(item: Average, x: Operand, factor: float) -> Draft:
    """The op over codes."""
    exact = Fraction(factor)

    def requant(output: Output) -> Requantization:
        sums = _sums(item, x, output, exact)
        powers = x.power_of_two and output.power_of_two and dyadic(sums.ratio) is not None
        return enumerated(sums, output, "srs" if powers else "rational")

    units = Units(values=(x.scale * exact / item.common,), reach=x.reach * abs(exact))
    return Draft(
        node=item.node,
        type=item.type,
        inputs=(x.name,),
        requant=requant,
        units=units,
        attributes={**item.attributes, "factor": factor},
        accumulator=accumulator(item.common * x.largest),
    )


def lower_average(b: Builder, item: Average) -> None:
    """Emit an average of dequantised values or of an exact tensor."""
    value = b.value(item.node, 0)
    check_real(b, item.node, value)
    chain = b.plan.chains[item.node.index]
    if value.kind == "real":
        emit_chain(b, _draft(item, operand(b, value.tensor), chain.factor), chain)
        return
    units = b.units.get(value.tensor)
    if units is None or len(units.values) > 1:
        raise refusal(
            item.node,
            "ONNX-UNITS",
            f"input {value.tensor!r} is exact with one scale per channel",
            remedy="put QuantizeLinear in front of it",
        )
    factor = Fraction(chain.factor)
    reach = None if units.reach is None else units.reach * abs(factor)
    scaled = Units(values=(units.values[0] * factor / item.common,), integral=units.integral, reach=reach)

    def requant(output: Output) -> Requantization:
        return per_channel(unit_ratios(scaled, output), output, reference_of(scaled, output))

    draft = Draft(
        node=item.node,
        type=item.type,
        inputs=(value.tensor,),
        requant=requant,
        units=scaled,
        attributes={**item.attributes, "factor": chain.factor},
    )
    emit_chain(b, draft, chain)


def _global_formula(x: Operand, output: Output, count: int) -> Expected:
    """Onnxruntime's QLinearGlobalAveragePool as a function of the centred sum (before zero point and clamp)."""
    f32 = np.float32
    divisor = f32(f32(float(output.scale)) * f32(count))
    multiplier = f32(f32(float(x.scale)) / divisor)

    def formula(values: I64, sums: Sums) -> I64 | None:
        if max(abs(sums.low), abs(sums.high)) >= 1 << 31:
            return None
        return np.asarray(np.rint(values.astype(f32) * multiplier), np.int64)

    return formula


def lower_qlinear_average(b: Builder, item: Average, output: Output) -> None:
    """Emit QLinearGlobalAveragePool (its formula is a function of the sum) or QLinearAveragePool (which is not)."""
    if item.node.integer("channels_last", 0):
        raise refusal(item.node, "ONNX-LAYOUT", "channels_last is not supported", expected="NCHW")
    x = codes(b, item.node, 0, 1, 2)
    whole = item.type == "GlobalAveragePool"

    def requant(target: Output) -> Requantization:
        sums = _sums(item, x, target, Fraction(1))
        formula = _global_formula(x, target, item.counts[0]) if whole else None
        return enumerated(sums, target, "scale_f32", expected=formula, inside=not whole)

    draft = Draft(
        node=item.node,
        type=item.type,
        inputs=(x.name,),
        requant=requant,
        attributes={**item.attributes, "factor": 1.0},
        origin="qoperator",
        accumulator=accumulator(item.common * x.largest),
    )
    emit_codes(b, draft, output, item.node.outputs[0], b.shape(item.node.outputs[0]))
