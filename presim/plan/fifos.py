"""Fifos and links of a design as they grow: what memory tiles join of several workers, and cut for several."""

from dataclasses import replace
from itertools import pairwise

from presim.design import Endpoint, Fifo, Link, Slice
from presim.kernels.attributes import Forms
from presim.plan.choices import Choices, worker_of
from presim.plan.graph import Value
from presim.plan.limits import JOIN_LIMIT
from presim.plan.names import Names
from presim.plan.share import Share, input_shape
from presim.steps import elements_of


class Fifos:
    """Fifos by name, links in order."""

    def __init__(self, choices: Choices, forms: Forms) -> None:
        self.choices = choices
        self.forms = forms
        self.names = Names({name: t.shape for name, t in forms.tensors.items()})
        self.home = {share.name: worker_of(group) for group in choices.groups for share in group}
        self.fifos: dict[str, Fifo] = {}
        self.links: list[Link] = []

    def join_parts(self, value: Value, sources: list[str], level: str, *, by_objects: bool) -> list[str]:
        """Join so many fifos in several memory tiles first; the fifos of those."""
        target = self.names.fifo(value)
        groups = -(-len(sources) // JOIN_LIMIT)
        edges = [len(sources) * i // groups for i in range(groups + 1)]
        found = []
        for index, (start, end) in enumerate(pairwise(edges)):
            name = f"{target}#{level}{index}"
            reader = Endpoint(actor=f"mem:{target}", kind="mem", depth=2)
            self.join_group(value, sources[start:end], name, reader, by_objects=by_objects)
            found.append(name)
        return found

    def join_group(
        self, value: Value, parts: list[str], name: str, reader: Endpoint, *, by_objects: bool = False
    ) -> None:
        """Join some of the parts of a value in a memory tile, for one reader."""
        target = self.names.fifo(value)
        end_of_part = Endpoint(actor=f"mem:{name}", kind="mem", depth=2)
        for source in parts:
            self.turn_to(source, target, end_of_part)
        shapes = [self.fifos[p].shape for p in parts]
        self.fifos[name] = replace(
            self.fifos[parts[0]],
            name=name,
            shape=(sum(s[0] for s in shapes), *shapes[0][1:]),
            producer=end_of_part,
            consumers=(reader,),
            tensor="" if by_objects else value.tensor,
            slices=() if by_objects else (_channels([self.fifos[p] for p in parts]),),
        )
        offsets = tuple(sum(elements_of(s) for s in shapes[:i]) for i in range(len(shapes)))
        self.links.append(Link(kind="join", sources=tuple(parts), targets=(name,), offsets=offsets))

    def turn_to(self, source: str, target: str, end: Endpoint) -> None:
        """Let a fifo that ended where `target` is joined end at `end`."""
        fifo = self.fifos[source]
        ends = tuple(end if c.actor == f"mem:{target}" else c for c in fifo.consumers)
        self.fifos[source] = replace(fifo, consumers=ends)

    def split(self, value: Value, source: Fifo, actor: str, cascade: list[list[tuple[Share, int]]]) -> None:
        """Cut the objects of a fifo in a memory tile."""
        targets: list[str] = []
        offsets: list[int] = []
        for readers in cascade:
            offsets.append(sum(elements_of(self.fifos[t].shape) for t in targets))
            fifo = self.cut_fifo(value, source, Endpoint(actor=actor, kind="mem", depth=2), readers)
            targets.append(fifo.name)
            self.fifos[fifo.name] = fifo
        self.links.append(Link(kind="split", sources=(source.name,), targets=tuple(targets), offsets=tuple(offsets)))

    def cut_fifo(self, value: Value, source: Fifo, producer: Endpoint, readers: list[tuple[Share, int]]) -> Fifo:
        """The fifo of the channels that some workers read of a value."""
        share = readers[0][0]
        name = self.names.part(value, share)
        first, count = share.cut
        return replace(
            source,
            name=name,
            shape=input_shape(share, 0),
            producer=producer,
            consumers=tuple(self.cut_end(name, reader, depth) for reader, depth in readers),
            depth=2,
            literal=source.literal or any(reader.least for reader, _ in readers),
            consumer_shape=(),
            slices=(*source.slices, Slice(axis="channels", first=first, count=count)),
        )

    def cut_end(self, fifo: str, share: Share, depth: int) -> Endpoint:
        """The end of a slice at one worker."""
        worker = self.home[share.name]
        return Endpoint(actor=worker, depth=self.choices.depths.get((fifo, worker), depth))

    def form_of(self, value: Value) -> tuple[int, ...]:
        """`Fifo.form` of a value."""
        return () if value.width or value.form == self.forms.tensors[value.tensor].shape else value.form


def _channels(parts: list[Fifo]) -> Slice:
    """Channels of fifos that lie side by side."""
    slices = [s for p in parts for s in p.slices if s.axis == "channels"]
    return Slice(axis="channels", first=slices[0].first, count=sum(s.count for s in slices))
