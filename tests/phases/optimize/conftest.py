"""The digits MLP-sized example through phases 1 to 3, small enough to search."""

import io
import shutil
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from phases.baseline.__main__ import main as baseline
from phases.bringup.__main__ import main as bringup
from phases.presim.__main__ import main as presim
from tests.real_port import write_model


@pytest.fixture(scope="session")
def small_port(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A MatMul of 4 x 3 through phases 1 to 3."""
    folder = tmp_path_factory.mktemp("small")
    model = write_model(folder)
    port = folder / "m.port"
    with redirect_stdout(io.StringIO()):
        assert baseline([str(model), "--data", str(folder / "real.npz"), "--out", str(port)]) == 0
        assert presim([str(port)]) == 0
        assert bringup([str(port), "--level", "host"]) == 0
    return port


@pytest.fixture
def port(small_port: Path, tmp_path: Path) -> Path:
    """A copy to write into."""
    return shutil.copytree(small_port, tmp_path / "m.port")


@pytest.fixture
def digits_port(root: Path, tmp_path: Path) -> Path:
    """The digits example through phases 1 to 3, its model and data beside it."""
    for name in ("digits_cnn.onnx", "digits.npz"):
        shutil.copy(root / "examples/digits" / name, tmp_path / name)
    port = tmp_path / "digits_cnn.port"
    with redirect_stdout(io.StringIO()):
        words = [str(tmp_path / "digits_cnn.onnx"), "--data", str(tmp_path / "digits.npz"), "--out", str(port)]
        assert baseline(words) == 0
        assert presim([str(port)]) == 0
        assert bringup([str(port), "--level", "host"]) == 0
    return port
