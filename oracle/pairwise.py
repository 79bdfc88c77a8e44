"""Plans of elementwise ops with one or two inputs: exact integers first, or onnxruntime's float32 formula on codes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from manifest.model import QRANGE, Op
from oracle.operand import Operand, walk
from oracle.requantize import FloatFinish, Keep
from oracle.table import EIGHT_BIT, Pointwise, tabulate
from oracle.value import Array, Exact, Finish, Plan, Scope, Values, refuse


@dataclass(frozen=True, slots=True, kw_only=True)
class Coded:
    """An input of a QOperator op: codes with one scale and one zero point."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    scale: float
    point: int
    constant: Array | None

    def raw(self, values: Values, rank: int) -> Array:
        """Codes with leading axes of size 1 up to `rank` logical axes (plus the feed axis)."""
        array = self.constant[..., None] if self.constant is not None else values[self.name]
        return array.reshape((1,) * (rank + 1 - array.ndim) + array.shape)


def coded(op: Op, scope: Scope, name: str) -> Coded:
    """The input `name` as codes."""
    tensor, quant = scope.tensors[name], scope.quant(name)
    if len(quant.scales) != 1:
        raise refuse(op, f"input {name!r} is quantised per channel", expected="one scale")
    return Coded(
        name=name,
        shape=tensor.shape,
        dtype=tensor.dtype,
        scale=quant.scales[0],
        point=quant.zero_points[0],
        constant=scope.constant(name),
    )


def exact_plan(
    op: Op,
    scope: Scope,
    operands: Sequence[Operand],
    exact: Exact,
    combine: Callable[[list[Array]], Array],
    *,
    flat: bool,
    multipliers: tuple[int, ...] | None = None,
) -> Plan:
    """A plan that computes exact integers element by element.

    Args:
        op: its output tensor gives the rank.
        scope: forms of the tensors.
        operands: the inputs.
        exact: form of what `combine` gives.
        combine: from blocks of the raw inputs to a fresh array of integers in `exact.dtype`.
        flat: all elements are treated alike (no channel axis).
        multipliers: see `Plan`.
    """
    rank = len(scope.tensors[op.outputs[0]].shape)
    dtypes = [scope.tensors[o.name].dtype if o.name in scope.tensors else "" for o in operands]
    lut = _lut(op, scope, dtypes)
    tables: dict[int, Pointwise] = {}

    def pointwise(finish: Finish) -> Pointwise:
        if lut is not None:
            return lut

        def direct(blocks: list[Array], out: Array) -> None:
            finish(combine(blocks), out)

        small = flat and all(o.constant is None for o in operands) and all(d in EIGHT_BIT for d in dtypes)
        if not small or _is_cheap(finish, exact):
            return direct
        if id(finish) not in tables:
            tables[id(finish)] = tabulate(dtypes, finish.dtype, direct)
        return tables[id(finish)]

    def run(values: Values, finish: Finish) -> Array:
        arrays = [o.raw(values, rank) for o in operands]
        shape = np.broadcast_shapes(*(a.shape for a in arrays))
        return walk(arrays, shape, finish.dtype, pointwise(finish), flat=flat, axis=exact.axis)

    return Plan(run=run, exact=exact, rank=rank + 1, axis=exact.axis, multiplier=None, multipliers=multipliers)


def _lut(op: Op, scope: Scope, dtypes: Sequence[str]) -> Pointwise | None:
    """The manifest's table for `target`: output codes by input code, from the lowest input code on."""
    requant = op.requant
    if scope.arithmetic != "target" or requant is None or requant.target != "lut" or requant.lut is None:
        return None
    low, high = QRANGE.get(dtypes[0], (0, -1))
    table = scope.arrays[requant.lut]
    if len(dtypes) != 1 or table.shape != (high - low + 1,):
        raise refuse(op, "table does not fit the input", expected=f"{high - low + 1} entries", got=str(table.shape))
    return lambda blocks, out: np.copyto(out, table[blocks[0].astype(np.int64) - low], casting="unsafe")


def _is_cheap(finish: Finish, exact: Exact) -> bool:
    return isinstance(finish, Keep) or (isinstance(finish, FloatFinish) and exact.dtype == np.float32)


def float_plan(op: Op, scope: Scope, sides: Sequence[Coded], formula: Callable[[list[Array]], Array]) -> Plan:
    """A plan that computes clip(rint(formula(codes as float32))); the formula has the zero point inside.

    Args:
        op: with a requantization.
        scope: forms of the tensors.
        sides: the inputs.
        formula: float32 in, float32 out.
    """
    tensor, requant = scope.tensors[op.outputs[0]], op.requant
    if requant is None:
        raise refuse(op, "has no requantization")
    low, high = np.float32(requant.qmin), np.float32(requant.qmax)
    dtype = np.dtype(tensor.dtype)

    def direct(blocks: list[Array], out: Array) -> None:
        values = formula([b.astype(np.float32) for b in blocks])
        np.copyto(out, np.rint(np.clip(values, low, high)), casting="unsafe")

    dtypes = [s.dtype for s in sides]
    step = tabulate(dtypes, dtype, direct) if all(d in EIGHT_BIT for d in dtypes) else direct

    def run(values: Values, finish: Finish) -> Array:
        del finish
        arrays = [s.raw(values, len(tensor.shape)) for s in sides]
        return walk(arrays, np.broadcast_shapes(*(a.shape for a in arrays)), dtype, step, flat=True)

    return Plan(run=run)
