"""Every program of `phases` ends through `cli.leave`: a late Ctrl-C changes nothing."""

import runpy
import sys
from pathlib import Path

import pytest

from phases import cli

FOLDER = Path(cli.__file__).parent
FILES = [p.parent.relative_to(FOLDER.parent) for p in FOLDER.rglob("__main__.py")]
PROGRAMS = sorted(path.as_posix().replace("/", ".") for path in FILES)


def test_there_are_programs() -> None:
    assert {"phases", "phases.baseline", "phases.presim"} <= set(PROGRAMS)


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_leaves_with_its_exit_code(program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    codes: list[int] = []
    monkeypatch.setattr(cli, "leave", codes.append)
    monkeypatch.setattr(sys, "argv", [program, "--no-such-option"])
    monkeypatch.delitem(sys.modules, f"{program}.__main__", raising=False)
    runpy.run_module(program, run_name="__main__")
    assert codes == [2]
