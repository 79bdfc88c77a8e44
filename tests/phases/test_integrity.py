"""What a reader says of a port: every changed byte, by name; the person's own files apart."""

import os
from pathlib import Path

import pytest

from manifest.errors import LockedError, RefusedError, UpstreamError
from phases import integrity
from phases.integrity import Condition, inspect, require_sound
from phases.journal import Change, Journal
from phases.lock import port_lock
from phases.port import open_port, writing
from phases.state import JOURNAL, STATE, check_name, sha256_of
from tests.ports import contents, make_port


@pytest.fixture
def port(tmp_path: Path) -> Path:
    return make_port(tmp_path)


def test_a_fresh_port_is_ok(port: Path) -> None:
    found = inspect(port)
    assert found.condition is Condition.OK
    assert found.faults == ()
    assert found.unknown == ()
    assert found.unverified == ()


def test_every_file_is_listed_in_state(port: Path) -> None:
    assert set(open_port(port).state.files) == set(contents(port)) - {STATE}


@pytest.mark.parametrize("position", [0, 0.25, 0.5, 0.75, 1])
@pytest.mark.parametrize("change", [1, 0x20, 0x80])
def test_one_changed_byte_in_any_file_is_tampered_and_named(port: Path, position: float, change: int) -> None:
    for name, data in contents(port).items():
        index = round(position * (len(data) - 1))
        (port / name).write_bytes(data[:index] + bytes([data[index] ^ change]) + data[index + 1 :])
        found = inspect(port)
        assert found.condition is Condition.TAMPERED, name
        assert name in [fault.name for fault in found.tampered]
        with pytest.raises(UpstreamError, match=name):
            open_port(port)
        (port / name).write_bytes(data)
    assert inspect(port).condition is Condition.OK


def test_a_flip_anywhere_in_state_json_is_named(port: Path) -> None:
    data = (port / STATE).read_bytes()
    for index in range(0, len(data), 7):
        changed = bytearray(data)
        changed[index] ^= 1 << index % 8
        (port / STATE).write_bytes(changed)
        assert STATE in [fault.name for fault in inspect(port).tampered], index


def test_a_missing_file_is_named(port: Path) -> None:
    for name, data in contents(port).items():
        (port / name).unlink()
        assert [f.name for f in inspect(port).tampered] == [name]
        (port / name).write_bytes(data)


def test_a_longer_and_a_shorter_file_are_named(port: Path) -> None:
    for name, data in contents(port).items():
        for other in (data + b"\n", data[:-1], b""):
            (port / name).write_bytes(other)
            assert name in [f.name for f in inspect(port).tampered]
        (port / name).write_bytes(data)


def test_unknown_files_are_named_not_judged(port: Path) -> None:
    (port / "notes.txt").write_text("mine")
    (port / "reports" / ".ipynb_checkpoints").mkdir()
    (port / "reports" / ".ipynb_checkpoints" / "x.ipynb").write_text("{}")
    (port / "kernels" / "conv").mkdir(parents=True)
    (port / "kernels" / "conv" / "kernel.cc").write_text("// mine")
    found = inspect(port)
    assert found.condition is Condition.OK
    assert found.unknown == ("notes.txt", "kernels/conv/kernel.cc", "reports/.ipynb_checkpoints/x.ipynb")


@pytest.mark.parametrize(("count", "last"), [(20, "f19: not a file"), (21, "and 1 more files")])
def test_very_many_unknown_files_are_counted(port: Path, count: int, last: str) -> None:
    for number in range(count):
        (port / f"f{number:02d}").write_text("")
    lines = inspect(port).unknown_lines()
    assert len(lines) == count
    assert lines[-1].startswith(last)


@pytest.mark.parametrize("name", ["port.toml", "waivers.toml"])
def test_a_new_input_of_the_person_is_stale(port: Path, name: str) -> None:
    (port / name).write_text("")
    found = inspect(port)
    assert found.condition is Condition.STALE
    assert [f.line() for f in found.stale] == [f"{name}: stale: new since the last run"]
    make_port(port.parent)
    assert inspect(port).condition is Condition.OK
    (port / name).write_text("# changed")
    assert [f.name for f in inspect(port).stale] == [name]
    (port / name).unlink()
    assert [f.line() for f in inspect(port).stale] == [f"{name}: stale: missing"]


@pytest.mark.parametrize("name", ["m.onnx", "real.npz"])
def test_a_changed_source_is_stale_an_absent_one_not_verified(port: Path, name: str) -> None:
    path = port.parent / name
    data = path.read_bytes()
    path.write_bytes(data + b"x")
    assert [f.name for f in inspect(port).stale] == [f"../{name}"]
    path.unlink()
    found = inspect(port)
    assert found.condition is Condition.OK
    assert [f.name for f in found.unverified] == [f"../{name}"]
    assert "verdicts are kept" in found.unverified[0].reason


def test_a_moved_folder_with_its_model_stays_ok(port: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    elsewhere = tmp_path_factory.mktemp("moved") / "all"
    port.parent.rename(elsewhere)
    found = inspect(elsewhere / "m.port")
    assert found.condition is Condition.OK
    assert not found.unverified


def test_links_are_tampered(port: Path, tmp_path: Path) -> None:
    data = (port / "tensors.npz").read_bytes()
    outside, inside = tmp_path / "outside.npz", port / "copy.npz"
    for target in (outside, inside):
        target.write_bytes(data)
        (port / "tensors.npz").unlink()
        (port / "tensors.npz").symlink_to(target)
        assert [f.name for f in inspect(port).tampered] == ["tensors.npz"]
        target.unlink()
        assert "tensors.npz" in [f.name for f in inspect(port).tampered]
        (port / "tensors.npz").unlink()
        (port / "tensors.npz").write_bytes(data)
    assert inspect(port).condition is Condition.OK


def test_a_linked_folder_is_tampered(port: Path, tmp_path: Path) -> None:
    (port / "gates").rename(tmp_path / "gates")
    (port / "gates").symlink_to(tmp_path / "gates")
    assert {f.name for f in inspect(port).tampered} == {"gates", "gates/baseline.json"}


def test_an_unknown_link_that_leaves_the_port_is_named(port: Path, tmp_path: Path) -> None:
    (port / "within").symlink_to(port / "tensors.npz")
    assert inspect(port).condition is Condition.OK
    (port / "away").symlink_to(tmp_path)
    found = inspect(port)
    assert [f.name for f in found.tampered] == ["away"]
    assert "leaves the port" in found.tampered[0].reason


def test_a_pipe_or_folder_in_place_of_a_file_is_tampered_and_not_opened(port: Path) -> None:
    (port / "tensors.npz").unlink()
    os.mkfifo(port / "tensors.npz")
    assert [f.name for f in inspect(port).tampered] == ["tensors.npz"]
    (port / "tensors.npz").unlink()
    (port / "tensors.npz").mkdir()
    assert [f.name for f in inspect(port).tampered] == ["tensors.npz"]


def test_a_port_without_state_is_tampered_not_unknown(port: Path) -> None:
    (port / STATE).unlink()
    found = inspect(port)
    assert found.condition is Condition.TAMPERED
    assert [f.name for f in found.tampered] == [STATE]


@pytest.mark.parametrize("names", [["photo.png"], ["port.toml"]])
def test_a_foreign_folder_is_refused(tmp_path: Path, names: list[str]) -> None:
    root = tmp_path / "other"
    with pytest.raises(RefusedError, match="PORT-ABSENT"):
        inspect(root)
    root.mkdir()
    assert inspect(root).condition is Condition.INTERRUPTED
    for name in names:
        (root / name).write_text("x")
    with pytest.raises(RefusedError, match="PORT-NOT-A-PORT"):
        inspect(root)


def test_a_pending_commit_is_interrupted_and_busy_while_its_run_lives(port: Path) -> None:
    changes = {"tensors.npz": Change(old=sha256_of(port, "tensors.npz"), new="0" * 64)}
    (port / JOURNAL).write_bytes(Journal(token="0" * 16, changes=changes, folders=()).to_bytes())
    assert inspect(port).condition is Condition.INTERRUPTED
    with pytest.raises(UpstreamError, match=r"journal\.json: interrupted"):
        open_port(port)
    with port_lock(port), pytest.raises(LockedError, match="PORT-BUSY"):
        inspect(port)


def test_a_port_that_changes_while_it_is_read_is_busy(port: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prints = iter(range(100))
    monkeypatch.setattr(integrity, "_fingerprint", lambda _root: (next(prints), None))
    with pytest.raises(LockedError, match="PORT-BUSY"):
        require_sound(port)


@pytest.mark.parametrize(
    "name", ["", "/etc/passwd", "../x", "a/../b", "a//b", "./a", "a\\b", "a\nb", STATE, JOURNAL, "a/.x.new"]
)
def test_names_that_a_port_cannot_hold(name: str) -> None:
    with pytest.raises(ValueError, match="name in a port"):
        check_name(name)


@pytest.mark.parametrize("target", ["/dev/zero", "pipe", "."])
def test_a_source_that_is_no_file_is_not_opened(port: Path, target: str) -> None:
    model = port.parent / "m.onnx"
    model.unlink()
    if target == "pipe":
        os.mkfifo(model)
    else:
        model.symlink_to(target)
    assert [f.name for f in inspect(port).unverified] == ["../m.onnx"]


@pytest.mark.parametrize("name", [STATE, JOURNAL])
def test_a_pipe_or_link_in_place_of_state_or_journal_is_tampered(port: Path, tmp_path: Path, name: str) -> None:
    original = (port / STATE).read_bytes()
    (tmp_path / "kept").write_bytes(original)
    (port / name).unlink(missing_ok=True)
    os.mkfifo(port / name)
    assert name in [f.name for f in inspect(port).tampered]
    (port / name).unlink()
    (port / name).symlink_to(tmp_path / "kept")
    assert name in [f.name for f in inspect(port).tampered]
    with pytest.raises(UpstreamError, match=name), writing(port):
        pass


def test_a_state_that_is_far_too_large_is_not_read(port: Path) -> None:
    with (port / STATE).open("r+b") as file:
        file.truncate(1 << 40)
    assert STATE in [f.name for f in inspect(port).tampered]
