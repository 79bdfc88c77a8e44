"""What a kernel sees of the tile that it runs on."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from presim.design import AttributeValue

DEFAULT_ROUNDING: Final = "floor"
DEFAULT_SATURATION: Final = "none"


class TileModes:
    """Rounding and saturation of a core tile: kept from call to call, shared by all kernels on it.

    The hardware starts with `floor` and `none` (UG1603, UG1079 "Rounding and Saturation Modes").
    """

    __slots__ = ("rounding", "saturation")

    def __init__(self) -> None:
        self.rounding = DEFAULT_ROUNDING
        self.saturation = DEFAULT_SATURATION


class CascadePort:
    """Where a kernel puts what goes to the next core; one block per call."""

    __slots__ = ("block",)

    def __init__(self) -> None:
        self.block: NDArray[Any] | None = None

    def put(self, block: NDArray[Any]) -> None:
        """Send a block (copied); any shape and dtype, the reader gets it as it is.

        Raises:
            ValueError: the call has put one already.
        """
        if self.block is not None:
            msg = "a call puts one block on the cascade"
            raise ValueError(msg)
        self.block = np.array(block)


class KernelContext:
    """Handed to every kernel call as its first argument.

    Attributes:
        worker: who calls.
        kernel: name of the row of the design.
        attributes: compile-time figures of that row.
        scalars: integers of this call, loop variables resolved.
        modes: modes of the tile, already set to what the row sets at entry.
    """

    __slots__ = ("attributes", "kernel", "modes", "scalars", "worker")

    def __init__(
        self,
        *,
        worker: str,
        kernel: str,
        attributes: Mapping[str, AttributeValue],
        scalars: Mapping[str, int],
        modes: TileModes,
    ) -> None:
        self.worker = worker
        self.kernel = kernel
        self.attributes = attributes
        self.scalars = scalars
        self.modes = modes

    @property
    def rounding(self) -> str:
        """Rounding mode of the tile now, a name of `oracle.fixedpoint.ROUNDINGS`."""
        return self.modes.rounding

    @property
    def saturation(self) -> str:
        """Saturation mode of the tile now, a name of `oracle.fixedpoint.SATURATIONS`."""
        return self.modes.saturation


KernelFunction = Callable[..., None]
"""`kernel(context, *arguments)`: arrays of held objects and buffers in the shape of the design (written in place), the
block of a `cascade_in`, the `CascadePort` of a `cascade_out`."""
