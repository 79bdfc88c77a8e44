"""Turning a lowered node into an op: which tensor it writes, how it is rounded, what stays exact."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from typing import Final

import numpy as np

from manifest.model import (
    Accumulator,
    Activation,
    AttributeValue,
    Bias,
    DType,
    Op,
    Origin,
    Quantization,
    ReferenceKind,
    Requantization,
)
from manifest.onnx_import import quant as quantities
from manifest.onnx_import.builder import Builder, Units
from manifest.onnx_import.fuse import Bounds, Chain
from manifest.onnx_import.graph import Node, Shape
from manifest.onnx_import.operands import Operand, check_code_type, one_scale
from manifest.onnx_import.requantize import I64, Output, Sums, enumerated, identity, shift_of

CLAMP_TYPES: Final = ("Relu", "Clip")


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """An op without its output.

    Attributes:
        node: the producer.
        type: op type of the arithmetic.
        inputs: manifest tensors, "" = absent.
        requant: parameters for a given output.
        units: of the result where it stays exact; None: not expressible.
        attributes: all defaults filled in.
        origin: which meaning the reference has.
        bias: how the bias is added.
        accumulator: proved bound, or how it follows from the multipliers.
    """

    node: Node
    type: str
    inputs: tuple[str, ...]
    requant: Callable[[Output], Requantization]
    units: Units | None = None
    attributes: Mapping[str, AttributeValue] = field(default_factory=dict)
    origin: Origin = "qdq"
    bias: Bias | None = None
    accumulator: Accumulator | Callable[[Requantization], Accumulator | None] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Result:
    """How the result is rounded and clamped; nothing where it stays exact."""

    requant: Requantization | None = None
    activation: Activation | None = None


def code_of(value: float, quant: Quantization, low: int, high: int) -> int:
    """The code of a real bound as QuantizeLinear gives it, within [low, high]; infinite bounds are the ends."""
    if math.isinf(value):
        return high if value > 0 else low
    with np.errstate(over="ignore"):
        scaled = float(np.rint(np.float32(value) / np.float32(quant.scales[0])))
    return int(min(max(scaled + quant.zero_points[0], low), high))


def clamped_output(quant: Quantization, dtype: DType, bounds: Bounds) -> Output:
    """The output of an op behind a clamp."""
    low, high = quantities.qrange(dtype)
    return Output(
        quant=quant,
        dtype=dtype,
        qmin=code_of(bounds.low, quant, low, high),
        qmax=code_of(bounds.high, quant, low, high),
    )


def quantize_output(b: Builder, node: Node, bounds: Bounds, rank: int) -> Output:
    """What a QuantizeLinear node writes."""
    declared = quantities.declared_type(node)
    quant, dtype = quantities.read(b.graph, node, 1, 2, declared, axis=node.integer("axis", 1), rank=rank)
    one_scale(node, quant, node.outputs[0])
    check_code_type(node, dtype, "output")
    return clamped_output(quant, dtype, bounds)


def _accumulator(draft: Draft, requant: Requantization | None) -> Accumulator | None:
    """The proved bound."""
    given = draft.accumulator
    if given is None or isinstance(given, Accumulator):
        return given
    return None if requant is None else given(requant)


def _append(b: Builder, draft: Draft, name: str, nodes: tuple[str, ...], result: _Result) -> None:
    """Append the op of a draft."""
    b.add_op(
        Op(
            name=draft.node.name,
            type=draft.type,
            inputs=draft.inputs,
            outputs=(name,),
            attributes=dict(draft.attributes),
            origin=draft.origin,
            nodes=nodes,
            accumulator=_accumulator(draft, result.requant),
            bias=draft.bias,
            activation=result.activation,
            requant=result.requant,
        )
    )


def emit_codes(b: Builder, draft: Draft, output: Output, name: str, shape: Shape) -> None:
    """Emit an op that writes an integer ONNX tensor (QOperator nodes, integer side of Q and DQ)."""
    requant = draft.requant(output)
    b.add_tensor(
        name,
        shape,
        output.dtype,
        onnx_dtype=output.dtype,
        quant=output.quant,
        code_range=(output.qmin, output.qmax),
    )
    b.set(name, "codes", name)
    _append(b, draft, name, (draft.node.name,), _Result(requant=requant))


def emit_chain(b: Builder, draft: Draft, chain: Chain, *, own: Bounds | None = None) -> None:
    """Emit a float node with what is fused into it: codes where the chain ends in QuantizeLinear, else exact.

    Args:
        b: collects the result.
        draft: the op.
        chain: what follows it.
        own: clamp of the node itself, inside the chain's.
    """
    nodes = tuple(name for n in chain.nodes for name in (n.name, *n.folded))
    shape = b.shape(chain.output)
    if chain.quantize is None:
        name = b.own_name(chain.output, "exact")
        if own is not None and draft.type not in CLAMP_TYPES:
            inner = b.names.fresh(chain.output, "linear")
            _append_exact(b, draft, inner, shape, nodes)
            draft = _clamp_draft(b, draft, inner, own)
        _append_exact(b, draft, name, shape, nodes)
        b.set(chain.output, "exact", name)
        return
    bounds = (own or Bounds()).then(chain.bounds.low, chain.bounds.high)
    output = quantize_output(b, chain.quantize, bounds, len(shape))
    requant = draft.requant(output)
    b.add_tensor(
        chain.output,
        shape,
        output.dtype,
        onnx_dtype=output.dtype,
        quant=output.quant,
        code_range=(output.qmin, output.qmax),
    )
    b.set(chain.output, "codes", chain.output)
    _append(b, draft, chain.output, nodes, _Result(requant=requant, activation=_activation(own, chain, draft)))


def emit_exact(b: Builder, draft: Draft, onnx_name: str) -> None:
    """Emit an op whose float output nothing rounds (a QGemm without output scale)."""
    name = b.own_name(onnx_name, "exact")
    _append_exact(b, draft, name, b.shape(onnx_name), (draft.node.name,))
    b.set(onnx_name, "exact", name)


def _append_exact(b: Builder, draft: Draft, name: str, shape: Shape, nodes: tuple[str, ...]) -> None:
    """Append an op whose result is not rounded."""
    b.add_tensor(name, shape, "exact", onnx_dtype="float32", role="accumulator")
    if draft.units is not None:
        b.units[name] = draft.units
    _append(b, draft, name, nodes, _Result())


def _clamp_draft(b: Builder, draft: Draft, source: str, bounds: Bounds) -> Draft:
    """A Clip op of its own for the clamp of a FusedConv or FusedGemm that nothing rounds."""
    return Draft(
        node=replace(draft.node, name=b.names.fresh(draft.node.name, "Clip")),
        type="Clip",
        inputs=(source,),
        requant=draft.requant,
        units=draft.units,
        attributes=bounds.attributes(),
    )


def _activation(own: Bounds | None, chain: Chain, draft: Draft) -> Activation | None:
    """The fused activation; the own clamp of a FusedConv or FusedGemm counts, that of a Relu or Clip op does not."""
    if own is None or draft.type in CLAMP_TYPES:
        return chain.activation()
    whole = Chain(
        nodes=chain.nodes,
        bounds=own.then(chain.bounds.low, chain.bounds.high),
        relu_only=chain.relu_only and (own.low, own.high) == (0.0, math.inf),
        quantize=chain.quantize,
        output=chain.output,
    )
    return whole.activation()


def emit_real(b: Builder, draft: Draft, source: Operand, code_range: tuple[int, int]) -> None:
    """Emit an op that keeps the codes' quantization: the value of its float output stays that of integers."""
    onnx_name = draft.node.outputs[0]
    name = b.own_name(onnx_name, "codes")
    output = Output(quant=source.quant, dtype=source.tensor.dtype, qmin=code_range[0], qmax=code_range[1])
    b.add_tensor(
        name,
        b.shape(onnx_name),
        output.dtype,
        onnx_dtype="float32",
        quant=output.quant,
        code_range=_inside(source.code_range, code_range),
    )
    b.set(onnx_name, "real", name)
    _append(b, draft, name, (draft.node.name,), _Result(requant=identity(output)))


def _inside(inner: tuple[int, int], outer: tuple[int, int]) -> tuple[int, int]:
    """A range of codes after a clamp."""
    low, high = outer
    return min(max(inner[0], low), high), min(max(inner[1], low), high)


def unary_requant(source: Operand, output: Output, *, kernel: bool = False) -> Requantization:
    """Requantization of codes of one scale to another: identity where nothing changes, else proved by enumeration.

    `kernel`: the reference is onnxruntime's f32(f32((x - z) * sx) / sy) instead of the exact rational.
    """
    if source.quant == output.quant and source.tensor.dtype == output.dtype:
        return identity(output)
    sums = Sums(
        low=source.code_range[0] - source.zero_point,
        high=source.code_range[1] - source.zero_point,
        ratio=source.scale / output.scale,
    )
    if kernel:
        return enumerated(sums, output, "scale_f32", expected=partial(_requantized, source, output))
    return enumerated(sums, output, "srs" if source.power_of_two and output.power_of_two else "rational")


def _requantized(source: Operand, output: Output, values: I64, _: Sums) -> I64:
    """What onnxruntime's look-up tables hold, before zero point and clamp."""
    scaled = values.astype(np.float32) * np.float32(float(source.scale)) / np.float32(float(output.scale))
    return np.asarray(np.rint(scaled), np.int64)


def unit_ratios(units: Units, output: Output) -> list[Fraction]:
    """Units of an exact tensor over the output scale."""
    return [u / output.scale for u in units.values]


def reference_of(units: Units, output: Output) -> ReferenceKind:
    """`srs` where the result is a shift of integers: whole units, every scale a power of two."""
    shifts = units.integral and output.power_of_two and all(shift_of(u) is not None for u in units.values)
    return "srs" if shifts else "rational"
