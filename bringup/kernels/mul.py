"""`mul`: an object times a constant, rounded once (meaning: `presim.kernels.mul`)."""

from collections.abc import Mapping

from bringup.kernels.elementwise import (
    Body,
    Figure,
    bound_of,
    by_role,
    emitted,
    only,
    output_figures,
    pack_scales,
    scale_shapes,
    with_packed,
    word,
)
from bringup.kernels.model import Array, Row, Source
from bringup.kernels.operands import Operand, operand_figures, operands_of
from bringup.kernels.quantize_linear import plain_notes

HEADERS = ("operands.h", "requantize.h", "elementwise.h", "port_finish.h", "port_loops.h", "port_wide.h")


def source(row: Row) -> Source:
    """The kernel's code."""
    pair = operands_of(row, ("x", "c"), 1)
    out = only(row, "object_out")
    plain = _is_plain(row, pair)
    figures: dict[str, Figure] = {**output_figures(row), **operand_figures(row, pair, 1), "plain": plain}
    requant = by_role(row, "requant")
    pairs = requant[0].name if requant else "nullptr"
    return emitted(
        row,
        Body(
            header="mul.h",
            figures=figures,
            call=(f"port::mul_kernel<K>({pair[0].pointer}, {pair[1].pointer}, {pairs}, {out.name});",),
            parameters=with_packed(row, scale_shapes(row)),
            headers=HEADERS,
            vectorized=not plain,
            notes=plain_notes(row, plain=plain),
        ),
    )


def pack(row: Row, constants: Mapping[str, Array]) -> Mapping[str, Array]:
    """Multipliers and shifts as pairs."""
    pair = operands_of(row, ("x", "c"), 1)
    return pack_scales(row, constants, None if _is_plain(row, pair) else _bound(pair))


def _bound(pair: tuple[Operand, Operand]) -> int:
    x, c = (bound_of(o.parameter.dtype, o.zero_point) for o in pair)
    return x * c


def _is_plain(row: Row, pair: tuple[Operand, Operand]) -> bool:
    exact = word(row, "finish") == "exact" and only(row, "object_out").dtype != "int32"
    return exact or _bound(pair) >= 1 << 31
