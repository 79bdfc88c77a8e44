"""Fifos that meet in a memory tile, and the ends of fifos that are no Worker."""

from collections.abc import Sequence
from typing import Any, ClassVar

from presim.iron.api import row
from presim.iron.device import AnyMemTile, AnyShimTile, Tile
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


class JoinedFifos:
    """`ObjectFifoLink` of a design file: fifos that are there already meet in a memory tile."""

    @row("aie.iron.dataflow.objectfifo.ObjectFifoLink")
    def __init__(
        self,
        srcs: Any,
        dsts: Any,
        tile: Tile | None = AnyMemTile,
        src_offsets: Sequence[int] | None = None,
        dst_offsets: Sequence[int] | None = None,
    ) -> None:
        sources, targets = _listed(srcs), _listed(dsts)
        if len(sources) > 1 and len(targets) > 1:
            msg = "ObjectFifoLink: several sources and several destinations; expected one on either side"
            raise WrongValueError(msg)
        for name, given, ends in (("src_offsets", src_offsets, sources), ("dst_offsets", dst_offsets, targets)):
            if given and len(given) != len(ends):
                msg = f"ObjectFifoLink: {len(given)} {name} for {len(ends)} fifos"
                raise WrongValueError(msg)
        kind = "join" if len(sources) > 1 else "split" if len(targets) > 1 else "forward"
        offsets = {"join": src_offsets, "split": dst_offsets}.get(kind) or ()
        ObjectFifoLink(kind, sources, targets, tile, offsets)


class TileEndpoint:
    """`ObjectFifoEndpoint` of a design file: a tile without a Worker, such as a memory tile that only holds values."""

    @row("aie.iron.dataflow.endpoint.ObjectFifoEndpoint")
    def __init__(self, tile: Tile | None) -> None:
        self.tile = tile

    def __str__(self) -> str:
        return "a tile of its own"


def _listed(handles: Any) -> list[Any]:
    return list(handles) if isinstance(handles, list | tuple) else [handles]
