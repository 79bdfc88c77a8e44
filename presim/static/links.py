"""Links and broadcasts: segments tile their object, what the memory tile's DMAs cannot do is not asked of them."""

from collections import Counter
from collections.abc import Iterator
from typing import Final

from presim.design import Fifo, Link
from presim.pools import is_literal
from presim.static.findings import Checked, StaticFinding, error, warning
from presim.static.scope import Scope, place
from presim.steps import elements_of

SEGMENTS: Final = "segments"
LINKS: Final = "links"
BROADCAST: Final = "broadcast"
REPLAYS: Final = "replayed_broadcasts"


def segments(scope: Scope) -> Checked:
    """Segments of a split or join follow one another and cover the object exactly: no gap, no overlap, no rest."""
    links = [link for link in scope.design.links if link.kind != "forward"]
    found = [f for link in links for f in _tiling(scope, link)]
    return Checked(rule=SEGMENTS, looked_at=len(links), findings=tuple(found))


def _tiling(scope: Scope, link: Link) -> Iterator[StaticFinding]:
    names = link.targets if link.kind == "split" else link.sources
    whole = scope.fifo(link.sources[0] if link.kind == "split" else link.targets[0])
    size = elements_of(_arriving(whole) if link.kind == "split" else whole.shape)
    where = f"{link.kind} of fifo {whole.name!r}"
    at = 0
    for name, offset in zip(names, link.offsets, strict=True):
        part = scope.fifo(name)
        length = elements_of(part.shape if link.kind == "split" else _arriving(part))
        if offset != at:
            what = "overlaps what is before it" if offset < at else "leaves a gap before it"
            text = f"segment of fifo {name!r} begins at {offset}, expected {at}: it {what}"
            yield error(SEGMENTS, where, text, used=offset, limit=at)
        at = offset + length
    if at != size:
        text = f"the segments end at {at} of {size} elements of the object"
        yield error(SEGMENTS, where, text, used=at, limit=size)


def _arriving(fifo: Fifo) -> tuple[int, ...]:
    return fifo.consumer_shape or fifo.shape


def links(scope: Scope) -> Checked:
    """Links are in memory tiles, and need nothing that their DMAs cannot do."""
    found = [f for link in scope.design.links for f in _link(scope, link)]
    ends = [p for p in scope.wiring.pools.values() if p.tile_kind == "mem" and p.kind != "link"]
    for pool in ends:
        if pool.kind == "consume":
            text = f"ends at {pool.actor!r} in a memory tile and no link leads on: it stops when the pool is full"
            found.append(error(LINKS, f"fifo {pool.fifo!r}", text))
        elif not pool.static:
            text = f"begins at {pool.actor!r} in a memory tile with neither a link into it nor values of the start"
            found.append(error(LINKS, f"fifo {pool.fifo!r}", text))
    return Checked(rule=LINKS, looked_at=len(scope.design.links) + len(ends), findings=tuple(found))


def _link(scope: Scope, link: Link) -> Iterator[StaticFinding]:
    where = f"link {', '.join(link.sources)} > {', '.join(link.targets)}"
    if link.tile is not None and link.tile.kind != "mem":
        yield error(LINKS, where, f"is on {place(link.tile)}; a link works in a memory tile only (mlir-aie 1224)")
    if link.kind == "join" and scope.fifo(link.targets[0]).producer.dims:
        text = f"dims on fifo {link.targets[0]!r}, the output of a join, are not supported (mlir-aie 2678)"
        yield error(LINKS, where, text)
    if link.kind == "split":
        ends = [c for c in scope.fifo(link.sources[0]).consumers if c.kind == "mem" and c.dims]
        if ends:
            text = f"dims on fifo {link.sources[0]!r}, the input of a split, are not supported (mlir-aie 2678)"
            yield error(LINKS, where, text)
    yield from _repeats(scope, link, where)
    yield from _sizes(scope, link, where)


def _repeats(scope: Scope, link: Link, where: str) -> Iterator[StaticFinding]:
    repeats = {scope.fifo(name).repeat_count for name in link.targets}
    if len(repeats) > 1:
        yield error(LINKS, where, f"targets repeat {sorted(repeats)} times; one pool repeats one number of times")
    elif link.kind == "join" and repeats != {1}:
        text = "a join whose output is repeated: toolchains send segment by segment or object by object"
        yield warning(LINKS, where, text)


def _sizes(scope: Scope, link: Link, where: str) -> Iterator[StaticFinding]:
    if link.kind != "forward":
        return
    arriving = elements_of(_arriving(scope.fifo(link.sources[0])))
    leaving = elements_of(scope.fifo(link.targets[0]).shape)
    if max(arriving, leaving) % min(arriving, leaving):
        text = f"objects of {arriving} elements arrive and of {leaving} leave; one has to be a multiple of the other"
        yield error(LINKS, where, text, used=leaving, limit=arriving)


def broadcast(scope: Scope) -> Checked:
    """Consumers of a broadcast are on different tiles, and every endpoint is where its worker is."""
    found: list[StaticFinding] = []
    for fifo in scope.design.fifos:
        tiles = Counter(c.tile for c in fifo.consumers if c.tile is not None)
        for tile, count in tiles.items():
            if count > 1:
                text = f"{count} of its consumers are on {place(tile)}; a stream ends there once"
                found.append(error(BROADCAST, f"fifo {fifo.name!r}", text, used=count, limit=1))
        for end in (fifo.producer, *fifo.consumers):
            worker = scope.worker(end.actor) if end.kind == "worker" else None
            if worker is not None and end.tile != worker.tile:
                text = f"its end at {end.actor!r} is on {place(end.tile)}, the worker on {place(worker.tile)}"
                found.append(error(BROADCAST, f"fifo {fifo.name!r}", text))
    return Checked(rule=BROADCAST, looked_at=len(scope.design.fifos), findings=tuple(found))


def replayed_broadcasts(scope: Scope) -> Checked:
    """No broadcast is sent again so often that the compiler's own deadlock model refuses it.

    The model of mlir-aie (PR 3257): fan-out times trips above twice the depth, where the consumers pass on what they
    get. It is a rule of thumb: the simulation says whether the design hangs.
    """
    senders = {f.producer.actor for f in scope.design.fifos if f.producer.kind == "worker"}
    sent = [f for f in scope.design.fifos if f.repeat_count > 1 and len(f.consumers) > 1]
    found = []
    for fifo in sent:
        trips = len(fifo.consumers) * fifo.repeat_count
        passed_on = all(c.actor in senders for c in fifo.consumers if c.kind == "worker")
        if trips > 2 * fifo.depth and passed_on and not is_literal(fifo):
            text = (
                f"{len(fifo.consumers)} consumers times {fifo.repeat_count} repeats are above twice the depth"
                f" {fifo.depth}; the compiler's deadlock model refuses that, whatever the simulation says"
            )
            found.append(warning(REPLAYS, f"fifo {fifo.name!r}", text, used=trips, limit=2 * fifo.depth))
    return Checked(rule=REPLAYS, looked_at=len(sent), findings=tuple(found))
