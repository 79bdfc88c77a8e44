"""`add`: the sum of two objects, rounded once (meaning: `presim.kernels.add`)."""

from collections.abc import Mapping

import numpy as np

from bringup.kernels.elementwise import (
    INT64,
    MOST_SHIFT,
    Body,
    Figure,
    bound_of,
    by_role,
    emitted,
    normal_shift,
    number,
    numbers,
    only,
    output_figures,
    refuse,
    with_packed,
    word,
)
from bringup.kernels.model import Array, Row, Source
from bringup.kernels.operands import Operand, operand_figures, operands_of
from bringup.kernels.quantize_linear import plain_notes

HEADERS = ("operands.h", "requantize.h", "elementwise.h", "port_finish.h", "port_loops.h", "port_wide.h")


def source(row: Row) -> Source:
    """The kernel's code.

    Raises:
        RefusedError: operands of 64 bits that are rounded.
    """
    pair = operands_of(row, ("a", "b"), number(row, "constant"))
    out = only(row, "object_out")
    kind = word(row, "finish")
    wide = _is_wide(row)
    long = [o.parameter.name for o in pair if o.parameter.dtype == "int64"]
    if long and kind == "round":
        raise refuse(row, "a rounded sum of 64-bit integers", expected=f"products within {INT64} bits")
    plain = kind == "exact" and (bool(long) or out.dtype != "int32")
    factors = numbers(row, "factors") if kind == "exact" else (1, 1)
    figures: dict[str, Figure] = {
        **output_figures(row),
        **operand_figures(row, pair, number(row, "constant")),
        "plain": plain,
        "wide": wide,
        **{f"{n}_room": _room(o) for n, o in zip("ab", pair, strict=True)},
        "a_factor": factors[0],
        "b_factor": factors[1],
    }
    requant = by_role(row, "requant")
    pairs = requant[0].name if requant else "nullptr"
    shapes = {p.name: (5 if wide else 3,) for p in requant}
    return emitted(
        row,
        Body(
            header="add.h",
            figures=figures,
            call=(f"port::add_kernel<K>({pair[0].pointer}, {pair[1].pointer}, {pairs}, {out.name});",),
            parameters=with_packed(row, shapes),
            headers=HEADERS,
            vectorized=not plain,
            notes=plain_notes(row, plain=plain),
        ),
    )


def pack(row: Row, constants: Mapping[str, Array]) -> Mapping[str, Array]:
    """Multipliers around their shift; beyond 32 bits in two parts.

    Raises:
        RefusedError: the sum does not fit an accumulator.
    """
    found = dict(constants)
    for parameter in by_role(row, "requant"):
        multipliers = [int(v) for v in constants[parameter.name][:2]]
        shift = int(constants[parameter.name][2])
        pair = operands_of(row, ("a", "b"), number(row, "constant"))
        found[parameter.name] = np.array(_packed(row, pair, multipliers, shift), np.int32)
    return found


def _packed(row: Row, pair: tuple[Operand, Operand], multipliers: list[int], shift: int) -> list[int]:
    bounds = [bound_of(o.parameter.dtype, o.zero_point) for o in pair]
    if shift < 0:
        multipliers, shift = [m << -shift for m in multipliers], 0
    while any(multipliers) and shift > 0 and _may_halve(multipliers, shift):
        multipliers, shift = [m // 2 for m in multipliers], shift - 1
    largest = sum(b * abs(m) for b, m in zip(bounds, multipliers, strict=True))
    _, shift = normal_shift(row, largest | 1, shift, 1) if largest else (0, min(shift, 1))
    low, high = [], []
    for multiplier, operand in zip(multipliers, pair, strict=True):
        room = _room(operand) if _is_wide(row) and not _fits(multiplier) else INT64
        low.append(multiplier if room == INT64 else multiplier & ((1 << room) - 1))
        high.append(0 if room == INT64 else multiplier >> room)
    if not all(map(_fits, [*low, *high])):
        bits = max(m.bit_length() for m in multipliers)
        raise refuse(row, f"a multiplier of {bits} bits", expected="products within an accumulator")
    return [low[0], shift, low[1], *(high if _is_wide(row) else ())]


def _may_halve(multipliers: list[int], shift: int) -> bool:
    """Whether both can be halved, and one or the shift is too large."""
    return all(m % 2 == 0 for m in multipliers) and (shift > MOST_SHIFT or not all(map(_fits, multipliers)))


def _is_wide(row: Row) -> bool:
    return any(p.dtype == "int64" for p in by_role(row, "requant"))


def _room(operand: Operand) -> int:
    """Bits by which a value may be shifted left within 32 bits."""
    return max(0, 31 - bound_of(operand.parameter.dtype, operand.zero_point).bit_length())


def _fits(multiplier: int) -> bool:
    return -(1 << 31) <= multiplier < 1 << 31
