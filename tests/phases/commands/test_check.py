"""`check` and `status`: exit codes, and the file in the words."""

import re
from pathlib import Path

import pytest

from phases.__main__ import main
from phases.lock import port_lock
from tests.ports import contents, make_port


@pytest.fixture
def port(tmp_path: Path) -> Path:
    return make_port(tmp_path)


def test_a_sound_port_is_exit_0(port: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(port)]) == 0
    assert capsys.readouterr().out == f"{port}: PASS at host level through baseline; every file as committed\n"


def test_one_changed_byte_in_any_file_is_exit_3_and_named(port: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, data in contents(port).items():
        (port / name).write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
        assert main(["check", str(port)]) == 3
        assert re.search(rf"^{re.escape(name)}: tampered", capsys.readouterr().out, re.MULTILINE)
        (port / name).write_bytes(data)
    assert main(["check", str(port)]) == 0


def test_a_stale_port_is_exit_3(port: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (port / "port.toml").write_text("")
    assert main(["check", str(port)]) == 3
    assert "port.toml: stale: new since the last run" in capsys.readouterr().out


def test_an_absent_model_is_a_note(port: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (port.parent / "m.onnx").unlink()
    (port / "notes").write_text("")
    assert main(["check", str(port)]) == 0
    out = capsys.readouterr().out
    assert "note: ../m.onnx: model: not there, not re-verified" in out
    assert "note: notes: not a file of the port, not judged" in out


@pytest.mark.parametrize(("phase", "code"), [("baseline", 0), ("presim", 3), ("optimize", 3)])
def test_through_a_phase(port: Path, phase: str, code: int) -> None:
    assert main(["check", str(port), "--through", phase]) == code


def test_what_is_no_port_is_exit_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x").write_text("")
    for path in (tmp_path, tmp_path / "absent", tmp_path / "x"):
        assert main(["check", str(path)]) == 2
        assert str(path) in capsys.readouterr().err
    assert main(["check", "x", "--through", "nonsense"]) == 2
    assert main(["check"]) == 2


def test_check_does_not_need_the_lock(port: Path) -> None:
    with port_lock(port):
        assert main(["check", str(port)]) == 0
        assert main(["status", str(port)]) == 0


def test_status_shows_everything(port: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (port / "odd\nname").write_text("")
    (port / "tensors.npz").write_bytes(b"x")
    assert main(["status", str(port)]) == 0
    out = capsys.readouterr().out
    for words in ("TAMPERED", "tensors.npz: tampered", "odd\\nname", "BL001", "BL013", "MISSING", "npu2", "../m.onnx"):
        assert words in out
    assert "\x1b[" not in out


def test_status_of_a_damaged_port_is_no_traceback(port: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, data in contents(port).items():
        for other in (b"", b"[]\n", b"null\n", b"{}\n", b"\xff", b"[" * 100_000):
            (port / name).write_bytes(other)
            assert main(["status", str(port)]) == 0
            assert main(["check", str(port)]) == 3
            assert name in capsys.readouterr().out
        (port / name).write_bytes(data)


def test_a_pipe_gets_whole_lines(
    port: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    assert main(["status", str(port)]) == 0
    row = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("BL003"))
    assert "Granularity validated on the full model with real data" in row
