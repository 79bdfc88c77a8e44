"""The digits example through phases 1 and 2, and a place where its kernels are compiled once."""

import io
import shutil
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from phases.baseline.__main__ import main as baseline
from phases.presim.__main__ import main as presim


@pytest.fixture(scope="session")
def digits_port(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its model and data are not beside it, so they count as not re-verified."""
    folder, port = root / "examples/digits", tmp_path_factory.mktemp("digits") / "digits_cnn.port"
    with redirect_stdout(io.StringIO()):
        words = [str(folder / "digits_cnn.onnx"), "--data", str(folder / "digits.npz"), "--out", str(port)]
        assert baseline(words) == 0
        assert presim([str(port)]) == 0
    return port


@pytest.fixture
def port(digits_port: Path, tmp_path: Path) -> Path:
    """A copy to write into."""
    return shutil.copytree(digits_port, tmp_path / "digits_cnn.port")


@pytest.fixture(scope="session")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where kernels are compiled; the name of a library carries the hash of its sources."""
    return tmp_path_factory.mktemp("work")
