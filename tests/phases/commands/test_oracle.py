"""`oracle` and the Python API: names, forms, types; whatever the gate says, but not on a tampered port."""

from pathlib import Path

import numpy as np
import pytest

from manifest.errors import RefusedError, UpstreamError
from manifest.io import read_npz, write_npz
from phases import api
from phases import feeds as feeds_module
from phases.__main__ import main
from phases.baseline.__main__ import main as baseline
from tests.ports import contents
from tests.real_port import write_model

FEEDS = np.arange(-10, 10, dtype=np.float32).reshape(5, 1, 4)
WEIGHTS = (np.arange(12).reshape(4, 3) - 6) * 0.5


def meaning(feeds: np.ndarray) -> np.ndarray:
    """The model by hand: all scales are powers of two and these inputs are codes."""
    return np.clip(np.rint(feeds.astype(np.float64) @ WEIGHTS), -128, 127).astype(np.float32)


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A port without data: its gate is NOT_RUN."""
    folder = tmp_path_factory.mktemp("oracle")
    model = write_model(folder)
    assert baseline([str(model), "--out", str(folder / "m.port")]) == 1
    return folder / "m.port"


def run(port: Path, tmp_path: Path, *options: str, **arrays: np.ndarray) -> tuple[int, dict[str, np.ndarray]]:
    write_npz(tmp_path / "x.npz", arrays)
    outputs = tmp_path / "y.npz"
    code = main(["oracle", str(port), "--inputs", str(tmp_path / "x.npz"), "--outputs", str(outputs), *options])
    return code, read_npz(outputs) if outputs.exists() else {}


@pytest.mark.parametrize("name", ["x", "in_0"])
@pytest.mark.parametrize("arithmetic", ["reference", "target"])
def test_outputs_come_back_in_the_form_of_the_inputs(port: Path, tmp_path: Path, name: str, arithmetic: str) -> None:
    for feeds in (FEEDS, FEEDS[:1], FEEDS[2]):
        code, found = run(port, tmp_path, "--arithmetic", arithmetic, **{name: feeds})
        assert code == 0
        assert list(found) == ["y"]
        assert found["y"].dtype == np.float32
        np.testing.assert_array_equal(found["y"], meaning(feeds))


def test_all_tensors_are_integers_under_their_onnx_names(port: Path, tmp_path: Path) -> None:
    code, found = run(port, tmp_path, "--all-tensors", x=FEEDS)
    assert code == 0
    assert set(found) == {"a_q", "y_q", "y"}
    np.testing.assert_array_equal(found["a_q"], (FEEDS * 4 + 128).astype(np.uint8))
    np.testing.assert_array_equal(found["y_q"], (meaning(FEEDS) + 128).astype(np.uint8))
    assert {a.dtype for n, a in found.items() if n != "y"} == {np.dtype(np.uint8)}


def test_chunks_do_not_change_results(port: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = run(port, tmp_path, "--all-tensors", x=FEEDS)[1]
    monkeypatch.setattr(feeds_module, "CHUNK_BYTES", 1)
    pieces = run(port, tmp_path, "--all-tensors", x=FEEDS)[1]
    for name, array in whole.items():
        np.testing.assert_array_equal(pieces[name], array)


def test_wrong_inputs_are_exit_2_and_nothing_is_written(
    port: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for arrays in ({"x": FEEDS.astype(np.float64)}, {"x": FEEDS[:, :, :3]}, {"z": FEEDS}, {"x": FEEDS, "z": FEEDS}):
        assert run(port, tmp_path, **arrays) == (2, {})
        assert "problem" in capsys.readouterr().err
    (tmp_path / "x.npz").write_bytes(b"no archive")
    options = ["--inputs", str(tmp_path / "x.npz"), "--outputs", str(tmp_path / "y.npz")]
    assert main(["oracle", str(port), *options]) == 2
    assert not (tmp_path / "y.npz").exists()


def test_results_never_replace_what_they_come_from(port: Path, tmp_path: Path) -> None:
    write_npz(tmp_path / "x.npz", {"x": FEEDS})
    before = contents(port) | contents(tmp_path)
    for outputs in (tmp_path / "x.npz", port / "tensors.npz", port / "state.json"):
        assert main(["oracle", str(port), "--inputs", str(tmp_path / "x.npz"), "--outputs", str(outputs)]) == 2
    assert contents(port) | contents(tmp_path) == before


@pytest.mark.parametrize(
    "name", ["journal.json", "port.toml", "waivers.toml", "design.json", "gates/presim.json", "kernels/k.npz", "data"]
)
def test_results_take_no_name_that_a_port_or_its_owner_uses(
    port: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    before = contents(port)
    (tmp_path / "link").symlink_to(port)
    write_npz(tmp_path / "x.npz", {"x": FEEDS})
    for folder in (port, tmp_path / "link"):
        options = ["--inputs", str(tmp_path / "x.npz"), "--outputs", str(folder / name)]
        assert main(["oracle", str(port), *options]) == 2
        assert "[OPTION-OUTPUTS]" in capsys.readouterr().err
    assert contents(port) == before


def test_a_tampered_port_is_exit_3(port: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, data in contents(port).items():
        (port / name).write_bytes(data + b"\n")
        assert run(port, tmp_path, x=FEEDS) == (3, {})
        assert name in capsys.readouterr().err
        (port / name).write_bytes(data)
    assert run(port, tmp_path, x=FEEDS)[0] == 0


def test_a_stale_port_still_runs(port: Path, tmp_path: Path) -> None:
    (port / "port.toml").write_text("")
    try:
        assert run(port, tmp_path, x=FEEDS)[0] == 0
    finally:
        (port / "port.toml").unlink()


def test_the_api_loads_runs_and_reads_the_gate(port: Path) -> None:
    loaded = api.load(str(port))
    np.testing.assert_array_equal(loaded.run({"x": FEEDS})["y"], meaning(FEEDS))
    np.testing.assert_array_equal(loaded.run({"x": FEEDS[0]}, all_tensors=True)["y"], meaning(FEEDS[0]))
    gate = loaded.gate()
    assert (gate.verdict, gate.passed) == ("NOT_RUN", False)
    assert gate.report is not None
    assert gate.report.items[0].code == "BL001"
    assert loaded.gate("presim").verdict == "MISSING"
    assert loaded.manifest.tensor("y_q").dtype == "uint8"
    with pytest.raises(RefusedError, match="ORACLE-INPUT-SHAPE"):
        loaded.run({"x": FEEDS[:, 0]})
    with pytest.raises(UpstreamError, match="missing"):
        loaded.port.read("nothing")
