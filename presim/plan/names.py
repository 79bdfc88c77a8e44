"""Names of fifos, actors and buffers: readable, and no two the same."""

from presim.design import Slice
from presim.plan.graph import Value
from presim.plan.share import Share


class Names:
    """Names of the fifos of values; a form that is not the tensor's own is part of the name."""

    def __init__(self, shapes: dict[str, tuple[int, ...]]) -> None:
        self._shapes = shapes

    def fifo(self, value: Value) -> str:
        """Fifo of whole objects, or of the strip of them that the value is."""
        if value.width:
            return f"{value.tensor}#c{value.first_column}+{value.form[3]}"
        own = value.form == self._shapes[value.tensor]
        return value.tensor if own else f"{value.tensor}#{'x'.join(map(str, value.form))}"

    def slice(self, value: Value, share: Share) -> str:
        """Fifo of what one of several makers makes."""
        return f"{self.fifo(value)}#n{share.beside[0]}"

    def part(self, value: Value, share: Share) -> str:
        """Fifo of the channels of a value that a share reads."""
        first, count = share.cut
        return f"{self.fifo(value)}>{share.node.op.name}#{first}+{count}"

    def branch(self, value: Value, worker: str) -> str:
        """Fifo from a memory tile, which keeps objects of a value for one worker."""
        return f"{self.fifo(value)}>{worker}"


def strip_of(value: Value) -> tuple[Slice, ...]:
    """Columns of the tensor that a value is; () = all."""
    return (Slice(axis="columns", first=value.first_column, count=value.form[3]),) if value.width else ()


def slices_of(share: Share, count: int) -> tuple[Slice, ...]:
    """What of its tensor a share makes; `count` objects in all."""
    index, beside = share.beside
    columns = strip_of(share.node.output)
    if share.outer:
        return (*columns, Slice(axis="objects", first=index, count=count // beside, step=beside))
    if share.makes[1]:
        return (*columns, Slice(axis="channels", first=share.makes[0], count=share.makes[1]))
    return columns
