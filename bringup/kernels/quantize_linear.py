"""`requantize`, `relu`, `clip` and `lut`: objects element by element (meaning: `presim.kernels.quantize_linear`)."""

from collections.abc import Mapping

import numpy as np

from bringup.kernels.elementwise import (
    Body,
    Figure,
    bound_of,
    by_role,
    c_type,
    emitted,
    extents,
    number,
    numbers,
    only,
    output_figures,
    pack_scales,
    refuse,
    scale_shapes,
    with_packed,
    word,
)
from bringup.kernels.model import Array, Parameter, Row, Source

HEADERS = ("elementwise.h", "port_finish.h", "port_loops.h", "port_wide.h")


def source(row: Row) -> Source:
    """The kernel's code.

    Raises:
        RefusedError: bounds in front of a rounding of 64-bit integers, or that no 32 bits hold.
    """
    return _table(row) if row.type == "lut" else unary(row, only(row, "object_in"), number(row, "x_zero_point"))


def pack(row: Row, constants: Mapping[str, Array]) -> Mapping[str, Array]:
    """Constants as the code reads them: pairs, and table entries clamped."""
    if row.type == "lut":
        bounds = number(row, "qmin"), number(row, "qmax")
        return {n: np.clip(a.astype(np.int64), *bounds).astype(a.dtype) for n, a in constants.items()}
    x = only(row, "object_in")
    return pack_unary(row, constants, x.dtype, number(row, "x_zero_point"))


def unary(row: Row, x: Parameter, zero_point: int) -> Source:
    """A kernel with one object and multipliers, `x` of any role (the end of a global average has sums)."""
    kind = word(row, "finish")
    out = only(row, "object_out")
    minimum, maximum = (numbers(row, n) if n in row.attributes else () for n in ("minimum", "maximum"))
    plain = is_plain(row, x.dtype, out.dtype) or max(len(minimum), len(maximum)) > 1
    if kind == "clamp" and (minimum or maximum):
        plain = True
    figures: dict[str, Figure] = {
        "X": c_type(x.dtype),
        **output_figures(row),
        "x_zero_point": 0 if kind == "clamp" else zero_point,
        "plain": plain,
        "minimums": len(minimum),
        "maximums": len(maximum),
        **bounds_of(row, minimum, "minimum", plain=plain),
        **bounds_of(row, maximum, "maximum", plain=plain),
    }
    requant = by_role(row, "requant")
    pairs = requant[0].name if requant else "nullptr"
    return emitted(
        row,
        Body(
            header="requantize.h",
            figures=figures,
            call=(f"port::requantize_kernel<K>({x.name}, {pairs}, {out.name});",),
            parameters=with_packed(row, scale_shapes(row)),
            headers=HEADERS,
            vectorized=not plain,
            notes=plain_notes(row, plain=plain),
        ),
    )


def pack_unary(row: Row, constants: Mapping[str, Array], dtype: str, zero_point: int) -> Mapping[str, Array]:
    """Constants of `unary`."""
    minimum, maximum = (numbers(row, n) if n in row.attributes else () for n in ("minimum", "maximum"))
    plain = is_plain(row, dtype, only(row, "object_out").dtype) or max(len(minimum), len(maximum)) > 1
    return pack_scales(row, constants, None if plain else bound_of(dtype, zero_point))


def is_plain(row: Row, x: str, y: str) -> bool:
    """Whether a kernel goes element by element: integers of 64 bits, or codes that change their type."""
    kind = word(row, "finish")
    return "int64" in (x, y) or (kind == "clamp" and x != y) or (kind == "exact" and y != "int32")


def plain_notes(row: Row, *, plain: bool) -> tuple[str, ...]:
    """Why there are no vectors.

    Raises:
        RefusedError: numbers that are rounded element by element have to know whether they are saturated.
    """
    if plain and word(row, "finish") == "round" and not row.saturation:
        raise refuse(row, "64-bit integers are rounded in a saturation mode that the kernel does not set")
    return ("element by element: vectors hold no 64-bit integers, nor bounds that differ by channel",) if plain else ()


def bounds_of(row: Row, bounds: tuple[int, ...], name: str, *, plain: bool) -> dict[str, Figure]:
    """The array of bounds, filled up to whole blocks.

    Raises:
        RefusedError: a bound does not fit the integers that it is compared with.
    """
    if not bounds:
        return {}
    if not plain and any(not -(1 << 31) <= b < 1 << 31 for b in bounds):
        raise refuse(row, f"{name} of {max(map(abs, bounds)).bit_length()} bits", expected="at most 31 bits")
    size = extents(only(row, "object_out").shape).blocks * 8 if len(bounds) > 1 else 1
    return {name: bounds + bounds[-1:] * (size - len(bounds))}


def _table(row: Row) -> Source:
    x, table, out = only(row, "object_in"), only(row, "lut"), only(row, "object_out")
    size = extents(out.shape)
    figures: dict[str, Figure] = {
        "X": c_type(x.dtype),
        "Y": c_type(out.dtype),
        "blocks": size.blocks,
        "width": size.width,
        "channels": number(row, "out_channels"),
        "lowest": number(row, "lowest"),
    }
    note = "loads from a table are scalar: the parallel lookup reads a table that holds every entry twice in two banks"
    return emitted(
        row,
        Body(
            header="lut.h",
            figures=figures,
            call=(f"port::lut_kernel<K>({x.name}, {table.name}, {out.name});",),
            parameters=row.parameters,
            headers=("elementwise.h", "port_finish.h", "port_loops.h"),
            vectorized=False,
            notes=(note,),
        ),
    )
