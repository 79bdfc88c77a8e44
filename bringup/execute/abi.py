"""The C signature of a kernel as the design declares it: what its code is held to and how it is called."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal

Access = Literal["in", "out", "inout", "any"]
"""What a kernel does with the memory of a pointer.

`in` reads; a change is a fault. `out` writes without having read. `inout` reads and writes. `any` is not known: read
only where the code says `const`.
"""

ACCESSES: Final = ("in", "out", "inout", "any")

C_TYPES: Final[Mapping[str, tuple[str, int]]] = MappingProxyType(
    {
        "int8": ("std::int8_t", 1),
        "uint8": ("std::uint8_t", 1),
        "int16": ("std::int16_t", 2),
        "uint16": ("std::uint16_t", 2),
        "int32": ("std::int32_t", 4),
        "uint32": ("std::uint32_t", 4),
        "int64": ("std::int64_t", 8),
        "uint64": ("std::uint64_t", 8),
        "float32": ("float", 4),
        "float64": ("double", 8),
        "bfloat16": ("bfloat16", 2),
    }
)
"""numpy's name -> (C++ type, bytes)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PointerAbi:
    """A pointer parameter.

    Attributes:
        dtype: of an element, key of `C_TYPES`.
        elements: of the block that it points to, > 0.
        access: see `Access`.
        name: for messages, "" = its number.
    """

    dtype: str
    elements: int
    access: Access = "any"
    name: str = ""

    def __post_init__(self) -> None:
        if self.dtype not in C_TYPES or self.elements <= 0 or self.access not in ACCESSES:
            msg = f"pointer {self.name!r}: {self.elements} elements of {self.dtype!r}, access {self.access!r}"
            raise ValueError(msg)

    @property
    def size_bytes(self) -> int:
        """Bytes of the block."""
        return self.elements * C_TYPES[self.dtype][1]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalarAbi:
    """A parameter that is passed by value: an integer or a float type of `C_TYPES`."""

    dtype: str = "int32"
    name: str = ""

    def __post_init__(self) -> None:
        if self.dtype not in C_TYPES or self.dtype == "bfloat16":
            msg = f"scalar {self.name!r}: no C type for {self.dtype!r}"
            raise ValueError(msg)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalAbi:
    """One `extern "C"` function.

    Attributes:
        symbol: its name.
        parameters: in C order.
        source: key of the source that defines it; "" = found by name.
        flags: `-D` and `-U` of its translation unit.
    """

    symbol: str
    parameters: tuple[PointerAbi | ScalarAbi, ...]
    source: str = ""
    flags: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.symbol.isidentifier() or not self.symbol.isascii():
            msg = f"kernel symbol {self.symbol!r} is no C identifier"
            raise ValueError(msg)
        bad = [f for f in self.flags if not f.startswith(("-D", "-U")) or any(c in f for c in "\0\n")]
        if bad:
            msg = f"kernel {self.symbol}: flags: only -D and -U, got {bad}"
            raise ValueError(msg)

    @property
    def pointers(self) -> tuple[PointerAbi, ...]:
        """Pointer parameters in C order."""
        return tuple(p for p in self.parameters if isinstance(p, PointerAbi))

    @property
    def scalars(self) -> tuple[ScalarAbi, ...]:
        """Scalar parameters in C order."""
        return tuple(p for p in self.parameters if isinstance(p, ScalarAbi))

    def pointer_name(self, number: int) -> str:
        """Name of a pointer for messages: its own, else `argument <number>` counted from 0."""
        return self.pointers[number].name or f"argument {number}"


def external(
    symbol: str, pointers: Iterable[tuple[str, int, bool]], scalars: int = 0, *, names: Iterable[str] = ()
) -> ExternalAbi:
    """A signature of pointers followed by `int32_t` scalars.

    Args:
        symbol: of the function.
        pointers: (dtype, elements, whether it is written); what is written counts as `inout`.
        scalars: how many.
        names: of the pointers.
    """
    given = list(names)
    rows = [
        PointerAbi(dtype=dtype, elements=count, access="inout" if writes else "in", name=given[i] if given else "")
        for i, (dtype, count, writes) in enumerate(pointers)
    ]
    return ExternalAbi(symbol=symbol, parameters=(*rows, *(ScalarAbi(name=f"s{i}") for i in range(scalars))))
