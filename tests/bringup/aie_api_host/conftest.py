"""Libraries on the host API, compiled once per session."""

import shutil
from pathlib import Path

import pytest

from tests.bringup.aie_api_host.host_api import Probe, build

HERE = Path(__file__).resolve().parent


@pytest.fixture(scope="session")
def probe_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("g++") is None:
        pytest.skip("g++ not found on PATH: the host headers are tested by compiling with it")
    return build([HERE / "probe.cc"], tmp_path_factory.mktemp("probe") / "probe.so")


@pytest.fixture
def probe(probe_path: Path) -> Probe:
    """Fresh tiles and empty cascades for every test."""
    found = Probe(probe_path)
    found.library.aie_host_reset()
    return found
