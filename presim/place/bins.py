"""Memory and shim tiles: what has to lie together, what it takes of a tile, and a tile with room for it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from manifest.device import Device
from manifest.errors import Problem, RefusedError
from presim.design import Design, Endpoint, Fifo, Link, Tile, TileKind
from presim.place.grid import Grid
from presim.static.budget import Chain, Use, best_halves, uses
from presim.static.scope import scope_of

APART: Final = 1 << 20
"""Column of the first of the tiles that stand in for those that are not chosen yet."""

KINDS: Final[tuple[TileKind, ...]] = ("mem", "shim")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bin:
    """What has to lie on one memory or shim tile: the ends of one actor, of the fifos of one link.

    Attributes:
        kind: of the tile.
        name: of the first actor.
        need: what it takes of the tile.
        columns: columns of what its streams lead to, as far as that is placed.
        alone: fifos of which another bin gets the objects too: a stream ends on a tile once.
        tile: where it is already.
    """

    kind: TileKind
    name: str
    need: Use
    columns: tuple[int, ...]
    alone: frozenset[str]
    tile: Tile | None


def require_memories(design: Design, device: Device, grid: Grid) -> None:
    """Refuse what needs memory tiles where there are none.

    Raises:
        RefusedError: names the fifos.
    """
    ends = [f.name for f in design.fifos for end in (f.producer, *f.consumers) if end.kind == "mem"]
    if ends and not grid.mem_rows:
        fifos = ", ".join(map(repr, dict.fromkeys(ends)))
        what = f"{device.name} has no memory tiles"
        raise RefusedError((Problem(code="PLACE-MEMTILE", where=f"fifos {fifos}", what=what, remedy=_remedy("mem")),))


def place_bins(design: Design, device: Device, grid: Grid) -> Design:
    """Give every memory and shim end, and every link, its tile.

    Raises:
        RefusedError: they do not fit; names the resource, what is needed and what there is.
    """
    for kind in KINDS:
        groups = _Groups(design, kind)
        bins = groups.bins(device)
        tiles = grid.memories() if kind == "mem" else grid.shims()
        design = groups.moved(_assign(bins, tiles, device))
    return design


class _Groups:
    """Ends of one kind, by the group that has to lie together."""

    def __init__(self, design: Design, kind: TileKind) -> None:
        self.design = design
        self.kind = kind
        self.parent: dict[str, str] = {}
        for fifo in design.fifos:
            for end in (fifo.producer, *fifo.consumers):
                if end.kind == kind:
                    self.parent.setdefault(end.actor, end.actor)
        self.link_actor: dict[int, str] = {}
        if kind == "mem":
            self.join_links()

    def join_links(self) -> None:
        """The ends of a link are one group; the k-th link of a fifo begins at its k-th end in a memory tile."""
        fifos = {fifo.name: fifo for fifo in self.design.fifos}
        taken: dict[str, int] = {}
        for index, link in enumerate(self.design.links):
            actors = [fifos[name].producer.actor for name in link.targets]
            for name in link.sources:
                ends = [end.actor for end in fifos[name].consumers if end.kind == "mem"]
                place = taken.get(name, 0)
                taken[name] = place + 1
                actors.append(ends[min(place, len(ends) - 1)])
            self.link_actor[index] = actors[0]
            for actor in actors[1:]:
                self.parent[self.root(actor)] = self.root(actors[0])

    def root(self, actor: str) -> str:
        while self.parent[actor] != actor:
            actor = self.parent[actor]
        return actor

    def bins(self, device: Device) -> tuple[Bin, ...]:
        """All groups with what they need, in the order of the design."""
        roots = list(dict.fromkeys(self.root(actor) for actor in self.parent))
        stand_in = {root: Tile(column=APART + i, row=0, kind=self.kind) for i, root in enumerate(roots)}
        scope = scope_of(self.moved(stand_in, again=True), device)
        found = uses(scope)
        return tuple(
            Bin(
                kind=self.kind,
                name=root,
                need=found.get(stand_in[root], Use()),
                columns=tuple(self.columns(root)),
                alone=frozenset(self.alone(root)),
                tile=self.given(root),
            )
            for root in roots
        )

    def ends(self, root: str) -> Iterator[tuple[Fifo, Endpoint]]:
        """Ends of a group."""
        for fifo in self.design.fifos:
            for end in (fifo.producer, *fifo.consumers):
                if end.kind == self.kind and self.root(end.actor) == root:
                    yield fifo, end

    def columns(self, root: str) -> Iterator[int]:
        for fifo, end in self.ends(root):
            others = fifo.consumers if end is fifo.producer else (fifo.producer,)
            yield from (other.tile.column for other in others if other.tile is not None)

    def alone(self, root: str) -> Iterator[str]:
        for fifo, end in self.ends(root):
            if end is not fifo.producer and sum(c.kind == self.kind for c in fifo.consumers) > 1:
                yield fifo.name

    def given(self, root: str) -> Tile | None:
        found = [end.tile for _, end in self.ends(root) if end.tile is not None]
        links = [self.design.links[i] for i, actor in self.link_actor.items() if self.root(actor) == root]
        found += [link.tile for link in links if link.tile is not None]
        return found[0] if found else None

    def moved(self, tiles: Mapping[str, Tile], *, again: bool = False) -> Design:
        """The design with the groups on `tiles`; ends that have a tile keep it unless `again`."""

        def placed(end: Endpoint) -> Endpoint:
            if end.kind != self.kind or (end.tile is not None and not again):
                return end
            return replace(end, tile=tiles[self.root(end.actor)])

        def linked(index: int, link: Link) -> Link:
            if self.kind != "mem" or (link.tile is not None and not again):
                return link
            return replace(link, tile=tiles[self.root(self.link_actor[index])])

        fifos = [
            replace(fifo, producer=placed(fifo.producer), consumers=tuple(placed(end) for end in fifo.consumers))
            for fifo in self.design.fifos
        ]
        links = [linked(index, link) for index, link in enumerate(self.design.links)]
        return replace(self.design, fifos=tuple(fifos), links=tuple(links))


def _assign(bins: Sequence[Bin], tiles: Sequence[Tile], device: Device) -> dict[str, Tile]:
    """A tile for every bin: the nearest with room, in the order of the design, else the most demanding bins first."""
    orders = (list(bins), sorted(bins, key=lambda b: (-len(b.need.chains), -sum(b.need.data_bytes.values()), b.name)))
    stuck: list[Bin] = []
    for order in orders:
        found = _fill([*(b for b in order if b.tile), *(b for b in order if not b.tile)], tiles, device)
        if not isinstance(found, Bin):
            return found
        stuck.append(found)
    raise RefusedError((_refusal(stuck[0], bins, tiles, device),))


def _fill(order: Iterable[Bin], tiles: Sequence[Tile], device: Device) -> dict[str, Tile] | Bin:
    """A tile for every bin, or the bin that found none."""
    held: dict[Tile, list[Bin]] = {}
    found = {}
    for item in order:
        best = item.tile
        for tile in () if best is not None else _nearest(item, tiles):
            if _has_room((*held.get(tile, ()), item), device):
                best = tile
                break
        if best is None:
            return item
        held.setdefault(best, []).append(item)
        found[item.name] = best
    return found


def _nearest(item: Bin, tiles: Sequence[Tile]) -> list[Tile]:
    return sorted(tiles, key=lambda t: (sum(abs(t.column - c) for c in item.columns), t.row, t.column))


def _has_room(items: Sequence[Bin], device: Device) -> bool:
    """Whether one tile holds these bins."""
    fifos = [name for item in items for name in item.alone]
    if len(set(fifos)) < len(fifos):
        return False
    together = _together(items)
    if any(have is not None and need > have for _, need, have in _needs(items[0].kind, together, device)):
        return False
    half = device.mem_bds.value
    best = best_halves(together.chains) if items[0].kind == "mem" else None
    return half is None or best is None or max(best) <= half // 2


def _together(items: Iterable[Bin]) -> Use:
    total = Use()
    for item in items:
        total.chains += item.need.chains
        total.locks += item.need.locks
        total.data_bytes |= item.need.data_bytes
    return total


def _needs(kind: TileKind, use: Use, device: Device) -> Iterator[tuple[str, int, int | None]]:
    """(resource, need, have) of a tile."""
    for direction in ("S2MM", "MM2S"):
        have = getattr(device, f"{kind}_{direction.lower()}").value
        yield f"{direction} channels", len(use.channels(direction)), have
    yield "buffer descriptors", sum(chain.descriptors for chain in use.chains), getattr(device, f"{kind}_bds").value
    if kind == "mem":
        yield "locks", use.locks, device.mem_locks.value
        yield "bytes of data memory", sum(use.data_bytes.values()), device.memtile_bytes.value


def _refusal(item: Bin, bins: Sequence[Bin], tiles: Sequence[Tile], device: Device) -> Problem:
    """What is short: on one tile for one bin, else on all tiles together, else as they are spread."""
    code = "PLACE-MEMTILE" if item.kind == "mem" else "PLACE-SHIM"
    what = "memory tiles" if item.kind == "mem" else "shim tiles that reach the host"
    where = f"{what}, {item.name!r}"
    for name, need, have in _needs(item.kind, item.need, device):
        if have is not None and need > have:
            text = f"{name} of one tile: need {need}, have {have}"
            return Problem(code=code, where=where, what=text, remedy=_remedy(item.kind))
    worst = [
        (need / (have * len(tiles)), name, need, have * len(tiles))
        for name, need, have in _needs(item.kind, _together(bins), device)
        if have
    ]
    _, name, need, have = max(worst, default=(0.0, "tiles", len(bins), len(tiles)))
    text = f"{name} of all {len(tiles)} {what}: need {need}, have {have}"
    if need <= have:
        text += ", and no tile has room for what is left"
    return Problem(code=code, where=where, what=text, remedy=_remedy(item.kind))


def _remedy(kind: TileKind) -> str:
    if kind == "mem":
        return "cut the model into dispatches (--cut TENSOR), or ask for less parallelism"
    return "cut the model into dispatches (--cut TENSOR) with fewer inputs and outputs"


__all__ = ["Bin", "Chain", "place_bins"]
