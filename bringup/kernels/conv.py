"""`conv`: rows of a convolution, by matrix multiplications where they do, else by lanes.

By matrix multiplications (`conv_mmul.h`): no groups, codes that are rounded from accumulators of 32 bits, the same
promotion for all channels, weights of 8 bits whose zero points are all 0 (or 128, unsigned), and a device that has a
multiplication of R pixels x 8 x 8 for the types. What both ends of a cascade have in common decides, so both take the
same way. Everything else goes by lanes (`conv_lanes.h`).
"""

from collections.abc import Mapping
from typing import Final

import numpy as np

from bringup.kernels.elementwise import by_role, c_type, number, numbers, word
from bringup.kernels.finish import (
    LANE_HEADERS,
    LANES,
    TILE,
    Body,
    Figure,
    argument,
    blocks_of,
    check_weights,
    emitted,
    lane_parameters,
    objects_of,
    optional,
    output_figures,
    pack_lanes,
    pack_tiles,
    packed,
    parameters_of,
    pointers_to,
    sole,
    splits,
    tile_parameters,
    tiles,
)
from bringup.kernels.model import Array, Row, Source

UNSIGNED_MIDDLE: Final = 128
MULTIPLICATION_HEADERS: Final = ("port_raw.h", *LANE_HEADERS)


def source(row: Row) -> Source:
    """The kernel's code.

    Raises:
        RefusedError: weights that take more than 16 bits without their zero point, or codes of more than 16 bits.
    """
    rows = by_role(row, "object_in")
    figures = {**output_figures(row), **_geometry(row), "X": c_type(rows[0].dtype)}
    pixels = _pixels(row)
    weights = sole(row, "weights")
    call = [pointers_to(rows, "all_rows"), _call(row, "ConvMmul" if pixels else "ConvLanes")]
    if pixels:
        dtype = _tile_dtype(row)
        blocks = number(row, "in_first") - number(row, "x_first"), _in_blocks(row)
        return emitted(
            row,
            Body(
                header="conv_mmul.h",
                headers=MULTIPLICATION_HEADERS,
                figures={
                    **figures,
                    "W": c_type(dtype),
                    "R": pixels,
                    "IN_BLOCK": blocks[0] // LANES,
                    "IN_BLOCKS": blocks[1],
                },
                call=call,
                parameters=parameters_of(
                    row,
                    {**tile_parameters(row, dtype), weights.name: packed(weights, _tile_shape(row), dtype)},
                ),
            ),
        )
    check_weights(row, weights.dtype, numbers(row, "w_zero_points"))
    return emitted(
        row,
        Body(
            header="conv_lanes.h",
            headers=LANE_HEADERS,
            figures={**figures, "W": c_type(weights.dtype), **_lane_figures(row)},
            call=call,
            parameters=parameters_of(
                row, {**lane_parameters(row), weights.name: packed(weights, (_lane_elements(row),))}
            ),
            notes=_notes(row),
        ),
    )


def pack(row: Row, constants: Mapping[str, Array]) -> Mapping[str, Array]:
    """Constants as the code reads them; a stream's weights keep their leading axis of objects.

    Raises:
        RefusedError: a multiplier or a shift that no code is written for.
    """
    weights = sole(row, "weights")
    by_tiles = bool(_pixels(row))
    made = pack_tiles(row, constants, _tile_dtype(row)) if by_tiles else pack_lanes(row, constants)
    if weights.name in constants:
        planned, streamed = objects_of(weights, constants[weights.name])
        arrays = [_pack_tiles(row, w) if by_tiles else _pack_lanes(row, w) for w in planned]
        made[weights.name] = np.stack(arrays) if streamed else arrays[0]
    return made


def _call(row: Row, template: str) -> str:
    out = optional(row, "object_out")
    values = [
        "all_rows",
        sole(row, "weights").name,
        argument(row, "bias"),
        argument(row, "requant"),
        out.name if out is not None else "nullptr",
        "pad_top",
        "pad_bottom",
        "out_offset",
    ]
    return f"port::{template}<K>::run({', '.join(values)});"


def _geometry(row: Row) -> dict[str, Figure]:
    """Figures of the window that both templates ask for."""
    width = by_role(row, "object_in")[0].shape[1]
    kernel, strides, dilations = (numbers(row, n) for n in ("kernel", "strides", "dilations"))
    left, right = numbers(row, "pads_lr")
    out = optional(row, "object_out")
    steps = (width + left + right - (kernel[1] - 1) * dilations[1] - 1) // strides[1] + 1
    return {
        "IN_WIDTH": width,
        "OUT_WIDTH": out.shape[1] if out is not None else steps,
        "KERNEL_HEIGHT": kernel[0],
        "KERNEL_WIDTH": kernel[1],
        "STRIDE": strides[1],
        "DOWN": dilations[0],
        "RIGHT": dilations[1],
        "LEFT": left,
        "X_ZERO": number(row, "x_zero_point"),
        "CHUNK_BLOCKS": blocks_of(sole(row, "weights").shape[0]),
    }


def _pixels(row: Row) -> int:
    """Pixels of one multiplication; 0 = lanes."""
    points = set(numbers(row, "w_zero_points"))
    dtypes = by_role(row, "object_in")[0].dtype, sole(row, "weights").dtype
    centred = points == {0} or (points == {UNSIGNED_MIDDLE} and dtypes[1] == "uint8")
    plain = number(row, "group") == 1 and number(row, "acc_bits") == 32 and word(row, "finish") == "round"
    if not plain or not centred or len(numbers(row, "acc_shift")) != 1 or np.dtype(dtypes[1]).itemsize != 1:
        return 0
    width = _geometry(row)["OUT_WIDTH"]
    found = [
        (-(-int(str(width)) // shape[0]), shape[0])
        for a, b, shape in row.mmul
        if (np.dtype(a).itemsize, np.dtype(b).itemsize) == tuple(np.dtype(d).itemsize for d in dtypes)
        and shape[1:] == (LANES, LANES)
        and np.dtype(a).kind in "iu"
    ]
    return min(found)[1] if found else 0


def _tile_dtype(row: Row) -> str:
    """Dtype of packed weights of a matrix multiplication."""
    points = set(numbers(row, "w_zero_points"))
    return "int8" if points != {0} else sole(row, "weights").dtype


def _in_blocks(row: Row) -> int:
    first = number(row, "in_first") - number(row, "x_first")
    return blocks_of(first + number(row, "in_count")) - first // LANES


def _tile_shape(row: Row) -> tuple[int, ...]:
    count, _, height, width = sole(row, "weights").shape
    head = 1 if number(row, "x_zero_point") else 0
    return blocks_of(count), head + height * width * _in_blocks(row), TILE


def _pack_tiles(row: Row, planned: Array) -> Array:
    """(blocks, head + taps * input blocks, 64): for each tap the input channels of each output channel."""
    dtype = _tile_dtype(row)
    centred = planned.astype(np.int64) - numbers(row, "w_zero_points")[0]
    count, inputs, height, width = planned.shape
    blocks, every, _ = _tile_shape(row)
    at = (number(row, "in_first") - number(row, "x_first")) % LANES
    wide = np.zeros((blocks * LANES, _in_blocks(row) * LANES, height, width), np.int64)
    wide[:count, at : at + inputs] = centred
    split = wide.reshape(blocks, LANES, -1, LANES, height, width).transpose(0, 4, 5, 2, 3, 1)
    body = split.reshape(blocks, -1, TILE).astype(dtype)
    zero_point = number(row, "x_zero_point")
    if zero_point == 0:
        return np.ascontiguousarray(body)
    head = tiles(-zero_point * wide.sum((1, 2, 3)), dtype)
    return np.ascontiguousarray(np.concatenate([head[:, np.newaxis], body], 1).reshape(blocks, every, TILE))


def _lane_figures(row: Row) -> dict[str, Figure]:
    group, outputs, inputs = (number(row, n) for n in ("group", "group_outputs", "in_count"))
    first, out_first = number(row, "in_first") - number(row, "x_first"), number(row, "out_first")
    depthwise = group > 1 and outputs == 1 and inputs == 1 and (first + out_first) % LANES == 0
    channels = range(out_first, out_first + number(row, "out_channels"))
    grouped = group > 1 and not depthwise
    return {
        "IN_COUNT": inputs,
        "GROUPED": grouped,
        "DEPTHWISE": depthwise,
        "IN_FIRST": first + out_first if depthwise else first,
        "SOURCES": tuple(first + c // outputs * inputs for c in channels) if grouped else (first,),
        "W_ZEROS": numbers(row, "w_zero_points"),
        "SPLITS": splits(by_role(row, "object_in")[0].dtype, number(row, "x_zero_point")),
    }


def _lane_elements(row: Row) -> int:
    count, inputs, height, width = sole(row, "weights").shape
    return blocks_of(count) * height * width * inputs * LANES + LANES


def _pack_lanes(row: Row, planned: Array) -> Array:
    """(blocks, height, width, inputs, 8), flat, with 8 elements more at the end."""
    count, inputs, height, width = planned.shape
    blocks = blocks_of(count)
    wide = np.zeros((blocks * LANES, inputs, height, width), planned.dtype)
    wide[:count] = planned
    body = wide.reshape(blocks, LANES, inputs, height, width).transpose(0, 3, 4, 2, 1).ravel()
    return np.concatenate([body, np.zeros(LANES, planned.dtype)])


def _notes(row: Row) -> tuple[str, ...]:
    found = [
        (number(row, "acc_bits") == 64, "accumulators of 64 bits: multiplied and reduced lane by lane"),
        (bool(_lane_figures(row)["GROUPED"]), "groups: inputs gathered lane by lane"),
    ]
    return ("by lanes, not by matrix multiplications", *(text for holds, text in found if holds))
