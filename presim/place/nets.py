"""What joins the workers of a design, as the search for places sees it: workers by number, pairs with a price."""

from collections.abc import Iterator
from dataclasses import dataclass

from manifest.device import Device
from presim.design import Design, Fifo
from presim.pools import may_share


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two workers that want to be near each other.

    Attributes:
        producer: number of a worker.
        consumer: another one.
        direct: side by side they share a memory and need no DMA; else only the way is shorter.
    """

    producer: int
    consumer: int
    direct: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Nets:
    """All pairs of a design.

    Attributes:
        workers: names, by number.
        pairs: each once.
        host: workers at the other end of a fifo from or to the host.
        inputs: by worker, fifos that come by a DMA wherever it is.
        outputs: likewise, fifos that leave.
        input_limit: DMA channels of a core tile, stream to memory; None = not published.
        output_limit: likewise, memory to stream.
    """

    workers: tuple[str, ...]
    pairs: tuple[Pair, ...]
    host: frozenset[int]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    input_limit: int | None
    output_limit: int | None


def nets_of(design: Design, device: Device) -> Nets:
    """The nets of a design of sound structure."""
    return _Collector(design).nets(device)


class _Collector:
    def __init__(self, design: Design) -> None:
        self.design = design
        self.numbers = {worker.name: i for i, worker in enumerate(design.workers)}
        self.fifos = {fifo.name: fifo for fifo in design.fifos}
        self.into = {name: link for link in design.links for name in link.targets}
        self.pairs: dict[tuple[int, int, bool], None] = {}
        self.host: set[int] = set()
        self.inputs = [0] * len(self.numbers)
        self.outputs = [0] * len(self.numbers)

    def nets(self, device: Device) -> Nets:
        for fifo in self.design.fifos:
            self.add(fifo)
        for link in self.design.links:
            for source in dict.fromkeys(w for name in link.sources for w in self.before(name, set())):
                for target in (w for name in link.targets for w in self.readers(self.fifos[name])):
                    self.pair(source, target, direct=False)
        return Nets(
            workers=tuple(self.numbers),
            pairs=tuple(Pair(producer=p, consumer=c, direct=d) for p, c, d in self.pairs),
            host=frozenset(self.host),
            inputs=tuple(self.inputs),
            outputs=tuple(self.outputs),
            input_limit=device.core_s2mm.value,
            output_limit=device.core_mm2s.value,
        )

    def add(self, fifo: Fifo) -> None:
        producer = self.numbers[fifo.producer.actor] if fifo.producer.kind == "worker" else None
        readers = list(self.readers(fifo))
        if may_share(fifo):
            self.pair(producer, readers[0], direct=True)
            return
        if producer is not None:
            self.outputs[producer] += 1
        for reader in readers:
            self.inputs[reader] += 1
            self.pair(producer, reader, direct=False)
        if fifo.producer.kind == "shim":
            self.host.update(readers)
        if producer is not None and any(end.kind == "shim" for end in fifo.consumers):
            self.host.add(producer)

    def pair(self, producer: int | None, consumer: int, *, direct: bool) -> None:
        if producer is not None and producer != consumer:
            self.pairs[producer, consumer, direct] = None

    def readers(self, fifo: Fifo) -> Iterator[int]:
        return (self.numbers[end.actor] for end in fifo.consumers if end.kind == "worker")

    def before(self, name: str, seen: set[str]) -> Iterator[int]:
        """Workers whose objects come through a fifo, through any number of memory tiles."""
        fifo = self.fifos[name]
        if name in seen:
            return
        seen.add(name)
        if fifo.producer.kind == "worker":
            yield self.numbers[fifo.producer.actor]
        elif name in self.into:
            for source in self.into[name].sources:
                yield from self.before(source, seen)
