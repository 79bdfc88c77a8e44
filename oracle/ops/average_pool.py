"""AveragePool: exact sums with their counts; QLinearAveragePool's sequential float32 sum."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np

from manifest.model import Op
from oracle.operand import Operand, Term, align, operand
from oracle.pairwise import coded
from oracle.requantize import Keep, finish_for
from oracle.value import Array, Exact, Finish, Plan, Scope, Values, refuse
from oracle.window import Axis, axes_of


def prepare(op: Op, scope: Scope) -> Plan:
    """Inputs (x,); attributes kernel_shape, strides, pads, dilations, ceil_mode, count_include_pad, factor."""
    sizes = scope.tensors[op.inputs[0]].shape[2:]
    kernel = op.attributes.get("kernel_shape", ())
    if not isinstance(kernel, tuple):
        raise refuse(op, "has no kernel_shape")
    rows, cols = axes_of(op, sizes, [int(k) for k in kernel])
    counts = _counts(op, rows, cols)
    if 0 in rows.counts(include_pad=False) or 0 in cols.counts(include_pad=False):
        raise refuse(op, "has a window that holds only padding", expected="data in every window")
    requant = op.requant
    if requant is not None and scope.arithmetic == "reference" and requant.reference == "scale_f32":
        return _float32(op, scope, rows, cols, counts)
    return sum_plan(op, scope, rows, cols, counts)


def _counts(op: Op, rows: Axis, cols: Axis) -> Array:
    """Divisor of every window (OH, OW).

    Where padding counts, a window that ceil mode hangs over the end is divided by what lies within the padded image;
    onnxruntime's QLinearAveragePool divides it by the whole kernel.
    """
    include = bool(op.attributes.get("count_include_pad", 0))
    if include and op.origin == "qoperator":
        return np.full((rows.out, cols.out), rows.kernel * cols.kernel)
    return np.asarray(np.multiply.outer(rows.counts(include_pad=include), cols.counts(include_pad=include)))


def factor_of(op: Op) -> Fraction:
    """The float32 constant that the average is multiplied with, as an exact rational."""
    value = op.attributes.get("factor", 1.0)
    if not isinstance(value, int | float) or not math.isfinite(value) or value <= 0:
        raise refuse(op, "factor is no positive number", got=str(value))
    return Fraction(value)


def sum_plan(op: Op, scope: Scope, rows: Axis, cols: Axis, counts: Array) -> Plan:
    """Sums over windows as exact integers on the scale (input scale x factor / common multiple of the counts)."""
    source = operand(op, scope, op.inputs[0])
    term, form = channel_term(source)
    found = sorted({int(c) for c in counts.reshape(-1).tolist()})
    common = math.lcm(*found)
    weights = common // counts
    factor = factor_of(op)
    by_count = len(found) > 1 and op.requant is not None and len(op.requant.multipliers) > 1
    stated = found[0] if by_count else common  # what the multipliers of this op, or of one behind it, refer to
    exact = Exact(
        scales=tuple(s * factor / common for s in form.scales),
        bound=max(term.bound, 1) * rows.kernel * cols.kernel * int(weights.max()),
        axis=form.axis,
        nominal=tuple(n * factor / stated for n in form.nominal),
    )
    flat = len(source.shape) == 3

    def run(values: Values, finish: Finish) -> Array:
        x = term.load(source.raw(values, len(source.shape)), exact.dtype)
        sums = exact_sums(x[:, :, None] if flat else x, rows, cols)
        if len(found) > 1:
            sums = sums * weights[:, :, None].astype(exact.dtype)
        sums = sums[:, :, 0] if flat else sums
        out = np.empty_like(sums, dtype=finish.dtype)
        finish(sums, out)
        return out

    plan = Plan(run=run, exact=exact, rank=len(source.shape) + 1, axis=exact.axis)
    return _target_by_count(op, scope, plan, counts, found) if by_count and scope.arithmetic == "target" else plan


def channel_term(source: Operand) -> tuple[Term, Exact]:
    """The input with its scales as they are, or on one common unit where it has offsets."""
    form = source.exact
    if not any(form.offsets):
        ones = (1,) * len(form.scales)
        return Term(operand=source, factors=ones, addends=(0,) * len(ones), axis=form.axis), form
    unit, (term,) = align([source])
    nominal = form.nominal[:1] if len(set(form.nominal)) == 1 else ()
    return term, Exact(scales=(unit,), bound=term.bound, nominal=nominal)


def _target_by_count(op: Op, scope: Scope, plan: Plan, counts: Array, found: list[int]) -> Plan:
    """One multiplier and shift per number of elements, ascending, each applied to the plain sum."""
    requant, form = op.requant, plan.exact
    if requant is None or form is None or len(requant.multipliers) != len(found):
        raise refuse(op, "windows hold different numbers of elements", expected=f"{len(found)} multipliers")
    finishes = []
    for n, multiplier, shift in zip(found, requant.multipliers, requant.shifts, strict=True):
        one = replace(op, requant=replace(requant, multipliers=(multiplier,), shifts=(shift,)))
        nominal = tuple(v * found[0] / n for v in form.nominal)
        finishes.append(finish_for(one, scope, replace(plan, exact=replace(form, nominal=nominal), rank=4)))
    masks = [counts == n for n in found]
    masks = [m[0] for m in masks] if plan.rank == 4 else masks

    def run(values: Values, finish: Finish) -> Array:
        del finish
        sums = plan.run(values, Keep(form.dtype))
        out = np.zeros(sums.shape, finishes[0].dtype)
        for mask, one in zip(masks, finishes, strict=True):
            part = np.ascontiguousarray(sums[:, :, mask])
            codes = np.empty(part.shape, one.dtype)
            one(part, codes)
            out[:, :, mask] = codes
        return out

    return Plan(run=run)


def exact_sums(x: Array, rows: Axis, cols: Axis) -> Array:
    """Sum of each window of (N, C, H, W, F) of exact integers: rows first, then columns (any order is exact)."""
    image = x.transpose(2, 1, 3, 0, 4)
    tall = np.zeros((rows.out, *image.shape[1:]), dtype=x.dtype)
    for tap in range(rows.kernel):
        windows, places = rows.valid(tap)
        target = tall[windows]
        np.add(target, image[places], out=target)
    out = np.zeros((*tall.shape[:2], cols.out, *tall.shape[3:]), dtype=x.dtype)
    for tap in range(cols.kernel):
        windows, places = cols.valid(tap)
        target = out[:, :, windows]
        np.add(target, tall[:, :, places], out=target)
    return out.transpose(3, 1, 0, 2, 4)


def window_sums(x: Array, rows: Axis, cols: Axis) -> Array:
    """Float sum of each window of (N, C, H, W, F), taps in order row by row, as onnxruntime adds them."""
    image = x.transpose(2, 1, 3, 0, 4)
    out = np.zeros((rows.out, image.shape[1], cols.out, *image.shape[3:]), dtype=x.dtype)
    for i in range(rows.kernel):
        windows, places = rows.valid(i)
        for j in range(cols.kernel):
            across, where = cols.valid(j)
            target = out[windows, :, across]
            np.add(target, image[places, :, where], out=target)
    return out.transpose(3, 1, 0, 2, 4)


def _float32(op: Op, scope: Scope, rows: Axis, cols: Axis, counts: Array) -> Plan:
    """QLinearAveragePool of onnxruntime: float32 throughout, zero point inside the rounding.

    A window that covers the whole image without padding takes QLinearGlobalAveragePool's formula instead.
    """
    whole = (rows.size, cols.size) == (rows.kernel, cols.kernel) and rows.out == cols.out == 1
    if whole and rows.begin == rows.end == cols.begin == cols.end == 0 and rows.dilation == cols.dilation == 1:
        plan = sum_plan(op, scope, rows, cols, counts)
        multiplier = global_multiplier(op, scope, rows.size * cols.size)
        return Plan(run=plan.run, exact=plan.exact, rank=plan.rank, multiplier=multiplier)
    f32 = np.float32
    side, out, requant = coded(op, scope, op.inputs[0]), scope.quant(op.outputs[0]), op.requant
    if requant is None:
        raise refuse(op, "has no requantization")
    low, high, dtype = f32(requant.qmin), f32(requant.qmax), np.dtype(scope.tensors[op.outputs[0]].dtype)
    flat = len(side.shape) == 3
    divisors = counts.astype(f32)[:, :, None]

    def run(values: Values, finish: Finish) -> Array:
        del finish
        codes = values[side.name]
        x = (codes.astype(f32) - f32(side.point)) * f32(side.scale)
        mean = window_sums(x[:, :, None] if flat else x, rows, cols) / divisors
        scaled = mean / f32(out.scales[0]) + f32(out.zero_points[0])
        result = np.rint(np.clip(scaled, low, high)).astype(dtype)
        return result[:, :, 0] if flat else result

    return Plan(run=run)


def global_multiplier(op: Op, scope: Scope, elements: int) -> Array:
    """The multiplier f32(sx / f32(sy * f32(n))) of QLinearGlobalAveragePool."""
    f32 = np.float32
    x, y = scope.quant(op.inputs[0]).scales[0], scope.quant(op.outputs[0]).scales[0]
    return np.array([f32(x) / f32(f32(y) * f32(elements))], dtype=f32)
