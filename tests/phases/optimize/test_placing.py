"""The check of a placement that no placer shares: each thing that cannot be is seen, a sound design is clean."""

import io
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path

import pytest

from manifest.device import load_device
from phases.baseline.__main__ import main as baseline
from phases.optimize.placing import placement_evidence, violations
from phases.presim.__main__ import main as presim
from presim.design import Cascade, Design, Endpoint, Fifo, Tile
from presim.design_io import design_from_json

NPU2 = load_device("npu2")


@pytest.fixture(scope="module")
def design(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Design:
    folder, port = root / "examples/digits", tmp_path_factory.mktemp("placing") / "p"
    with redirect_stdout(io.StringIO()):
        baseline([str(folder / "digits_cnn.onnx"), "--data", str(folder / "digits.npz"), "--out", str(port)])
        presim([str(port)])
    return design_from_json((port / "design.json").read_bytes())[0]


def moved(design: Design, worker: int, tile: Tile | None) -> Design:
    name = design.workers[worker].name
    workers = tuple(replace(w, tile=tile) if w.name == name else w for w in design.workers)

    def end(e: Endpoint) -> Endpoint:
        return replace(e, tile=tile) if e.kind == "worker" and e.actor == name else e

    fifos = tuple(replace(f, producer=end(f.producer), consumers=tuple(map(end, f.consumers))) for f in design.fifos)
    return replace(design, workers=workers, fifos=fifos)


def with_shim(design: Design, column: int) -> Design:
    def end(e: Endpoint) -> Endpoint:
        return replace(e, tile=Tile(column=column, row=0, kind="shim")) if e.kind == "shim" else e

    fifos = tuple(replace(f, producer=end(f.producer), consumers=tuple(map(end, f.consumers))) for f in design.fifos)
    return replace(design, fifos=fifos)


def fan(design: Design) -> Design:
    """Three more streams into one core."""
    to = Endpoint(actor=design.workers[0].name, tile=design.workers[0].tile)
    far = Endpoint(actor="mem", kind="mem", tile=Tile(column=7, row=1, kind="mem"))
    more = tuple(Fifo(name=f"more{n}", shape=(4,), dtype="int8", producer=far, consumers=(to,)) for n in range(3))
    return replace(design, fifos=(*design.fifos, *more))


BROKEN: dict[str, tuple[Callable[[Design], Design], str]] = {
    "two workers on one tile": (lambda d: moved(d, 0, d.workers[1].tile), "has 2 workers"),
    "a worker nowhere": (lambda d: moved(d, 0, None), "is on no tile"),
    "a worker on a memory tile's row": (lambda d: moved(d, 0, Tile(column=7, row=1)), "row 1 has no cores"),
    "a worker outside": (lambda d: moved(d, 0, Tile(column=8, row=2)), "outside the array"),
    "a shim outside": (lambda d: with_shim(d, 8), "outside the array"),
    "too many streams": (fan, "channels in, 2 are there"),
    "ends elsewhere": (
        lambda d: replace(d, workers=(replace(d.workers[0], tile=Tile(column=7, row=5)), *d.workers[1:])),
        "is elsewhere",
    ),
    "a cascade between strangers": (
        lambda d: replace(
            moved(d, 0, Tile(column=7, row=5)), cascades=(Cascade(source=d.workers[0].name, target=d.workers[1].name),)
        ),
        "no neighbours",
    ),
}


def test_a_sound_design_is_clean(design: Design) -> None:
    assert list(violations(design, NPU2)) == []
    assert placement_evidence(design, NPU2, None).legal


@pytest.mark.parametrize("case", BROKEN)
def test_what_cannot_be_is_seen(case: str, design: Design) -> None:
    change, words = BROKEN[case]
    found = list(violations(change(design), NPU2))
    assert any(words in text for text in found), found
    evidence = placement_evidence(change(design), NPU2, None)
    assert not evidence.legal
    assert evidence.fault
