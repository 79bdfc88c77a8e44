"""Phase 2 from the command line on real models: every fifo equals the oracle, pins hold, waivers name their figures."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from phases.baseline.__main__ import main as baseline_main
from phases.presim.__main__ import main as presim_main
from presim.design import Design
from presim.design_io import DESIGN_FILE, design_from_json
from presim.routes import edges_of
from tests.presim_models.report import INPUTS, run

PINNED = ("b2_fc1", "b2_fc2", "b2_fc3")
EDGES = (("b2_fc1", "b2_fc2"), ("b2_fc2", "b2_fc3"))


@pytest.mark.parametrize(("model", "device"), [("branching", "npu1"), ("digits_cnn", "vek280")])
def test_every_fifo_equals_the_oracle_for_three_inputs(
    model: str, device: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if model != "branching":
        request.getfixturevalue("shared")
    row = run(model, device, tmp_path / "p")
    assert row.good, row
    assert (row.inputs, row.mismatches, row.waived) == (INPUTS, 0, ())
    assert row.boundaries == row.fifos > row.workers


def test_unknown_figures_of_a_device_are_waived_by_name(tmp_path: Path, shared: Path) -> None:
    assert shared.is_dir()
    row = run("digits_mlp", "vek385", tmp_path / "p")
    assert row.good, row
    assert {"shim_mm2s", "core_bds"} <= set(row.waived)
    gate = json.loads((tmp_path / "p" / "gates" / "presim.json").read_text())
    found = {item["code"]: item for item in gate["items"] if item["found"] != item["verdict"]}
    assert "PS007" in found
    assert all((i["found"], i["verdict"]) == ("NOT_RUN", "WAIVED") for i in found.values())
    assert {name for i in found.values() for name in i["subjects"]} <= set(row.waived)


@pytest.fixture(scope="module")
def branching(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A port of the branching example on vek280, past phase 1."""
    folder, port = root / "examples" / "branching", tmp_path_factory.mktemp("branching") / "p"
    data = ["--data", str(folder / "branching.npz"), "--device", "vek280", "--out", str(port)]
    assert baseline_main([str(folder / "branching.onnx"), *data]) == 0
    return port


def planned(port: Path, folder: Path, pins: Mapping[str, tuple[int, int]]) -> Design:
    """Phase 2 with pins (row, col) by node; the gate is PASS."""
    asked = {node: {"placement": {"row": row, "col": col}} for node, (row, col) in pins.items()}
    (folder / "directives.json").write_text(json.dumps(asked))
    assert presim_main([str(port), "--directives", str(folder / "directives.json")]) == 0
    (design,) = design_from_json((port / DESIGN_FILE).read_bytes())
    return design


@pytest.mark.parametrize(("columns", "route"), [((7, 8, 9), "direct"), ((7, 9, 11), "stream")])
def test_pins_side_by_side_give_direct_edges_and_a_gap_does_not(
    branching: Path, tmp_path: Path, columns: tuple[int, ...], route: str
) -> None:
    design = planned(branching, tmp_path, {n: (1, c) for n, c in zip(PINNED, columns, strict=True)})
    at = {w.name: w.tile for w in design.workers}
    tiles = [at[name] for name in PINNED]
    assert [tile.column for tile in tiles if tile] == list(columns)
    assert len({tile.row for tile in tiles if tile}) == 1
    found = {(e.fifo.producer.actor, e.consumer.actor): e for e in edges_of(design)}
    linked = {name for link in design.links for name in (*link.sources, *link.targets)}
    for pair in EDGES:
        assert found[pair].route == route
        assert found[pair].fifo.name not in linked, "no memory tile between"


def test_one_gap_costs_the_one_edge(branching: Path, tmp_path: Path) -> None:
    design = planned(branching, tmp_path, {"b2_fc1": (1, 7), "b2_fc2": (1, 8), "b2_fc3": (1, 10)})
    found = {(e.fifo.producer.actor, e.consumer.actor): e.route for e in edges_of(design)}
    assert [found[pair] for pair in EDGES] == ["direct", "stream"]


def test_a_pin_outside_the_array_writes_nothing(
    branching: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {p: p.read_bytes() for p in branching.rglob("*") if p.is_file()}
    (tmp_path / "d.json").write_text(json.dumps({"b2_fc1": {"placement": {"row": 8, "col": 0}}}))
    assert presim_main([str(branching), "--directives", str(tmp_path / "d.json")]) == 2
    assert "b2_fc1" in capsys.readouterr().err
    assert {p: p.read_bytes() for p in branching.rglob("*") if p.is_file()} == before
