"""`average_pool`: one row of averages over windows (meaning: `presim.kernels.average_pool`)."""

import math
from collections.abc import Mapping

import numpy as np

from bringup.kernels.elementwise import (
    Body,
    Figure,
    bound_of,
    by_role,
    emitted,
    normal_pair,
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
from bringup.kernels.quantize_linear import plain_notes
from bringup.kernels.windows import held_rows, window_figures

HEADERS = ("pool_window.h", "requantize.h", "elementwise.h", "port_finish.h", "port_loops.h", "port_wide.h")


def source(row: Row) -> Source:
    """The kernel's code.

    Raises:
        RefusedError: 64-bit sums with multipliers of more than 32 bits.
    """
    out = only(row, "object_out")
    plain = _is_plain(row)
    if plain and _is_wide(row):
        raise refuse(row, "64-bit sums with multipliers of more than 32 bits")
    requant = by_role(row, "requant")
    figures: dict[str, Figure] = {
        **window_figures(row),
        **output_figures(row),
        "x_zero_point": number(row, "x_zero_point"),
        "plain": plain,
        "wide": _is_wide(row),
        "room": _room(row),
        "narrow": _raw_bound(row) < 1 << 15,
        "acc_bits": number(row, "acc_bits"),
        **_count_figures(row),
    }
    pairs = requant[0].name if requant else "nullptr"
    shapes = {p.name: (p.shape[1], 3 if _is_wide(row) else 2) for p in requant}
    return emitted(
        row,
        Body(
            header="average_pool.h",
            figures=figures,
            call=(held_rows(row), f"port::average_pool_kernel<K>(rows, {pairs}, {out.name}, pad_top, pad_bottom);"),
            parameters=with_packed(row, shapes),
            headers=HEADERS,
            vectorized=not plain,
            notes=plain_notes(row, plain=plain),
        ),
    )


def pack(row: Row, constants: Mapping[str, Array]) -> Mapping[str, Array]:
    """For every count multiplier and shift; a multiplier beyond 32 bits in two parts."""
    found = dict(constants)
    for parameter in by_role(row, "requant"):
        planned = [(int(m), int(s)) for m, s in constants[parameter.name].T]
        if not _is_wide(row):
            bound = None if _is_plain(row) else _bound(row)
            found[parameter.name] = np.array([normal_pair(row, m, s, bound) for m, s in planned], np.int32)
            continue
        rows = []
        for multiplier, shift in (normal_shift(row, m, s, _bound(row)) for m, s in planned):
            room = _room(row)
            rows.append((multiplier & ((1 << room) - 1), shift, multiplier >> room))
        found[parameter.name] = np.array(rows, np.int32)
    return found


def _count_figures(row: Row) -> dict[str, Figure]:
    """The table from taps down and across to the number of the count, -1 nowhere; weights of exact sums."""
    (height, width), counts = numbers(row, "kernel"), numbers(row, "counts")
    found = {count: index for index, count in enumerate(counts)}
    table = [0 if len(counts) == 1 else found.get(r * c, 0) for r in range(height + 1) for c in range(width + 1)]
    exact = word(row, "finish") == "exact"
    common = math.lcm(*counts)
    pads = numbers(row, "pads")
    return {
        "count_of": tuple(table),
        "weight": tuple(common // n if exact else 1 for n in counts),
        "padded": bool(number(row, "count_include_pad")),
        "pad_bottom": pads[2],
        "pad_right": pads[3],
    }


def _taps(row: Row) -> int:
    return math.prod(numbers(row, "kernel"))


def _bound(row: Row) -> int:
    """Largest magnitude of a sum without zero point; sums of integers of 32 bits wrap where the accumulator does."""
    dtype = by_role(row, "object_in")[0].dtype
    bound = _taps(row) * bound_of(dtype, number(row, "x_zero_point"))
    return 1 << 31 if _wraps(row) else bound


def _raw_bound(row: Row) -> int:
    """Largest magnitude of a sum of codes; huge where they have more than 8 bits."""
    dtype = by_role(row, "object_in")[0].dtype
    return _taps(row) * bound_of(dtype, 0) if dtype in ("int8", "uint8") else 1 << 31


def _is_wide(row: Row) -> bool:
    return any(p.dtype == "int64" for p in by_role(row, "requant"))


def _room(row: Row) -> int:
    return max(0, 31 - _bound(row).bit_length())


def _is_plain(row: Row) -> bool:
    """Whether sums need 64 bits, or leave as such."""
    x, y = by_role(row, "object_in")[0].dtype, only(row, "object_out").dtype
    exact = word(row, "finish") == "exact" and y != "int32"
    return exact or x == "int64" or not (_wraps(row) or _bound(row) < 1 << 31)


def _wraps(row: Row) -> bool:
    return number(row, "acc_bits") == 32 and by_role(row, "object_in")[0].dtype == "int32"
