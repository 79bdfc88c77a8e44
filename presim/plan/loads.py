"""What the cores of a design carry: bytes, descriptors, streams."""

from dataclasses import dataclass

from presim.design import Argument, Call, Design
from presim.plan.limits import size_of
from presim.pools import wire
from presim.steps import steps_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """One core.

    Attributes:
        worker: on it.
        bytes: buffers and objects, rounded up to the alignment.
        descriptors: objects that a DMA moves.
        inputs: fifos that come in from elsewhere.
        outputs: fifos that go out.
        bytes_by_fifo: objects alone.
        deepest: objects of the deepest pool.
    """

    worker: str
    bytes: int
    descriptors: int
    inputs: int
    outputs: int
    bytes_by_fifo: dict[str, int]
    deepest: int


def loads(design: Design) -> tuple[Load, ...]:
    """The load of every worker, by its order in the design; fifos between workers count on both sides."""
    wiring = wire(design)
    buffers = {b.name: size_of(b.shape, b.dtype) for b in design.buffers}
    found = []
    for worker in design.workers:
        by_fifo: dict[str, int] = {}
        streams: dict[str, set[str]] = {"produce": set(), "consume": set()}
        descriptors = deepest = 0
        for (actor, fifo, side), name in wiring.ports.items():
            pool = wiring.pools[name]
            if actor != worker.name:
                continue
            if pool.kind == "shared" and side == "consume":
                continue
            depth = max(pool.declared, pool.allocated) if side == "consume" else pool.allocated
            by_fifo[fifo] = by_fifo.get(fifo, 0) + depth * size_of(pool.shape, pool.dtype)
            deepest = max(deepest, depth)
            if pool.kind != "shared":
                streams[side].add(fifo)
                descriptors += depth
        used = {a.name for s in steps_of(worker.program) if isinstance(s, Call) for a in _buffers(s)}
        found.append(
            Load(
                worker=worker.name,
                bytes=sum(by_fifo.values()) + sum(buffers[name] for name in used),
                descriptors=descriptors,
                inputs=len(streams["consume"]),
                outputs=len(streams["produce"]),
                bytes_by_fifo=by_fifo,
                deepest=deepest,
            )
        )
    return tuple(found)


def _buffers(call: Call) -> list[Argument]:
    return [a for a in call.arguments if a.kind == "buffer"]
