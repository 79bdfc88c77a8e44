"""Phase 2 from the command line: files, gate, exit codes, what makes it stale, reruns."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from manifest.errors import UpstreamError
from manifest.io import is_canonical
from phases import runner
from phases.__main__ import main as phases_main
from phases.presim import regress
from phases.presim.__main__ import main
from phases.presim.options import OPTIONS
from presim.design_io import design_from_json
from tests.ports import contents

GATE = "gates/presim.json"


def presim(*arguments: object) -> int:
    return main([str(a) for a in arguments])


def check(port: Path, *arguments: str) -> int:
    return phases_main(["check", str(port), *arguments])


def gate(port: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((port / GATE).read_text())
    return found


@pytest.fixture(scope="module")
def done(digits_port: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The digits example through both phases."""
    port = shutil.copytree(digits_port, tmp_path_factory.mktemp("done") / "digits_cnn.port")
    assert presim(port) == 0
    return port


@pytest.fixture
def both(done: Path, tmp_path: Path) -> Path:
    return shutil.copytree(done, tmp_path / "digits_cnn.port")


def test_the_digits_example_passes_with_every_file(done: Path) -> None:
    found = gate(done)
    assert (found["verdict"], found["level"]) == ("PASS", "host")
    assert {i["verdict"] for i in found["items"]} <= {"PASS", "NOT_APPLICABLE"}
    expected = {"design.json", OPTIONS, "regress/test_stages.py", "reports/presim.md", "reports/trace.json"}
    expected |= {"regress/pytest.ini"}
    assert expected <= set(contents(done))
    for name in ("design.json", OPTIONS, GATE):
        assert is_canonical((done / name).read_bytes())
    assert set(found["upstream"]) == {"gates/baseline.json"}
    assert {"manifest.json", "tensors.npz", "port.json", "data/canary.npz", "design.json", OPTIONS} <= set(
        found["inputs"]
    )


def test_the_gate_opens_the_next_phase_for_exactly_this_design(done: Path) -> None:
    clearance = runner.clear(done, "presim")
    manifest, design = ((done / n).read_bytes() for n in ("manifest.json", "design.json"))
    clearance.verify(manifest, design)
    with pytest.raises(UpstreamError, match="another design"):
        clearance.verify(manifest, design + b" ")
    assert check(done) == 0


def test_reports_are_over_both_gates(done: Path) -> None:
    page = (done / "reports/report.html").read_text()
    for words in ("Baseline gate", "Presim gate", "PS001", "BL001", "Validation in its order", "Workers"):
        assert words in page
    text = (done / "reports/presim.md").read_text()
    assert "## Spread of every op" in text
    assert "predicted from calibration data, never measured" in text
    assert set(json.loads((done / "reports/run.json").read_text())) >= {"seconds", "presim"}


def test_stages_chain_and_whole_are_recorded_in_order(done: Path) -> None:
    text = (done / "reports/presim.md").read_text()
    rows = [
        line
        for line in text.split("## Validation in its order")[1].split("\n## ")[0].splitlines()
        if "completes" in line
    ]
    assert len(rows) == 6 + 6 + 1
    assert [int(row.split("|")[1]) for row in rows] == list(range(13))


def test_a_rerun_changes_no_byte_but_clocks(both: Path) -> None:
    before = contents(both)
    assert presim(both) == 0
    after = contents(both)
    assert {n for n in before if before[n] != after[n]} <= {"reports/run.json", "state.json"}
    assert set(before) == set(after)


def test_another_hash_seed_gives_the_same_bytes(port: Path, done: Path) -> None:
    environment = dict(os.environ, PYTHONHASHSEED="77")
    command = [sys.executable, "-m", "phases.presim", str(port)]
    subprocess.run(command, env=environment, check=True, capture_output=True)
    for name in ("design.json", GATE, "regress/test_stages.py", "reports/trace.json", "reports/presim.md"):
        assert (port / name).read_bytes() == (done / name).read_bytes(), name


def test_no_port_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert presim(tmp_path / "none.port") == 2
    assert "PORT-ABSENT" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["gates/baseline.json", "manifest.json", "tensors.npz", "data/canary.npz"])
def test_a_changed_baseline_is_exit_3_and_nothing_is_written(
    port: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    (port / name).write_bytes((port / name).read_bytes() + b" ")
    before = contents(port)
    assert presim(port) == 3
    assert name in capsys.readouterr().err
    assert contents(port) == before


def test_a_missing_baseline_gate_is_exit_3(port: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (port / "gates/baseline.json").unlink()
    assert presim(port) == 3
    assert "gates/baseline.json" in capsys.readouterr().err


def test_a_waiver_makes_both_gates_stale_and_the_baseline_comes_first(
    both: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (both / "waivers.toml").write_text("# nothing yet\n")
    assert check(both) == 3
    assert presim(both) == 3
    assert "waivers.toml: stale" in capsys.readouterr().err


def test_a_changed_design_is_tampered(both: Path, capsys: pytest.CaptureFixture[str]) -> None:
    design = (both / "design.json").read_text()
    (both / "design.json").write_text(design.replace('"depth": 2', '"depth": 3', 1))
    assert check(both) == 3
    assert "design.json: tampered" in capsys.readouterr().out
    assert presim(both) == 3


def test_an_edited_gate_is_tampered(both: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (both / GATE).read_text()
    (both / GATE).write_text(text.replace("0 mismatches", "1 mismatches", 1))
    assert check(both) == 3
    assert f"{GATE}: tampered" in capsys.readouterr().out


def test_check_rerun_computes_both_phases(root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = root / "examples/branching"
    port = tmp_path / "b.port"
    command = [str(folder / "branching.onnx"), "--data", str(folder / "branching.npz"), "--out", str(port)]
    from phases.baseline.__main__ import main as baseline  # noqa: PLC0415  (this test alone runs phase 1)

    assert baseline(command) == 0
    assert presim(port) == 0
    assert check(port, "--rerun") == 0
    assert "byte for byte the same" in capsys.readouterr().out


def test_a_baseline_with_other_numbers_makes_the_gate_stale(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from phases.baseline.__main__ import main as baseline  # noqa: PLC0415  (this test alone runs phase 1)

    folder = root / "examples/digits"
    port = tmp_path / "digits_cnn.port"
    common = [str(folder / "digits_cnn.onnx"), "--data", str(folder / "digits.npz"), "--out", str(port)]
    assert baseline(common) == 0
    assert presim(port) == 0
    assert baseline([*common, "--seed", "3"]) == 0
    assert check(port) == 3
    assert "gates/presim.json was judged on another content" in capsys.readouterr().out
    assert check(port, "--through", "baseline") == 0
    assert presim(port) == 0
    assert check(port) == 0


def test_options_are_kept_for_a_rerun(both: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = {"/f/f.6/Gemm": {"placement": {"row": 0, "col": 3}}}
    (tmp_path / "asked.json").write_text(json.dumps(asked))
    assert presim(both, "--directives", tmp_path / "asked.json", "--batch", 4) == 0
    (tmp_path / "asked.json").unlink()
    assert json.loads((both / OPTIONS).read_text()) == {
        "schema_version": 1,
        "directives": asked,
        "batch": 4,
        "schedules": 3,
        "adopted": False,
    }
    pinned = (both / "design.json").read_bytes()
    (design,) = design_from_json(pinned)
    gemm = next(w for w in design.workers if w.stage == "/f/f.6/Gemm")
    assert gemm.tile is not None
    assert (gemm.tile.column, gemm.tile.row) == (3, 2)
    capsys.readouterr()
    assert presim(both) == 0
    assert "directives of the last run for '/f/f.6/Gemm'" in capsys.readouterr().out
    assert (both / "design.json").read_bytes() == pinned


@pytest.mark.parametrize(
    "text",
    ['{"nobody": {}}', '{"/f/f.6/Gemm": {"speed": 1}}', "{", "[]", '{"/f/f.6/Gemm": {"placement": {"row": 0}}}'],
)
def test_unknown_nodes_and_keys_are_refused_and_nothing_is_written(port: Path, tmp_path: Path, text: str) -> None:
    (tmp_path / "asked.json").write_text(text)
    before = contents(port)
    assert presim(port, "--directives", tmp_path / "asked.json") == 2
    assert contents(port) == before


def test_too_few_schedules_do_not_pass(both: Path) -> None:
    assert presim(both, "--schedules", 2) == 1
    found = {i["code"]: i["verdict"] for i in gate(both)["items"]}
    assert found["PS004"] == "NOT_RUN"
    assert presim(both, "--schedules", 3) == 0


@pytest.mark.parametrize(("option", "value"), [("--batch", 1), ("--batch", "x"), ("--schedules", -1)])
def test_impossible_options_are_refused(port: Path, option: str, value: object) -> None:
    assert presim(port, option, value) == 2


def test_the_standing_suite_runs_under_pytest(done: Path) -> None:
    """And leaves no cache behind, from inside the port or outside, whole or one file of it."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPATH"] = str(Path(__file__).resolve().parents[3])
    before = contents(done)
    for folder, target in ((done.parent, done / "regress"), (done, Path("regress/test_stages.py"))):
        result = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", str(target)],
            check=False,
            capture_output=True,
            text=True,
            env=environment,
            cwd=folder,
        )
        assert result.returncode == 0, result.stdout
        assert "7 passed" in result.stdout
        assert contents(done) == before


def test_the_standing_suite_names_what_is_wrong(both: Path) -> None:
    regress._suite.cache_clear()
    names = regress.stages(both)
    assert len(names) == 6
    assert regress.failure(both, names[0]) == ""
    assert "no stage 'other'" in regress.failure(both, "other")
    regress._suite.cache_clear()
    (both / "tensors.npz").write_bytes(b"")
    assert "tensors.npz" in regress.failure(both, names[0])
    regress._suite.cache_clear()


def test_an_empty_folder_is_not_said_to_be_held_by_this_very_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "p").mkdir()
    assert main([str(tmp_path / "p")]) in (2, 3)
    assert "PORT-BUSY" not in capsys.readouterr().err
    assert list((tmp_path / "p").iterdir()) == []
