"""What the emitters of convolutions and products share: the function around a kernel and its packed constants.

Figures of a kernel are a C++ struct that its template reads. Layouts, with channels filled up to blocks of 8:

- lanes: bias (blocks * 8,); requant {multiplier, shift} as planned (2, 1), else (blocks, 2, 8).
- tiles: bias and requant (blocks, 64) in the dtype of the weights, a number of 32 bits as digits (`port_raw.h`);
  requant (2, 1) stays.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from bringup.kernels.elementwise import (
    MOST_SHIFT,
    assembled,
    by_role,
    c_type,
    literal,
    number,
    numbers,
    only,
    refuse,
    word,
)
from bringup.kernels.model import Array, Parameter, Row, Source

LANES: Final = 8
TILE: Final = 64
LANE_HEADERS: Final = ("port_lanes.h", "port_finish.h", "port_wide.h", "port_loops.h")
ACC32: Final = 1 << 31
"""Magnitude of what an accumulator of 32 bits holds."""

Figure = bool | int | str | tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """What differs between kernels.

    Attributes:
        header: of `include/`.
        headers: that it includes, transitively.
        figures: members of the struct `K`.
        structs: text of structs that `K` uses.
        call: statements of the function.
        parameters: as packed, without cascades.
        vectorized: whether vectors do the work.
        notes: see `Source`.
    """

    header: str
    headers: tuple[str, ...]
    figures: Mapping[str, Figure]
    call: Sequence[str]
    parameters: tuple[Parameter, ...]
    structs: Sequence[str] = ()
    vectorized: bool = True
    notes: tuple[str, ...] = ()


def emitted(row: Row, body: Body) -> Source:
    """The source of a kernel."""
    figures = [f"    {member(n, v)}" for n, v in body.figures.items()]
    return assembled(row, body, [*body.structs, "struct K {", *figures, "};", ""])


def member(name: str, value: Figure) -> str:
    """A member of a struct of figures."""
    if isinstance(value, bool):
        return f"static constexpr bool {name} = {str(value).lower()};"
    if isinstance(value, int):
        return f"static constexpr int32_t {name} = {literal(value)};"
    if isinstance(value, tuple):
        return f"static constexpr int32_t {name}[] = {{{', '.join(literal(v) for v in value)}}};"
    return f"using {name} = {value};"


def pointers_to(parameters: Sequence[Parameter], name: str, *, writes: bool = False) -> str:
    """Statement that makes an array of pointers."""
    const = "" if writes else "const "
    listed = ", ".join(p.name for p in parameters)
    return f"{const}{c_type(parameters[0].dtype)} *const {name}[] = {{{listed}}};"


def optional(row: Row, role: str) -> Parameter | None:
    """The parameter of a role that a kernel may have."""
    return next((p for p in row.parameters if p.role == role), None)


def argument(row: Row, role: str) -> str:
    """Name of the parameter of a role, `nullptr` where there is none."""
    found = optional(row, role)
    return found.name if found is not None else "nullptr"


def output_figures(row: Row) -> dict[str, Figure]:
    """Figures that `port_lanes.h` asks for."""
    requant = optional(row, "requant")
    return {
        "Out": _out(row),
        "BITS": number(row, "acc_bits"),
        "CHANNELS": number(row, "out_channels"),
        "HAS_BIAS": optional(row, "bias") is not None,
        "UNIFORM": requant is None or requant.shape[-1] == 1,
        "CASCADE_IN": row.attributes.get("cascade_in") == 1,
        "CASCADE_OUT": row.attributes.get("cascade_out") == 1,
        "WRAPS": row.saturation == "none",
        "PROMOTIONS": numbers(row, "acc_shift"),
    }


def _out(row: Row) -> str:
    finish, dtype = word(row, "finish"), word(row, "out_dtype")
    if finish == "exact":
        if int(dtype.removeprefix("int")) < number(row, "acc_bits"):
            raise refuse(row, "integers that leave narrower than they are summed", got=dtype)
        return f"port::Exact<{c_type(dtype)}>"
    if finish != "round" or np.dtype(dtype).itemsize > 2:
        raise refuse(row, "codes that are not rounded to 8 or 16 bits", got=f"{finish} {dtype}")
    inside = "true" if number(row, "zero_point_inside") else "false"
    values = [number(row, n) for n in ("y_zero_point", "qmin", "qmax")]
    return f"port::Output<{c_type(dtype)}, {', '.join(literal(v) for v in values)}, {inside}>"


def splits(dtype: str, zero_point: int) -> bool:
    """Whether codes without their zero point take more than 16 bits."""
    info = np.iinfo(dtype)
    return int(info.min) - zero_point < -(1 << 15) or int(info.max) - zero_point >= 1 << 15


def check_weights(row: Row, dtype: str, points: tuple[int, ...]) -> None:
    """Refuse weights that take more than 16 bits without their zero point."""
    if np.dtype(dtype).itemsize > 2 or any(splits(dtype, p) for p in points):
        raise refuse(row, "weights of more than 16 bits without zero point", got=f"{dtype}, zero points {points}")


def packed(parameter: Parameter, shape: tuple[int, ...], dtype: str = "") -> Parameter:
    """A parameter with another shape."""
    return Parameter(
        name=parameter.name,
        role=parameter.role,
        dtype=dtype or parameter.dtype,
        shape=shape,
        writes=parameter.writes,
    )


def parameters_of(row: Row, changed: Mapping[str, Parameter]) -> tuple[Parameter, ...]:
    """Parameters in C order, some of them packed, by name; cascades left out."""
    kept = [p for p in row.parameters if not p.role.startswith("cascade")]
    return tuple(changed.get(p.name, p) for p in kept)


def blocks_of(channels: int) -> int:
    """Blocks of 8 channels."""
    return -(-channels // LANES)


def lane_parameters(row: Row, *, channels: int = 0) -> dict[str, Parameter]:
    """Packed bias and requant of a kernel on lanes.

    Args:
        row: the kernel.
        channels: how many, 0 = as the attribute says.
    """
    blocks = blocks_of(channels or number(row, "out_channels"))
    found = {p.name: packed(p, (blocks * LANES,)) for p in by_role(row, "bias")}
    for p in by_role(row, "requant"):
        found[p.name] = packed(p, (2, 1) if p.shape[-1] == 1 else (blocks, 2, LANES), "int32")
    return found


def tile_parameters(row: Row, dtype: str) -> dict[str, Parameter]:
    """Packed bias and requant of a kernel on matrix multiplications."""
    blocks = blocks_of(number(row, "out_channels"))
    found = {p.name: packed(p, (blocks, TILE), dtype) for p in by_role(row, "bias")}
    for p in by_role(row, "requant"):
        found[p.name] = packed(p, (2, 1), "int32") if p.shape[-1] == 1 else packed(p, (blocks, TILE), dtype)
    return found


def pack_lanes(row: Row, constants: Mapping[str, Array], *, channels: int = 0) -> dict[str, Array]:
    """Bias and requant as `lane_parameters` says."""
    made = {}
    for name, parameter in lane_parameters(row, channels=channels).items():
        if parameter.role == "bias":
            made[name] = filled(constants[name], parameter.shape[0])
            continue
        pairs = pairs_of(row, constants[name])
        if parameter.shape == (2, 1):
            made[name] = pairs
        else:
            wide = filled(pairs, parameter.shape[0] * LANES)
            made[name] = np.ascontiguousarray(wide.reshape(2, -1, LANES).swapaxes(0, 1))
    return made


def pack_tiles(row: Row, constants: Mapping[str, Array], dtype: str) -> dict[str, Array]:
    """Bias and requant as `tile_parameters` says."""
    made = {}
    for name, parameter in tile_parameters(row, dtype).items():
        blocks = parameter.shape[0]
        if parameter.role == "bias":
            made[name] = tiles(filled(constants[name], blocks * LANES), dtype)
            continue
        pairs = pairs_of(row, constants[name])
        if parameter.shape == (2, 1):
            made[name] = pairs
        else:
            wide = filled(pairs, blocks * LANES)
            made[name] = tiles(wide[0], dtype, wide[1])
    return made


def filled(array: Array, count: int) -> Array:
    """An array whose last axis is filled up; shifts and multipliers repeat the last one, so that none is new."""
    mode = "edge" if array.ndim == 2 else "constant"
    padding = [(0, 0)] * (array.ndim - 1) + [(0, count - array.shape[-1])]
    return np.ascontiguousarray(np.pad(array, padding, mode=mode))  # type: ignore[call-overload]


def tiles(values: Array, dtype: str, shifts: Array | None = None) -> Array:
    """(blocks, 64) digits of 6 bits of integers modulo 2**32, lowest in row 0; `shifts` in row 6.

    The last digit has two bits, the sign among them where the dtype has one.
    """
    blocks = values.astype(np.int64).astype(np.int32).reshape(-1, LANES)
    made = np.zeros((len(blocks), LANES, LANES), dtype)
    for digit in range(6):
        made[:, digit] = ((blocks >> (6 * digit)) & 63).astype(dtype)
    if np.dtype(dtype).kind == "i":
        made[:, 5] = (blocks >> 30).astype(dtype)
    if shifts is not None:
        made[:, 6] = shifts.reshape(-1, LANES).astype(dtype)
    return made.reshape(-1, TILE)


def pairs_of(row: Row, requant: Array) -> Array:
    """(2, n) int32 multipliers and shifts with the results of the planned ones."""
    narrow = number(row, "acc_bits") == 32
    pairs = [normal_pair(row, int(m), int(s)) if narrow else _wide_pair(row, int(m), int(s)) for m, s in requant.T]
    return np.ascontiguousarray(np.array(pairs, np.int32).T)


def normal_pair(row: Row, multiplier: int, shift: int) -> tuple[int, int]:
    """A pair for integers of 32 bits with the same result, shift 0 to 59.

    Raises:
        RefusedError: there is none.
    """
    if multiplier == 0:
        return 0, 0
    if shift < 0:
        multiplier, shift = _upwards(row, multiplier << -shift), 0
    while (shift > MOST_SHIFT or not _fits(multiplier)) and multiplier % 2 == 0 and shift > 0:
        multiplier, shift = multiplier // 2, shift - 1
    if shift > MOST_SHIFT and ACC32 * abs(multiplier) < 1 << (shift - 1):
        # A product below half of 2**shift: what counts is its sign.
        multiplier, shift = (1 if multiplier > 0 else -1), 33
    if shift > MOST_SHIFT or not _fits(multiplier):
        raise refuse(row, f"multiplier {multiplier} with shift {shift}", expected=f"31 bits, at most {MOST_SHIFT}")
    if number(row, "zero_point_inside") and abs(number(row, "y_zero_point")) << shift >= ACC32 * ACC32:
        raise refuse(row, f"a zero point of more than 62 bits in front of a shift of {shift}")
    return multiplier, shift


def _upwards(row: Row, multiplier: int) -> int:
    """A multiplier without right shift: beyond 31 bits every product but 0 is saturated, or its low bits stay."""
    if _fits(multiplier):
        return multiplier
    if row.saturation == "none":
        return (multiplier + ACC32) % (2 * ACC32) - ACC32
    if row.saturation == "":
        raise refuse(row, f"a multiplier of {multiplier.bit_length()} bits where the saturation is not known")
    return ACC32 - 1 if multiplier > 0 else 1 - ACC32


def _wide_pair(row: Row, multiplier: int, shift: int) -> tuple[int, int]:
    while not _fits(multiplier) and multiplier % 2 == 0:
        multiplier, shift = multiplier // 2, shift - 1
    if not _fits(multiplier):
        raise refuse(row, f"a multiplier of {multiplier.bit_length()} bits", expected="at most 31 bits")
    return multiplier, shift


def _fits(multiplier: int) -> bool:
    return -ACC32 < multiplier < ACC32


def objects_of(planned: Parameter, array: Array) -> tuple[Array, bool]:
    """Planned arrays, one for each object of a stream, and whether it is one."""
    if array.ndim == len(planned.shape):
        return array[np.newaxis], False
    return array, True


def sole(row: Row, role: str) -> Parameter:
    """The one parameter of a role."""
    return only(row, role)  # type: ignore[arg-type]
