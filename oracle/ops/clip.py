"""Clip: attributes qmin and qmax on codes, or minimum and maximum on real values."""

from fractions import Fraction
from typing import Final

import numpy as np

from manifest.model import QRANGE, Op
from oracle.moves import clamped, is_identity
from oracle.operand import Term, common_unit, operand
from oracle.pairwise import exact_plan
from oracle.value import Array, Exact, Plan, Scope, spread

_FLOAT32_MAX: Final = float(np.finfo(np.float32).max)


def prepare(op: Op, scope: Scope) -> Plan:
    """Inputs (x,).

    Where codes are made the limits are those on codes, into which the importer folded the real ones: rounding is
    monotone, and the multiplier of a kernel is proved with them alone.
    """
    if "qmin" in op.attributes or "qmax" in op.attributes:
        low, high = QRANGE[scope.tensors[op.inputs[0]].dtype]
        bounds = [op.attributes.get("qmin", low), op.attributes.get("qmax", high)]
        name = op.inputs[0]
        limits = [int(b) for b in bounds if isinstance(b, int | float)]
        return Plan(run=lambda values, _: clip_codes(values[name], *limits))
    folded = scope.arithmetic != "exact" and op.requant is not None and not is_identity(op, scope)
    if folded:
        return plan_clip(op, scope, None, None)
    return plan_clip(op, scope, _bound(op, "minimum"), _bound(op, "maximum"))


def _bound(op: Op, name: str) -> Fraction | None:
    """A bound; the ends of float32, ONNX's defaults, bound nothing."""
    value = op.attributes.get(name)
    return Fraction(value) if isinstance(value, int | float) and abs(value) < _FLOAT32_MAX else None


def clip_codes(codes: Array, low: int, high: int) -> Array:
    """Codes limited to low..high (high rules where they cross, as in ONNX Clip)."""
    info = np.iinfo(codes.dtype)
    low, high = max(low, info.min), min(high, info.max)
    return np.clip(codes, np.array(low, codes.dtype), np.array(high, codes.dtype))


def plan_clip(op: Op, scope: Scope, low: Fraction | None, high: Fraction | None) -> Plan:
    """max(x, low), then min(x, high), on real values: in units (per channel) of which the limits are multiples too."""
    name = op.inputs[0]
    tensor = scope.tensors[name]
    if tensor.dtype == "float32":
        return Plan(run=lambda values, _: _float(values[name], low, high))
    if is_identity(op, scope):
        return _codes(op, scope, low, high)
    source = operand(op, scope, name)
    form = source.exact
    given = [b for b in (low, high) if b is not None]
    units = [common_unit([s, o, *given]) or s for s, o in zip(form.scales, form.offsets, strict=True)]
    term = Term(
        operand=source,
        factors=tuple(int(s / u) for s, u in zip(form.scales, units, strict=True)),
        addends=tuple(int(o / u) for o, u in zip(form.offsets, units, strict=True)),
        axis=form.axis,
    )
    limits = [None if b is None else [int(b / u) for u in units] for b in (low, high)]
    bound = max([term.bound, *(abs(b) for row in limits if row for b in row)])
    exact = Exact(scales=tuple(units), bound=bound, axis=form.axis, nominal=form.nominal)
    rank = len(tensor.shape)
    lower, upper = (None if row is None else spread(row, form.axis, rank, exact.dtype) for row in limits)

    def combine(blocks: list[Array]) -> Array:
        acc = term.load(blocks[0], exact.dtype)
        acc = acc if lower is None else np.maximum(acc, lower)
        return acc if upper is None else np.minimum(acc, upper)

    flat = form.axis is None and source.points.ndim == 0
    return exact_plan(op, scope, [source], exact, combine, flat=flat)


def _codes(op: Op, scope: Scope, low: Fraction | None, high: Fraction | None) -> Plan:
    """On codes whose quantization stays: the requantization's limits, or the real ones as codes, rounded half-even."""
    name = op.inputs[0]
    tensor, quant = scope.tensors[name], scope.quant(op.inputs[0])
    if op.requant is not None:
        return Plan(run=lambda values, _: clamped(op, tensor, values[name]))
    bottom, top = QRANGE[tensor.dtype]
    pairs = list(zip(quant.scales, quant.zero_points, strict=True))
    lows = [bottom if low is None else max(bottom, min(top, round(low / Fraction(s)) + z)) for s, z in pairs]
    highs = [top if high is None else max(bottom, min(top, round(high / Fraction(s)) + z)) for s, z in pairs]
    lower = spread(lows, quant.axis, len(tensor.shape), tensor.dtype)
    upper = spread(highs, quant.axis, len(tensor.shape), tensor.dtype)
    return Plan(run=lambda values, _: np.minimum(np.maximum(values[name], lower), upper))


def _float(x: Array, low: Fraction | None, high: Fraction | None) -> Array:
    if low is not None:
        x = np.maximum(x, np.float32(float(low)))
    return x if high is None else np.minimum(x, np.float32(float(high)))
