"""Designs that no other one beats in tiles, interval and latency at once, and their picture."""

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from matplotlib import rc_context
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

Triple = tuple[float, float, float]
"""Tiles, interval, latency; less is better."""

T = TypeVar("T")
MOST_NAMES: Final = 24
"""Points with their names beside them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A design in the picture; `front`: nothing beats it, `best`: the winner."""

    name: str
    tiles: int
    interval: int
    latency: int
    front: bool
    best: bool = False


def dominates(a: Triple, b: Triple) -> bool:
    """Whether `a` is nowhere worse than `b`, and somewhere better."""
    return a != b and all(x <= y for x, y in zip(a, b, strict=True))


def front_of(items: Sequence[T], triple: Callable[[T], Triple]) -> tuple[T, ...]:
    """The items that no other one dominates, by tiles; of equal ones the first."""
    found: list[T] = []
    order = sorted(range(len(items)), key=lambda i: (triple(items[i]), i))
    for index in order:
        mine = triple(items[index])
        if not any(triple(other) == mine or dominates(triple(other), mine) for other in found):
            found.append(items[index])
    return tuple(found)


def plot(points: Sequence[Point], *, title: str) -> bytes:
    """The picture as SVG: interval over tiles, the latency as colour, the front joined; the same bytes every time.

    Args:
        points: designs with their simulated times.
        title: above it.
    """
    with rc_context({"svg.hashsalt": "front", "svg.fonttype": "none", "font.family": "sans-serif"}):
        figure = Figure(figsize=(7.5, 4.5))
        FigureCanvasSVG(figure)
        axes = figure.add_subplot()
        axes.set_title(title, loc="left", fontsize=10)
        axes.set_xlabel("core tiles")
        axes.set_ylabel("cycles between inferences (simulated)")
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        if points:
            _draw(figure, points)
        stream = io.BytesIO()
        figure.tight_layout()
        figure.savefig(stream, format="svg", metadata={"Date": None, "Creator": None})
    return stream.getvalue()


def _draw(figure: Figure, points: Sequence[Point]) -> None:
    axes = figure.axes[0]
    others = [p for p in points if not p.front]
    front = sorted((p for p in points if p.front), key=lambda p: (p.tiles, p.interval))
    axes.scatter([p.tiles for p in others], [p.interval for p in others], s=14, color="#bbbbbb", label="beaten")
    if not front:
        return
    low: list[Point] = []
    for point in front:
        if not low or point.interval < low[-1].interval:
            low.append(point)
    axes.step([p.tiles for p in low], [p.interval for p in low], where="post", color="#888888", linewidth=0.8)
    shown = axes.scatter(
        [p.tiles for p in front],
        [p.interval for p in front],
        c=[p.latency for p in front],
        cmap="viridis_r",
        s=[90 if p.best else 36 for p in front],
        marker="o",
        edgecolors=["#cc0000" if p.best else "#333333" for p in front],
        label="front (red edge: chosen)",
    )
    figure.colorbar(shown, label="cycles of one inference (simulated)")
    for point in front[:MOST_NAMES]:
        axes.annotate(point.name, (point.tiles, point.interval), fontsize=7, xytext=(4, 4), textcoords="offset points")
    axes.legend(fontsize=7, loc="upper right")
