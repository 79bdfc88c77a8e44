"""Ways in which the parts of a design work together, and which of them are known.

Why a table of known ones: a mechanism that was never simulated before wants the smallest isolated probe first. Each
known one has a probe of its own in `examples/probes`, which the tests run; a design that uses another one needs a probe
in its port.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from presim.design import Acquire, Design, Endpoint, Fifo, Worker
from presim.evidence import MechanismEvidence
from presim.pools import is_literal, shares_memory
from presim.steps import steps_of

KNOWN: Final = (
    "broadcast",
    "cascade",
    "depth list",
    "forward through a memory tile",
    "join in a memory tile",
    "objects cut by the consumer",
    "self-loop",
    "several inputs of a worker",
    "several outputs of a worker",
    "shared memory",
    "sliding window",
    "split in a memory tile",
    "streamed weights",
    "weights filled by the host",
    "worker between two fifos",
)
"""Mechanisms with a probe of their own in `examples/probes`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What a probe found, as the port holds it."""

    mechanism: str
    verdict: str
    passed: bool
    sha256: str


def mechanisms_of(design: Design, constants: frozenset[str] = frozenset()) -> dict[str, int]:
    """Mechanisms of a design and how many places use each.

    Args:
        design: of a dispatch.
        constants: names of tensors that are weights.
    """
    found: dict[str, int] = {}
    for name in _names(design, constants):
        found[name] = found.get(name, 0) + 1
    return dict(sorted(found.items()))


def mechanism_evidence(
    designs: tuple[Design, ...], records: Mapping[str, Record], constants: frozenset[str] = frozenset()
) -> tuple[MechanismEvidence, ...]:
    """Every mechanism of all designs, with the probe that the port holds.

    Args:
        designs: of all dispatches.
        records: probes by mechanism.
        constants: names of tensors that are weights.
    """
    uses: dict[str, int] = {}
    for design in designs:
        for name, count in mechanisms_of(design, constants).items():
            uses[name] = uses.get(name, 0) + count
    rows = []
    for name, count in sorted(uses.items()):
        record = records.get(name)
        rows.append(
            MechanismEvidence(
                name=name,
                uses=count,
                known=name in KNOWN,
                probe_verdict="" if record is None else record.verdict,
                probe_sha256="" if record is None else record.sha256,
                probe_passed=record is not None and record.passed,
            )
        )
    return tuple(rows)


def _names(design: Design, constants: frozenset[str]) -> Iterator[str]:
    for fifo in design.fifos:
        yield from _of_fifo(fifo)
    for link in design.links:
        yield {"forward": "forward through", "split": "split in", "join": "join in"}[link.kind] + " a memory tile"
    yield from ("cascade" for _ in design.cascades)
    for worker in design.workers:
        yield from _of_worker(design, worker)
    filled = {t.fifo for t in design.sequence if t.direction == "fill"}
    yield from ("weights filled by the host" for f in design.fifos if f.name in filled and f.tensor in {"", *constants})


def _of_fifo(fifo: Fifo) -> Iterator[str]:
    ends: tuple[Endpoint, ...] = (fifo.producer, *fifo.consumers)
    is_loop = any(c.actor == fifo.producer.actor and c.kind == "worker" for c in fifo.consumers)
    holds = fifo.init_array is not None or fifo.init_objects > 0
    rows = (
        (len(fifo.consumers) > 1, "broadcast"),
        (is_loop, "self-loop"),
        (shares_memory(fifo) and not is_loop, "shared memory"),
        (is_literal(fifo), "depth list"),
        (fifo.repeat_count > 1 and fifo.init_array is None, "repeat count"),
        (fifo.iter_count is not None, "iteration count"),
        (holds and fifo.producer.kind == "mem", "streamed weights"),
        (holds and fifo.producer.kind != "mem", "objects at the start"),
        (bool(fifo.consumer_shape), "objects cut by the consumer"),
        (any(e.dims for e in ends), "elements reordered by a DMA"),
    )
    yield from (name for used, name in rows if used)


def _of_worker(design: Design, worker: Worker) -> Iterator[str]:
    largest = {s.fifo: s.count for s in steps_of(worker.program) if isinstance(s, Acquire) and s.count > 1}
    reads = [f for f in design.fifos if any(c.actor == worker.name for c in f.consumers)]
    writes = [f for f in design.fifos if f.producer.actor == worker.name]
    yield from ("sliding window" for f in reads if f.name in largest)
    if len(reads) > 1:
        yield "several inputs of a worker"
    if len(writes) > 1:
        yield "several outputs of a worker"
    if len(reads) == 1 and len(writes) == 1:
        yield "worker between two fifos"
