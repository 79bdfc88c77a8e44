"""GlobalAveragePool: exact sum over the image; QLinearGlobalAveragePool's float32 multiplier."""

from dataclasses import replace

import numpy as np

from manifest.model import Op
from oracle.operand import operand
from oracle.ops.average_pool import channel_term, factor_of, global_multiplier
from oracle.value import Array, Exact, Finish, Plan, Scope, Values


def prepare(op: Op, scope: Scope) -> Plan:
    """Inputs (x,) of shape (N, C, ...); attribute factor."""
    source = operand(op, scope, op.inputs[0])
    term, form = channel_term(source)
    elements = int(np.prod(source.shape[2:]))
    factor = factor_of(op) / elements
    exact = Exact(
        scales=tuple(s * factor for s in form.scales),
        bound=max(term.bound, 1) * elements,
        axis=form.axis,
        nominal=tuple(n * factor for n in form.nominal),
    )
    rank = len(source.shape)

    def run(values: Values, finish: Finish) -> Array:
        x = term.load(source.raw(values, rank), exact.dtype)
        sums = x
        for axis in range(2, rank):  # one axis at a time: rows lie apart in memory, so this runs over contiguous pieces
            sums = np.add.reduce(sums, axis=axis, keepdims=True)
        out = np.empty_like(sums, dtype=finish.dtype)
        finish(np.ascontiguousarray(sums), out)
        return out

    plan = Plan(run=run, exact=exact, rank=rank + 1, axis=exact.axis)
    if op.requant is not None and op.requant.reference == "scale_f32":
        return replace(plan, multiplier=global_multiplier(op, scope, elements))
    return plan
