"""A resolved program into a `Design`: fifos, links, buffers, workers, the sequence; then tiles for what has none."""

from dataclasses import replace
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from manifest.device import load_device
from manifest.errors import RefusedError
from presim.design import (
    Buffer,
    Cascade,
    Design,
    Endpoint,
    Fifo,
    Link,
    Tile,
    Transfer,
    Worker,
)
from presim.iron.barriers import BARRIER, with_barriers, without
from presim.iron.buffer import carried
from presim.iron.cascades import with_cascades
from presim.iron.descriptors import ArrayType
from presim.iron.device import Tile as IronTile
from presim.iron.errors import UnsupportedError, WrongValueError
from presim.iron.fifo import ObjectFifo, ObjectFifoHandle
from presim.iron.links import ObjectFifoLink, RuntimeEndpoint, TileEndpoint
from presim.iron.lowered import External, Lowered
from presim.iron.program import Resolved, TracedWorker
from presim.iron.region import Lowering, Rows
from presim.iron.sequence import Started
from presim.iron.worker import Worker as IronWorker
from presim.place import place

Array = NDArray[Any]
Kind = Literal["core", "mem", "shim"]
DEFAULT_STACK: Final = 1024


def lower(resolved: Resolved) -> Lowered:
    """The design of a resolved program.

    Args:
        resolved: as `Program.resolve_program` leaves it.

    Raises:
        UnsupportedError, WrongValueError: what it asks for has no counterpart; the text names it.
    """
    return _Lowerer(resolved).run()


class _Lowerer:
    def __init__(self, resolved: Resolved) -> None:
        self.resolved = resolved
        self.rows = Rows()
        self.arrays: dict[str, Array] = {}
        self.names = {id(t.worker): t.name for t in resolved.workers}
        self.notes = list(resolved.session.notes)

    def run(self) -> Lowered:
        resolved = self.resolved
        fifos = [self.fifo(f) for f in resolved.fifos]
        workers = tuple(self.worker(t) for t in resolved.workers)
        design = Design(
            dispatch=resolved.name,
            device=resolved.device.name,
            workers=workers,
            fifos=tuple(fifos),
            kernels=self.rows.kernels(),
            links=tuple(self.link(k) for k in resolved.links),
            buffers=self.buffers(),
            cascades=self.cascades(),
            sequence=tuple(self.transfer(s) for s in resolved.session.transfers),
        )
        design = replace(with_cascades(design), notes=(*self.notes, *design.notes))
        if self.rows.waits:
            self.arrays[BARRIER] = np.zeros(1, np.int32)
        return Lowered(
            design=with_barriers(placed(without(design, self.rows.waits)), design, self.rows.waits, resolved),
            arrays=self.arrays,
            externals=tuple(_external(k) for k in self.rows.externals.values()),
            traced=tuple(self.rows.traced.values()),
            device=resolved.device.name,
            columns=resolved.device.columns,
            argument_types=tuple((t.name, t.type.dtype, t.type.shape) for t in resolved.tensors),
        )

    def fifo(self, fifo: ObjectFifo) -> Fifo:
        """A fifo with its ends; depths as `_get_depths` of IRON has them: one number where all are the same."""
        if fifo.producer is None or not fifo.consumers:
            missing = "producer" if fifo.producer is None else "consumer"
            msg = f"ObjectFifo {fifo.name!r} has no {missing}"
            raise WrongValueError(msg)
        consumers = _single_host(fifo)
        depths = [fifo.producer.depth, *(c.depth for c in consumers)]
        literal = len(set(depths)) > 1
        initial = self.initial(fifo)
        return Fifo(
            name=fifo.name,
            shape=fifo.type.shape,
            dtype=fifo.type.dtype,
            producer=self.endpoint(fifo.producer, literal=literal),
            consumers=tuple(self.endpoint(c, literal=literal) for c in consumers),
            depth=depths[0],
            literal=literal,
            via_dma=fifo.via_dma,
            repeat_count=fifo.repeat,
            iter_count=fifo.iterations,
            init_array=initial[0],
            init_objects=initial[1],
            consumer_shape=() if fifo.consumer_type == fifo.type else fifo.consumer_type.shape,
        )

    def initial(self, fifo: ObjectFifo) -> tuple[str | None, int]:
        """Key and number of the objects that a fifo starts with."""
        if fifo.initial is None:
            return None, 0
        values = [carried(np.asarray(v)) for v in fifo.initial]
        if any(v.size != fifo.type.elements for v in values):
            msg = f"ObjectFifo {fifo.name!r}: init_values: expected arrays of {fifo.type.elements} elements"
            raise WrongValueError(msg)
        key = f"fifo:{fifo.name}"
        self.arrays[key] = np.stack([v.reshape(fifo.type.shape).astype(fifo.type.dtype) for v in values])
        return key, len(values)

    def endpoint(self, handle: ObjectFifoHandle, *, literal: bool) -> Endpoint:
        """One end of a fifo."""
        depth = handle.depth if literal else None
        dims = handle.fifo.to_stream if handle.side == "produce" else handle.dims
        owner = handle.endpoint
        if isinstance(owner, IronWorker):
            if id(owner) not in self.names:
                msg = f"fifo {handle.name!r}: its {handle.handle_type} is a Worker that the Program does not have"
                raise WrongValueError(msg)
            tile = _tile(owner.tile, "core")
            return Endpoint(actor=self.names[id(owner)], tile=tile, depth=depth, dims=dims)
        if isinstance(owner, ObjectFifoLink):
            anchor = owner.targets[0] if owner.kind == "join" else owner.sources[0]
            name = f"mem:{anchor.name}"
            return Endpoint(actor=name, kind="mem", tile=_tile(owner.tile, "mem"), depth=depth, dims=dims)
        if isinstance(owner, TileEndpoint):
            tile = _tile(owner.tile, "mem")
            return Endpoint(actor=f"mem:{handle.name}", kind="mem", tile=tile, depth=depth, dims=dims)
        if isinstance(owner, RuntimeEndpoint):
            tile = _tile(owner.tile, "shim")
            return Endpoint(actor=f"shim:{handle.name}", kind="shim", tile=tile, depth=depth, dims=dims)
        msg = f"fifo {handle.name!r}: its {handle.handle_type} handle goes to no Worker, link or sequence"
        raise WrongValueError(msg)

    def link(self, link: ObjectFifoLink) -> Link:
        """Fifos that meet in a memory tile."""
        kind: Any = link.kind
        return Link(
            kind=kind,
            sources=tuple(h.name for h in link.sources),
            targets=tuple(h.name for h in link.targets),
            offsets=link.offsets,
            tile=_tile(link.tile, "mem"),
        )

    def worker(self, traced: TracedWorker) -> Worker:
        """A worker with its program."""
        worker = traced.worker
        ends = [(h.fifo.name, h.side) for h in worker.fifos]
        both = frozenset(n for n, side in ends if side == "produce" and (n, "consume") in ends)
        return Worker(
            name=traced.name,
            tile=_tile(worker.tile, "core"),
            program=Lowering(traced.name, both, self.rows).program(traced.body),
            while_true=worker.while_true,
            stack_bytes=worker.stack_size or DEFAULT_STACK,
        )

    def buffers(self) -> tuple[Buffer, ...]:
        """Buffers with what they hold at the start; what the host writes is there before the cores read it."""
        found = []
        for buffer in self.resolved.buffers:
            values = self.resolved.constants.get(buffer.name)
            if values is None and buffer.initial is not None:
                values = buffer.initial.reshape(buffer.type.shape)
            key = None
            if values is not None:
                key = f"buffer:{buffer.name}"
                self.arrays[key] = np.asarray(values).astype(buffer.type.dtype)
            tile = _tile(buffer.tile, "core")
            if tile is None and buffer.owner is not None:
                tile = _tile(buffer.owner.tile, "core")
            found.append(
                Buffer(name=buffer.name, tile=tile, shape=buffer.type.shape, dtype=buffer.type.dtype, array=key)
            )
        return tuple(found)

    def cascades(self) -> tuple[Cascade, ...]:
        """Cascades between workers of the program."""
        flows = [f for t in self.resolved.workers for f in t.worker.outgoing]
        for flow in flows:
            if id(flow.dst) not in self.names:
                msg = (
                    f"CascadeFlow from {self.names[id(flow.src)]!r}: its dst is a Worker that the Program does not have"
                )
                raise WrongValueError(msg)
        return tuple(Cascade(source=self.names[id(f.src)], target=self.names[id(f.dst)]) for f in flows)

    def transfer(self, started: Started) -> Transfer:
        """One transfer, in whole objects."""
        handle = started.handle
        type_: ArrayType = handle.held_type()
        pattern = started.pattern
        if pattern.count % type_.elements:
            msg = (
                f"a transfer of fifo {handle.name!r} moves {pattern.count} elements, no whole number of its objects"
                f" of {type_.elements}"
            )
            raise UnsupportedError(msg)
        if started.data.type.element != type_.element:
            msg = (
                f"a transfer between {started.data.name!r} of {started.data.type.element} and fifo {handle.name!r} of"
                f" {type_.element}: the simulator moves elements of one type"
            )
            raise UnsupportedError(msg)
        return Transfer(
            fifo=handle.name,
            direction="fill" if handle.side == "produce" else "drain",
            tensor=started.data.name,
            objects=pattern.count // type_.elements,
            offset=pattern.offset,
            sizes=pattern.sizes,
            strides=pattern.strides,
            wait=started.wait,
            group=started.label,
        )


def placed(design: Design) -> Design:
    """The design with a tile for everything; as it is where it has one or where it does not fit."""
    ends = [e for f in design.fifos for e in (f.producer, *f.consumers)]
    if all(w.tile for w in design.workers) and all(e.tile for e in ends):
        return design
    if not design.workers:
        return _with_note(design, "not placed: it has no workers")
    try:
        made = place(design, load_device(design.device))
    except RefusedError as error:
        text = error.problems[0].line()
        return _with_note(design, f"not placed, every fifo goes through DMAs: {text}")
    return _with_note(made, "tiles that the design leaves open are this tool's, the compiler may choose others")


def _with_note(design: Design, note: str) -> Design:
    return replace(design, notes=(*design.notes, note))


def _single_host(fifo: ObjectFifo) -> list[ObjectFifoHandle]:
    """Consumers, the host's many handles as one."""
    found: list[ObjectFifoHandle] = []
    host: ObjectFifoHandle | None = None
    for handle in fifo.consumers:
        if not isinstance(handle.endpoint, RuntimeEndpoint):
            found.append(handle)
        elif host is None:
            host = handle
            found.append(handle)
        elif (handle.depth, handle.dims) != (host.depth, host.dims):
            msg = f"ObjectFifo {fifo.name!r}: two different ends at the runtime sequence"
            raise WrongValueError(msg)
    return found


def _tile(tile: IronTile | None, kind: Kind) -> Tile | None:
    if tile is None or tile.col is None or tile.row is None:
        return None
    return Tile(column=tile.col, row=tile.row, kind=kind)


def _external(kernel: Any) -> External:
    return External(
        symbol=kernel.name,
        object_file=kernel.object_file,
        source_file=kernel.source_file,
        source_string=kernel.source_string,
        arg_types=tuple(p if isinstance(p, str) else (p.element, p.shape) for p in kernel.parameters),
        include_dirs=kernel.include_dirs,
        compile_flags=kernel.compile_flags,
    )
