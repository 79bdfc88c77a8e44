"""Command line, port.toml and the last run, resolved; every problem of all of them at once."""

import json
from pathlib import Path
from typing import Any

import pytest

from manifest.errors import LockedError, RefusedError, UpstreamError
from phases.baseline.options import Arguments, BaselineOptions, resolve
from phases.lock import port_lock
from phases.port import write_phase, writing
from phases.record import PortInfo
from tests.ports import TODAY, contents


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "m.onnx"
    path.write_bytes(b"model")
    (tmp_path / "real.npz").write_bytes(b"data")
    return path


def options(model: Path, **given: Any) -> BaselineOptions:
    arguments = Arguments(model=model, **{"out": model.parent / "m.port", **given})
    with writing(arguments.port):
        return resolve(arguments, today=TODAY)


def committed(resolved: BaselineOptions) -> PortInfo:
    """Commit `port.json` as a run does."""
    info = resolved.info("0" * 64)
    with writing(resolved.out):
        write_phase(resolved.out, "baseline", {"port.json": info.to_bytes()}, resolved.person)
    return info


def rerun(port: Path, **given: Any) -> BaselineOptions:
    arguments = Arguments(model=port, **given)
    with writing(arguments.port):
        return resolve(arguments, today=TODAY)


def test_defaults(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(model.parent)
    found = options(Path("m.onnx"), out=None)
    assert found.out == Path("m.port")
    assert (found.device, found.seed, found.max_samples, found.data) == ("npu2", 0, None, None)
    assert found.device_line == "device: npu2 (default; choose another with --device)"
    assert found.port_base == found.out
    assert not found.out.exists()


def test_the_command_line_is_taken(model: Path) -> None:
    found = options(
        model,
        data=model.parent / "real.npz",
        device="npu1",
        shapes=("a=b=1,2", "x=4"),
        host_ops=True,
        cuts=("t1", "t2"),
        seed=7,
        max_samples=3,
    )
    assert found.shapes == {"a=b": (1, 2), "x": (4,)}
    assert (found.device, found.device_from, found.host_ops, found.cuts) == ("npu1", "--device", True, ("t1", "t2"))
    assert found.device_line == "device: npu1 (from --device)"
    info = found.info("0" * 64)
    assert info.model.path == "../m.onnx"
    assert info.data is not None
    assert info.data.path == "../real.npz"
    assert PortInfo.from_bytes(info.to_bytes()) == info


def test_all_problems_at_once(model: Path) -> None:
    root = model.parent / "m.port"
    root.mkdir()
    (root / "port.toml").write_text('devise = "x"\n[preprocessing]\nmeen = 3\n')
    (root / "waivers.toml").write_text('[[waiver]]\ncode = "nope"\n')
    with pytest.raises(RefusedError) as caught:
        options(
            model.parent / "absent.onnx",
            data=model.parent,
            device="gpu",
            shapes=("x=0", "x", "=1", "x=1,,2", "x=1.5", "a=1", "a=2", "x=99999999999"),
        )
    codes = [p.code for p in caught.value.problems]
    assert codes.count("OPTION-SHAPE") == 7
    assert {"TOML-KEY", "TOML-VALUE", "WAIVER-FIELD", "MODEL-ABSENT", "DATA-ABSENT", "DEVICE-UNKNOWN"} <= set(codes)
    text = str(caught.value)
    for name in ("npu1", "npu2", "vek280", "vek385", "vc1902", "devise", "nope", "absent.onnx"):
        assert name in text
    assert set(contents(root)) == {"port.toml", "waivers.toml"}


def test_a_bad_key_of_preprocessing_is_named(model: Path) -> None:
    (model.parent / "m.port").mkdir()
    (model.parent / "m.port" / "port.toml").write_text("[preprocessing.image]\nmeen = 3\n")
    with pytest.raises(RefusedError, match="meen"):
        options(model)


def test_what_port_toml_declares_is_taken_and_the_command_line_rules(model: Path) -> None:
    root = model.parent / "m.port"
    root.mkdir()
    (root / "port.toml").write_text(
        'data = "../real.npz"\ndevice = "npu1"\nshapes = {x = [1], y = [2]}\n[thresholds]\nmin_sqnr_db = 3\n'
    )
    found = options(model, shapes=("x=9",))
    assert (found.device, found.device_from) == ("npu1", "port.toml")
    assert found.data is not None
    assert found.data.resolve() == (model.parent / "real.npz").resolve()
    assert found.shapes == {"x": (9,), "y": (2,)}
    assert found.declared.thresholds.min_sqnr_db == 3
    found = options(model, device="vek280")
    assert (found.device, found.device_from) == ("vek280", "--device")
    assert any("rules over device 'npu1'" in note for note in found.notes)


def test_a_rerun_takes_up_the_last_options_and_new_ones_rule(model: Path) -> None:
    first = options(
        model, data=model.parent / "real.npz", device="npu1", shapes=("x=1",), cuts=("t",), seed=5, max_samples=2
    )
    info = committed(first)
    again = rerun(first.out)
    assert again.info("0" * 64) == info
    assert (again.device, again.device_from, again.seed, again.max_samples) == ("npu1", "the last run", 5, 2)
    assert (dict(again.shapes), again.cuts) == ({"x": (1,)}, ("t",))
    assert again.model.resolve() == model.resolve()
    assert again.data is not None
    assert again.data.resolve() == (model.parent / "real.npz").resolve()
    other = rerun(first.out, device="npu2", seed=0, host_ops=True, shapes=("x=2",))
    assert (other.device, other.seed, other.host_ops, dict(other.shapes)) == ("npu2", 0, True, {"x": (2,)})


def test_a_rerun_from_the_model_starts_from_the_options_as_given(model: Path) -> None:
    committed(options(model, device="npu1", seed=5, cuts=("t",)))
    found = options(model)
    assert (found.device, found.seed, found.cuts) == ("npu2", 0, ())


def test_what_came_from_port_toml_is_read_from_it_again(model: Path) -> None:
    root = model.parent / "m.port"
    root.mkdir()
    (root / "port.toml").write_text('data = "../real.npz"\ndevice = "npu1"\n')
    committed(options(model))
    (root / "port.toml").write_text('device = "vek280"\n')
    found = rerun(root)
    assert (found.device, found.device_from, found.data) == ("vek280", "port.toml", None)


def test_a_default_folder_of_another_model_is_refused(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(model.parent)
    committed(options(model, out=None))
    other = model.parent / "other" / "m.onnx"
    other.parent.mkdir()
    other.write_bytes(b"other")
    with pytest.raises(RefusedError, match="PORT-OTHER-MODEL"):
        options(other, out=None)
    found = options(other, out=Path("m.port"))
    assert any("replaces the port of ../m.onnx" in note for note in found.notes)
    assert options(model, out=None).notes == ()


def test_a_folder_that_is_no_port_is_no_model(tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="PORT-NOT-A-PORT"):
        rerun(tmp_path)


@pytest.mark.parametrize("kind", ["folder", "file"])
def test_an_out_that_is_something_else_is_left_untouched(model: Path, kind: str) -> None:
    out = model.parent / "mine"
    if kind == "folder":
        out.mkdir()
        (out / "thesis.tex").write_text("years of work")
    else:
        out.write_text("years of work")
    before = contents(model.parent)
    with pytest.raises(RefusedError, match="PORT-OUT-TAKEN"):
        options(model, out=out)
    assert contents(model.parent) == before


def test_an_empty_folder_and_the_persons_own_files_are_fine(model: Path) -> None:
    out = model.parent / "m.port"
    (out / "kernels" / "conv").mkdir(parents=True)
    (out / "kernels" / "conv" / "kernel.cc").write_text("//")
    (out / "port.toml").write_text("")
    assert options(model).out == out


def test_a_tampered_record_stops_a_rerun_other_files_are_written_anew(model: Path) -> None:
    committed(options(model))
    root = model.parent / "m.port"
    original = (root / "port.json").read_bytes()
    (root / "port.json").write_bytes(original.replace(b"npu2", b"npu1"))
    with pytest.raises(UpstreamError, match=r"port\.json: tampered"):
        rerun(root)
    found = options(model)
    assert any(note.startswith("port.json: tampered") for note in found.notes)
    (root / "port.json").write_bytes(original)
    state = json.loads((root / "state.json").read_text())
    (root / "state.json").write_text(json.dumps(state))
    with pytest.raises(UpstreamError, match=r"state\.json: tampered"):
        options(model)


def test_an_expired_waiver_is_said(model: Path) -> None:
    (model.parent / "m.port").mkdir()
    (model.parent / "m.port" / "waivers.toml").write_text(
        '[[waiver]]\ncode = "BL011"\nreason = "r"\nowner = "o"\nuntil = 2020-01-01\n'
    )
    found = options(model)
    assert found.waivers[0].expired(TODAY)
    assert any(note.startswith("waiver without effect") for note in found.notes)


def test_a_locked_port_is_refused(model: Path) -> None:
    with port_lock(model.parent / "m.port"), pytest.raises(LockedError):
        options(model)
