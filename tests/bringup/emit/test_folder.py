import os
from pathlib import Path

import pytest

from bringup.emit import write
from manifest.errors import RefusedError

FILES = {"a/b.txt": b"1", "c": b"2"}


def test_written_whole(tmp_path: Path) -> None:
    write(FILES, tmp_path / "deep/out")
    found = {
        str(p.relative_to(tmp_path / "deep/out")): p.read_bytes()
        for p in (tmp_path / "deep/out").rglob("*")
        if p.is_file()
    }
    assert found == FILES
    assert [p.name for p in (tmp_path / "deep").iterdir()] == ["out"]


def test_an_empty_folder_is_fresh(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    write(FILES, tmp_path / "out")
    assert (tmp_path / "out/c").read_bytes() == b"2"


@pytest.mark.parametrize("there", ["file", "folder", "link"])
def test_what_is_there_stays(tmp_path: Path, there: str) -> None:
    out = tmp_path / "out"
    if there == "file":
        out.write_text("mine")
    elif there == "folder":
        out.mkdir()
        (out / "mine").write_text("mine")
    else:
        (tmp_path / "other").mkdir()
        out.symlink_to(tmp_path / "other")
    with pytest.raises(RefusedError, match=r"EMIT-FOLDER.*fresh folder"):
        write(FILES, out)
    assert sorted(p.name for p in tmp_path.iterdir()) == (["other", "out"] if there == "link" else ["out"])


@pytest.mark.parametrize("name", ["../x", "/x", "a/../../x", ""])
def test_paths_stay_inside(tmp_path: Path, name: str) -> None:
    with pytest.raises(RefusedError, match=r"EMIT-FOLDER.*leaves the folder"):
        write({name: b""}, tmp_path / "out")
    assert not list(tmp_path.iterdir())


def test_nothing_is_left_of_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(RefusedError, match="No space left"):
        write(FILES, tmp_path / "out")
    assert not list(tmp_path.iterdir())
