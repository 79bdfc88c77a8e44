"""The fifos of a design: who makes and who takes the objects of every value, and what memory tiles do between."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from presim.blocks import LANES, object_count, object_shape
from presim.design import Direction, Endpoint, Fifo, Link, Slice, Transfer
from presim.kernels.attributes import Forms
from presim.plan.choices import Choices, worker_of
from presim.plan.columns import host_pattern, item_bytes
from presim.plan.fifos import Fifos
from presim.plan.graph import Graph, Value
from presim.plan.hostways import Way, grouped, slice_pattern
from presim.plan.limits import JOIN_LIMIT
from presim.plan.names import slices_of, strip_of
from presim.plan.share import (
    Share,
    fired_of,
    input_depth,
    output_depth,
    output_shape,
    some_channels,
    together,
)
from presim.steps import elements_of


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reader:
    """Who takes the objects of a value, how many it has room for, and whether that number is taken as it is."""

    endpoint: Endpoint
    literal: bool = False
    bundled: bool = False


class Flows(Fifos):
    """Fifos by name, links in order."""

    def __init__(self, graph: Graph, choices: Choices, forms: Forms) -> None:
        super().__init__(choices, forms)
        self.graph = graph
        self.makers = {spread.node.output: spread.makers for spread in choices.spreads}
        self.readers: dict[Value, list[_Reader]] = {}
        self.cuts: dict[tuple[Value, str], dict[int, list[tuple[Share, int]]]] = {}
        self.ways: dict[Value, tuple[Way, ...]] = {}
        self.build()

    def build(self) -> None:
        """All fifos of values, host to host."""
        self.collect_readers()
        for value in self.graph.inputs:
            if self.add_host_cut(value):
                continue
            producer = Endpoint(actor=f"shim:{self.names.fifo(value)}", kind="shim")
            self.add_fifo(value, producer, object_shape(value.form))
            self.add_return(value)
        for node in self.graph.nodes:
            if node.output in self.makers:
                self.add_output(node.output, self.makers[node.output])
            else:
                self.add_join(node.output, [self.names.fifo(v) for v in node.inputs])

    def collect_readers(self) -> None:
        """Every consumer of every value: workers first, then memory tiles, then the host."""
        for group in self.choices.groups:
            for share in group:
                fired = fired_of(share)
                for port, value in enumerate(share.node.inputs):
                    depth = input_depth(share, port, fired)
                    if share.sliced:
                        cut = self.cuts.setdefault((value, share.node.op.name), {})
                        cut.setdefault(share.cut[0], []).append((share, depth))
                        continue
                    end = Endpoint(actor=worker_of(group), depth=depth)
                    self.readers.setdefault(value, []).append(
                        _Reader(endpoint=end, literal=share.tight or share.least > 0, bundled=share.bundled)
                    )
        for value, op in self.cuts:
            end = Endpoint(actor=f"mem:{self.names.fifo(value)}>{op}", kind="mem", depth=2)
            self.readers.setdefault(value, []).append(_Reader(endpoint=end))
        for node in self.graph.nodes:
            if node.output not in self.makers:
                for value in node.inputs:
                    end = Endpoint(actor=f"mem:{self.names.fifo(node.output)}", kind="mem", depth=2)
                    self.readers.setdefault(value, []).append(_Reader(endpoint=end))
        for value in dict.fromkeys(v for _, v in self.graph.outputs):
            end = Endpoint(actor=f"shim:{self.names.fifo(value)}", kind="shim")
            self.readers.setdefault(value, []).append(_Reader(endpoint=end))

    def add_return(self, value: Value) -> None:
        """An input that is an output too comes back through a memory tile: a shim does not feed a shim."""
        name = self.names.fifo(value)
        if all(v != value for _, v in self.graph.outputs):
            return
        source = self.fifos[name]
        back = next(c for c in source.consumers if c.kind == "shim")
        mem = Endpoint(actor=f"mem:{name}>host", kind="mem", depth=2)
        others = tuple(mem if c is back else c for c in source.consumers)
        self.fifos[name] = replace(source, consumers=others)
        target = replace(source, name=f"{name}>host", producer=mem, consumers=(back,))
        self.fifos[target.name] = target
        self.links.append(Link(kind="forward", sources=(name,), targets=(target.name,)))

    def add_output(self, value: Value, makers: tuple[Share, ...]) -> None:
        """The fifo of what a node makes: straight from its worker, or joined in a memory tile."""
        first = makers[0]
        if len(makers) == 1:
            end = Endpoint(actor=self.home[first.name], depth=output_depth(first))
            pieces = object_count(value.form) if first.bundled else 1
            self.add_fifo(value, end, output_shape(first), tight=first.tight, pieces=pieces)
            return
        count = object_count(value.form)
        sources = []
        for share in makers:
            name = self.names.slice(value, share)
            sources.append(name)
            self.fifos[name] = Fifo(
                name=name,
                shape=output_shape(share),
                dtype=self.forms.of(value.tensor).dtype,
                producer=Endpoint(actor=self.home[share.name], depth=output_depth(share)),
                consumers=(Endpoint(actor=f"mem:{self.names.fifo(value)}", kind="mem", depth=2),),
                tensor=value.tensor,
                form=self.form_of(value),
                slices=slices_of(share, count),
            )
        if not self.add_host_parts(value, makers, sources):
            self.add_join(value, sources, len(makers) if first.outer else 1)

    def add_join(self, value: Value, sources: list[str], pieces: int = 1) -> None:
        """Join fifos into objects of a value in a memory tile, `pieces` of them in one."""
        level = ""
        while len(sources) > JOIN_LIMIT:
            level += "p"
            sources = self.join_parts(value, sources, level, by_objects=pieces > 1)
        elements = [elements_of(self.fifos[name].shape) for name in sources]
        target = self.names.fifo(value)
        whole = object_shape(value.form)
        actor = f"mem:{target}"
        producer = Endpoint(actor=actor, kind="mem", depth=self.choices.depths.get((target, actor), 2))
        self.add_fifo(value, producer, together(whole, pieces), pieces=pieces)
        offsets = tuple(sum(elements[:i]) for i in range(len(elements)))
        self.links.append(Link(kind="join", sources=tuple(sources), targets=(target,), offsets=offsets))

    def add_host_parts(self, value: Value, makers: tuple[Share, ...], sources: list[str]) -> bool:
        """Let the host take the parts of an output over several streams; False = it takes them over one."""
        readers = self.readers.get(value, [])
        alone = len(readers) == 1 and readers[0].endpoint.kind == "shim" and not value.width
        streams = makers[0].host_streams
        if streams < 2 or not alone or makers[0].outer or not makers[0].makes[1]:
            return False
        ways = []
        for start, end in grouped(len(makers), max(streams, -(-len(makers) // JOIN_LIMIT))):
            first, last = makers[start].makes[0], sum(makers[end - 1].makes)
            name = sources[start] if end - start == 1 else f"{self.names.fifo(value)}#h{start}"
            ways.append((Way(fifo=name, first=first, count=last - first), sources[start:end]))
        if not self.codes(value, [way for way, _ in ways]):
            return False
        for way, parts in ways:
            shim = Endpoint(actor=f"shim:{way.fifo}", kind="shim")
            if len(parts) == 1:
                self.turn_to(parts[0], self.names.fifo(value), shim)
            else:
                self.join_group(value, parts, way.fifo, shim)
        self.ways[value] = tuple(way for way, _ in ways)
        return True

    def codes(self, value: Value, ways: list[Way]) -> bool:
        """Whether descriptors of the host code all slices of a value."""
        size = item_bytes(value, self.forms)
        return all(slice_pattern(value, way.first, way.count, size)[1] for way in ways)

    def add_host_cut(self, value: Value) -> bool:
        """Let the host bring the slices of a cascade over several streams; False = it brings all over one."""
        readers = [op for cut, op in self.cuts if cut == value]
        if len(readers) != 1 or len(self.readers[value]) != 1 or value.width:
            return False
        cascade = list(self.cuts[value, readers[0]].values())
        streams = cascade[0][0][0].host_streams
        if streams < 2:
            return False
        ways = []
        for start, end in grouped(len(cascade), streams):
            first, last = cascade[start][0][0].cut[0], sum(cascade[end - 1][0][0].cut)
            share = cascade[start][0][0]
            name = self.names.part(value, share) if end - start == 1 else f"{self.names.fifo(value)}>host#{start}"
            ways.append((Way(fifo=name, first=first, count=last - first), cascade[start:end]))
        if not self.codes(value, [way for way, _ in ways]):
            return False
        for way, parts in ways:
            self.add_host_slice(value, way, parts)
        self.ways[value] = tuple(way for way, _ in ways)
        return True

    def add_host_slice(self, value: Value, way: Way, parts: list[list[tuple[Share, int]]]) -> None:
        """The fifo of one slice: straight to its workers, or cut further in a memory tile."""
        shim = Endpoint(actor=f"shim:{way.fifo}", kind="shim")
        mem = Endpoint(actor=f"mem:{way.fifo}>", kind="mem", depth=2)
        source = Fifo(
            name=way.fifo,
            shape=some_channels(object_shape(value.form), way.count),
            dtype=self.forms.of(value.tensor).dtype,
            producer=shim,
            consumers=(mem,),
            tensor=value.tensor,
            form=self.form_of(value),
            slices=(Slice(axis="channels", first=way.first, count=way.count),),
        )
        if len(parts) > 1:
            self.fifos[way.fifo] = source
            self.split(value, replace(source, slices=()), mem.actor, parts)
        else:
            self.fifos[way.fifo] = self.cut_fifo(value, replace(source, slices=()), shim, parts[0])

    def add_fifo(
        self, value: Value, producer: Endpoint, shape: tuple[int, ...], *, tight: bool = False, pieces: int = 1
    ) -> None:
        """The fifo of whole objects of a value, with what memory tiles keep for single readers."""
        name = self.names.fifo(value)
        readers = self.readers.get(value, [])
        branches = [r for r in readers if (name, r.endpoint.actor) in self.choices.kept]
        ends = tuple(self.consumer(name, r) for r in readers)
        grown = any((name, e.actor) in self.choices.depths for e in ends)
        tight = tight or any(r.literal for r in readers)
        fifo = Fifo(
            name=name,
            shape=shape,
            dtype=self.forms.of(value.tensor).dtype,
            producer=producer,
            consumers=ends,
            depth=producer.depth or 2,
            tensor=value.tensor,
            consumer_shape=object_shape(value.form) if pieces > 1 and any(e.kind != "mem" for e in ends) else (),
            form=self.form_of(value),
            slices=strip_of(value),
        )
        self.fifos[name] = _settled(fifo, literal=tight or grown or pieces > 1)
        for reader in branches:
            self.add_branch(value, reader)
        for (cut, op), pieces_of in self.cuts.items():
            if cut == value:
                self.add_cut(value, op, list(pieces_of.values()))

    def add_cut(self, value: Value, op: str, cascade: list[list[tuple[Share, int]]]) -> None:
        """Cut the objects of a value by channels, for the workers of a cascade."""
        source = self.fifos[self.names.fifo(value)]
        self.split(value, source, f"mem:{source.name}>{op}", cascade)

    def consumer(self, fifo: str, reader: _Reader) -> Endpoint:
        """The endpoint of a reader on the fifo of the value itself."""
        end = reader.endpoint
        pool = fifo, end.actor
        depth = self.choices.depths.get(pool, end.depth)
        if pool in self.choices.kept:
            return Endpoint(actor=f"mem:{fifo}>{end.actor}", kind="mem", depth=depth)
        return Endpoint(actor=end.actor, kind=end.kind, depth=depth)

    def add_branch(self, value: Value, reader: _Reader) -> None:
        """A reader that gets its objects from a memory tile."""
        source = self.fifos[self.names.fifo(value)]
        end = reader.endpoint
        name = self.names.branch(value, end.actor)
        count = self.choices.kept[source.name, end.actor]
        depth = self.choices.depths.get((source.name, end.actor), min(2, object_count(value.form) // count))
        shape = object_shape(value.form)
        self.fifos[name] = Fifo(
            name=name,
            shape=together(shape, count),
            dtype=source.dtype,
            producer=Endpoint(actor=f"mem:{source.name}>{end.actor}", kind="mem", depth=depth),
            consumers=(replace(end, depth=self.choices.depths.get((name, end.actor), end.depth)),),
            tensor=value.tensor,
            depth=depth,
            consumer_shape=shape if count > 1 and not reader.bundled else (),
            form=source.form,
            slices=source.slices,
        )
        self.links.append(Link(kind="forward", sources=(source.name,), targets=(name,)))

    def sequence(self) -> Iterator[Transfer]:
        """Tasks of the host: all inputs, then all outputs."""
        for value in self.graph.inputs:
            yield from self.transfers(value, "fill")
        for value in dict.fromkeys(v for _, v in self.graph.outputs):
            yield from self.transfers(value, "drain")

    def transfers(self, value: Value, direction: Direction) -> Iterator[Transfer]:
        """The tasks that move a value, one for each of its streams."""
        if value not in self.ways:
            yield self.transfer(value, direction)
        for way in self.ways.get(value, ()):
            offset, dims = slice_pattern(value, way.first, way.count, item_bytes(value, self.forms))
            yield Transfer(
                fifo=way.fifo,
                direction=direction,
                tensor=value.tensor,
                objects=object_count(value.form),
                offset=offset,
                sizes=tuple(size for size, _ in dims),
                strides=tuple(stride for _, stride in dims),
                wait=direction == "drain",
            )

    def transfer(self, value: Value, direction: Direction) -> Transfer:
        """The task that moves a value; a strip is taken out of the rows of the whole image."""
        name = self.names.fifo(value)
        returned = direction == "drain" and value in self.graph.inputs
        dims = host_pattern(value, item_bytes(value, self.forms)) if value.width else ()
        return Transfer(
            fifo=f"{name}>host" if returned else name,
            direction=direction,
            tensor=value.tensor,
            objects=object_count(value.form),
            offset=value.first_column * LANES,
            sizes=tuple(size for size, _ in dims),
            strides=tuple(stride for _, stride in dims),
            wait=direction == "drain",
        )


def _settled(fifo: Fifo, *, literal: bool) -> Fifo:
    """A fifo between two workers gets one depth for both ends, so that it lives with or without a DMA."""
    if len(fifo.consumers) != 1 or fifo.producer.kind != "worker" or fifo.consumers[0].kind != "worker":
        return fifo
    producer, consumer = fifo.producer, fifo.consumers[0]
    depth = max(producer.depth or 1, consumer.depth or 1)
    return replace(
        fifo,
        producer=producer if literal else Endpoint(actor=producer.actor),
        consumers=(consumer if literal else Endpoint(actor=consumer.actor),),
        depth=depth,
        via_dma=literal,
    )
