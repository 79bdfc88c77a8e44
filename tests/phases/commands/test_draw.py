"""`draw`: a picture of what phase 2 planned, beside the port, never in place of one of its files."""

import shutil
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from phases.__main__ import main
from phases.baseline.__main__ import main as baseline
from phases.presim.__main__ import main as presim
from tests.ports import contents

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "branching"


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("draw") / "b.port"
    data = str(EXAMPLE / "branching.npz")
    assert baseline([str(EXAMPLE / "branching.onnx"), "--data", data, "--out", str(folder)]) == 0
    assert presim([str(folder)]) == 0
    return folder


def names(picture: Path, kind: str) -> set[str | None]:
    root = ET.fromstring(picture.read_bytes())
    return {g.get(f"data-{kind}") for g in root.iter("{http://www.w3.org/2000/svg}g") if g.get("class") == kind}


def test_the_picture_lies_beside_the_port(port: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = contents(port)
    assert main(["draw", str(port)]) == 0
    picture = port.parent / "b.design.svg"
    assert "1 dispatch, 7 cores" in capsys.readouterr().out
    assert {"trunk_fc", "b1_fc1", "b1_fc2", "b2_fc1", "b2_fc2", "b2_fc3"} <= names(picture, "worker")
    assert {"b2_fc1_out_q", "b2_fc2_out_q", "in_real_q", "branch1_q", "branch2_q"} <= names(picture, "fifo")
    assert contents(port) == before
    first = picture.read_bytes()
    assert main(["draw", str(port), "--dispatch", "d0", "--out", str(picture)]) == 0
    assert picture.read_bytes() == first


def test_an_unknown_dispatch_is_refused(port: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["draw", str(port), "--dispatch", "d7", "--out", str(tmp_path / "x.svg")]) == 2
    text = capsys.readouterr().err
    assert "DRAW-DISPATCH" in text
    assert "expected d0; got d7" in text
    assert not (tmp_path / "x.svg").exists()


@pytest.mark.parametrize("name", ["design.json", "state.json", "waivers.toml", "reports/new.svg"])
def test_nothing_is_written_into_the_port(port: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    before = contents(port)
    assert main(["draw", str(port), "--out", str(port / name)]) == 2
    assert "DRAW-OUT" in capsys.readouterr().err
    assert contents(port) == before


@pytest.mark.parametrize("name", ["manifest.json", "gates/presim.json", "new.svg"])
def test_nothing_is_written_into_another_port(
    port: Path, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other.port"
    shutil.copytree(port, other)
    before = contents(other)
    (tmp_path / "link.svg").symlink_to(other / name)
    for out in (other / name, tmp_path / "link.svg"):
        assert main(["draw", str(port), "--out", str(out)]) == 2
        lines = capsys.readouterr().err.splitlines()
        assert [line.startswith("[DRAW-OUT]") for line in lines] == [True, False]
    assert contents(other) == before


def test_a_hard_link_to_a_file_of_the_port_is_left_alone(
    port: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = contents(port)
    (tmp_path / "x.svg").hardlink_to(port / "manifest.json")
    assert main(["draw", str(port), "--out", str(tmp_path / "x.svg")]) == 2
    assert "DRAW-OUT" in capsys.readouterr().err
    assert contents(port) == before
    (tmp_path / "x.svg").unlink()
    (tmp_path / "x.svg").write_text("an older picture")
    assert main(["draw", str(port), "--out", str(tmp_path / "x.svg")]) == 0


def test_a_place_that_cannot_be_written(port: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["draw", str(port), "--out", str(tmp_path / "absent" / "x.svg")]) == 2
    assert "DRAW-UNWRITABLE" in capsys.readouterr().err


def test_a_port_without_a_design(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "b.port"
    data = str(EXAMPLE / "branching.npz")
    assert baseline([str(EXAMPLE / "branching.onnx"), "--data", data, "--out", str(folder)]) == 0
    assert main(["draw", str(folder)]) == 3
    assert "design.json: missing" in capsys.readouterr().err
    assert main(["draw", str(tmp_path / "nothing.port")]) == 2
