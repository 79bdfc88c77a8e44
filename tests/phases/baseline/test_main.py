"""`python -m phases.baseline` from the command line: exit codes, what is written, what is left alone."""

import dataclasses
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from checklists.report import load_report, report_to_json
from manifest.device import DEVICES
from manifest.io import sha256_hex, write_npz
from manifest.onnx_import import Imported, import_model
from phases import journal
from phases.__main__ import main as phases
from phases.baseline import __main__ as module
from phases.baseline import prepare
from phases.baseline.__main__ import main
from phases.disk import Disk
from phases.lock import lock_path, port_lock
from phases.port import write_phase, writing
from tests.ports import contents
from tests.real_port import write_model

GATE = "gates/baseline.json"
CLOCKS = "reports/run.json"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A port from real data whose gate is PASS."""
    folder = tmp_path_factory.mktemp("built")
    model = write_model(folder)
    assert run(model, "--data", folder / "real.npz", "--out", folder / "m.port") == 0
    return folder / "m.port"


@pytest.fixture
def port(built: Path, tmp_path: Path) -> Path:
    """A copy of it with its model and data."""
    shutil.copytree(built.parent, tmp_path / "copy")
    return tmp_path / "copy" / "m.port"


def run(*arguments: object) -> int:
    return main([str(a) for a in arguments])


def start(root: Path, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "phases.baseline", *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=root, env=environment, stdout=pipe, stderr=pipe, text=True)


def ended(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


def test_a_pass_is_exit_0_and_the_device_is_the_first_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = write_model(tmp_path)
    assert run(model, "--data", tmp_path / "real.npz", "--out", tmp_path / "p") == 0
    out, _ = capsys.readouterr()
    assert out.splitlines()[0] == "device: npu2 (default; choose another with --device)"
    assert "gate baseline: PASS at host level" in out
    assert phases(["check", str(tmp_path / "p")]) == 0
    assert {p.name for p in tmp_path.iterdir()} == {"m.onnx", "real.npz", "p"}


def test_without_data_the_gate_is_not_run_and_the_output_says_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = write_model(tmp_path)
    assert run(model, "--out", tmp_path / "p", "--device", "npu1") == 1
    out, _ = capsys.readouterr()
    assert out.splitlines()[0] == "device: npu1 (from --device)"
    assert "gate baseline: NOT_RUN at host level" in out
    assert "--data real.npz" in out
    assert load_report((tmp_path / "p" / GATE).read_bytes()).verdict == "NOT_RUN"
    assert phases(["check", str(tmp_path / "p")]) == 3


@pytest.mark.parametrize("content", [b"", b"not a model", b"\x08\x07\x12", None])
def test_a_refused_model_leaves_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes | None
) -> None:
    model = tmp_path / "bad.onnx"
    if content is not None:
        model.write_bytes(content)
    before = contents(tmp_path)
    assert run(model, "--out", tmp_path / "a" / "b" / "p") == 2
    out, err = capsys.readouterr()
    assert "bad.onnx" in err
    assert re.search(r"^\d+ problems?; nothing was written$", err, re.MULTILINE)
    assert "Traceback" not in out + err
    assert contents(tmp_path) == before
    assert [p.name for p in tmp_path.iterdir()] == list(before)


def test_a_linked_model_is_the_file_that_it_leads_to(tmp_path: Path) -> None:
    model = write_model(tmp_path)
    (tmp_path / "link.onnx").symlink_to(model.name)
    assert run(tmp_path / "link.onnx", "--data", tmp_path / "real.npz", "--out", tmp_path / "p") == 0
    assert phases(["check", str(tmp_path / "p")]) == 0
    model.write_bytes(model.read_bytes() + b"\0")
    assert phases(["check", str(tmp_path / "p")]) == 3


def test_a_model_that_changes_while_it_is_imported_is_stale(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    model = write_model(tmp_path)

    def changing(path: Path, **options: Any) -> Imported:
        imported = import_model(path, **options)
        named = onnx.load(path)
        named.graph.doc_string += "changed "
        onnx.save(named, path)
        return imported

    monkeypatch.setattr(prepare, "import_model", changing)
    run(model, "--data", tmp_path / "real.npz", "--out", tmp_path / "p")
    capsys.readouterr()
    assert phases(["check", str(tmp_path / "p")]) == 3
    assert "m.onnx: stale: model changed" in capsys.readouterr().out


@pytest.mark.parametrize("out", ["/", "circle", "circle/p"])
def test_places_that_can_hold_no_port_are_exit_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], out: str
) -> None:
    write_model(tmp_path)
    (tmp_path / "circle").symlink_to("circle")
    monkeypatch.chdir(tmp_path)
    assert run("m.onnx", "--data", "real.npz", "--out", out) == 2
    out_text, err = capsys.readouterr()
    assert "Traceback" not in out_text + err
    assert {p.name for p in tmp_path.iterdir()} == {"m.onnx", "real.npz", "circle"}


def test_an_unknown_device_is_exit_2_and_names_the_known(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(write_model(tmp_path), "--out", tmp_path / "p", "--device", "npu9") == 2
    err = capsys.readouterr().err
    for name in ("npu9", *DEVICES):
        assert name in err
    assert not (tmp_path / "p").exists()


@pytest.mark.parametrize(
    "arguments", [["--seed", "-1"], ["--max-samples", "0"], ["--shape", "x"], ["--nonsense"], ["--data", "absent.npz"]]
)
def test_a_bad_option_is_exit_2(tmp_path: Path, arguments: Sequence[str]) -> None:
    assert run(write_model(tmp_path), "--out", tmp_path / "p", *arguments) == 2
    assert not (tmp_path / "p").exists()


def test_a_folder_with_something_else_is_left_untouched(tmp_path: Path) -> None:
    model = write_model(tmp_path)
    before = contents(tmp_path)
    assert run(model, "--out", tmp_path) == 2
    assert run(model, "--out", model) == 2
    assert contents(tmp_path) == before


def test_one_changed_byte_in_any_file_is_exit_3_and_named(port: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = contents(port)
    assert {"manifest.json", "tensors.npz", "port.json", "state.json", GATE, CLOCKS, "data/canary.npz"} <= set(files)
    assert {Path(name).suffix for name in files} >= {".ipynb", ".md", ".html", ".xml"}
    for name, data in files.items():
        for index in {0, len(data) // 3, len(data) // 2, len(data) - 1}:
            (port / name).write_bytes(data[:index] + bytes([data[index] ^ 4]) + data[index + 1 :])
            assert phases(["check", str(port)]) == 3
            assert re.search(rf"^{re.escape(name)}: tampered", capsys.readouterr().out, re.MULTILINE), (name, index)
        (port / name).write_bytes(data)
    assert phases(["check", str(port)]) == 0


def test_a_rerun_gives_the_same_bytes_but_clocks(port: Path) -> None:
    before = contents(port)
    assert run(port) == 0
    after = contents(port)
    assert {n for n in before | after if before.get(n) != after.get(n)} <= {CLOCKS, "state.json"}
    assert run(port.parent / "m.onnx", "--data", port.parent / "real.npz", "--out", port) == 0
    assert contents(port)[GATE] == before[GATE]


def test_a_rerun_writes_tampered_files_anew(port: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = contents(port)
    (port / "manifest.json").write_bytes(b"{}\n")
    assert run(port) == 0
    assert "note: manifest.json: tampered" in capsys.readouterr().out
    assert contents(port)["manifest.json"] == before["manifest.json"]
    assert phases(["check", str(port)]) == 0


def test_check_rerun_computes_the_gate_again(port: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = contents(port.parent)
    assert phases(["check", str(port), "--rerun"]) == 0
    assert "byte for byte the same" in capsys.readouterr().out
    assert contents(port.parent) == before
    (port.parent / "real.npz").unlink()
    assert phases(["check", str(port), "--rerun"]) == 3
    assert "real.npz" in capsys.readouterr().err


def test_check_rerun_notices_a_forged_consistent_port(port: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = write_model(port.parent / "other", weight_scale=1.0)
    assert run(other, "--data", port.parent / "other" / "real.npz", "--out", port.parent / "o.port") == 0
    files = contents(port.parent / "o.port")
    for name, data in files.items():
        if name != "port.json":
            (port / name).write_bytes(data)
    assert phases(["check", str(port)]) == 3
    capsys.readouterr()
    forged = {n: d for n, d in files.items() if n not in ("state.json", "port.json", GATE)}
    keep = {n: (port / n).read_bytes() for n in ("port.json",)}
    shutil.rmtree(port)
    with writing(port):
        write_phase(port, "baseline", {**forged, **keep, GATE: forged_gate(files[GATE], keep["port.json"])}, {})
    assert phases(["check", str(port)]) == 0
    assert phases(["check", str(port), "--rerun"]) == 3
    out = capsys.readouterr().out
    for name in ("manifest.json", "data/canary.npz", GATE):
        assert f"{name}: rerun: another content" in out


def forged_gate(gate: bytes, port_json: bytes) -> bytes:
    """The gate of another port, sealed for this one's record."""
    report = load_report(gate)
    inputs = {**report.inputs, "port.json": sha256_hex(port_json)}
    return report_to_json(dataclasses.replace(report, inputs=inputs))


def test_new_data_makes_the_port_stale_and_a_rerun_takes_it_in(port: Path) -> None:
    write_npz(port.parent / "real.npz", {"x": np.ones((3, 1, 4), np.float32)})
    assert phases(["check", str(port)]) == 3
    assert run(port) in (0, 1)
    assert phases(["check", str(port)]) in (0, 3)
    gate = load_report((port / GATE).read_bytes())
    assert next(i for i in gate.items if i.code == "BL009").verdict == "PASS"


def test_a_second_run_on_one_port_refuses_at_once(port: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = contents(port)
    with port_lock(port):
        started = time.monotonic()
        assert run(port) == 2
        assert time.monotonic() - started < 1
    assert "[PORT-BUSY]" in capsys.readouterr().err
    assert contents(port) == before
    assert not lock_path(port).exists()


def test_two_processes_on_one_port_one_refuses(tmp_path: Path, root: Path) -> None:
    model = write_model(tmp_path, samples=4000)
    arguments = (model, "--data", tmp_path / "real.npz", "--out", tmp_path / "p")
    results = [ended(p) for p in [start(root, *arguments) for _ in range(3)]]
    codes = sorted(code for code, _, _ in results)
    assert codes[0] == 0
    assert set(codes) <= {0, 2}
    assert all("PORT-BUSY" in err and "process " in err for code, _, err in results if code == 2)
    assert phases(["check", str(tmp_path / "p")]) == 0


def test_two_builds_at_once_of_models_with_one_name_do_not_mix(tmp_path: Path, root: Path) -> None:
    alone, together = {}, {}
    for name, scale, samples in (("a", 0.5, 5), ("b", 1.0, 40)):
        model = write_model(tmp_path / name, weight_scale=scale, samples=samples)
        data = tmp_path / name / "real.npz"
        assert run(model, "--data", data, "--out", tmp_path / name / "alone") == 0
        alone[name] = contents(tmp_path / name / "alone")
        together[name] = start(root, model, "--data", data, "--out", tmp_path / name / "m.port")
    for name, process in together.items():
        assert ended(process)[0] == 0
        found = contents(tmp_path / name / "m.port")
        assert {n for n in found if found[n] != alone[name][n]} <= {CLOCKS, "state.json"}
        assert {p.name for p in (tmp_path / name).iterdir()} == {"m.onnx", "real.npz", "alone", "m.port"}


def test_ctrl_c_is_exit_130_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object) -> int:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(5)  # another thread may be given the signal, and this one hears of it later
        return 0

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs start without
    monkeypatch.setattr(module, "run_baseline", interrupted)
    model = write_model(tmp_path)
    try:
        assert run(model, "--out", tmp_path / "p") == 130
    finally:
        signal.signal(signal.SIGINT, before)
    assert "the port is intact" in capsys.readouterr().err
    assert {p.name for p in tmp_path.iterdir()} == {"m.onnx", "real.npz"}


def test_a_rerun_stays_in_its_folder(port: Path) -> None:
    assert run(port, "--out", port) == 0
    assert run(port, "--out", port.parent / "other") == 2
    assert run(port.parent) == 2


def test_a_first_run_that_died_cannot_be_rerun_without_its_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class DeadError(BaseException):
        """The process is gone."""

    def dies(*_: object) -> None:
        raise DeadError

    model = write_model(tmp_path)
    arguments = (model, "--data", tmp_path / "real.npz", "--out", tmp_path / "p")
    monkeypatch.setattr(Disk, "write", dies)
    with pytest.raises(DeadError):
        run(*arguments)
    monkeypatch.undo()
    assert phases(["check", str(tmp_path / "p")]) == 3
    (tmp_path / "p").rmdir()
    monkeypatch.setattr(journal, "_finish", dies)
    with pytest.raises(DeadError):
        run(*arguments)
    monkeypatch.undo()
    assert phases(["check", str(tmp_path / "p")]) == 3
    next((tmp_path / "p" / "reports").iterdir()).unlink()
    capsys.readouterr()
    assert run(tmp_path / "p") == 2
    assert "PORT-NOT-A-PORT" in capsys.readouterr().err
    assert not (tmp_path / "p").exists()
    assert run(*arguments) == 0


def test_an_accepted_finding_opens_the_gate_at_the_next_run(port: Path) -> None:
    (port / "port.toml").write_text("[thresholds]\nmin_sqnr_db = 300\n")
    assert run(port) == 1
    assert phases(["check", str(port)]) == 3
    given = ["--reason", "small data", "--owner", "me", "--until", date.today().isoformat()]
    assert phases(["waive", str(port), "BL003", *given]) == 0
    assert phases(["check", str(port)]) == 3
    assert run(port) == 0
    assert phases(["check", str(port)]) == 0
    item = next(i for i in load_report((port / GATE).read_bytes()).items if i.code == "BL003")
    assert (item.found, item.verdict) == ("FAIL", "WAIVED")
    assert "small data" in (port / "reports" / "baseline.md").read_text()
    assert phases(["check", str(port), "--rerun"]) == 0


def test_help_shows_examples(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--help") == 0
    out = capsys.readouterr().out
    for words in ("--data real.npz", "Exit codes", "npu1", "--host-ops"):
        assert words in out
