"""How the objects of a fifo get from one end to the other on a placed array."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal

from presim.design import Design, Endpoint, Fifo
from presim.pools import shares_memory

Route = Literal["inside", "direct", "stream", "memory", "host"]

MEANING: Final[Mapping[Route, str]] = MappingProxyType(
    {
        "inside": "within one core",
        "direct": "memory shared by neighbours, no DMA",
        "stream": "DMA from core to core",
        "memory": "DMA through a memory tile",
        "host": "DMA from or to the host",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """The way of a fifo to one of its consumers."""

    fifo: Fifo
    consumer: Endpoint
    route: Route


def route_of(fifo: Fifo, consumer: Endpoint) -> Route:
    """The route of a fifo to a consumer; what is not placed is taken to need a DMA."""
    kinds = {fifo.producer.kind, consumer.kind}
    if "shim" in kinds:
        return "host"
    if "mem" in kinds:
        return "memory"
    if not shares_memory(fifo):
        return "stream"
    return "inside" if fifo.producer.actor == consumer.actor else "direct"


def edges_of(design: Design) -> tuple[Edge, ...]:
    """Every fifo to every consumer, in the order of the design."""
    return tuple(
        Edge(fifo=fifo, consumer=end, route=route_of(fifo, end)) for fifo in design.fifos for end in fifo.consumers
    )


def routes(design: Design) -> Mapping[Route, int]:
    """How many ways there are of each kind, those without one too."""
    found = Counter(edge.route for edge in edges_of(design))
    return MappingProxyType({route: found[route] for route in MEANING})
