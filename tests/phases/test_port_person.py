"""The person's own files with those in `kernels/`: both sides of every limit."""

from pathlib import Path

import pytest

from manifest.errors import RefusedError
from phases.port import MAX_PERSON_FILE_BYTES, MAX_PERSON_FILES, read_person
from phases.state import KERNELS, PORT_TOML


def names(root: Path) -> list[str]:
    return list(read_person(root, (PORT_TOML, KERNELS)))


def refused(root: Path) -> str:
    with pytest.raises(RefusedError) as caught:
        names(root)
    assert {p.code for p in caught.value.problems} == {"PORT-PERSON-FILE"}
    return str(caught.value)


@pytest.fixture
def op(tmp_path: Path) -> Path:
    folder = tmp_path / "kernels/op"
    folder.mkdir(parents=True)
    return folder


def test_everything_in_the_folder_is_read_by_its_name(op: Path, tmp_path: Path) -> None:
    assert names(tmp_path) == []
    (op / "kernel.cc").write_bytes(b"x")
    (op / "more").mkdir()
    (op / "more/a").write_bytes(b"y")
    (tmp_path / "port.toml").write_bytes(b"")
    found = read_person(tmp_path, (PORT_TOML, KERNELS))
    assert found == {"port.toml": b"", "kernels/op/kernel.cc": b"x", "kernels/op/more/a": b"y"}
    assert read_person(tmp_path) == {"port.toml": b""}


def test_a_port_without_the_folder_has_none_of_it(tmp_path: Path) -> None:
    assert names(tmp_path) == []


def test_a_file_has_at_most_its_limit(op: Path, tmp_path: Path) -> None:
    (op / "a").write_bytes(bytes(MAX_PERSON_FILE_BYTES))
    assert names(tmp_path) == ["kernels/op/a"]
    (op / "a").write_bytes(bytes(MAX_PERSON_FILE_BYTES + 1))
    assert "too large" in refused(tmp_path)


def test_there_are_at_most_so_many_files(op: Path, tmp_path: Path) -> None:
    for number in range(MAX_PERSON_FILES):
        (op / f"{number}").touch()
    assert len(names(tmp_path)) == MAX_PERSON_FILES
    (op / "one more").touch()
    assert "too many files" in refused(tmp_path)


@pytest.mark.parametrize("where", ["kernels/op/link", "kernels/folder"])
def test_links_are_refused(where: str, op: Path, tmp_path: Path) -> None:
    (tmp_path / where).symlink_to(op)
    assert "symbolic link" in refused(tmp_path)


def test_the_folder_is_no_link_and_no_file(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "kernels").symlink_to(tmp_path / "there")
    assert "symbolic link" in refused(tmp_path)
    (tmp_path / "kernels").unlink()
    (tmp_path / "kernels").touch()
    assert "kernels is no folder" in refused(tmp_path)


@pytest.mark.parametrize("name", ["a\nb", "a\\b", "kernel.new"])
def test_names_that_a_port_cannot_list_are_refused(name: str, op: Path, tmp_path: Path) -> None:
    (op / name).touch()
    assert "name in a port" in refused(tmp_path)
