"""`transpose`, `reshape`, `flatten`: a whole tensor in another order (meaning: `presim.kernels.transpose`).

One pixel of an image is a vector of its channels already: such a reshape is a requantization.
"""

import math
from collections.abc import Mapping

import numpy as np

from bringup.kernels.elementwise import (
    LANES,
    Body,
    Figure,
    bound_of,
    by_role,
    c_type,
    emitted,
    literal,
    normal_pair,
    number,
    numbers,
    only,
    with_packed,
    word,
)
from bringup.kernels.model import Array, Parameter, Row, Source
from bringup.kernels.quantize_linear import pack_unary, plain_notes, unary

HEADERS = ("requantize.h", "elementwise.h", "port_finish.h", "port_loops.h", "port_wide.h")
NOTE = "element by element: lanes of 8 channels are taken apart"


def source(row: Row) -> Source:
    """The kernel's code."""
    if _keeps_lanes(row):
        return unary(row, only(row, "object_in"), number(row, "x_zero_point"))
    inputs, outputs = by_role(row, "object_in"), by_role(row, "object_out")
    requant = by_role(row, "requant")
    pairs = requant[0].name if requant else "nullptr"
    x_dtype, y_dtype = inputs[0].dtype, outputs[0].dtype
    calls = [
        *_objects(inputs, "from", f"const {c_type(x_dtype)}", _object_elements(_shape(row, "x_shape"))),
        *_objects(outputs, "to", c_type(y_dtype), _object_elements(_shape(row, "y_shape"))),
        f"port::relayout_kernel<K>(from, {pairs}, to);",
    ]
    return emitted(
        row,
        Body(
            header="relayout.h",
            figures=_figures(row, x_dtype, y_dtype),
            call=calls,
            parameters=with_packed(row, {p.name: (p.shape[1], 2) for p in requant}),
            headers=HEADERS,
            vectorized=False,
            notes=(NOTE, *plain_notes(row, plain=x_dtype == "int64")),
        ),
    )


def pack(row: Row, constants: Mapping[str, Array]) -> Mapping[str, Array]:
    """A pair of multiplier and shift for every place of the axis."""
    dtype = by_role(row, "object_in")[0].dtype
    if _keeps_lanes(row):
        return pack_unary(row, constants, dtype, number(row, "x_zero_point"))
    bound = None if dtype == "int64" else bound_of(dtype, number(row, "x_zero_point"))
    found = dict(constants)
    for parameter in by_role(row, "requant"):
        planned = constants[parameter.name].T
        found[parameter.name] = np.array([normal_pair(row, int(m), int(s), bound) for m, s in planned], np.int32)
    return found


def _keeps_lanes(row: Row) -> bool:
    """Whether one object goes in, and the same elements in the same order leave as one."""
    shapes = [_shape(row, name) for name in ("x_shape", "y_shape")]
    if numbers(row, "perm") or number(row, "axis") >= 0 or any(_object_count(s) != 1 for s in shapes):
        return False
    lengths = [s[1] if len(s) == 4 else s[-1] for s in shapes if len(s) != 4 or s[3] == 1]
    return len(lengths) == 2 and lengths[0] == lengths[1]


def _objects(parameters: tuple[Parameter, ...], name: str, kind: str, elements: int) -> list[str]:
    """Statements that make `name`, from the number of an object to its address."""
    if len(parameters) == 1:
        return [f"const auto {name} = [&](int32_t object) {{ return {parameters[0].name} + object * {elements}; }};"]
    held = ", ".join(p.name for p in parameters)
    return [
        f"{kind} *const {name}_objects[] = {{{held}}};",
        f"const auto {name} = [&](int32_t object) {{ return {name}_objects[object]; }};",
    ]


def _figures(row: Row, x_dtype: str, y_dtype: str) -> dict[str, Figure]:
    kind = word(row, "finish")
    x_shape, y_shape = _shape(row, "x_shape"), _shape(row, "y_shape")
    perm = numbers(row, "perm") or tuple(range(len(x_shape)))
    codes: dict[str, Figure] = {}
    if kind != "exact":
        zero_point, inside = number(row, "y_zero_point"), bool(number(row, "zero_point_inside"))
        words = (literal(zero_point), literal(number(row, "qmin")), literal(number(row, "qmax")))
        codes["O"] = f"port::Output<{c_type(y_dtype)}, {', '.join(words)}, {str(inside).lower()}>"
    return {
        "X": c_type(x_dtype),
        "Y": c_type(y_dtype),
        **codes,
        "finish": f"Finish::{kind}",
        "along": "Along::nowhere",
        "wraps": row.saturation == "none",
        "x_zero_point": 0 if kind == "clamp" else number(row, "x_zero_point"),
        "elements": math.prod(x_shape),
        "y_objects": _object_count(y_shape),
        "object_elements": _object_elements(y_shape),
        "axis": number(row, "axis"),
        **_counters(x_shape, perm, "in"),
        **_counters(y_shape, tuple(range(len(y_shape))), "out"),
    }


def _counters(shape: tuple[int, ...], perm: tuple[int, ...], name: str) -> dict[str, Figure]:
    """Axes of a tensor in the order in which they are counted: sizes, objects that a step skips, channel, column."""
    rank = len(shape)
    weights: tuple[int, ...]
    if rank == 4:
        weights, channel, column, width = (shape[2], 0, 1, 0), 1, 3, shape[3]
    else:
        weights = (*(math.prod(shape[i + 1 : -1]) for i in range(rank - 1)), 0)
        channel, column, width = rank - 1, -1, 1
    return {
        f"rank_{name}": rank,
        f"size_{name}": tuple(shape[p] for p in perm),
        f"objects_{name}": tuple(weights[p] for p in perm),
        f"channel_{name}": perm.index(channel),
        f"column_{name}": perm.index(column) if column >= 0 else -1,
        f"width_{name}": width,
    }


def _shape(row: Row, name: str) -> tuple[int, ...]:
    """A shape; a scalar is a vector of one."""
    return numbers(row, name) or (1,)


def _object_count(shape: tuple[int, ...]) -> int:
    return shape[0] * shape[2] if len(shape) == 4 else math.prod(shape[:-1])


def _object_elements(shape: tuple[int, ...]) -> int:
    if len(shape) == 4:
        return -(-shape[1] // LANES) * shape[3] * LANES
    return -(-shape[-1] // LANES) * LANES
