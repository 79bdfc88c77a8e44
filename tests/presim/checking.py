"""What the tests of the static checks share."""

import dataclasses
from typing import Any

from manifest.device import Device, Figure, load_device
from presim.design import Design
from presim.static import StaticFinding, check_design
from tests.presim.sketches import Sketch, loop, move


def device(name: str = "npu2", **figures: int | None) -> Device:
    changed: dict[str, Any] = {key: Figure(value=value, source="test") for key, value in figures.items()}
    return dataclasses.replace(load_device(name), **changed)


def found(design: Design | Sketch, rule: str, where: Device | None = None) -> list[StaticFinding]:
    made = design.design() if isinstance(design, Sketch) else design
    checks = {c.rule: c for c in check_design(made, where or load_device(made.device))}
    assert rule in checks, checks["structure"].findings
    return list(checks[rule].findings)


def severities(design: Design | Sketch, rule: str, where: Device | None = None) -> list[str]:
    return [f.severity for f in found(design, rule, where)]


def plain(**fifo: Any) -> Sketch:
    """x through one core into y, on tiles of npu2."""
    s = Sketch().place("shim0", 0, 0).place("w", 0, 2)
    s.worker("w", loop(4, *move("x", "y")))
    s.fifo("x", "shim0", "w", **fifo).fifo("y", "w", "shim0")
    return s.fill("x", 4).drain("y", 4)


def split(offsets: tuple[int, ...], parts: tuple[int, ...], whole: int) -> Sketch:
    s = Sketch()
    for i, size in enumerate(parts):
        s.worker(f"w{i}", loop(2, *move(f"i{i}", f"o{i}"))).fifo(f"i{i}", "mem0", f"w{i}", shape=(size,))
        s.fifo(f"o{i}", f"w{i}", f"shim{i}", shape=(size,)).drain(f"o{i}", 2)
    s.fifo("x", "shim9", "mem0", shape=(whole,)).fill("x", 2)
    return s.link("split", "x", " ".join(f"i{i}" for i in range(len(parts))), offsets=offsets)


def changed(design: Design, part: str, index: int, **changes: Any) -> Design:
    rows = list(getattr(design, part))
    rows[index] = dataclasses.replace(rows[index], **changes)
    parts: dict[str, Any] = {part: tuple(rows)}
    return dataclasses.replace(design, **parts)
