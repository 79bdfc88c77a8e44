"""What the emitters of elementwise kernels, pools and layouts share.

That is: figures of a kernel as a C++ struct and the function around it, extents of objects, multipliers and shifts.
Why a struct and no template arguments: an emitted file reads as a table of its figures, and a header asks for them by
name.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np

from bringup.kernels.model import Array, Parameter, Role, Row, Source, symbol_of
from manifest.errors import Problem, RefusedError

LANES: Final = 8
MOST_SHIFT: Final = 59
"""What the shift-round-saturate unit of AIE-ML takes (Intrinsics User Guide UG1583, "Shift-Round-Saturate")."""

INT64: Final = 63
"""Bits of the magnitude that an accumulator holds."""

ROUNDINGS: Final[Mapping[str, str]] = {
    "floor": "floor",
    "ceil": "ceil",
    "pos_inf": "positive_inf",
    "neg_inf": "negative_inf",
    "sym_inf": "symmetric_inf",
    "sym_zero": "symmetric_zero",
    "conv_even": "conv_even",
    "conv_odd": "conv_odd",
    "sym_floor": "symmetric_floor",
    "sym_ceil": "symmetric_ceil",
}
"""Mode of the manifest -> `aie::rounding_mode`."""

Figure = bool | int | str | tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Extents:
    """An object as the code sees it: (blocks, width, 8); a vector has width 1."""

    blocks: int
    width: int

    @property
    def elements(self) -> int:
        """All lanes."""
        return self.blocks * self.width * LANES


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """What differs between kernels.

    Attributes:
        header: of `include/`.
        figures: members of `K`, types as `using` where the name begins with a capital letter.
        call: statements inside the function.
        parameters: as packed.
        vectorized: whether vectors do the work.
        notes: see `Source`.
        headers: that `header` includes, transitively.
    """

    header: str
    figures: Mapping[str, Figure]
    call: Sequence[str]
    parameters: tuple[Parameter, ...]
    headers: tuple[str, ...]
    vectorized: bool = True
    notes: tuple[str, ...] = ()
    structs: Sequence[tuple[str, Mapping[str, Figure]]] = ()


def emitted(row: Row, body: Body) -> Source:
    """The source of a kernel."""
    structs = body.structs or (("K", body.figures),)
    inside = ["using port::Along, port::Finish;", "", *(line for n, f in structs for line in _struct(n, f))]
    return assembled(row, body, inside)


class Parts(Protocol):
    """What every kernel's body has, whoever wrote its figures."""

    @property
    def header(self) -> str:
        """Of `include/`."""

    @property
    def headers(self) -> tuple[str, ...]:
        """That it includes, transitively."""

    @property
    def call(self) -> Sequence[str]:
        """Statements inside the function."""

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """As packed."""

    @property
    def vectorized(self) -> bool:
        """Whether vectors do the work."""

    @property
    def notes(self) -> tuple[str, ...]:
        """See `Source`."""


def assembled(row: Row, body: Parts, inside: Sequence[str]) -> Source:
    """A kernel file: figures in a namespace of its own, then the one function, bracketed by events.

    Args:
        row: of the kernel.
        body: what differs.
        inside: lines of the namespace.
    """
    symbol = symbol_of(row.name)
    arguments = [pointer(p) for p in body.parameters]
    arguments += [f"[[maybe_unused]] int32_t {name}" for name in row.scalars]
    lines = [
        f"// {row.type} of {row.op!r}" if row.op else f"// {row.type}",
        f'#include "{body.header}"',
        "",
        "namespace {",
        "",
        *inside,
        "}  // namespace",
        "",
        f'extern "C" void {symbol}(',
        ",\n".join(f"    {text}" for text in arguments) + ") {",
        "    event0();",
        *modes(row),
        *(f"    {line}" for line in body.call),
        "    event1();",
        "}",
        "",
    ]
    return Source(
        symbol=symbol,
        text="\n".join(lines),
        headers=(body.header, *body.headers),
        parameters=body.parameters,
        scalars=row.scalars,
        vectorized=body.vectorized,
        notes=body.notes,
    )


def modes(row: Row) -> list[str]:
    """Statements that set the modes of the tile; none where the kernel relies on what the tile is in."""
    lines = []
    if row.rounding:
        lines.append(f"    aie::set_rounding(aie::rounding_mode::{ROUNDINGS[row.rounding]});")
    if row.saturation:
        lines.append(f"    aie::set_saturation(aie::saturation_mode::{row.saturation});")
    return lines


def pointer(parameter: Parameter) -> str:
    """A pointer parameter in C++."""
    const = "" if parameter.writes else "const "
    return f"[[maybe_unused]] {const}{c_type(parameter.dtype)} *__restrict {parameter.name}"


def _struct(name: str, figures: Mapping[str, Figure]) -> list[str]:
    return [f"struct {name} {{", *(f"    {_member(n, v)}" for n, v in figures.items()), "};", ""]


def _member(name: str, value: Figure) -> str:
    if isinstance(value, bool):
        return f"static constexpr bool {name} = {str(value).lower()};"
    if isinstance(value, int):
        return f"static constexpr {_width([value])} {name} = {literal(value)};"
    if isinstance(value, tuple):
        return f"static constexpr {_width(value)} {name}[] = {{{', '.join(literal(v) for v in value)}}};"
    if name[0].isupper():
        return f"using {name} = {value};"
    return f"static constexpr auto {name} = {value};"


def _width(values: Sequence[int]) -> str:
    return "int32_t" if all(-(1 << 31) <= v < 1 << 31 for v in values) else "int64_t"


def literal(value: int) -> str:
    """A C++ integer."""
    if value == -(1 << 63):
        return "INT64_MIN"
    if value == -(1 << 31):
        return "INT32_MIN"
    return f"{value}" if abs(value) < 1 << 31 else f"INT64_C({value})"


def c_type(dtype: str) -> str:
    """C++ name of numpy's name."""
    return f"{dtype}_t"


def by_role(row: Row, role: Role) -> tuple[Parameter, ...]:
    """Parameters of a role."""
    return tuple(p for p in row.parameters if p.role == role)


def only(row: Row, role: Role) -> Parameter:
    """The one parameter of a role.

    Raises:
        ValueError: there are none or several.
    """
    found = by_role(row, role)
    if len(found) != 1:
        msg = f"kernel {row.name}: expected one parameter {role}, got {len(found)}"
        raise ValueError(msg)
    return found[0]


def extents(shape: tuple[int, ...]) -> Extents:
    """Extents of a row (blocks, W, 8), of sums (blocks, 8) or of a vector."""
    if len(shape) == 3:
        return Extents(blocks=shape[0], width=shape[1])
    return Extents(blocks=int(np.prod(shape)) // LANES, width=1)


def number(row: Row, name: str) -> int:
    """An integer attribute."""
    value = row.attributes[name]
    if not isinstance(value, int):
        msg = f"kernel {row.name}: attribute {name}: expected an integer, got {value!r}"
        raise TypeError(msg)
    return value


def numbers(row: Row, name: str) -> tuple[int, ...]:
    """A tuple of integers."""
    value = row.attributes[name]
    if not isinstance(value, tuple):
        msg = f"kernel {row.name}: attribute {name}: expected a tuple, got {value!r}"
        raise TypeError(msg)
    return value


def word(row: Row, name: str) -> str:
    """A word."""
    value = row.attributes[name]
    if not isinstance(value, str):
        msg = f"kernel {row.name}: attribute {name}: expected a word, got {value!r}"
        raise TypeError(msg)
    return value


def refuse(row: Row, what: str, *, expected: str = "", got: str = "") -> RefusedError:
    """A kernel that no code is written for."""
    problem = Problem(
        code="BRINGUP-KERNEL",
        where=f"kernel {row.name!r} ({row.type} of op {row.op!r})",
        what=what,
        expected=expected,
        got=got,
        remedy="cut the model there and run the op on the host (--host-ops, --cut)",
    )
    return RefusedError((problem,))


def output_figures(row: Row) -> dict[str, Figure]:
    """Type of the output, how integers leave, channels, blocks and width; `O` where there are codes."""
    out = only(row, "object_out")
    kind, size = word(row, "finish"), extents(out.shape)
    figures: dict[str, Figure] = {"Y": c_type(out.dtype)}
    if kind != "exact":
        zero_point, inside = number(row, "y_zero_point"), number(row, "zero_point_inside")
        low, high = number(row, "qmin"), number(row, "qmax")
        words = [c_type(out.dtype), literal(zero_point), literal(low), literal(high), str(bool(inside)).lower()]
        figures["O"] = f"port::Output<{', '.join(words)}>"
    return {
        **figures,
        "finish": f"Finish::{kind}",
        "along": f"Along::{along_of(row)}",
        "wraps": row.saturation == "none",
        "channels": number(row, "out_channels"),
        "blocks": size.blocks,
        "width": size.width,
    }


def along_of(row: Row) -> str:
    """Where multipliers differ; of an op that does not say it is the channel if there are several."""
    found = by_role(row, "requant")
    if not found or found[0].shape[-1] == 1 or row.type in ("add", "concat", "average_pool"):
        return "nowhere"
    return "width" if row.attributes.get("along") == "width" else "channel"


def packed(parameter: Parameter, shape: tuple[int, ...]) -> Parameter:
    """A parameter of 32-bit integers of another shape."""
    return Parameter(name=parameter.name, role=parameter.role, dtype="int32", shape=shape, writes=parameter.writes)


def with_packed(row: Row, shapes: Mapping[str, tuple[int, ...]]) -> tuple[Parameter, ...]:
    """All parameters, some with a packed shape of 32-bit integers, by name."""
    return tuple(packed(p, shapes[p.name]) if p.name in shapes else p for p in row.parameters)


def scale_shapes(row: Row) -> dict[str, tuple[int, ...]]:
    """Packed shape of multipliers and shifts of a kernel that has one pair, or one for each channel or place."""
    shapes: dict[str, tuple[int, ...]] = {}
    for parameter in by_role(row, "requant"):
        kind = along_of(row)
        count = parameter.shape[-1]
        shapes[parameter.name] = {
            "nowhere": (2,),
            "width": (count, 2),
            "channel": (-(-count // LANES), 2, LANES),
        }[kind]
    return shapes


def pack_scales(row: Row, constants: Mapping[str, Array], bound: int | None) -> dict[str, Array]:
    """Constants, with multipliers and shifts as `scale_shapes` says.

    Args:
        row: the kernel.
        constants: planned arrays by name.
        bound: as in `normal_pair`.
    """
    found = dict(constants)
    for name, shape in scale_shapes(row).items():
        planned = constants[name]
        pairs = [normal_pair(row, int(m), int(s), bound) for m, s in planned.T]
        if len(shape) < 3:
            found[name] = np.array(pairs, np.int32).reshape(shape)
            continue
        filled = pairs + [(0, pairs[-1][1])] * (shape[0] * LANES - len(pairs))
        found[name] = np.ascontiguousarray(np.array(filled, np.int32).reshape(shape[0], LANES, 2).swapaxes(1, 2))
    return found


def normal_pair(row: Row, multiplier: int, shift: int, bound: int | None) -> tuple[int, int]:
    """A pair with the same result, the multiplier within 32 bits and the shift within what the unit takes.

    Args:
        row: the kernel.
        multiplier: as planned.
        shift: likewise.
        bound: largest magnitude of an integer that is multiplied, None = products of 64 bits go lane by lane, and any
            shift will do.

    Raises:
        RefusedError: there is none.
    """
    if bound is not None:
        multiplier, shift = normal_shift(row, multiplier, shift, bound)
    elif shift < 0:
        multiplier, shift = multiplier << -shift, 0
    while not _fits(multiplier) and multiplier % 2 == 0 and shift > 0:
        multiplier, shift = multiplier // 2, shift - 1
    if not _fits(multiplier):
        raise refuse(row, f"a multiplier of {multiplier.bit_length()} bits", expected="at most 31 bits")
    return multiplier, shift


def _fits(multiplier: int) -> bool:
    return -(1 << 31) <= multiplier < 1 << 31


def normal_shift(row: Row, multiplier: int, shift: int, bound: int) -> tuple[int, int]:
    """A pair with the same result and a shift of 0 to 59, products within 63 bits.

    A product below half of 2**shift rounds as it does with any larger shift: what counts is its sign.

    Raises:
        RefusedError: there is none, or a product does not fit.
    """
    if shift < 0:
        multiplier, shift = multiplier << -shift, 0
    while shift > MOST_SHIFT and multiplier and multiplier % 2 == 0:
        multiplier, shift = multiplier // 2, shift - 1
    largest = bound * abs(multiplier)
    inside = abs(number(row, "y_zero_point")) if row.attributes.get("zero_point_inside") else 0
    if shift > MOST_SHIFT or (inside << shift) + largest >= 1 << INT64:
        shift = min(shift, largest.bit_length() + 1)
    if shift > MOST_SHIFT:
        raise refuse(row, f"a shift of {shift}", expected=f"at most {MOST_SHIFT}")
    largest += inside << shift
    if largest >= 1 << INT64:
        raise refuse(row, f"products of {largest.bit_length()} bits", expected=f"at most {INT64} bits")
    return multiplier, shift


def bound_of(dtype: str, zero_point: int) -> int:
    """Largest magnitude of a code of a type minus the zero point."""
    info = np.iinfo(dtype)
    return max(int(info.max) - zero_point, zero_point - int(info.min))
