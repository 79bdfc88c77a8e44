"""`max_pool`: one row of a maximum over windows (meaning: `presim.kernels.max_pool`)."""

from collections.abc import Mapping

from bringup.kernels.elementwise import (
    Body,
    Figure,
    bound_of,
    by_role,
    emitted,
    number,
    only,
    output_figures,
    pack_scales,
    scale_shapes,
    with_packed,
    word,
)
from bringup.kernels.model import Array, Row, Source
from bringup.kernels.quantize_linear import is_plain, plain_notes
from bringup.kernels.windows import held_rows, window_figures

HEADERS = ("pool_window.h", "requantize.h", "elementwise.h", "port_finish.h", "port_loops.h", "port_wide.h")


def source(row: Row) -> Source:
    """The kernel's code."""
    out = only(row, "object_out")
    plain = _is_plain(row)
    zero_point = 0 if word(row, "finish") == "clamp" else number(row, "x_zero_point")
    figures: dict[str, Figure] = {
        **window_figures(row),
        **output_figures(row),
        "x_zero_point": zero_point,
        "plain": plain,
    }
    requant = by_role(row, "requant")
    pairs = requant[0].name if requant else "nullptr"
    return emitted(
        row,
        Body(
            header="max_pool.h",
            figures=figures,
            call=(held_rows(row), f"port::max_pool_kernel<K>(rows, {pairs}, {out.name}, pad_top, pad_bottom);"),
            parameters=with_packed(row, scale_shapes(row)),
            headers=HEADERS,
            vectorized=not plain,
            notes=plain_notes(row, plain=plain),
        ),
    )


def pack(row: Row, constants: Mapping[str, Array]) -> Mapping[str, Array]:
    """Multipliers and shifts as pairs."""
    dtype = by_role(row, "object_in")[0].dtype
    return pack_scales(row, constants, None if _is_plain(row) else bound_of(dtype, number(row, "x_zero_point")))


def _is_plain(row: Row) -> bool:
    return is_plain(row, by_role(row, "object_in")[0].dtype, only(row, "object_out").dtype)
