"""SVG elements with attributes that need no style sheet, and text that is safe whatever it holds."""

import itertools
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from typing import Final

Point = tuple[float, float]

FONT: Final = "Helvetica, Arial, sans-serif"
MAX_TEXT: Final = 400
RADIUS: Final = 7.0


def safe(text: str, limit: int | None = MAX_TEXT) -> str:
    """Text that can stand in XML and on one line: what is not printable as its escape, cut at `limit` characters."""
    shown = "".join(c if c.isprintable() else _escape(c) for c in (text if limit is None else text[: limit + 1]))
    return shown if limit is None or len(shown) <= limit else shown[: limit - 1] + "…"


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def element(parent: ET.Element | None, tag: str, /, **attributes: object) -> ET.Element:
    """An element below `parent`; `_` in a name stands for `-`, a trailing one for nothing, None for no attribute."""
    values = {k.rstrip("_").replace("_", "-"): _value(v) for k, v in attributes.items() if v is not None}
    if parent is None:
        return ET.Element(tag, values)
    return ET.SubElement(parent, tag, values)


def _value(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.1f}".removesuffix(".0")
    return safe(str(value), None)


def title(parent: ET.Element, *lines: str) -> None:
    """What is shown beside the pointer."""
    element(parent, "title").text = "\n".join(safe(line) for line in lines)


def text(
    parent: ET.Element,
    at: Point,
    words: str,
    *,
    size: int = 11,
    fill: str = "#222222",
    anchor: str = "start",
    bold: bool = False,
    room: float | None = None,
) -> None:
    """One line of text.

    Args:
        parent: where.
        at: left end, middle or right end of its base line.
        words: cut so that about `room` pixels hold them.
        size: of the font, pixels.
        fill: colour.
        anchor: `start`, `middle` or `end`.
        bold: heavier.
        room: pixels; None = as long as it gets.
    """
    limit = MAX_TEXT if room is None else max(2, int(room / (size * (0.6 if bold else 0.56))))
    element(
        parent,
        "text",
        x=at[0],
        y=at[1],
        font_family=FONT,
        font_size=size,
        font_weight="bold" if bold else None,
        fill=fill,
        text_anchor=None if anchor == "start" else anchor,
    ).text = safe(words, limit)


def polyline(parent: ET.Element, points: Sequence[Point], colour: str, width: float, dash: str | None) -> None:
    """A line with round corners and an arrow head at its end."""
    kept = [p for i, p in enumerate(points) if i == 0 or p != points[i - 1]]
    path = [f"M{_pair(kept[0])}"]
    for before, here, after in zip(kept, kept[1:], kept[2:], strict=False):
        path.append(f"L{_pair(_toward(here, before))}Q{_pair(here)} {_pair(_toward(here, after))}")
    tip = kept[-1]
    path.append(f"L{_pair(_toward(tip, kept[-2], 5.0))}")
    element(
        parent,
        "path",
        d="".join(path),
        fill="none",
        stroke=colour,
        stroke_width=width,
        stroke_dasharray=dash,
        stroke_linejoin="round",
    )
    element(parent, "polygon", points=" ".join(_pair(p) for p in _head(kept[-2], tip)), fill=colour)


def _pair(point: Point) -> str:
    return f"{_value(float(point[0]))},{_value(float(point[1]))}"


def _length(a: Point, b: Point) -> float:
    return abs(a[0] - b[0]) + abs(a[1] - b[1])


def _toward(a: Point, b: Point, radius: float = RADIUS) -> Point:
    """A point from `a` toward `b`, at most half of the way."""
    length = _length(a, b)
    part = min(0.5, radius / length) if length else 0.0
    return (a[0] + (b[0] - a[0]) * part, a[1] + (b[1] - a[1]) * part)


def _head(before: Point, tip: Point, size: float = 8.0) -> tuple[Point, Point, Point]:
    length = _length(before, tip) or 1.0
    x, y = (tip[0] - before[0]) / length, (tip[1] - before[1]) / length
    base = (tip[0] - x * size, tip[1] - y * size)
    half = size * 0.45
    return tip, (base[0] - y * half, base[1] + x * half), (base[0] + y * half, base[1] - x * half)


def on_longest(points: Sequence[Point], part: float = 0.5) -> Point:
    """A point on the longest piece of a line, `part` 0 to 1 of its way along it."""
    a, b = max(itertools.pairwise(points), key=lambda piece: _length(*piece))
    return (a[0] + (b[0] - a[0]) * part, a[1] + (b[1] - a[1]) * part)


def document(root: ET.Element) -> bytes:
    """The bytes of a picture, the same for the same elements."""
    found: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return found + b"\n"
