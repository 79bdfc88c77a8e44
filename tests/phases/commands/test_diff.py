"""`diff`: 0 the same, 1 different, 2 unreadable; ports and manifest files."""

import shutil
from pathlib import Path

import pytest

from phases.__main__ import main
from presim.design_io import DESIGN_FILE, design_to_json
from tests.ports import make_port, small_manifest
from tests.presim_designs import copy_design


@pytest.fixture
def ports(tmp_path: Path) -> tuple[Path, Path]:
    for name in "ab":
        (tmp_path / name).mkdir()
    return make_port(tmp_path / "a"), make_port(tmp_path / "b", manifest=small_manifest(0.25))


def test_the_same_is_exit_0(ports: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", str(ports[0]), str(ports[0] / "manifest.json")]) == 0
    assert capsys.readouterr().out == "no difference\n"


def test_what_moved_is_named(ports: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", str(ports[0]), str(ports[1])]) == 1
    out = capsys.readouterr().out
    for words in ("image_q", "scale", "0.5", "0.25"):
        assert words in out


def test_manifests_alone_are_compared_without_weights(
    ports: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(ports[0] / "manifest.json", tmp_path / "m.json")
    assert main(["diff", str(tmp_path / "m.json"), str(ports[0])]) == 0
    assert "weights are not compared" in capsys.readouterr().err


def test_a_tampered_port_is_compared_and_said(ports: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copy(ports[1] / "manifest.json", ports[0] / "manifest.json")
    assert main(["diff", *map(str, ports)]) == 0
    assert "manifest.json: tampered" in capsys.readouterr().err


def test_designs_of_two_ports_are_compared(ports: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    a, b = ports[0], ports[0].parent / "copy.port"
    shutil.copytree(a, b)
    for folder in (a, b):
        (folder / DESIGN_FILE).write_bytes(design_to_json([copy_design()]))
    assert main(["diff", str(a), str(b)]) == 0
    capsys.readouterr()
    (b / DESIGN_FILE).write_bytes(design_to_json([copy_design(depth=3)]))
    assert main(["diff", str(a), str(b / "manifest.json")]) == 1
    out = capsys.readouterr().out
    assert "design 'd0', fifo 'x'" in out
    assert "2 differences" in out


def test_a_design_of_one_side_alone_is_said(ports: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    a, b = ports[0], ports[0].parent / "copy.port"
    shutil.copytree(a, b)
    (b / DESIGN_FILE).write_bytes(design_to_json([copy_design()]))
    assert main(["diff", str(a), str(b)]) == 0
    assert f"only {b} has a design" in capsys.readouterr().err


def test_a_design_that_cannot_be_read_is_exit_3(ports: tuple[Path, Path]) -> None:
    for folder in ports:
        (folder / DESIGN_FILE).write_bytes(b"[]")
    assert main(["diff", *map(str, ports)]) == 3


def test_what_cannot_be_read_is_exit_2_or_3(ports: tuple[Path, Path], tmp_path: Path) -> None:
    assert main(["diff", str(ports[0]), str(tmp_path / "absent")]) == 2
    assert main(["diff", str(tmp_path), str(ports[0])]) == 2
    (tmp_path / "x.json").write_text("{}")
    assert main(["diff", str(tmp_path / "x.json"), str(ports[0])]) in (2, 3)
