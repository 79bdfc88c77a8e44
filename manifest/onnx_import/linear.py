"""What Conv, Gemm and MatMul share: weights, bias, proved bound, rounding."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from manifest.model import Accumulator, AttributeValue, Quantization, ReferenceKind, Requantization
from manifest.onnx_import import quant as quantities
from manifest.onnx_import.accumulate import accumulator, bound_of, channel_l1
from manifest.onnx_import.bias import NO_BIAS, BiasPlan, as_it_is, plan_bias
from manifest.onnx_import.builder import Builder, Units
from manifest.onnx_import.emit import Draft, emit_chain, emit_codes, emit_exact, reference_of, unit_ratios
from manifest.onnx_import.fuse import Bounds
from manifest.onnx_import.graph import Array, Constant, Node, refusal
from manifest.onnx_import.operands import (
    Operand,
    channel_values,
    check_channel_axis,
    check_code_type,
    check_same_type,
    weight_codes,
)
from manifest.onnx_import.quant import dtype_of
from manifest.onnx_import.requantize import Output, kernel_ratios, per_channel


@dataclass(frozen=True, slots=True, kw_only=True)
class Weight:
    """A constant weight.

    Attributes:
        constant: codes with `quant` set.
        quant: one scale, or one per output channel.
        axis: axis of the output channels in the stored array, None where there is none.
        alias: name to take where the initializer has another quantization elsewhere.
    """

    constant: Constant
    quant: Quantization
    axis: int | None
    alias: str

    @property
    def channels(self) -> int:
        """Number of output channels."""
        return 1 if self.axis is None else int(self.constant.array.shape[self.axis])


@dataclass(frozen=True, slots=True, kw_only=True)
class Linear:
    """A Conv, Gemm or MatMul with a constant weight.

    Attributes:
        node: the node.
        type: Conv, Gemm or MatMul.
        x: the activation.
        weight: the weight.
        bias: bias name, "" where there is none.
        out_axis: axis of the output channels in the output.
        attributes: all defaults filled in.
        alpha: factor of the product.
        beta: factor of the bias.
        own: clamp of a FusedConv or FusedGemm.
        x_first: whether the activation is the first factor.
    """

    node: Node
    type: str
    x: Operand
    weight: Weight
    bias: str
    out_axis: int | None
    attributes: Mapping[str, AttributeValue]
    alpha: Fraction = Fraction(1)
    beta: Fraction = Fraction(1)
    own: Bounds | None = None
    x_first: bool = True


def qdq_weight(b: Builder, node: Node, position: int, axis: int | None) -> Weight:
    """The weight of a QDQ node: a dequantised constant with its scales along `axis`."""
    constant = weight_codes(b, node, position)
    quant = constant.quant
    if quant is None:
        raise TypeError(constant.origin)
    return _checked(node, Weight(constant=constant, quant=quant, axis=axis, alias=node.input(position)))


def stated_weight(
    b: Builder, node: Node, position: int, axis: int | None, *, scale: int | None = None, zero_point: int | None = None
) -> Weight:
    """The weight of a QOperator node: codes; scale and zero point behind them where no positions are given."""
    at = (position + 1 if scale is None else scale, position + 2 if zero_point is None else zero_point)
    name = node.input(position)
    constant = b.graph.constants.get(name)
    if constant is None:
        raise refusal(
            node, "ONNX-WEIGHT-DYNAMIC", f"weight of {node.type} {node.name!r} is computed at run time", got=repr(name)
        )
    array = constant.array
    rank = array.ndim
    channel = rank - 1 if axis is None else axis
    quant, dtype = quantities.read(b.graph, node, *at, dtype_of(array), axis=channel, rank=rank)
    check_same_type(node, name, dtype_of(array), dtype)
    quantities.check_axis(node, quant, array.shape)
    fixed = Constant(array=array, quant=quant, origin=constant.origin, nodes=constant.nodes)
    return _checked(node, Weight(constant=fixed, quant=quant, axis=axis, alias=constant.origin))


def _checked(node: Node, weight: Weight) -> Weight:
    """Refuse weight types and scale axes that are beyond the tool."""
    what = f"weight of {node.type} {node.name!r}"
    check_code_type(node, dtype_of(weight.constant.array), what)
    check_channel_axis(node, weight.quant, weight.axis, what)
    return weight


def _bias(b: Builder, item: Linear, constant: Constant | None, scheme: Quantization | None) -> tuple[str, BiasPlan]:
    """The bias tensor's name and how it is added."""
    if constant is None:
        return "", NO_BIAS
    values, quant = channel_values(item.node, constant, item.weight.channels, f"bias of {item.node.type}")
    if scheme is None:
        plan = plan_bias(values, quant, item.x.scale * item.alpha / item.beta, item.weight.quant)
    else:
        quant, plan = scheme, as_it_is(values)
    tensor = b.add_constant(constant, "bias", alias=item.bias, array=values, quant=quant)
    if max(plan.addends) >= 1 << 31 and plan.rescaled is not None:
        b.note("BIAS-SATURATED", item.node.name, f"bias {tensor.name!r} at the accumulator's scale is beyond int32")
    if plan.rescaled is not None and quant is not None:
        b.note(
            "BIAS-RESCALED",
            item.node.name,
            f"bias {tensor.name!r} has a scale that is no power of two times input scale * weight scale: "
            "the target adds it rounded to the accumulator's scale",
        )
    return tensor.name, plan


def _reduced_l1(weight: Weight, array: Array) -> tuple[int, ...]:
    """L1 norm per output channel; of batched weights the largest."""
    if array.ndim > 2 and weight.axis == array.ndim - 1:
        parts = [channel_l1(part, _flat(weight.quant), 1) for part in array.reshape(-1, *array.shape[-2:])]
        return tuple(max(p) for p in zip(*parts, strict=True))
    return channel_l1(array, weight.quant, weight.axis)


def _flat(quant: Quantization) -> Quantization:
    """The quantization of one matrix of a batch."""
    return quantities.quantization(quant.scales, quant.zero_points, 1)


def _draft(b: Builder, item: Linear, bias: str, plan: BiasPlan) -> Draft:
    """The op without its output."""
    weight = b.add_constant(item.weight.constant, "weight", alias=item.weight.alias, quant=item.weight.quant)
    l1 = _reduced_l1(item.weight, item.weight.constant.array)
    bound = bound_of(item.x.largest, l1, plan.addends, promotion=plan.promotion)
    scales = quantities.exact_scales(item.weight.quant)
    units = Units(
        values=tuple(item.x.scale * s * item.alpha for s in scales),
        axis=item.out_axis if len(scales) > 1 else None,
        integral=plan.kind != "rescaled",
        reach=(bound + 1) * item.x.scale * abs(item.alpha) * max(scales) / (1 << min(plan.promotion)),
    )
    pair = (item.x.name, weight.name) if item.x_first else (weight.name, item.x.name)
    powers = item.x.power_of_two and item.weight.quant.exponents is not None and plan.power_of_two

    def requant(output: Output) -> Requantization:
        kind: ReferenceKind = reference_of(units, output) if powers else "rational"
        return per_channel(unit_ratios(units, output), output, kind)

    return Draft(
        node=item.node,
        type=item.type,
        inputs=(*pair, bias),
        requant=requant,
        units=units,
        attributes=item.attributes,
        bias=plan.record(None if plan.rescaled is None else b.store(plan.rescaled)) if bias else None,
        accumulator=accumulator(bound),
    )


def lower_qdq(b: Builder, item: Linear) -> None:
    """Emit a QDQ group: the bias may come from the node or from an Add behind it."""
    chain = b.plan.chains[item.node.index]
    name = item.bias or chain.bias
    constant = None
    if name:
        constant = b.graph.constants.get(name)
        if constant is None:
            raise refusal(
                item.node, "ONNX-BIAS-DYNAMIC", f"bias {name!r} is computed at run time", expected="a constant"
            )
        if constant.quant is None and constant.array.dtype.name != "float32":
            raise refusal(
                item.node,
                "ONNX-BIAS-TYPE",
                f"bias {name!r}",
                expected="float32 or a DequantizeLinear",
                got=constant.array.dtype.name,
            )
    fixed = replace(item, bias=name)
    bias, plan = _bias(b, fixed, constant, None)
    emit_chain(b, _draft(b, fixed, bias, plan), chain, own=item.own)


def lower_qoperator(b: Builder, item: Linear, output: Output | None) -> None:
    """Emit a QLinearConv, QLinearMatMul or QGemm; `output` None: a QGemm with float output stays exact."""
    constant = None
    scheme = None
    if item.bias:
        constant = b.graph.constants.get(item.bias)
        if constant is None or constant.array.dtype.name != "int32":
            raise refusal(item.node, "ONNX-BIAS-TYPE", f"bias {item.bias!r}", expected="an int32 constant")
        product = tuple(quantities.per_tensor(float(item.x.scale)).scales[0] * s for s in item.weight.quant.scales)
        rounded = tuple(quantities.per_tensor(p).scales[0] for p in product)
        scheme = quantities.quantization(rounded, (0,) * len(rounded), 0)
    bias, plan = _bias(b, item, constant, scheme)
    draft = _draft(b, item, bias, plan)
    _emit_qoperator(b, item, draft, output)


def _emit_qoperator(b: Builder, item: Linear, draft: Draft, output: Output | None) -> None:
    """Emit with onnxruntime's kernel formula as reference."""
    units = draft.units
    if units is None:
        raise TypeError(item.node.name)
    bound = draft.accumulator.bound if isinstance(draft.accumulator, Accumulator) else 0
    if bound >= 1 << 31:
        b.note("ACC-WRAP", item.node.name, f"proved bound {bound} is beyond int32: onnxruntime's accumulator may wrap")

    def requant(target: Output) -> Requantization:
        ratios = kernel_ratios(item.x.scale, item.weight.quant.scales, float(item.alpha), target)
        return per_channel(ratios, target, "scale_f32")

    stated = replace(draft, requant=requant, origin="qoperator")
    if output is None:
        emit_exact(b, stated, item.node.outputs[0])
    else:
        emit_codes(b, stated, output, item.node.outputs[0], b.shape(item.node.outputs[0]))


def stated_output(b: Builder, node: Node, scale: int, zero_point: int) -> Output:
    """Output quantization that a QOperator node states."""
    rank = len(b.shape(node.outputs[0]))
    quant, dtype = quantities.read(b.graph, node, scale, zero_point, None, axis=None, rank=rank)
    if len(quant.scales) > 1:
        raise refusal(node, "ONNX-ACTIVATION-PER-CHANNEL", "output has one scale per channel", expected="one scale")
    check_code_type(node, dtype, "output")
    low, high = quantities.qrange(dtype)
    return Output(quant=quant, dtype=dtype, qmin=low, qmax=high)
