"""Phase 4 from the command line: gate, record, what is refused, adoption."""

import json
from pathlib import Path
from typing import Any

import pytest

from phases.__main__ import main as phases_main
from phases.optimize.__main__ import main
from tests.ports import contents

GATE = "gates/optimize.json"


def gate(port: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((port / GATE).read_text())
    return found


def test_a_small_model_is_searched_and_the_result_stands(port: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(port), "--plans", "4"]) == 0
    out = capsys.readouterr().out
    assert "candidates looked at" in out
    found = gate(port)
    assert (found["verdict"], found["level"]) == ("PASS", "host")
    items = {i["code"]: i for i in found["items"]}
    assert items["OP003"]["figures"]["elements_compared"] > 0
    assert items["OP013"]["verdict"] == "BLOCKED"
    record = json.loads((port / "optimized/record.json").read_text())
    assert record["basis"] == "simulated"
    assert record["before"]["output_sha256"]
    assert (port / "optimized/ablation.json").is_file()
    assert (port / "reports/front.svg").read_bytes().startswith(b"<?xml")
    assert phases_main(["check", str(port)]) == 0
    before = {n: d for n, d in contents(port).items() if not n.startswith("reports/run") and n != "state.json"}
    assert main([str(port), "--plans", "4"]) == 0
    after = {n: d for n, d in contents(port).items() if not n.startswith("reports/run") and n != "state.json"}
    assert before == after


def test_without_a_bringup_gate_nothing_is_searched(port: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (port / "gates/bringup.json").unlink()
    assert main([str(port)]) == 3
    assert "gates/bringup.json" in capsys.readouterr().err
    assert not (port / "optimized").exists()


def test_a_malformed_bandwidth_table_is_refused(port: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = contents(port)
    table = {"schema_version": 1, "name": "mine", "device": "npu1", "basis": "felt", "source": "", "columns": {}}
    (tmp_path / "b.json").write_text(json.dumps(table))
    assert main([str(port), "--bandwidth", str(tmp_path / "b.json")]) == 2
    err = capsys.readouterr().err
    assert err.count("OPTIMIZE-BANDWIDTH") == 4
    assert "npu1" in err
    assert contents(port) == before


def test_a_measured_table_is_named_with_its_basis(port: Path, tmp_path: Path) -> None:
    rows = {"fill_bytes_per_cycle": 8, "drain_bytes_per_cycle": 8}
    table = {"schema_version": 1, "name": "mine", "device": "npu2", "basis": "measured", "source": "memcpy, ours"}
    (tmp_path / "b.json").write_text(json.dumps({**table, "columns": {"0": rows, "1": rows}}))
    assert main([str(port), "--plans", "1", "--bandwidth", str(tmp_path / "b.json")]) == 0
    items = {i["code"]: i for i in gate(port)["items"]}
    assert items["OP009"]["figures"]["basis"] == "measured"
    assert items["OP009"]["figures"]["table"] == "mine"


def test_nothing_to_adopt_is_refused(port: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(port), "--adopt"]) == 3
    assert main([str(port), "--plans", "1"]) == 0
    capsys.readouterr()
    assert main([str(port), "--adopt"]) == 2
    assert "OPTIMIZE-ADOPT" in capsys.readouterr().err


@pytest.mark.slow
def test_an_adopted_design_is_the_design_and_a_rerun_gives_the_same_bytes(digits_port: Path, tmp_path: Path) -> None:
    port = digits_port
    assert main([str(port), "--plans", "8"]) == 0
    found = (port / "optimized/design.json").read_bytes()
    assert main([str(port), "--adopt"]) == 0
    assert (port / "design.json").read_bytes() == found
    assert json.loads((port / "optimized/adopted/optimize.json").read_text())["verdict"] == "PASS"
    assert not (port / GATE).exists()
    assert json.loads((port / "options/presim.json").read_text())["adopted"] is True
    assert phases_main(["check", str(port), "--through", "bringup", "--rerun"]) == 0
