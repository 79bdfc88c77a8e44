"""Object fifos, their handles and links as IRON text.

Why two ways for a link: `split`, `join` and `forward` make the fifos at their far side themselves and cannot give them
everything (objects cut by the consumer, values at the start, a fifo between two links); where that is needed both sides
are plain fifos and an `ObjectFifoLink` joins them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from bringup.emit.names import identifier
from bringup.emit.text import call, comment, listing, numbered, pairs, quoted, tile_or_none, type_name
from manifest.errors import Problem, RefusedError
from presim.design import Design, Endpoint, Fifo, Link
from presim.pools import wire

Way = Literal["method", "object"]
MAX_ITERATIONS = 256
HandleKey = tuple[str, int]
"""(fifo, index of the consumer; -1 = the producer)."""


@dataclass(slots=True)
class Wired:
    """What came out.

    Attributes:
        lines: statements.
        handles: variable by end.
        types: types used, (dtype, shape).
        names: of `aie.iron` beyond ObjectFifo.
        problems: what cannot be said.
    """

    lines: list[str] = field(default_factory=list)
    handles: dict[HandleKey, str] = field(default_factory=dict)
    types: set[tuple[str, tuple[int, ...]]] = field(default_factory=set)
    names: set[str] = field(default_factory=set)
    problems: list[Problem] = field(default_factory=list)


def literal_depths(design: Design, arch: str) -> tuple[Design, list[Problem]]:
    """The design with depths that IRON passes on as they are.

    IRON writes a list of depths only where they differ, and for one number the compiler sizes pools by itself. A host
    end has no pool, so its depth is free to differ; a fifo without one whose pools would come out otherwise is a
    problem.
    """
    planned = wire(design, arch).pools
    fifos = list(design.fifos)
    problems = []
    for index, fifo in enumerate(design.fifos):
        if not fifo.literal:
            continue
        for candidate in _candidates(fifo):
            fifos[index] = candidate
            pools = wire(replace(design, fifos=tuple(fifos)), arch).pools
            if all(pools[n].allocated == p.allocated for n, p in planned.items() if p.fifo == fifo.name):
                break
        else:
            what = "both ends have the same depth, to be taken as it is; IRON writes one number and pools get another"
            problems.append(Problem(code="EMIT-DEPTH", where=f"fifo {fifo.name!r}", what=what, got=str(fifo.depth)))
    return replace(design, fifos=tuple(fifos)), problems


def _candidates(fifo: Fifo) -> Iterator[Fifo]:
    yield replace(fifo, literal=False)
    if fifo.producer.kind == "shim":
        producer = replace(fifo.producer, depth=depth_of(fifo, fifo.producer) + 1)
        yield replace(fifo, literal=False, producer=producer)
    for index, end in enumerate(fifo.consumers):
        if end.kind == "shim":
            other = replace(end, depth=depth_of(fifo, end) + 1)
            ends = (*fifo.consumers[:index], other, *fifo.consumers[index + 1 :])
            yield replace(fifo, literal=False, consumers=ends)


def depth_of(fifo: Fifo, end: Endpoint) -> int:
    """Declared depth of an end."""
    return fifo.depth if end.depth is None else end.depth


def wired(design: Design, arrays: Mapping[str, str]) -> Wired:
    """Print all fifos of a design.

    Args:
        design: with `literal_depths`.
        arrays: text of an array by its key, for values at the start.

    Raises:
        RefusedError: IRON 1.4 cannot say it.
    """
    printer = _Printer(design, arrays)
    printer.print()
    if printer.out.problems:
        raise RefusedError(tuple(printer.out.problems))
    return printer.out


class _Printer:
    """Prints fifos in an order in which every fifo is there before it is used."""

    def __init__(self, design: Design, arrays: Mapping[str, str]) -> None:
        self.design = design
        self.arrays = arrays
        self.fifos = {f.name: f for f in design.fifos}
        self.variables = numbered("fifo", self.fifos)
        self.out = Wired()
        self.taken: dict[HandleKey, int] = {}
        self.ends = [self.ends_of(i, link) for i, link in enumerate(design.links)]
        self.ways: list[Way] = [self.way(link) for link in design.links]

    def ends_of(self, index: int, link: Link) -> list[HandleKey]:
        """The consumers of its sources that a link takes, each taken once."""
        found = []
        for name in link.sources:
            fifo = self.fifos[name]
            mems = [i for i, c in enumerate(fifo.consumers) if c.kind == "mem"]
            fits = [i for i in mems if link.tile is not None and fifo.consumers[i].tile == link.tile] or mems
            free = [i for i in fits if (name, i) not in self.taken]
            if not free:
                what = "a link takes objects of it and none of its consumers is in that memory tile"
                raise RefusedError((Problem(code="EMIT-LINK", where=f"fifo {name!r}", what=what),))
            self.taken[name, free[0]] = index
            found.append((name, free[0]))
        return found

    def way(self, link: Link) -> Way:
        """Whether the method of the handle can say all of its far side."""
        made = link.sources if link.kind == "join" else link.targets
        for name in made:
            fifo = self.fifos[name]
            links = sum((name in k.sources) if link.kind == "join" else (name in k.targets) for k in self.design.links)
            both = any(name in (k.targets if link.kind == "join" else k.sources) for k in self.design.links)
            if fifo.consumer_shape or fifo.init_array is not None or fifo.init_objects or links > 1:
                return "object"
            if link.kind == "join" and (both or len([c for c in fifo.consumers if c.kind == "mem"]) > 1):
                return "object"
        return "method"

    def print(self) -> None:
        made = {n for k, way in zip(self.design.links, self.ways, strict=True) if way == "method" for n in _made(k)}
        ready = set()
        for fifo in self.design.fifos:
            if fifo.name not in made:
                self.plain(fifo)
                ready.add(fifo.name)
        pending = list(range(len(self.design.links)))
        while pending:
            index = next((i for i in pending if set(_anchors(self.design.links[i], self.ways[i])) <= ready), None)
            if index is None:
                names = ", ".join(repr(n) for i in pending for n in self.design.links[i].sources)
                what = "links that wait for each other"
                raise RefusedError((Problem(code="EMIT-LINK", where=f"fifos {names}", what=what),))
            pending.remove(index)
            self.link(index)
            ready |= set(_made(self.design.links[index]))

    def plain(self, fifo: Fifo) -> None:
        """A fifo by its constructor."""
        out = self.out
        out.names.add("ObjectFifo")
        out.lines.append(comment(f"{fifo.name!r}: {fifo.producer.actor!r} to {[c.actor for c in fifo.consumers]!r}"))
        keywords = {
            "obj_type": self.type(fifo.dtype, fifo.shape),
            "depth": str(fifo.depth),
            "name": quoted(identifier(fifo.name)),
            "dims_to_stream": pairs(fifo.producer.dims) if fifo.producer.dims else None,
            "repeat_count": str(fifo.repeat_count) if fifo.repeat_count != 1 else None,
            "via_DMA": "True" if fifo.via_dma else None,
            "init_values": self.init_values(fifo),
            "consumer_obj_type": self.type(fifo.dtype, fifo.consumer_shape) if fifo.consumer_shape else None,
        }
        out.lines.append(f"{self.variables[fifo.name]} = {call('ObjectFifo', **keywords)}")
        self.iterations(fifo)
        self.producer(fifo)
        for index in range(len(fifo.consumers)):
            self.consumer(fifo, index)

    def init_values(self, fifo: Fifo) -> str | None:
        if fifo.init_array is None and not fifo.init_objects:
            return None
        depth = depth_of(fifo, fifo.producer)
        where = f"fifo {fifo.name!r}"
        if fifo.init_array is None:
            what = "objects at the start without values; IRON 1.4 wants the values of each"
            self.out.problems.append(Problem(code="EMIT-INIT", where=where, what=what))
            return None
        if (fifo.init_objects or depth) != depth:
            what, expected = "values for a part of the producer's objects", f"values of all {depth}"
            got = str(fifo.init_objects)
            self.out.problems.append(Problem(code="EMIT-INIT", where=where, what=what, expected=expected, got=got))
        return f"list({self.arrays[fifo.init_array]})"

    def iterations(self, fifo: Fifo) -> None:
        if fifo.iter_count is None:
            return
        if not 1 <= fifo.iter_count <= MAX_ITERATIONS:
            what, expected = "passes of its DMA chain", f"1 to {MAX_ITERATIONS}"
            where = f"fifo {fifo.name!r}"
            got = str(fifo.iter_count)
            self.out.problems.append(
                Problem(code="EMIT-ITERATIONS", where=where, what=what, expected=expected, got=got)
            )
        self.out.lines.append(f"{self.variables[fifo.name]}.set_iter_count({fifo.iter_count})")

    def producer(self, fifo: Fifo) -> None:
        """The handle of the producer; a memory tile that only holds values gets its endpoint."""
        end = fifo.producer
        variable = f"{self.variables[fifo.name]}_prod"
        tile = tile_or_none(end.tile) if end.kind == "shim" else None
        made = call(f"{self.variables[fifo.name]}.prod", depth=str(depth_of(fifo, end)), tile=tile)
        self.out.lines.append(f"{variable} = {made}")
        self.out.handles[fifo.name, -1] = variable
        if end.kind == "mem" and not any(fifo.name in link.targets for link in self.design.links):
            self.out.names.add("ObjectFifoEndpoint")
            where = tile_or_none(end.tile)
            if where is None:
                self.out.names.add("AnyMemTile")
            self.out.lines.append(f"{variable}.endpoint = ObjectFifoEndpoint(tile={where or 'AnyMemTile'})")

    def consumer(self, fifo: Fifo, index: int) -> None:
        """The handle of a consumer."""
        end = fifo.consumers[index]
        variable = f"{self.variables[fifo.name]}_cons{index}"
        dims = pairs(end.dims) if end.dims else None
        tile = tile_or_none(end.tile) if end.kind == "shim" else None
        function = f"{self.variables[fifo.name]}.cons"
        made = call(function, depth=str(depth_of(fifo, end)), dims_from_stream=dims, tile=tile)
        self.out.lines.append(f"{variable} = {made}")
        self.out.handles[fifo.name, index] = variable

    def link(self, index: int) -> None:
        link = self.design.links[index]
        self.out.lines.append(comment(f"{link.kind} {list(link.sources)!r} to {list(link.targets)!r}"))
        if self.ways[index] == "object":
            self.link_object(link, self.ends[index])
        elif link.kind == "join":
            self.join(link, self.ends[index])
        else:
            self.split(link, self.ends[index][0])

    def link_object(self, link: Link, ends: list[HandleKey]) -> None:
        self.out.names.add("ObjectFifoLink")
        offsets = list(link.offsets)
        made = call(
            "ObjectFifoLink",
            srcs=listing(self.out.handles[end] for end in ends),
            dsts=listing(self.out.handles[name, -1] for name in link.targets),
            tile=tile_or_none(link.tile),
            src_offsets=repr(offsets if link.kind == "join" else []),
            dst_offsets=repr(offsets if link.kind == "split" else [] if link.kind == "join" else [0]),
        )
        self.out.lines.append(made)

    def join(self, link: Link, ends: list[HandleKey]) -> None:
        sources = [self.fifos[name] for name in link.sources]
        made = call(
            f"{self.out.handles[link.targets[0], -1]}.join",
            offsets=repr(list(link.offsets)),
            tile=tile_or_none(link.tile),
            depths=repr([depth_of(f, f.consumers[i]) for f, (_, i) in zip(sources, ends, strict=True)]),
            dims_from_stream=self.many([f.consumers[i].dims for f, (_, i) in zip(sources, ends, strict=True)]),
            **self.shared_keywords(sources),
        )
        self.assign(sources, made)
        for fifo, (_, taken) in zip(sources, ends, strict=True):
            self.iterations(fifo)
            self.producer(fifo)
            for index in range(len(fifo.consumers)):
                if index != taken:
                    self.consumer(fifo, index)

    def split(self, link: Link, end: HandleKey) -> None:
        targets = [self.fifos[name] for name in link.targets]
        handle = self.out.handles[end]
        if link.kind == "forward":
            fifo = targets[0]
            made = call(
                f"{handle}.forward",
                tile=tile_or_none(link.tile),
                obj_type=self.type(fifo.dtype, fifo.shape),
                depth=str(depth_of(fifo, fifo.producer)),
                name=quoted(identifier(fifo.name)),
                dims_to_stream=pairs(fifo.producer.dims) if fifo.producer.dims else None,
                repeat_count=str(fifo.repeat_count) if fifo.repeat_count != 1 else None,
            )
            self.out.lines.append(f"{self.variables[fifo.name]} = {made}")
        else:
            made = call(
                f"{handle}.split",
                offsets=repr(list(link.offsets)),
                tile=tile_or_none(link.tile),
                depths=repr([depth_of(f, f.producer) for f in targets]),
                **self.shared_keywords(targets),
            )
            self.assign(targets, made)
        for fifo in targets:
            self.iterations(fifo)
            for index in range(len(fifo.consumers)):
                self.consumer(fifo, index)

    def shared_keywords(self, fifos: list[Fifo]) -> dict[str, str | None]:
        repeats = [None if f.repeat_count == 1 else f.repeat_count for f in fifos]
        return {
            "obj_types": listing(self.type(f.dtype, f.shape) for f in fifos),
            "names": listing(quoted(identifier(f.name)) for f in fifos),
            "dims_to_stream": self.many([f.producer.dims for f in fifos]),
            "repeat_counts": repr(repeats) if any(repeats) else None,
        }

    def many(self, dims: list[tuple[tuple[int, int], ...]]) -> str | None:
        return f"[{', '.join(pairs(d) for d in dims)}]" if any(dims) else None

    def assign(self, fifos: list[Fifo], made: str) -> None:
        variables = ", ".join(self.variables[f.name] for f in fifos)
        self.out.lines.append(f"{variables}{',' if len(fifos) == 1 else ''} = {made}")

    def type(self, dtype: str, shape: tuple[int, ...]) -> str:
        self.out.types.add((dtype, shape))
        return type_name(dtype, shape)


def _made(link: Link) -> tuple[str, ...]:
    """Fifos that a method makes."""
    return link.sources if link.kind == "join" else link.targets


def _anchors(link: Link, way: Way) -> tuple[str, ...]:
    """Fifos that have to be there first."""
    if way == "object":
        return (*link.sources, *link.targets)
    return link.targets if link.kind == "join" else link.sources
