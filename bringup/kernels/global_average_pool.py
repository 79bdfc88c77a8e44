"""`global_average_pool` and its end: sums row by row, then the average (meaning: `presim.kernels`)."""

from collections.abc import Mapping

from bringup.kernels.elementwise import Body, Figure, bound_of, c_type, emitted, extents, number, only
from bringup.kernels.model import Array, Row, Source
from bringup.kernels.quantize_linear import HEADERS as UNARY
from bringup.kernels.quantize_linear import pack_unary, unary

HEADERS = ("average_pool.h", "pool_window.h", "requantize.h", *UNARY)
NARROW_WIDTH = 256
"""Longest row whose halves add up within 16 bits."""


def source(row: Row) -> Source:
    """The kernel's code."""
    if row.type == "global_average_pool_finish":
        return unary(row, only(row, "acc"), 0)
    x, acc = only(row, "object_in"), only(row, "acc")
    size = extents(x.shape)
    zero_point = number(row, "x_zero_point")
    plain = acc.dtype != "int32" or (x.dtype != "int32" and size.width * bound_of(x.dtype, zero_point) >= 1 << 31)
    figures: dict[str, Figure] = {
        "X": c_type(x.dtype),
        "Acc": c_type(acc.dtype),
        "blocks": extents(acc.shape).blocks,
        "width": size.width,
        "channels": number(row, "out_channels"),
        "x_zero_point": zero_point,
        "narrow": x.dtype in ("int8", "uint8") and size.width <= NARROW_WIDTH,
        "plain": plain,
    }
    return emitted(
        row,
        Body(
            header="global_average_pool.h",
            figures=figures,
            call=(f"port::global_sum_kernel<K>({x.name}, {acc.name}, row);",),
            parameters=row.parameters,
            headers=HEADERS,
            vectorized=not plain,
            notes=("element by element: sums of 64 bits",) if plain else (),
        ),
    )


def pack(row: Row, constants: Mapping[str, Array]) -> Mapping[str, Array]:
    """Multipliers and shifts of the end as pairs."""
    if row.type == "global_average_pool_finish":
        return pack_unary(row, constants, only(row, "acc").dtype, 0)
    return constants
