"""Writing a port: never over what is not ours; reading the person's own files."""

import os
from pathlib import Path

import pytest

from manifest.errors import RefusedError, UpstreamError
from phases.integrity import Condition, inspect
from phases.port import MAX_PERSON_FILE_BYTES, open_port, read_person, write_person, write_phase, writing
from phases.record import PortInfo, Source
from tests.ports import contents, make_port


@pytest.fixture
def port(tmp_path: Path) -> Path:
    return make_port(tmp_path)


def write(port: Path, files: dict[str, bytes], phase: str = "presim") -> None:
    with writing(port):
        write_phase(port, phase, files, {})


def test_a_file_that_is_not_ours_is_never_overwritten(port: Path) -> None:
    (port / "design.json").write_bytes(b"mine")
    before = contents(port)
    with pytest.raises(RefusedError, match=r"PORT-FILE-TAKEN.*design\.json"):
        write(port, {"design.json": b"[]\n", "options/presim.json": b"{}\n"})
    assert contents(port) == before
    (port / "design.json").unlink()
    write(port, {"design.json": b"[]\n"})
    assert inspect(port).condition is Condition.OK


@pytest.mark.parametrize("what", ["folder", "link", "file above"])
def test_what_stands_in_the_way_is_refused(port: Path, tmp_path: Path, what: str) -> None:
    (tmp_path / "outside").mkdir()
    if what == "folder":
        (port / "generated").mkdir()
        (port / "generated" / "a.cc").mkdir()
    elif what == "link":
        (port / "generated").symlink_to(tmp_path / "outside")
    else:
        (port / "generated").write_bytes(b"")
    before = contents(port)
    with pytest.raises(RefusedError, match=r"PORT-FILE-TAKEN.*generated"):
        write(port, {"generated/a.cc": b"//"})
    assert contents(port) == before
    assert list((tmp_path / "outside").iterdir()) == []


def test_a_link_in_place_of_our_own_file_is_refused_not_followed(port: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").write_bytes(b"mine")
    (port / "tensors.npz").unlink()
    (port / "tensors.npz").symlink_to(tmp_path / "outside")
    with pytest.raises(RefusedError, match=r"PORT-WRITE.*tensors\.npz is a symbolic link"):
        write(port, {"port.json": (port / "port.json").read_bytes(), "tensors.npz": b"new"}, "baseline")
    assert (tmp_path / "outside").read_bytes() == b"mine"


def test_the_persons_files_are_never_written_by_a_phase(port: Path) -> None:
    for name in ("port.toml", "waivers.toml", "kernels/conv/kernel.cc"):
        with pytest.raises(ValueError, match="the person's own"):
            write(port, {name: b""})
    with writing(port), pytest.raises(RuntimeError, match="not a person's file"):
        write_person(port, "manifest.json", b"")


def test_a_file_of_ours_that_is_not_canonical_is_tampered(port: Path) -> None:
    files = {name: data for name, data in contents(port).items() if name != "state.json"}
    files["manifest.json"] = files["manifest.json"] + b"\n"
    write(port, files, "baseline")
    assert [f.line() for f in inspect(port).tampered] == ["manifest.json: tampered: not its own canonical form"]


def test_a_port_without_a_record_is_tampered(port: Path) -> None:
    files = {name: data for name, data in contents(port).items() if name not in ("state.json", "port.json")}
    write(port, files, "baseline")
    assert [f.line() for f in inspect(port).tampered] == ["port.json: tampered: not among the files of the port"]


@pytest.mark.parametrize("record", [b"{}\n", b"[]\n", b'{\n "schema_version": 1\n}\n', b'{\n "schema_version": 2\n}\n'])
def test_a_record_of_another_shape_is_tampered(port: Path, record: bytes) -> None:
    files = {name: data for name, data in contents(port).items() if name != "state.json"}
    write(port, {**files, "port.json": record}, "baseline")
    assert [f.name for f in inspect(port).tampered] == ["port.json"]


def test_a_record_reads_back(tmp_path: Path) -> None:
    for name in ("m.onnx", "w.bin", "d.npz"):
        (tmp_path / name).write_bytes(name.encode())
    root = tmp_path / "deep" / "m.port"
    model, weights, data = (Source.of(tmp_path / n, port=root) for n in ("m.onnx", "w.bin", "d.npz"))
    info = PortInfo(
        tool_version="1", model=model, external=(weights,), data=data, device="npu1", options={"seed": 3, "cuts": ["a"]}
    )
    assert PortInfo.from_bytes(info.to_bytes()) == info
    assert model.path == "../../m.onnx"
    assert model.locate(root) == tmp_path / "m.onnx"
    assert [role for role, _ in info.sources] == ["model", "model data", "data"]


def test_reading_checks_every_byte_again(port: Path) -> None:
    opened = open_port(port)
    assert opened.read("data/canary.npz") == (port / "data" / "canary.npz").read_bytes()
    (port / "data" / "canary.npz").write_bytes(b"other")
    with pytest.raises(UpstreamError, match=r"data/canary\.npz: tampered"):
        opened.read("data/canary.npz")
    (port / "data" / "canary.npz").unlink()
    with pytest.raises(UpstreamError, match="cannot be read"):
        opened.read("data/canary.npz")


def test_the_persons_files_are_read_as_they_are(tmp_path: Path) -> None:
    assert read_person(tmp_path / "absent") == {}
    (tmp_path / "port.toml").write_bytes(b"x" * MAX_PERSON_FILE_BYTES)
    assert list(read_person(tmp_path)) == ["port.toml"]
    (tmp_path / "port.toml").write_bytes(b"x" * (MAX_PERSON_FILE_BYTES + 1))
    os.mkfifo(tmp_path / "waivers.toml")
    with pytest.raises(RefusedError) as caught:
        read_person(tmp_path)
    assert [problem.what for problem in caught.value.problems] == ["too large", "waivers.toml is no regular file"]


def test_a_folder_of_the_persons_own_files_becomes_a_port_and_keeps_them(tmp_path: Path) -> None:
    root = tmp_path / "m.port"
    (root / "kernels").mkdir(parents=True)
    (root / "kernels" / "k.cc").write_text("// mine")
    (root / "port.toml").write_text("# mine")
    make_port(tmp_path)
    found = inspect(root)
    assert found.condition is Condition.OK
    assert found.unknown == ("kernels/k.cc",)
    assert (root / "port.toml").read_text() == "# mine"
    assert found.state is not None
    assert "port.toml" in found.state.files
