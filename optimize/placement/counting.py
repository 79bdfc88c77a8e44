"""What can be said without a search: why nothing is legal, and what every placement costs at least."""

from collections import Counter
from collections.abc import Iterator
from fractions import Fraction

from optimize.placement.geometry import Geometry


def impossible(geometry: Geometry) -> str:
    """Why no placement is legal, "" = counting does not say."""
    return next(_reasons(geometry), "")


def _reasons(geometry: Geometry) -> Iterator[str]:
    columns, rows = geometry.columns, geometry.rows
    for block in geometry.blocks:
        if block.width > columns or block.height > rows:
            yield f"block {block.name!r} of {block.width} by {block.height} in a grid of {columns} by {rows}"
        elif block.anchor is not None and not _inside(geometry, block.anchor, block.width, block.height):
            yield f"the anchor of block {block.name!r} puts it outside the grid"
    yield from _anchors(geometry)
    area = sum(block.width * block.height for block in geometry.blocks)
    if area > columns * rows:
        yield f"tiles: need {area}, have {columns * rows}"
    need, have = row_demand(geometry)
    if need > have:
        yield f"tiles with what has to be free between blocks: need {need} at least, have {have}"


def _inside(geometry: Geometry, at: tuple[int, int], width: int, height: int) -> bool:
    return at[0] + width <= geometry.columns and at[1] + height <= geometry.rows


def _anchors(geometry: Geometry) -> Iterator[str]:
    placed = [(i, block.anchor) for i, block in enumerate(geometry.blocks) if block.anchor is not None]
    for index, (i, at) in enumerate(placed):
        for j, there in placed[index + 1 :]:
            if geometry.conflict(i, at, j, there):
                yield f"the anchors of {geometry.blocks[i].name!r} and {geometry.blocks[j].name!r} are in conflict"


def row_demand(geometry: Geometry) -> tuple[int, int]:
    """Tiles that blocks and the gaps beside them need at least, and how many there are.

    In a row, every block but the outer ones has its gaps on both sides; a consumer that touches its producer has none
    on that side, in the rows that both cover. A producer is touched by one consumer, a consumer by one producer.
    """
    beside = [block.keepout.left + block.keepout.right for block in geometry.blocks]
    need = sum((b.width + gap) * b.height for b, gap in zip(geometry.blocks, beside, strict=True))
    saved: Counter[int] = Counter()
    for touch in geometry.touches.values():
        both = min(geometry.blocks[touch.producer].height, geometry.blocks[touch.consumer].height)
        gap = geometry.gap_x(touch.producer, touch.consumer)
        saved[touch.consumer] = max(saved[touch.consumer], both * gap)
    outer = max(b.keepout.left for b in geometry.blocks) + max(b.keepout.right for b in geometry.blocks)
    return need - sum(saved.values()), geometry.rows * (geometry.columns + outer)


def floor_of(geometry: Geometry) -> Fraction:
    """What every legal placement costs at least: each edge its cheapest, and rows that have to be filled."""
    scaled = sum(edge_floor(geometry, span.source, span.target) for span in geometry.spans)
    return Fraction(scaled + geometry.height * row_floor(geometry), geometry.scale)


def edge_floor(geometry: Geometry, source: int, target: int) -> int:
    """Scaled cost of an edge at its cheapest legal place."""
    span = next(s for s in geometry.spans if (s.source, s.target) == (source, target))
    if source == target:
        return geometry.span_cost(span, (0, 0), (0, 0))
    a, b = geometry.blocks[source], geometry.blocks[target]
    reach_x = a.width + b.width + geometry.gap_x(source, target) + geometry.gap_x(target, source)
    reach_y = a.height + b.height + geometry.gap_y(source, target) + geometry.gap_y(target, source)
    places = ((u, v) for u in range(-reach_x, reach_x + 1) for v in range(-reach_y, reach_y + 1))
    return min(geometry.span_cost(span, (0, 0), p) for p in places if not geometry.conflict(source, (0, 0), target, p))


def row_floor(geometry: Geometry) -> int:
    """Sum of the rows of all blocks at least: the lowest row that blocks begin in holds so many columns, and so on.

    A block of height h that begins in row y fills h rows from there, so those that begin in rows below r fill tiles of
    the rows below r + h - 1 only.
    """
    heights = {block.height for block in geometry.blocks}
    saved = [0] * len(geometry.blocks)
    for touch in geometry.touches.values():
        gap = geometry.gap_x(touch.producer, touch.consumer)
        saved[touch.consumer] = max(saved[touch.consumer], gap)
    wide = [b.width + b.keepout.left + b.keepout.right - s for b, s in zip(geometry.blocks, saved, strict=True)]
    outer = max(b.keepout.left for b in geometry.blocks) + max(b.keepout.right for b in geometry.blocks)
    tallest = max(heights)
    total = 0
    for row in range(1, geometry.rows):
        room = (geometry.columns + outer) * min(geometry.rows, row + tallest - 1)
        fitting = 0
        for tiles in sorted(w * b.height for w, b in zip(wide, geometry.blocks, strict=True)):
            if tiles > room:
                break
            room, fitting = room - tiles, fitting + 1
        total += len(geometry.blocks) - fitting
    return total
