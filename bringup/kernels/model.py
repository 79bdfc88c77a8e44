"""What a kernel emitter is given and what it returns: frozen values and one protocol."""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol

from numpy.typing import NDArray

from presim.design import AttributeValue

Array = NDArray[Any]
Role = Literal[
    "object_in",
    "object_out",
    "weights",
    "bias",
    "requant",
    "lut",
    "acc",
    "constant",
    "cascade_in",
    "cascade_out",
]
Mmul = tuple[tuple[str, str, tuple[int, int, int]], ...]
"""(dtype of A, dtype of B, (rows, inner, columns)) of every multiplication that the device does in one instruction."""

SYMBOL_CHARACTERS: Final = 120
"""Of a kernel's name that its symbol keeps; a file system takes 255 bytes."""
OWN_CHARACTERS: Final = len("k__") + 8
"""What a symbol has around them."""
_FOREIGN: Final = re.compile(r"[^A-Za-z0-9_]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One parameter of a kernel.

    Attributes:
        name: C identifier; the rows of a window are `row0`, `row1`, ... from the top.
        role: what is in it.
        dtype: numpy's name.
        shape: in elements; () for a cascade, which is no C parameter.
        writes: whether the kernel writes it.
    """

    name: str
    role: Role
    dtype: str
    shape: tuple[int, ...]
    writes: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A kernel of a design, with everything that its code depends on.

    Attributes:
        name: of the row in `Design.kernels`.
        op: manifest op, "" for pure data movement.
        type: key of `KERNELS`.
        attributes: compile-time figures, as in `presim.kernels`.
        rounding: mode that it sets at entry, "" = none.
        saturation: likewise.
        arch: of the core.
        mmul: catalogue of the device.
        parameters: as planned, in the order of `Call.arguments`; a window has all its rows.
        scalars: integers of a call, in C order.
    """

    name: str
    op: str
    type: str
    attributes: Mapping[str, AttributeValue]
    rounding: str
    saturation: str
    arch: Literal["aie2", "aie2p"]
    mmul: Mmul
    parameters: tuple[Parameter, ...]
    scalars: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """An emitted kernel.

    Attributes:
        symbol: of the C function.
        text: of `<symbol>.cc`.
        headers: files of `include/` that it needs, transitively.
        parameters: as packed, in C order, cascade left out.
        scalars: behind the parameters, each an `int32_t`.
        vectorized: False = plain loops.
        notes: what is worth knowing, such as why it is not vectorized.
    """

    symbol: str
    text: str
    headers: tuple[str, ...]
    parameters: tuple[Parameter, ...]
    scalars: tuple[str, ...]
    vectorized: bool
    notes: tuple[str, ...]


class KernelModule(Protocol):
    """One module for each type."""

    def source(self, row: Row) -> Source:
        """The kernel's code.

        Raises:
            RefusedError: a combination of attributes that no code is written for.
        """

    def pack(self, row: Row, constants: Mapping[str, Array]) -> Mapping[str, Array]:
        """Constants as the code reads them.

        Args:
            row: the kernel.
            constants: planned arrays by name of the parameter.

        Returns:
            Packed arrays by name of the parameter, shapes and dtypes those of `Source.parameters`.
        """


def symbol_of(name: str) -> str:
    """C identifier of a kernel and name of its file; unique by a short hash where characters were replaced or cut."""
    plain = _FOREIGN.sub("_", name)
    if plain == name and name and not name[0].isdigit() and len(name) <= SYMBOL_CHARACTERS + OWN_CHARACTERS:
        return name
    return f"k_{plain[:SYMBOL_CHARACTERS]}_{hashlib.sha256(name.encode()).hexdigest()[:8]}"
