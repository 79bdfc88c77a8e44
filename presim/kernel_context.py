"""What a kernel is handed beside its arguments; the simulator's own context has these members."""

from collections.abc import Callable, Mapping
from typing import Protocol

from presim.design import AttributeValue


class KernelContext(Protocol):
    """The call and the tile that it runs on."""

    @property
    def attributes(self) -> Mapping[str, AttributeValue]:
        """Compile-time figures of the kernel (`presim.kernels.attributes`)."""

    @property
    def scalars(self) -> Mapping[str, int]:
        """Integers of this call."""

    @property
    def rounding(self) -> str:
        """Rounding mode that the tile is in now (`oracle.fixedpoint.ROUNDINGS`)."""

    @property
    def saturation(self) -> str:
        """Saturation mode that the tile is in now (`oracle.fixedpoint.SATURATIONS`)."""


KernelFunction = Callable[..., None]
"""`kernel(context, *arguments)`: arrays in the order of `presim.kernels.attributes`, outputs are written in place."""


def number(context: KernelContext, name: str) -> int:
    """An integer attribute."""
    value = context.attributes[name]
    if not isinstance(value, int):
        msg = f"attribute {name}: expected an integer, got {value!r}"
        raise TypeError(msg)
    return value


def numbers(context: KernelContext, name: str) -> tuple[int, ...]:
    """A tuple of integers."""
    value = context.attributes[name]
    if not isinstance(value, tuple):
        msg = f"attribute {name}: expected a tuple, got {value!r}"
        raise TypeError(msg)
    return value


def text(context: KernelContext, name: str) -> str:
    """A word."""
    value = context.attributes[name]
    if not isinstance(value, str):
        msg = f"attribute {name}: expected a word, got {value!r}"
        raise TypeError(msg)
    return value
