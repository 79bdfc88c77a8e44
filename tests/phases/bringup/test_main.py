"""Phase 3 from the command line: files, gate, level, exit codes, refusals, what makes it stale."""

import io
import json
import shutil
from contextlib import redirect_stdout
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from bringup.backends import BackendOptions, HostBackend
from bringup.evidence import MemoryRow
from manifest.errors import UnavailableError
from manifest.io import is_canonical
from phases import runner
from phases.__main__ import main as phases_main
from phases.bringup import collect, options, recheck
from phases.bringup.__main__ import main
from phases.bringup.options import BringupOptions
from phases.bringup.run import run
from phases.port import open_port, writing
from phases.presim.__main__ import main as presim
from tests.ports import contents

GATE = "gates/bringup.json"


def gate(port: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((port / GATE).read_text())
    return found


def bring_up(port: Path, work: Path, level: Any = "host") -> int:
    """The phase with a compiler cache of this session."""
    options = BringupOptions(out=port, level=level, today=date.today())
    backend = HostBackend("npu2", BackendOptions(work=work, schedules=3))
    with writing(port):
        opened = open_port(port)
        clearance = runner.clear(port, "presim")
        try:
            return run(options, opened, clearance, Console(file=io.StringIO()), host=backend, in_ci=False)
        finally:
            backend.close()


@pytest.fixture(scope="module")
def done(digits_port: Path, work: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    port = shutil.copytree(digits_port, tmp_path_factory.mktemp("done") / "digits_cnn.port")
    assert bring_up(port, work) == 0
    return port


@pytest.fixture
def three(done: Path, tmp_path: Path) -> Path:
    return shutil.copytree(done, tmp_path / "digits_cnn.port")


def test_the_gate_passes_at_host_level_and_says_so_everywhere(done: Path) -> None:
    found = gate(done)
    assert (found["verdict"], found["level"]) == ("PASS", "host")
    assert is_canonical((done / GATE).read_bytes())
    assert "PASS at host level" in (done / "reports/bringup.md").read_text()
    assert "PASS at host level" in (done / "reports/report.html").read_text()
    assert "bringup: PASS at host level" in (done / "reports/junit.xml").read_text()
    assert json.loads((done / "reports/badge.json").read_text())["message"] == "PASS at host level"
    assert not any("hardware" in i["summary"] for i in found["items"] if i["verdict"] == "PASS")


def test_every_stage_chain_and_dispatch_was_compared(done: Path) -> None:
    figures = {i["code"]: i["figures"] for i in gate(done)["items"]}
    stages = len(json.loads((done / "gates/presim.json").read_text())["items"][0]["figures"]["not_simulated"])
    assert stages == 0
    assert figures["BU005"]["steps"] == figures["BU006"]["steps"] == 6
    assert figures["BU007"]["distinct_inputs"] == figures["BU005"]["distinct_inputs"] == 3
    assert all(figures[code]["elements_compared"] > 1000 for code in ("BU005", "BU006", "BU007", "BU008"))


def test_hardware_items_are_blocked_and_at_hardware_level_the_exit_is_4(three: Path, work: Path) -> None:
    assert {i["verdict"] for i in gate(three)["items"] if i["level"] == "hardware"} == {"BLOCKED"}
    assert bring_up(three, work, "hardware") == 4
    assert (gate(three)["verdict"], gate(three)["level"]) == ("NOT_RUN", "hardware")
    assert phases_main(["check", str(three)]) == 3


@pytest.mark.slow
def test_a_second_run_gives_the_same_bytes(three: Path, work: Path) -> None:
    before = {n: d for n, d in contents(three).items() if not n.startswith("reports/run") and n != "state.json"}
    assert bring_up(three, work) == 0
    after = {n: d for n, d in contents(three).items() if not n.startswith("reports/run") and n != "state.json"}
    assert before == after


def test_generated_files_belong_to_the_port(three: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert phases_main(["check", str(three)]) == 0
    kernel = next((three / "generated/kernels").glob("*.cc"))
    kernel.write_text(kernel.read_text() + "\n")
    assert phases_main(["check", str(three)]) == 3
    assert kernel.name in capsys.readouterr().out


def test_a_new_design_makes_the_gate_stale(three: Path, tmp_path: Path) -> None:
    wanted = tmp_path / "directives.json"
    wanted.write_text(json.dumps({"/f/f.6/Gemm": {"parallelism": {"cas_num": 2}}}))
    with redirect_stdout(io.StringIO()):
        assert presim([str(three), "--directives", str(wanted)]) == 0
        assert phases_main(["check", str(three), "--through", "presim"]) == 0
        assert phases_main(["check", str(three), "--through", "bringup"]) == 3


@pytest.mark.parametrize("name", ["design.json", "manifest.json", "gates/presim.json", "gates/baseline.json"])
def test_without_the_gates_above_nothing_is_emitted(name: str, port: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = port / name
    path.write_bytes(path.read_bytes().replace(b"1", b"2", 1))
    assert main([str(port), "--level", "host"]) == 3
    assert name in capsys.readouterr().err
    assert not (port / "generated").exists()


def test_a_port_of_phase_1_alone_is_refused(port: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("gates/presim.json", "design.json"):
        (port / name).unlink()
    assert main([str(port)]) == 3
    assert "presim" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--backend", "replay"], "--backend replay judges recordings"),
        (["--recordings", "x"], "recordings belong to --backend replay"),
        (["--backend", "replay", "--recordings", "nowhere"], "no such folder"),
        (["--backend", "board"], "--backend"),
    ],
)
def test_wrong_options_are_refused_before_anything_is_written(
    words: list[str], text: str, port: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = contents(port)
    assert main([str(port), *words]) == 2
    assert text in capsys.readouterr().err
    assert contents(port) == before


def test_an_overflow_fails_with_a_split_that_the_next_plan_follows(
    port: Path, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    split = {"/f/f.6/Gemm": {"parallelism": {"cas_num": 2, "cas_length": 1}}}
    row = MemoryRow(dispatch="d0", place="core tile (0, 5)", need=65537, have=65536, split=json.dumps(split))
    with monkeypatch.context() as patched:
        patched.setattr(collect, "memory_rows", lambda _given: (row,))
        assert bring_up(port, work) == 1
    found = {i["code"]: i for i in gate(port)["items"]}
    assert found["BU004"]["verdict"] == "FAIL"
    assert "core tile (0, 5): need 65537 bytes, have 65536" in found["BU004"]["summary"]
    assert found["BU011"]["verdict"] == "PASS"
    assert {found[code]["verdict"] for code in ("BU001", "BU003", "BU005", "BU007")} == {"NOT_RUN"}
    assert not (port / "generated").exists()
    with redirect_stdout(io.StringIO()):
        assert presim([str(port)]) == 0
    (design,) = json.loads((port / "design.json").read_bytes())
    assert any(s["op"] == "/f/f.6/Gemm" and s["parts"] == 2 for s in design["splits"])
    assert any("65537 of 65536" in rule for rule in design["rules"])


@pytest.mark.parametrize("backend", ["replay", "xrt"])
def test_what_a_device_showed_is_not_computed_anew_without_it(
    three: Path, tmp_path: Path, backend: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "recorded").mkdir()
    asked = {"backend": backend, "level": "hardware", "schedules": 3}
    for module in (recheck, options):
        monkeypatch.setattr(module, "last_options", lambda _: asked)
    monkeypatch.setattr(recheck, "run", lambda *_, **__: pytest.fail("it was run"))
    with pytest.raises(UnavailableError, match="recordings" if backend == "replay" else "pyxrt"):
        recheck.differences(three, tmp_path / "digits_cnn.port")
