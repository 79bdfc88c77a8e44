"""Fifos that meet in a memory tile, and the ends of fifos that are no Worker."""

from collections.abc import Sequence
from typing import Any, ClassVar

from presim.iron.device import AnyShimTile, Tile
from presim.iron.errors import WrongValueError
from presim.iron.trace import static_int


class ObjectFifoLink:
    """Fifos that meet in a memory tile."""

    made: ClassVar[list["ObjectFifoLink"]] = []

    def __init__(
        self,
        kind: str,
        sources: list[Any],
        targets: list[Any],
        tile: Tile | None,
        offsets: Sequence[int],
    ) -> None:
        self.kind = kind
        self.sources = sources
        self.targets = targets
        self.tile = tile
        self.offsets = tuple(static_int(o, "an offset") for o in offsets)
        what = f"the {kind} of fifo {(targets if kind == 'join' else sources)[0].name!r}"
        if not sources or not targets:
            msg = f"{what}: no offsets"
            raise WrongValueError(msg)
        for handle in (*sources, *targets):
            handle.bind(self, what)
        ObjectFifoLink.made.append(self)

    def __str__(self) -> str:
        return f"a {self.kind}"


class RuntimeEndpoint:
    """The host's end of a fifo at a shim tile."""

    def __init__(self, tile: Tile | None) -> None:
        self.tile = AnyShimTile if tile is None else tile

    def __str__(self) -> str:
        return "the runtime sequence"
