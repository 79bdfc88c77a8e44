"""Candidates that change a bit, refusals of the winner, boundaries and regimes: what the evidence says of them."""

import io
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from manifest.device import Device, load_device
from manifest.errors import Problem, RefusedError
from manifest.io import manifest_from_json
from optimize.bandwidth import default_table
from phases.baseline.__main__ import main as baseline
from phases.optimize import collect, scratch
from phases.optimize.__main__ import main
from phases.optimize.placing import placed
from phases.optimize.traffic import regime_choices, traffic_of
from phases.port import open_port, writing
from phases.presim.__main__ import main as presim
from presim.design import Design
from presim.design_io import design_from_json
from presim.directives import Directives
from presim.timing import load_calibration
from tests.phases.optimize.test_main import gate

NPU2 = load_device("npu2")
CALIBRATION = load_calibration()


def clamped(design: Design) -> Design:
    """Every kernel clamps to 0: the codes are wrong, nothing else is."""

    def row(attributes: Any) -> Any:
        return tuple((n, 0 if n in ("qmin", "qmax") else v) for n, v in attributes)

    return replace(design, kernels=tuple(replace(k, attributes=row(k.attributes)) for k in design.kernels))


def test_a_candidate_that_changes_bits_is_rejected_counted_and_named(
    port: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def spoiled(design: Design, device: Device, directives: Directives) -> Design:
        made = placed(design, device, directives)
        return clamped(made) if directives.by_op else made

    monkeypatch.setattr(collect, "placed", spoiled)
    assert main([str(port), "--plans", "4"]) == 0
    item = next(i for i in gate(port)["items"] if i["code"] == "OP003")
    assert item["verdict"] == "PASS"
    assert item["figures"]["rejected"]
    assert all("OPTIMIZE-INEXACT" in row for row in item["figures"]["rejected"])
    assert not (port / "optimized/design.json").exists()


@pytest.mark.parametrize(
    ("step", "words"), [("_presim", ("FAIL: refused:", "")), ("_bringup", ("PASS", "FAIL: refused:"))]
)
def test_a_winner_that_a_phase_refuses_says_which(
    step: str, words: tuple[str, str], port: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise RefusedError((Problem(code="X-Y", where="w", what="no"),))

    monkeypatch.setattr(scratch, step, refuse)
    designs = design_from_json((port / "design.json").read_bytes())
    found = scratch.prove(open_port(port), designs, tmp_path / "scratch", tmp_path / "work").words
    assert all(got.startswith(want) and bool(got) == bool(want) for got, want in zip(found, words, strict=True))


def test_kernels_of_the_person_go_with_the_scratch_port(port: Path, tmp_path: Path) -> None:
    (port / "kernels/op").mkdir(parents=True)
    (port / "kernels/op/kernel.cc").write_text("// mine\n")
    with writing(tmp_path / "s"):
        scratch.copy_baseline(open_port(port), tmp_path / "s")
    assert (tmp_path / "s/kernels/op/kernel.cc").read_text() == "// mine\n"


@pytest.fixture(scope="module")
def cut(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The digits example in two dispatches that would fit one."""
    folder, port = root / "examples/digits", tmp_path_factory.mktemp("cut") / "p"
    with redirect_stdout(io.StringIO()):
        words = [str(folder / "digits_cnn.onnx"), "--data", str(folder / "digits.npz"), "--out", str(port)]
        baseline([*words, "--cut", "/f/f.2/MaxPool_output_0_quantized"])
        assert presim([str(port)]) == 0
    return port


def test_a_cut_that_is_not_needed_is_named_and_one_that_is_is_not(cut: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    manifest = manifest_from_json((cut / "manifest.json").read_bytes())
    designs = design_from_json((cut / "design.json").read_bytes())
    table = default_table(NPU2, CALIBRATION)
    (row,) = traffic_of(manifest, designs, table, NPU2, CALIBRATION).boundaries
    assert row.better
    assert row.cycles > 0
    assert "which plans" in row.alternative
    problem = Problem(code="PLAN-CORES", where="w", what="too many")
    monkeypatch.setattr("phases.optimize.traffic.planner", lambda *_: lambda *_: (problem,))
    (row,) = traffic_of(manifest, designs, table, NPU2, CALIBRATION).boundaries
    assert not row.better
    assert "PLAN-CORES" in row.alternative


def test_weights_say_how_many_bytes_stay_in_a_core(cut: Path) -> None:
    manifest = manifest_from_json((cut / "manifest.json").read_bytes())
    designs = design_from_json((cut / "design.json").read_bytes())
    found = traffic_of(manifest, designs, default_table(NPU2, CALIBRATION), NPU2, CALIBRATION)
    assert len(found.streamed) == found.weighted_ops == 4
    largest = max(b.shape[0] * b.shape[1] * b.shape[2] for d in designs for b in d.buffers if len(b.shape) == 3)
    assert any(f"{largest} bytes of weights" in why for _, how, why in found.streamed if how == "resident")


def test_a_better_design_for_a_regime_is_named_over_several_dispatches(cut: Path) -> None:
    designs = design_from_json((cut / "design.json").read_bytes())

    class Result:
        def __init__(self, cycles: int, tiles: int) -> None:
            self.front = (
                type("C", (), {"name": "c9", "tiles": tiles, "latency_cycles": cycles, "interval_cycles": 10**9}),
            )

    tiles = len(designs[1].workers)
    fast: dict[str, Any] = {"d1": Result(1, tiles)}
    one, many = regime_choices(designs, fast, NPU2, CALIBRATION)
    assert (one.better, many.better) == ("d1: c9", "")
    large: dict[str, Any] = {"d1": Result(1, tiles + 1)}
    assert [r.better for r in regime_choices(designs, large, NPU2, CALIBRATION)] == ["", ""]
