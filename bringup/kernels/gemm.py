"""`gemm`, `gemm_rows`, `gemm_finish`: vectors times a constant matrix, 16 output channels at a time (`gemm.h`).

Packed weights, flat: for each 16 channels (K, 16), more than 8 that are left over filled up; for 8 or less that are
left over (K / 2 rounded up, 2, 8). gemm_rows: the same for each row of the image. Accumulators between gemm_rows and
gemm_finish: blocks of 16 channels.
"""

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from bringup.kernels.elementwise import c_type, number, numbers
from bringup.kernels.finish import (
    LANE_HEADERS,
    LANES,
    Body,
    Figure,
    argument,
    check_weights,
    emitted,
    lane_parameters,
    objects_of,
    optional,
    output_figures,
    pack_lanes,
    packed,
    parameters_of,
    sole,
    splits,
)
from bringup.kernels.model import Array, Parameter, Row, Source

COLUMNS: Final = 16
WIDE_NOTE: Final = "accumulators of 64 bits: multiplied and reduced lane by lane"


def source(row: Row) -> Source:
    """The kernel's code.

    Raises:
        RefusedError: weights that take more than 16 bits without their zero point, or codes of more than 16 bits.
    """
    return emitted(row, _BODIES[row.type](row))


def pack(row: Row, constants: Mapping[str, Array]) -> Mapping[str, Array]:
    """Constants as the code reads them; a stream's weights keep their leading axis of objects.

    Raises:
        RefusedError: a multiplier or a shift that no code is written for.
    """
    made = pack_lanes(row, constants) if row.type != "gemm_rows" else {}
    weights = optional(row, "weights")
    if weights is not None and weights.name in constants:
        planned, streamed = objects_of(weights, constants[weights.name])
        arrays = [_columns(w, weights.shape[-1]) for w in planned]
        made[weights.name] = np.stack(arrays) if streamed else arrays[0]
    return made


def columns_of(channels: int) -> int:
    """Blocks of 16 channels."""
    return -(-channels // COLUMNS)


def elements_of(terms: int, channels: int) -> int:
    """Elements of a packed matrix."""
    left = channels % COLUMNS
    full = channels // COLUMNS + (left > LANES)
    return full * terms * COLUMNS + (-(-terms // 2) * COLUMNS if 0 < left <= LANES else 0)


def _columns(planned: Array, channels: int) -> Array:
    """(..., K, N) -> (..., elements)."""
    *outer, terms, count = planned.shape
    flat = planned.reshape(-1, terms, count)
    wide = np.zeros((len(flat), terms + terms % 2, columns_of(channels) * COLUMNS), planned.dtype)
    wide[:, :terms, :count] = flat
    half = 0 < channels % COLUMNS <= LANES
    full = columns_of(channels) - half
    blocks = wide[:, :terms, : full * COLUMNS].reshape(len(flat), terms, full, COLUMNS).swapaxes(1, 2)
    parts = [blocks.reshape(len(flat), -1)]
    if half:
        parts.append(wide[:, :, full * COLUMNS : full * COLUMNS + LANES].reshape(len(flat), -1))
    return np.ascontiguousarray(np.concatenate(parts, 1).reshape(*outer, -1))


def _weights(row: Row) -> tuple[Parameter, dict[str, Figure]]:
    """Packed weights and the figures of the sums."""
    weights, points = sole(row, "weights"), numbers(row, "w_zero_points")
    x = sole(row, "object_in")
    check_weights(row, weights.dtype, points)
    *outer, terms, channels = weights.shape
    zero_point = number(row, "x_zero_point")
    return packed(weights, (*outer, elements_of(terms, channels))), {
        "X": c_type(x.dtype),
        "W": c_type(weights.dtype),
        "X_ZERO": zero_point,
        "SPLITS": splits(x.dtype, zero_point),
        "W_ZEROS": points,
        "CHUNK": channels,
    }


def _gemm(row: Row) -> Body:
    weights, figures = _weights(row)
    out = optional(row, "object_out")
    values = [sole(row, "object_in").name, weights.name, argument(row, "bias"), argument(row, "requant")]
    values += [out.name if out is not None else "nullptr", "out_offset"]
    return Body(
        header="gemm.h",
        headers=LANE_HEADERS,
        figures={
            **output_figures(row),
            **figures,
            "IN_FIRST": number(row, "in_first") - number(row, "x_first"),
            "IN_COUNT": number(row, "in_count"),
        },
        call=[f"port::Gemm<K>::run({', '.join(values)});"],
        parameters=parameters_of(row, {**lane_parameters(row), weights.name: weights}),
        notes=_notes(row),
    )


def _accumulators(row: Row) -> Parameter:
    acc = sole(row, "acc")
    return packed(acc, (columns_of(number(row, "out_channels")) * COLUMNS,))


def _rows(row: Row) -> Body:
    weights, figures = _weights(row)
    acc, x = _accumulators(row), sole(row, "object_in")
    return Body(
        header="gemm.h",
        headers=LANE_HEADERS,
        figures={
            **figures,
            "BITS": number(row, "acc_bits"),
            "CHANNELS": number(row, "out_channels"),
            "IN_WIDTH": x.shape[1],
            "IN_CHANNELS": number(row, "in_channels"),
        },
        call=[f"port::GemmRows<K>::run({x.name}, {weights.name}, {acc.name}, row);"],
        parameters=parameters_of(row, {weights.name: weights, acc.name: acc}),
        notes=_notes(row),
    )


def _finish(row: Row) -> Body:
    acc = _accumulators(row)
    values = [acc.name, argument(row, "bias"), argument(row, "requant"), sole(row, "object_out").name]
    return Body(
        header="gemm.h",
        headers=LANE_HEADERS,
        figures=output_figures(row),
        call=[f"port::GemmFinish<K>::run({', '.join(values)});"],
        parameters=parameters_of(row, {**lane_parameters(row), acc.name: acc}),
        notes=_notes(row),
    )


def _notes(row: Row) -> tuple[str, ...]:
    return (WIDE_NOTE,) if number(row, "acc_bits") == 64 else ()


_BODIES: Final[Mapping[str, Callable[[Row], Body]]] = {"gemm": _gemm, "gemm_rows": _rows, "gemm_finish": _finish}
