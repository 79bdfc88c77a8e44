"""Structure and links: what makes no sense is named, segments tile their object."""

import dataclasses
from typing import Any

import pytest

from manifest.device import load_device
from presim.design import Cascade
from presim.static import CHECKS, check_design
from tests.presim.checking import changed, found, plain, severities, split
from tests.presim.sketches import Sketch, acquire, call, loop, move


def test_every_check_has_a_rule_of_its_own_and_looks_at_a_plain_design_without_finding_anything() -> None:
    checks = check_design(plain().design(), load_device("npu2"))
    assert [c.rule for c in checks] == ["structure", *(c.__name__ for c in CHECKS)]
    assert [f.line() for c in checks for f in c.findings] == []
    idle = {c.rule for c in checks if c.looked_at == 0}
    assert idle == {
        "replayed_broadcasts",
        "segments",
        "links",
        "access_patterns",
        "cascades",
        "descriptor_halves",
        "program_memory",
    }


@pytest.mark.parametrize(
    ("part", "index", "changes", "words"),
    [
        ("fifos", 0, {"name": "y"}, "2 of this name"),
        ("fifos", 0, {"dtype": "int7"}, "dtype"),
        ("fifos", 0, {"dtype": "U3"}, "dtype"),
        ("fifos", 0, {"shape": ()}, "shape"),
        ("fifos", 0, {"shape": (4, 0)}, "shape"),
        ("fifos", 0, {"depth": 0}, "depth at"),
        ("fifos", 0, {"depth": (1 << 20) + 1}, "depth at"),
        ("fifos", 0, {"depth": 1 << 20, "shape": (64,)}, "no tile has as many"),
        ("fifos", 0, {"consumers": ()}, "no consumer"),
        ("fifos", 0, {"repeat_count": 0}, "repeat_count"),
        ("fifos", 0, {"repeat_count": (1 << 16) + 1}, "repeats at most 65536"),
        ("fifos", 0, {"iter_count": 0}, "iter_count"),
        ("fifos", 0, {"consumer_shape": (3,)}, "does not divide"),
        ("fifos", 0, {"init_objects": 1}, "a shim, which holds none"),
        ("fifos", 1, {"init_objects": 3}, "expected 0 to its depth 2"),
        ("sequence", 0, {"fifo": "z"}, "no such fifo"),
        ("sequence", 0, {"direction": "drain"}, "no consumer is at a shim"),
        ("sequence", 1, {"direction": "fill"}, "not at a shim"),
        ("sequence", 0, {"objects": 0}, "objects from 1"),
        ("sequence", 0, {"sizes": (4,)}, "do not fit each other"),
        ("sequence", 0, {"sizes": (4, 5), "strides": (4, 1)}, "are 20 elements, its objects 16"),
        ("workers", 0, {"program": (acquire("z"),)}, "no fifo 'z'"),
        ("workers", 0, {"program": (acquire("x", 0),)}, "count: expected 1"),
        ("workers", 0, {"program": (acquire("x", 1, "produce"),)}, "which end"),
        ("workers", 0, {"program": (loop(-1),)}, "times"),
        ("workers", 0, {"program": (call("nothing", "x"),)}, "no kernel 'nothing'"),
        ("workers", 0, {"program": (call("move", "#b"),)}, "no buffer 'b'"),
        ("workers", 0, {"program": (call("move", "x:-1"),)}, "index of fifo"),
        ("workers", 0, {"program": (call("move", "<"),)}, "no such cascade"),
        ("workers", 0, {"program": (call("move", "x", row="@i"),)}, "no loop around it"),
        ("workers", 0, {"program": (loop(2, call("move", "x", row="@i/2"), counter="i"),)}, "no loop around it"),
        ("workers", 0, {"name": "v"}, "no worker 'w'"),
    ],
)
def test_structure_names_what_makes_no_sense(part: str, index: int, changes: dict[str, Any], words: str) -> None:
    (only,) = check_design(changed(plain().design(), part, index, **changes), load_device("npu2"))
    assert only.rule == "structure"
    assert any(words in f.line() for f in only.findings), [f.line() for f in only.findings]


def test_structure_of_a_self_loop_needs_its_side() -> None:
    s = plain()
    s.fifo("t", "w", "w")
    for side, fine in (("", False), ("produce", True), ("consume", True)):
        made = changed(s.design(), "workers", 0, program=(acquire("t", 1, side),))  # type: ignore[arg-type]
        assert (check_design(made, load_device("npu2"))[0].findings == ()) == fine


@pytest.mark.parametrize(
    ("dims", "fine"),
    [
        (((4, 1),), True),
        (((2, 2), (2, 1)), True),
        (((5, 1),), False),
        (((2, 3), (2, 1)), False),
        (((2, 4), (2, 1)), False),
    ],
)
def test_structure_of_dims_is_exact(dims: tuple[tuple[int, int], ...], fine: bool) -> None:
    s = plain(dims={"w": dims})
    assert (check_design(s.design(), load_device("npu2"))[0].findings == ()) == fine


@pytest.mark.parametrize(
    ("offsets", "parts", "whole", "words"),
    [
        ((0, 4), (4, 4), 8, ""),
        ((0, 4, 12), (4, 8, 4), 16, ""),
        ((0, 4), (4, 4), 12, "end at 8 of 12"),
        ((0, 8), (4, 4), 12, "leaves a gap"),
        ((0, 2), (4, 4), 8, "overlaps"),
        ((4, 8), (4, 4), 12, "expected 0"),
    ],
)
def test_segments_tile_their_object_exactly(
    offsets: tuple[int, ...], parts: tuple[int, ...], whole: int, words: str
) -> None:
    lines = [f.line() for f in found(split(offsets, parts, whole), "segments")]
    assert bool(lines) == bool(words)
    assert any(words in line for line in lines) or not words


@pytest.mark.parametrize(("offsets", "fine"), [((0, 4), True), ((0, 5), False), ((-1, 4), False)])
def test_a_segment_outside_its_object_is_no_structure(offsets: tuple[int, ...], fine: bool) -> None:
    assert (check_design(split(offsets, (4, 4), 8).design(), load_device("npu2"))[0].findings == ()) == fine


@pytest.mark.parametrize("change", ["unknown", "twice", "no_mem", "arity", "offsets", "dtype"])
def test_structure_of_links(change: str) -> None:
    s = split((0, 4), (4, 4), 8)
    link = s.links[0]
    if change == "unknown":
        s.links[0] = dataclasses.replace(link, targets=("i0", "nothing"))
    elif change == "twice":
        s.links.append(link)
    elif change == "no_mem":
        s.links[0] = dataclasses.replace(link, sources=("o0",))
    elif change == "arity":
        s.links[0] = dataclasses.replace(link, kind="forward")
    elif change == "offsets":
        s.links[0] = dataclasses.replace(link, offsets=(0,))
    else:
        s.fifos[0] = dataclasses.replace(s.fifos[0], dtype="int16")
    (only,) = check_design(s.design(), load_device("npu2"))
    assert only.findings


def test_structure_of_cascades() -> None:
    def cascades(*pairs: tuple[str, str]) -> int:
        s = Sketch()
        for name in "abc":
            s.worker(name, loop(1, *move(f"{name}x", f"{name}y")))
            s.fifo(f"{name}x", "shim0", name).fifo(f"{name}y", name, "shim1").fill(f"{name}x", 1).drain(f"{name}y", 1)
        s.cascades += [Cascade(source=a, target=b) for a, b in pairs]
        return len(check_design(s.design(), load_device("npu2"))[0].findings)

    assert cascades(("a", "b"), ("b", "c")) == 0
    assert cascades(("a", "b"), ("a", "c")) == 1
    assert cascades(("a", "c"), ("b", "c")) == 1
    assert cascades(("a", "d")) == 1


@pytest.mark.parametrize(("repeats", "expected"), [(1, []), (2, []), (3, ["warning"])])
def test_H1_the_rule_of_thumb_of_the_compiler_is_a_warning(repeats: int, expected: list[str]) -> None:
    s = Sketch()
    for name in "ab":
        s.worker(name, loop(repeats, *move("x", f"{name}y"))).fifo(f"{name}y", name, f"shim{name}").drain(
            f"{name}y", repeats
        )
    s.fifo("in", "shim0", "mem0").fifo("x", "mem0", "a", "b", repeat_count=repeats).link("forward", "in", "x").fill(
        "in", 1
    )
    assert severities(s, "replayed_broadcasts") == expected


def test_memory_tile_ends_lead_on_or_hold_values() -> None:
    s = plain()
    s.fifo("dead", "w", "mem0").fifo("empty", "mem0", "w").fifo("full", "mem0", "w", init_objects=1)
    assert {f.where for f in found(s, "links")} == {"fifo 'dead'", "fifo 'empty'"}
