"""The real disk syncs what it writes."""

import os
from pathlib import Path

import pytest

from phases.disk import Disk


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """(inode, size) of everything that is synced, when it is."""
    seen: list[tuple[int, int]] = []

    def fsync(descriptor: int) -> None:
        facts = os.fstat(descriptor)
        seen.append((facts.st_ino, facts.st_size))

    monkeypatch.setattr(os, "fsync", fsync)
    return seen


def test_a_file_is_synced_with_its_content(tmp_path: Path, synced: list[tuple[int, int]]) -> None:
    Disk().write(tmp_path / "a", b"12345")
    assert synced == [((tmp_path / "a").stat().st_ino, 5)]


def test_a_folder_is_synced(tmp_path: Path, synced: list[tuple[int, int]]) -> None:
    Disk().sync(tmp_path)
    assert [inode for inode, _ in synced] == [tmp_path.stat().st_ino]
    Disk().sync(tmp_path / "absent")
    assert len(synced) == 1


def test_a_name_that_is_taken_is_not_written(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"old")
    (tmp_path / "link").symlink_to(tmp_path / "new")
    for name in ("a", "link"):
        with pytest.raises(FileExistsError):
            Disk().write(tmp_path / name, b"new")
    assert (tmp_path / "a").read_bytes() == b"old"
    assert not (tmp_path / "new").exists()


def test_only_an_empty_folder_is_removed(tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").write_bytes(b"")
    (tmp_path / "empty").mkdir()
    for name in ("full", "empty", "absent"):
        Disk().rmdir(tmp_path / name)
    assert [p.name for p in tmp_path.iterdir()] == ["full"]
