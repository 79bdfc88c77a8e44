import shutil
from pathlib import Path
from typing import Any

import pytest

from bringup.emit import emit
from bringup.lint import RULES
from phases.__main__ import main
from phases.port import write_phase, writing
from tests.bringup.emit.conftest import made_port, ready


@pytest.fixture(scope="module")
def generated(root: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, bytes]]:
    folder = root / "examples/digits"
    port = made_port(folder / "digits_cnn.onnx", folder / "digits.npz", tmp_path_factory.mktemp("lint"), "npu2")
    found = ready(port)
    return port, {f"generated/{n}": d for n, d in emit(found.given, found.clearance).items()}


def put(generated: tuple[Path, dict[str, bytes]], folder: Path, **changes: bytes) -> Path:
    port = shutil.copytree(generated[0], folder / "digits_cnn.port")
    with writing(port):
        write_phase(port, "bringup", {**generated[1], **changes}, {})
    return port


def test_clean(generated: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    port = put(generated, tmp_path)
    assert main(["lint-generated", str(port)]) == 0
    assert capsys.readouterr().out == f"0 findings of {len(RULES)} rules in {len(generated[1])} files\n"


def test_findings(generated: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = "generated/d0/design.py"
    edited = generated[1][name].replace(b", wait=True", b"")
    port = put(generated, tmp_path, **{name: edited})
    assert main(["lint-generated", str(port)]) == 1
    out = capsys.readouterr().out
    assert "generated/d0/design.py:0: GL030 it was changed since it was generated" in out
    assert "GL028 drain of fifo6_cons0 that nothing waits for" in out
    assert out.endswith(f"2 findings of {len(RULES)} rules in {len(generated[1])} files\n")


def test_without_generated_sources(generated: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    port = shutil.copytree(generated[0], tmp_path / "bare.port")
    assert main(["lint-generated", str(port)]) == 3
    assert "remedy: run phases.bringup" in capsys.readouterr().err


def test_sources_changed_on_disk(generated: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    port = put(generated, tmp_path)
    (port / "generated/d0/design.py").write_bytes(b"")
    assert main(["lint-generated", str(port)]) == 3
    assert "generated/d0/design.py" in capsys.readouterr().err


def test_rules_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lint-generated", "--rules"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(RULES)


def test_no_port(tmp_path: Path) -> None:
    assert main(["lint-generated", str(tmp_path / "none")]) == 2
