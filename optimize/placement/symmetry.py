"""Blocks that can trade places: every placement has equals, and only one of them has to be looked at.

A chain of stabilisers: the first block takes the smallest place of its orbit, the next one of its orbit among what
leaves the first where it is, and so on. No two blocks have the same place, so this keeps exactly one of every class.
"""

from collections.abc import Hashable, Mapping

from optimize.placement.geometry import Geometry

Label = tuple[Hashable, ...]


class Graph:
    """Blocks with labels, and what joins each pair of them.

    Args:
        labels: of the blocks.
        joined: of every block, what joins it with which other.
    """

    def __init__(self, labels: tuple[Label, ...], joined: tuple[Mapping[int, Label], ...]) -> None:
        self.labels = labels
        self.joined = joined
        self.order = self._order()

    def _order(self) -> tuple[int, ...]:
        """Blocks along their edges, those with most of them first."""
        found: dict[int, None] = {}
        for root in sorted(range(len(self.labels)), key=lambda v: -len(self.joined[v])):
            queue = [root]
            while queue:
                block = queue.pop(0)
                if block not in found:
                    found[block] = None
                    queue += sorted(self.joined[block])
        return tuple(found)

    def orbits(self) -> tuple[tuple[int, tuple[int, ...]], ...]:
        """(block, others that may take its place while all blocks of earlier entries and of `order` stay)."""
        found = []
        fixed: dict[int, int] = {}
        for block in self.order:
            others = [o for o in range(len(self.labels)) if o not in fixed and o != block]
            orbit = tuple(o for o in others if maps(self, self, {**fixed, block: o}))
            if orbit:
                found.append((block, orbit))
            fixed[block] = block
        return tuple(found)


def graph_of(geometry: Geometry, chosen: tuple[int, ...]) -> Graph:
    """The graph of some blocks, numbered in the order of `chosen`; anchored blocks are like no other."""
    blocks = geometry.blocks
    place = {number: i for i, number in enumerate(chosen)}
    labels: list[Label] = []
    joined: list[dict[int, Label]] = [{} for _ in chosen]
    for number in chosen:
        b = blocks[number]
        labels.append((b.width, b.height, b.input_face, b.output_face, b.keepout, b.anchor))
    for span in geometry.spans:
        s, t = place.get(span.source), place.get(span.target)
        if s is not None and t is not None:
            touch = (span.source, span.target) in geometry.touches
            joined[s][t] = (*joined[s].get(t, ()), ("to", touch))
            joined[t][s] = (*joined[t].get(s, ()), ("from", touch))
    return Graph(tuple(labels), tuple({k: tuple(sorted(v, key=repr)) for k, v in one.items()} for one in joined))


def maps(one: Graph, other: Graph, start: Mapping[int, int]) -> bool:
    """Whether blocks of one graph can be given those of another, one each, with equal labels and edges."""
    mapping: dict[int, int] = {}
    for block, image in start.items():
        if not _fits(one, other, mapping, block, image):
            return False
        mapping[block] = image
    return len(one.labels) == len(other.labels) and _extend(one, other, mapping, 0)


def _fits(one: Graph, other: Graph, mapping: Mapping[int, int], block: int, image: int) -> bool:
    if one.labels[block] != other.labels[image] or len(one.joined[block]) != len(other.joined[image]):
        return False
    return all(one.joined[block].get(b) == other.joined[image].get(i) for b, i in (*mapping.items(), (block, image)))


def _extend(one: Graph, other: Graph, mapping: dict[int, int], depth: int) -> bool:
    if depth == len(one.order):
        return True
    block = one.order[depth]
    if block in mapping:
        return _extend(one, other, mapping, depth + 1)
    taken = set(mapping.values())
    for image in range(len(other.labels)):
        if image not in taken and _fits(one, other, mapping, block, image):
            mapping[block] = image
            if _extend(one, other, mapping, depth + 1):
                return True
            del mapping[block]
    return False
