"""`concat`: objects side by side, each brought to the output's scale (meaning: `presim.kernels.concat`)."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from bringup.kernels.elementwise import (
    Body,
    Figure,
    bound_of,
    by_role,
    c_type,
    emitted,
    extents,
    normal_pair,
    number,
    numbers,
    only,
    output_figures,
    with_packed,
    word,
)
from bringup.kernels.model import Array, Parameter, Row, Source
from bringup.kernels.quantize_linear import is_plain, plain_notes

HEADERS = ("operands.h", "requantize.h", "elementwise.h", "port_finish.h", "port_loops.h", "port_wide.h")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Operand:
    """An operand and its place: `first` is a channel or a column of the output."""

    index: int
    parameter: Parameter
    constant: bool
    first: int

    @property
    def shape(self) -> tuple[int, ...]:
        return self.parameter.shape[1:] if self.constant else self.parameter.shape

    @property
    def pointer(self) -> str:
        if not self.constant or self.parameter.shape[0] == 1:
            return self.parameter.name
        return f"{self.parameter.name} + row * {extents(self.shape).elements}"


def source(row: Row) -> Source:
    """The kernel's code."""
    out = only(row, "object_out")
    requant = by_role(row, "requant")
    structs: list[tuple[str, Mapping[str, Figure]]] = []
    calls = []
    plain = False
    for operand in _operands(row):
        name = f"K{operand.index}"
        figures = _figures(row, operand, out)
        plain = plain or figures["plain"] is True
        structs.append((name, figures))
        pairs = f"{requant[0].name} + {2 * operand.index}" if requant else "nullptr"
        calls.append(f"port::concat_operand<{name}>({operand.pointer}, {pairs}, {out.name});")
    size = extents(out.shape)
    channels = number(row, "out_channels")
    calls.append(f"port::clear_padding<{channels}, {size.blocks}, {size.width}>({out.name});")
    shapes = {p.name: (len(structs), 2) for p in requant}
    return emitted(
        row,
        Body(
            header="concat.h",
            figures={},
            structs=structs,
            call=calls,
            parameters=with_packed(row, shapes),
            headers=HEADERS,
            vectorized=not plain,
            notes=plain_notes(row, plain=plain),
        ),
    )


def pack(row: Row, constants: Mapping[str, Array]) -> Mapping[str, Array]:
    """A pair of multiplier and shift for every operand."""
    found = dict(constants)
    for parameter in by_role(row, "requant"):
        pairs = []
        for operand, planned in zip(_operands(row), constants[parameter.name].T, strict=True):
            zero_point = numbers(row, "zero_points")[operand.index]
            plain = operand.parameter.dtype == "int64"
            bound = None if plain else bound_of(operand.parameter.dtype, zero_point)
            pairs.append(normal_pair(row, int(planned[0]), int(planned[1]), bound))
        found[parameter.name] = np.array(pairs, np.int32)
    return found


def _operands(row: Row) -> list[_Operand]:
    inputs, held = list(by_role(row, "object_in")), list(by_role(row, "constant"))
    across = word(row, "along") == "width"
    found, first = [], 0
    for index, constant in enumerate(numbers(row, "constants")):
        parameter = (held if constant else inputs).pop(0)
        operand = _Operand(index=index, parameter=parameter, constant=bool(constant), first=first)
        found.append(operand)
        first += extents(operand.shape).width if across else numbers(row, "channels")[index]
    return found


def _figures(row: Row, operand: _Operand, out: Parameter) -> dict[str, Figure]:
    kind, across = word(row, "finish"), word(row, "along") == "width"
    shared = output_figures(row)
    size, channels = extents(operand.shape), numbers(row, "channels")[operand.index]
    names = ("Y", "O", "finish", "along", "wraps")
    kept: dict[str, Figure] = {name: shared[name] for name in names if name in shared}
    return {
        "X": c_type(operand.parameter.dtype),
        **kept,
        "channels": channels,
        "blocks": -(-channels // 8),
        "width": size.width,
        "y_width": extents(out.shape).width,
        "y_channel": 0 if across else operand.first,
        "y_column": operand.first if across else 0,
        "x_zero_point": 0 if kind == "clamp" else numbers(row, "zero_points")[operand.index],
        "factor": numbers(row, "factors")[operand.index] if kind == "exact" else 1,
        "plain": is_plain(row, operand.parameter.dtype, out.dtype),
    }
