"""Pictures of designs: read back as XML, everything is in them, whatever it is called."""

import dataclasses
import itertools
import xml.etree.ElementTree as ET
from collections.abc import Callable

import pytest

from manifest.device import DEVICES, load_device
from presim.design import Acquire, Design, Endpoint, Link, Loop, Release, Step, Tile
from presim.draw import draw
from presim.place import place
from presim.place.grid import grid_of
from presim.routes import edges_of, routes
from presim.svg import safe
from presim.wires import FRAME, LANES, wires_of
from tests.presim.place.webs import chain, net, web

SVG = "{http://www.w3.org/2000/svg}"
NPU1 = load_device("npu1")
HOSTILE = (
    "<script>alert(1)</script>",
    '"/><g x="',
    "a&b;&#0;",
    "nul\x00bell\x07",
    "zwei\nZeilen",
    "\u202eturned",
    "x" * 3000,
)


def mixed(device: str = "npu1", rename: Callable[[str], str] = str) -> Design:
    """Every kind of way: direct, by DMA, through a memory tile, inside a worker, a cascade, from and to the host."""
    nets = [
        net("host", "a", name="in"),
        net("a", "b", "c", name="both"),
        net("b", "mem", name="up"),
        net("mem", "d", name="down"),
        net("c", "d", name="near"),
        net("d", "e", name="last"),
        net("e", "host", name="out"),
    ]
    links = [Link(kind="forward", sources=("up",), targets=("down",))]
    design = web(nets, links=links, cascades=[("x", "a")], device=device, buffers={"a": 512})
    loop = dataclasses.replace(
        design.fifos[5], name="loop", producer=design.fifos[5].producer, consumers=(design.fifos[5].producer,), depth=2
    )
    design = dataclasses.replace(design, fifos=(*design.fifos, loop))
    return place(renamed(design, rename), load_device(device))


def renamed(design: Design, rename: Callable[[str], str]) -> Design:
    """The design with other names of workers and fifos."""

    def end(e: Endpoint) -> Endpoint:
        return dataclasses.replace(e, actor=rename(e.actor))

    def steps(program: tuple[Step, ...]) -> tuple[Step, ...]:
        return tuple(
            dataclasses.replace(s, body=steps(s.body))
            if isinstance(s, Loop)
            else dataclasses.replace(s, fifo=rename(s.fifo))
            if isinstance(s, Acquire | Release)
            else dataclasses.replace(
                s,
                arguments=tuple(
                    dataclasses.replace(a, name=rename(a.name)) if a.kind == "fifo" else a for a in s.arguments
                ),
            )
            for s in program
        )

    return dataclasses.replace(
        design,
        workers=tuple(dataclasses.replace(w, name=rename(w.name), program=steps(w.program)) for w in design.workers),
        fifos=tuple(
            dataclasses.replace(
                f, name=rename(f.name), producer=end(f.producer), consumers=tuple(map(end, f.consumers))
            )
            for f in design.fifos
        ),
        links=tuple(
            dataclasses.replace(k, sources=tuple(map(rename, k.sources)), targets=tuple(map(rename, k.targets)))
            for k in design.links
        ),
        cascades=tuple(
            dataclasses.replace(c, source=rename(c.source), target=rename(c.target)) for c in design.cascades
        ),
        sequence=tuple(dataclasses.replace(t, fifo=rename(t.fifo)) for t in design.sequence),
    )


def groups(picture: bytes, kind: str, *attributes: str) -> list[tuple[str | None, ...]]:
    root = ET.fromstring(picture)
    found = [g for g in root.iter(f"{SVG}g") if g.get("class") == kind]
    return sorted((tuple(g.get(f"data-{a}") for a in attributes) for g in found), key=str)


@pytest.mark.parametrize("device", [d for d in DEVICES if d != "vc1902"])
def test_every_worker_and_way_is_in_the_picture(device: str) -> None:
    design = mixed(device)
    picture = draw((design,), load_device(device))
    expected = sorted(((w.name, f"{w.tile.column},{w.tile.row}") for w in design.workers if w.tile), key=str)
    assert groups(picture, "worker", "worker", "tile") == expected
    ways = [(e.fifo.name, e.route, e.fifo.producer.actor, e.consumer.actor) for e in edges_of(design)]
    assert groups(picture, "fifo", "fifo", "route", "producer", "consumer") == sorted(ways, key=str)
    assert {route for route, count in routes(design).items() if count} == {
        "direct", "stream", "memory", "inside", "host"
    }  # fmt: skip
    assert groups(picture, "cascade", "source", "target") == [("x", "a")]
    assert groups(picture, "transfer", "fifo", "direction") == [("in", "fill"), ("out", "drain")]
    assert [t for (t,) in groups(picture, "dispatch", "dispatch")] == ["d0"]


def test_tiles_lie_apart_within_the_picture() -> None:
    picture = ET.fromstring(draw((mixed(),), NPU1))
    boxes = []
    for group in picture.iter(f"{SVG}g"):
        if group.get("data-tile") is not None:
            rect = group.find(f"{SVG}rect")
            assert rect is not None
            x, y, w, h = (float(rect.get(k, "nan")) for k in ("x", "y", "width", "height"))
            boxes.append((x, y, x + w, y + h))
    for one, two in itertools.combinations(boxes, 2):
        assert one[2] <= two[0] or two[2] <= one[0] or one[3] <= two[1] or two[3] <= one[1]
    width, height = float(picture.get("width", "0")), float(picture.get("height", "0"))
    assert all(b[0] >= 0 and b[2] <= width and b[1] >= 0 and b[3] <= height for b in boxes)


def spread(count: int) -> Design:
    """Workers that all have to do with each other."""
    nets = [net("host", "w0"), net("w0", *(f"w{i}" for i in range(1, count)))]
    return place(web([*nets, *(net(f"w{i}", f"w{i + 1}") for i in range(1, count - 1))]), NPU1)


@pytest.mark.parametrize("design", [mixed(), spread(LANES), spread(16), place(chain(16), NPU1)])
def test_lines_go_from_tile_to_tile_and_through_none(design: Design) -> None:
    tiles = [w.tile for w in design.workers if w.tile]
    frame = FRAME.around([*tiles, Tile(column=3, row=0)], grid_of(NPU1), left=0, top=0)
    boxes = {t: (x, y, x + frame.width, y + frame.height) for t in frame.tiles() for x, y in [frame.corner(t)]}
    for wire in wires_of(edges_of(design), frame):
        for point, tile in ((wire.points[0], wire.edge.fifo.producer.tile), (wire.points[-1], wire.edge.consumer.tile)):
            assert tile is not None
            left, top, right, bottom = boxes[tile]
            assert left <= point[0] <= right
            assert top <= point[1] <= bottom
            assert point[0] in (left, right) or point[1] in (top, bottom)
        for a, b in itertools.pairwise(wire.points):
            assert a[0] == b[0] or a[1] == b[1]
            for left, top, right, bottom in boxes.values():
                across = min(a[0], b[0]) < right and max(a[0], b[0]) > left
                along = min(a[1], b[1]) < bottom and max(a[1], b[1]) > top
                assert not (across and along)


def test_the_same_design_gives_the_same_bytes() -> None:
    assert draw((mixed(),), NPU1) == draw((mixed(),), NPU1)


def test_dispatches_lie_below_each_other() -> None:
    one = mixed()
    two = dataclasses.replace(place(chain(3), NPU1), dispatch="d1")
    picture = draw((one, two), NPU1)
    assert groups(picture, "dispatch", "dispatch") == [("d0",), ("d1",)]
    heights = [float(ET.fromstring(draw(d, NPU1)).get("height", "0")) for d in ((one,), (two,), (one, two))]
    assert abs(heights[0] + heights[1] - heights[2]) <= 1


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_stay_text(name: str) -> None:
    design = mixed(rename=lambda old: f"{old}{name}" if not old.startswith(("mem", "host")) else old)
    picture = draw((design,), NPU1)
    assert len(groups(picture, "worker", "worker")) == len(design.workers)
    assert groups(picture, "worker", "worker") == sorted((safe(w.name, None),) for w in design.workers)
    assert b"<script" not in picture
    assert b"\x00" not in picture
    assert "\u202e" not in picture.decode()


def test_text_is_cut_and_escaped() -> None:
    assert safe("plain 日本 é") == "plain 日本 é"
    assert safe("a\x00b\ud800\n") == r"a\x00b\ud800\n"
    assert safe("x" * 400) == "x" * 400
    assert safe("x" * 401) == "x" * 399 + "…"
    assert safe("\n" * 300) == safe("\n" * 301)[:399] + "…"


@pytest.mark.parametrize(("column", "first", "last"), [(0, 0, 1), (18, 17, 19), (37, 36, 37)])
def test_only_what_is_used_is_shown(column: int, first: int, last: int) -> None:
    frame = FRAME.around([Tile(column=column, row=3)], grid_of(load_device("vek280")), left=0, top=0)
    assert (frame.first, frame.last, frame.rows) == (first, last, 5)
    tiles = frame.tiles()
    assert {t.column for t in tiles} == set(range(first, last + 1))
    assert {t.kind for t in tiles if t.row == 2} == {"mem"}
    assert frame.rows == len({t.row for t in tiles})
    high = FRAME.around([Tile(column=column, row=10)], grid_of(load_device("vek280")), left=0, top=0)
    assert high.rows == 11


def test_a_design_without_workers() -> None:
    """An input that goes back to the host as it is."""
    design = web([net("host", "host:back", name="x")])
    picture = draw((place(design, NPU1),), NPU1)
    assert groups(picture, "worker", "worker") == []
    assert groups(picture, "fifo", "fifo", "route") == [("x", "host")]
