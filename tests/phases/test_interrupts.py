"""Ctrl-C before, while and after a command runs: exit 130, one line, never a traceback."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from phases import cli, interrupts
from phases.exit_codes import INTERNAL, INTERRUPTED
from phases.interrupts import EXIT_CODE

PRESSED = "import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(5)\n"
TURNED = f"""
try:
    {PRESSED.strip().replace(chr(10), chr(10) + "    ")}
except KeyboardInterrupt:
    raise ImportError("initialization failed") from None
"""


def ended(root: Path, folder: Path, *command: str) -> subprocess.CompletedProcess[bytes]:
    environment = {**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{root}"}
    return subprocess.run([sys.executable, *command], cwd=folder, capture_output=True, env=environment, check=False)


def test_the_code_is_that_of_the_commands() -> None:
    assert EXIT_CODE == INTERRUPTED


@pytest.mark.parametrize("content", [PRESSED, TURNED])
@pytest.mark.parametrize("module", ["phases.baseline", "phases.presim", "phases"])
def test_ctrl_c_while_modules_are_imported(root: Path, tmp_path: Path, content: str, module: str) -> None:
    (tmp_path / "rich").mkdir()
    (tmp_path / "rich" / "__init__.py").write_text(content)
    done = ended(root, tmp_path, "-m", module, "status", "m.port")
    assert (done.returncode, done.stdout) == (INTERRUPTED, b"")
    assert done.stderr == b"interrupted; the port is intact\n"


@pytest.mark.parametrize(
    ("module", "first"), [("phases.baseline", "typing"), ("phases.presim", "contextlib"), ("phases", "types")]
)
def test_ctrl_c_in_the_first_import_of_all(root: Path, tmp_path: Path, module: str, first: str) -> None:
    """Nothing is imported before the handler stands: a press in the first module behind it is one line and 130."""
    hook = f"""
import sys
class Pressing:
    def find_spec(self, name, path=None, target=None):
        if name == {first!r} and "phases.interrupts" in sys.modules:
            {PRESSED.strip().replace(chr(10), chr(10) + "            ")}
sys.meta_path.insert(0, Pressing())
for name in [n for n in sys.modules if n == {first!r}]:
    del sys.modules[name]
"""
    (tmp_path / "sitecustomize.py").write_text(hook)
    done = ended(root, tmp_path, "-m", module, "status", "m.port")
    assert (done.returncode, done.stdout) == (INTERRUPTED, b"")
    assert done.stderr == b"interrupted; the port is intact\n"


def test_what_python_has_not_imported_itself_comes_behind_the_handler(root: Path, tmp_path: Path) -> None:
    code = "import sys\nbefore = set(sys.modules)\nimport phases\nprint(sorted(set(sys.modules) - before))"
    done = ended(root, tmp_path, "-c", code)
    assert done.stdout == b"['phases', 'phases.interrupts']\n"


def test_a_fault_behind_a_press_is_an_interrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    """A module of C code turns KeyboardInterrupt into an ImportError: without a press it stays a fault of the tool."""

    def fail() -> int:
        raise ImportError

    assert cli.run(fail) == INTERNAL
    monkeypatch.setattr(interrupts, "_pressed", [2])
    assert cli.run(fail) == INTERRUPTED


def test_another_fault_of_an_import_keeps_its_traceback(root: Path, tmp_path: Path) -> None:
    (tmp_path / "rich").mkdir()
    (tmp_path / "rich" / "__init__.py").write_text("raise ImportError('broken')")
    done = ended(root, tmp_path, "-m", "phases.baseline", "m.onnx")
    assert done.returncode == 1
    assert b"ImportError: broken" in done.stderr


def test_ctrl_c_after_an_interrupt_that_passed_through_exec_is_still_130(root: Path, tmp_path: Path) -> None:
    code = f"from phases import cli\ncli.leave(cli.run(lambda: exec({PRESSED!r}) or 0))"
    done = ended(root, tmp_path, "-c", code)
    assert (done.returncode, done.stderr) == (INTERRUPTED, b"interrupted; the port is intact\n")


def test_ctrl_c_when_all_is_done_changes_nothing(root: Path, tmp_path: Path) -> None:
    (tmp_path / "late.py").write_text(f"import atexit\natexit.register(lambda: exec({PRESSED.replace('5', '0.1')!r}))")
    done = ended(root, tmp_path, "-c", "import late\nfrom phases import cli\ncli.leave(1)")
    assert (done.returncode, done.stdout, done.stderr) == (1, b"", b"")


def test_importing_the_package_changes_no_hook(root: Path, tmp_path: Path) -> None:
    code = (
        "import signal, sys\nimport phases\n"
        "print(sys.excepthook is sys.__excepthook__, signal.getsignal(signal.SIGINT) is signal.default_int_handler)"
    )
    assert ended(root, tmp_path, "-c", code).stdout == b"True True\n"
