"""Layers, packaging and the size of files."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

PACKAGES = ("phases", "checklists", "optimize", "bringup", "presim", "oracle", "manifest")
MAX_LINES = 400
MACHINE_PATH = re.compile(r"(?<![\w.])/(?:tmp|work|farm|root|home)/[A-Za-z.]")
HOSTILE = re.compile(r"tests?/.*(?:hostile|escape|traversal)")
TEXT = {".py", ".md", ".toml", ".ini", ".json", ".j2", ".yml", ".yaml", ".cfg", ".txt", ""}


def tracked(root: Path) -> list[Path]:
    """Files under version control, or every file of the packages where there is none."""
    done = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return [path for name in done.stdout.split("\0") if name and (path := root / name).is_file()]
    folders = (*PACKAGES, "tests", "docs", "examples")
    return [path for folder in folders for path in (root / folder).rglob("*") if path.is_file()]


def test_layers_hold(root: Path) -> None:
    linter = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run(
        [linter, "--config", "importlinter.ini", "--no-cache"], cwd=root, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 broken" in done.stdout


def test_every_package_is_listed_and_every_listed_one_is_there(root: Path) -> None:
    listed = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]["packages"]
    assert len(listed) == len(set(listed))
    stand_in = root / "presim/iron/standin"  # on PYTHONPATH of a child process, never imported as a package of ours
    found = {path.parent for package in PACKAGES for path in (root / package).rglob("*.py")}
    folders = {folder for folder in found if not folder.is_relative_to(stand_in)}
    assert set(listed) == {".".join(folder.relative_to(root).parts) for folder in folders}
    assert all((root / name.replace(".", "/") / "__init__.py").is_file() for name in listed)


def test_no_python_file_is_too_long(root: Path) -> None:
    lengths = {path: len(path.read_bytes().splitlines()) for path in tracked(root) if path.suffix == ".py"}
    assert len(lengths) > 20
    assert {str(p.relative_to(root)): n for p, n in lengths.items() if n > MAX_LINES} == {}


def test_no_path_of_a_machine_is_in_a_tracked_file(root: Path) -> None:
    found = []
    for path in tracked(root):
        name = path.relative_to(root).as_posix()
        if path.suffix not in TEXT or name == "tests/test_imports.py":
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
            where = f"{name}:{number}:{line}"
            if MACHINE_PATH.search(line) and not HOSTILE.search(where):
                found.append(where)
    assert found == []
