"""Ports of the bundled examples, phase 1 done."""

import io
import shutil
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from phases.baseline.__main__ import main as baseline
from phases.port import open_port
from phases.presim.source import Source, source_of


def made(model: Path, data: Path, folder: Path) -> Path:
    port = folder / f"{model.stem}.port"
    with redirect_stdout(io.StringIO()):
        assert baseline([str(model), "--data", str(data), "--out", str(port)]) == 0
    return port


@pytest.fixture(scope="session")
def digits_port(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = root / "examples/digits"
    return made(folder / "digits_cnn.onnx", folder / "digits.npz", tmp_path_factory.mktemp("digits"))


@pytest.fixture(scope="session")
def branching_port(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = root / "examples/branching"
    return made(folder / "branching.onnx", folder / "branching.npz", tmp_path_factory.mktemp("branching"))


@pytest.fixture(scope="session")
def digits(digits_port: Path) -> Source:
    return source_of(open_port(digits_port))


@pytest.fixture(scope="session")
def branching(branching_port: Path) -> Source:
    return source_of(open_port(branching_port))


@pytest.fixture
def port(digits_port: Path, tmp_path: Path) -> Path:
    """A copy to write into. Its model and data are not beside it, so they count as not re-verified."""
    return shutil.copytree(digits_port, tmp_path / "digits_cnn.port")
