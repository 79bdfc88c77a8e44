"""Object fifos and their handles as a design file sees them."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from presim.design import Side
from presim.iron import sequence as host
from presim.iron.api import row
from presim.iron.descriptors import ArrayType, array_type
from presim.iron.device import AnyMemTile, Tile
from presim.iron.errors import UnsupportedError, WrongCallError, WrongValueError
from presim.iron.held import Held, View
from presim.iron.links import ObjectFifoLink, RuntimeEndpoint
from presim.iron.parts import Part, parts_of
from presim.iron.trace import AcquireNode, ReleaseNode, static_int, tracer

Dims = tuple[tuple[int, int], ...]


def dims_of(value: Any, what: str) -> Dims:
    """(size, stride) pairs of a data layout transformation, () for none."""
    if value is None or (isinstance(value, Sequence) and not len(value)):
        return ()
    try:
        pairs = tuple((int(size), int(stride)) for size, stride in value)
    except (TypeError, ValueError):
        msg = f"{what}: expected (size, stride) pairs, got {value!r}"
        raise WrongCallError(msg) from None
    return pairs


class ObjectFifo:
    """A queue of objects from one producer to one or more consumers."""

    made: ClassVar[list["ObjectFifo"]] = []

    @row("aie.iron.ObjectFifo")
    def __init__(  # noqa: PLR0917 (the parameters are those of IRON)
        self,
        obj_type: Any,
        depth: int | None = 2,
        name: str | None = None,
        dims_to_stream: Any = None,
        dims_from_stream_per_cons: Any = None,
        plio: bool = False,
        pad_dimensions: Any = None,
        disable_synchronization: bool = False,
        repeat_count: int | None = None,
        delegate_tile: Tile | None = None,
        via_DMA: bool = False,  # noqa: N803 (IRON's name)
        init_values: Any = None,
        consumer_obj_type: Any = None,
        aie_stream: tuple[int, int] | None = None,
    ) -> None:
        if depth is not None and static_int(depth, "depth of an ObjectFifo") < 1:
            msg = f"depth of an ObjectFifo: expected 1 or more, got {depth}"
            raise WrongValueError(msg)
        self.name = f"of{len(ObjectFifo.made)}" if name is None else str(name)
        self._what = f"ObjectFifo {self.name!r}"
        self._obj_type = obj_type
        self.type: ArrayType = array_type(obj_type, f"{self._what}: obj_type")
        self.consumer_type = (
            self.type
            if consumer_obj_type is None
            else array_type(consumer_obj_type, f"{self._what}: consumer_obj_type")
        )
        self._depth = depth
        self.to_stream = dims_of(dims_to_stream, f"{self._what}: dims_to_stream")
        self.from_stream = dims_of(dims_from_stream_per_cons, f"{self._what}: dims_from_stream_per_cons")
        self.repeat = 1 if repeat_count is None else static_int(repeat_count, "repeat_count")
        self.iterations: int | None = None
        self.via_dma = bool(via_DMA)
        self.initial = init_values
        self.delegate = delegate_tile
        self._refuse(
            pad_dimensions=pad_dimensions, disable_synchronization=disable_synchronization, aie_stream=aie_stream
        )
        self.plio = plio
        self.producer: ObjectFifoHandle | None = None
        self.consumers: list[ObjectFifoHandle] = []
        ObjectFifo.made.append(self)

    def _refuse(self, **given: Any) -> None:
        for name, value in given.items():
            if value:
                msg = f"{self._what}: the simulator does not follow {name}"
                raise UnsupportedError(msg)

    @property
    def depth(self) -> int | None:
        """Depth that both ends have unless they say otherwise."""
        return self._depth

    @property
    def obj_type(self) -> Any:
        """Type of an object."""
        return self._obj_type

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of an object."""
        return self.type.shape

    @property
    def dtype(self) -> Any:
        """Type of an element."""
        return self._obj_type.__args__[1].__args__[0]

    @row("aie.iron.ObjectFifo.set_iter_count")
    def set_iter_count(self, iter_count: int) -> None:
        """Passes that the DMA chains make before they end, 1 to 256."""
        if not 1 <= static_int(iter_count, "iter_count") <= 256:
            msg = f"{self._what}: iter_count: expected 1 to 256, got {iter_count}"
            raise WrongValueError(msg)
        self.iterations = iter_count

    @row("aie.iron.ObjectFifo.prod")
    def prod(self, depth: int | None = None, tile: Tile | None = None) -> "ObjectFifoHandle":
        """The producer's end, the same handle every time."""
        if self.producer is None:
            self.producer = ObjectFifoHandle(self, "produce", self._depth_of(depth), tile=tile)
        return self.producer

    @row("aie.iron.ObjectFifo.cons")
    def cons(
        self, depth: int | None = None, dims_from_stream: Any = None, tile: Tile | None = None
    ) -> "ObjectFifoHandle":
        """A new consumer's end."""
        dims = dims_of(dims_from_stream, f"{self._what}: dims_from_stream") or self.from_stream
        self.consumers.append(ObjectFifoHandle(self, "consume", self._depth_of(depth), dims=dims, tile=tile))
        return self.consumers[-1]

    def _depth_of(self, depth: int | None) -> int:
        found = self._depth if depth is None else depth
        if found is None:
            msg = f"{self._what}: no depth, neither of the fifo nor of this end"
            raise WrongValueError(msg)
        if static_int(found, "depth") < 1:
            msg = f"{self._what}: depth: expected 1 or more, got {found}"
            raise WrongValueError(msg)
        return found


class ObjectFifoHandle:
    """One end of a fifo."""

    def __init__(self, fifo: ObjectFifo, side: Side, depth: int, *, dims: Dims = (), tile: Tile | None = None) -> None:
        self.fifo = fifo
        self.side: Side = side
        self._depth = depth
        self.dims = dims
        self.tile = tile
        self.endpoint: Any = None

    @property
    def depth(self) -> int:
        """Depth at this end."""
        return self._depth

    @property
    def name(self) -> str:
        """Name of the fifo."""
        return self.fifo.name

    @property
    def obj_type(self) -> Any:
        """Type of an object."""
        return self.fifo.obj_type

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of an object."""
        return self.fifo.shape

    @property
    def dtype(self) -> Any:
        """Type of an element."""
        return self.fifo.dtype

    @property
    def handle_type(self) -> str:
        """`prod` or `cons`."""
        return "prod" if self.side == "produce" else "cons"

    def held_type(self) -> ArrayType:
        """Type of what this end holds."""
        return self.fifo.type if self.side == "produce" else self.fifo.consumer_type

    def bind(self, endpoint: Any, what: str) -> None:
        """Say who has this end.

        Raises:
            WrongValueError: another one has it.
        """
        if self.endpoint is not None and self.endpoint is not endpoint:
            msg = f"the {self.handle_type} handle of fifo {self.name!r} has two ends: {self.endpoint} and {what}"
            raise WrongValueError(msg)
        self.endpoint = endpoint

    def bind_host(self) -> None:
        """Say that the runtime sequence has this end."""
        if not isinstance(self.endpoint, RuntimeEndpoint):
            self.bind(RuntimeEndpoint(self.tile), "the runtime sequence")

    @row("aie.iron.ObjectFifoHandle.acquire")
    def acquire(self, num_elem: int) -> Any:
        """Hold `num_elem` objects; one gives the object, several a view of them."""
        count = self._count(num_elem, "acquire")
        current = tracer(f"acquire() of fifo {self.name!r}")
        current.add(AcquireNode(self.name, self.side, count))
        base = current.released((self.name, self.side))
        held = [Held(self.name, self.side, self.held_type(), base + i, current.depth) for i in range(count)]
        return held[0] if count == 1 else View(held)

    @row("aie.iron.ObjectFifoHandle.release")
    def release(self, num_elem: int) -> None:
        """Give back the oldest `num_elem` objects."""
        count = self._count(num_elem, "release")
        current = tracer(f"release() of fifo {self.name!r}")
        current.add(ReleaseNode(self.name, self.side, count))
        current.release((self.name, self.side), count)

    def _count(self, num_elem: Any, verb: str) -> int:
        count = static_int(num_elem, f"objects to {verb}")
        if not 1 <= count <= self._depth:
            msg = f"{verb} of {count} objects of fifo {self.name!r}: expected 1 to its depth {self._depth}"
            raise WrongValueError(msg)
        return count

    @row("aie.iron.ObjectFifoHandle.fill")
    def fill(
        self,
        source: Any,
        tap: Any = None,
        wait: bool = False,
        *,
        group: Any = None,
        managed: bool = True,
        offset: int | None = None,
        sizes: Any = None,
        strides: Any = None,
        transfer_len: int | None = None,
        offset_parameter: Any = None,
    ) -> Any:
        """Start a transfer of a host tensor into this fifo."""
        if self.side != "produce":
            msg = f"fill() of a consumer of fifo {self.name!r}"
            raise WrongValueError(msg)
        raw = {"offset": offset, "sizes": sizes, "strides": strides, "transfer_len": transfer_len}
        pattern = host.pattern_of(source, tap, raw)
        return host.start(self, source, pattern, wait=wait, group=group, managed=managed, parameter=offset_parameter)

    @row("aie.iron.ObjectFifoHandle.drain")
    def drain(
        self,
        dest: Any,
        tap: Any = None,
        wait: bool = False,
        *,
        group: Any = None,
        managed: bool = True,
        offset: int | None = None,
        sizes: Any = None,
        strides: Any = None,
        transfer_len: int | None = None,
        offset_parameter: Any = None,
    ) -> Any:
        """Start a transfer of this fifo into a host tensor."""
        if self.side != "consume":
            msg = f"drain() of the producer of fifo {self.name!r}"
            raise WrongValueError(msg)
        raw = {"offset": offset, "sizes": sizes, "strides": strides, "transfer_len": transfer_len}
        pattern = host.pattern_of(dest, tap, raw)
        return host.start(self, dest, pattern, wait=wait, group=group, managed=managed, parameter=offset_parameter)

    @row("aie.iron.ObjectFifoHandle.split")
    def split(  # noqa: PLR0917 (the parameters are those of IRON)
        self,
        offsets: Sequence[int],
        tile: Tile | None = AnyMemTile,
        depths: Sequence[int] | None = None,
        obj_types: Sequence[Any] | None = None,
        names: Sequence[str] | None = None,
        dims_to_stream: Sequence[Any] | None = None,
        dims_from_stream: Sequence[Any] | None = None,
        plio: bool = False,
        repeat_counts: Sequence[int | None] | None = None,
    ) -> list[ObjectFifo]:
        """Cut each object into parts, one new fifo for each."""
        if self.side != "consume":
            msg = f"split() of the producer of fifo {self.name!r}, expected a consumer handle"
            raise WrongValueError(msg)
        given = {
            "depths": depths,
            "obj_types": obj_types,
            "names": names,
            "dims_to_stream": dims_to_stream,
            "dims_from_stream": dims_from_stream,
            "repeat_counts": repeat_counts,
        }
        made = self._made(len(offsets), "_split", given, plio)
        ObjectFifoLink("split", [self], [fifo.prod() for fifo, _ in made], tile, offsets)
        return [fifo for fifo, _ in made]

    @row("aie.iron.ObjectFifoHandle.join")
    def join(  # noqa: PLR0917 (the parameters are those of IRON)
        self,
        offsets: Sequence[int],
        tile: Tile | None = AnyMemTile,
        depths: Sequence[int] | None = None,
        obj_types: Sequence[Any] | None = None,
        names: Sequence[str] | None = None,
        dims_to_stream: Sequence[Any] | None = None,
        dims_from_stream: Sequence[Any] | None = None,
        plio: bool = False,
        repeat_counts: Sequence[int | None] | None = None,
    ) -> list[ObjectFifo]:
        """Put each object together from those of new fifos."""
        if self.side != "produce":
            msg = f"join() of a consumer of fifo {self.name!r}, expected its producer handle"
            raise WrongValueError(msg)
        given = {
            "depths": depths,
            "obj_types": obj_types,
            "names": names,
            "dims_to_stream": dims_to_stream,
            "dims_from_stream": dims_from_stream,
            "repeat_counts": repeat_counts,
        }
        made = self._made(len(offsets), "_join", given, plio)
        sources = [fifo.cons(depth=part.depth, dims_from_stream=part.from_stream) for fifo, part in made]
        ObjectFifoLink("join", sources, [self], tile, offsets)
        return [fifo for fifo, _ in made]

    @row("aie.iron.ObjectFifoHandle.forward")
    def forward(  # noqa: PLR0917 (the parameters are those of IRON)
        self,
        tile: Tile | None = AnyMemTile,
        obj_type: Any = None,
        depth: int | None = None,
        name: str | None = None,
        dims_to_stream: Any = None,
        dims_from_stream: Any = None,
        plio: bool = False,
        repeat_count: int | None = None,
    ) -> ObjectFifo:
        """Send every object on through a memory tile."""
        if self.side != "consume":
            msg = f"forward() of the producer of fifo {self.name!r}, expected a consumer handle"
            raise WrongValueError(msg)
        part = Part(
            name=name or f"{self.name}_fwd",
            obj_type=self.obj_type if obj_type is None else obj_type,
            depth=self._depth if depth is None else depth,
            to_stream=dims_to_stream,
            from_stream=dims_from_stream,
            repeat=repeat_count,
        )
        made = _fifo_of(part, plio)
        ObjectFifoLink("forward", [self], [made.prod()], tile, ())
        return made

    def _made(
        self, count: int, suffix: str, given: Mapping[str, Sequence[Any] | None], plio: bool
    ) -> list[tuple[ObjectFifo, Part]]:
        parts = parts_of(self.name, self._depth, self.obj_type, count, suffix, given)
        return [(_fifo_of(part, plio), part) for part in parts]


def _fifo_of(part: Part, plio: bool) -> ObjectFifo:
    return ObjectFifo(
        part.obj_type,
        depth=part.depth,
        name=part.name,
        dims_to_stream=part.to_stream,
        dims_from_stream_per_cons=part.from_stream,
        plio=plio,
        repeat_count=part.repeat,
    )
