"""Lower a design file in a process of its own.

This runs the person's code: what the file does, it does with the rights of whoever calls. The process has an empty
working directory, a clean environment, bounds on memory, time, files and output, and no need of a network; that keeps
accidents small, it is no protection against a hostile file. A file inside a port is refused: a port is data, nothing
in it is run.
"""

import json
import tempfile
import zipfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from manifest.errors import Problem, RefusedError
from presim.child_process import run_module
from presim.iron.child import ERROR
from presim.iron.device import CHOICES
from presim.iron.lowered import External, Lowered, read_lowered

__all__ = ["External", "Lowered", "design_path", "lower_file"]

STAND_IN: Final = Path(__file__).resolve().parent / "standin"
MARKS: Final = ("state.json", "port.json")
"""Files by which a port is known."""

DEFAULT_TIMEOUT_S: Final = 120.0
OUTPUT_BYTES: Final = 1 << 16
LINE: Final = 200
TEXT: Final = 1000


def lower_file(
    path: Path, *, argv: Sequence[str] = (), timeout_s: float = DEFAULT_TIMEOUT_S, device: str = "npu2"
) -> Lowered:
    """Run a design file against the stand-in and lower the first program that it resolves.

    Args:
        path: the file; no part of its path may be a port.
        argv: arguments that the file gets.
        timeout_s: seconds that it may take.
        device: what `iron.get_current_device()` gives.

    Raises:
        RefusedError: the file is absent, inside a port, too slow, or asks for what IRON 1.4 has not; file and line
            are named.
    """
    design = design_path(path)
    if device not in CHOICES:
        raise _refused(str(path), f"IRON 1.4 has no device for {device!r}", expected=", ".join(CHOICES))
    with tempfile.TemporaryDirectory(prefix="iron-") as name:
        folder = Path(name)
        for part in ("work", "result"):
            (folder / part).mkdir()
        words = [str(folder / "result"), device, str(design), *argv]
        ended = run_module("presim.iron.child", words, folder, timeout_s=timeout_s, path=(STAND_IN,))
        if not ended:
            raise _refused(str(path), f"still runs after {timeout_s:g} s", remedy="raise the time or shorten the file")
        try:
            return _result(folder, path)
        except (OSError, ValueError, TypeError, LookupError, AttributeError, RecursionError, zipfile.BadZipFile) as e:
            what = f"its process left a result that is not readable ({type(e).__name__}): the file wrote into it"
            raise _refused(str(path), what) from e


def _result(folder: Path, path: Path) -> Lowered:
    """What the child left. The file that it ran may have written there too, so nothing is taken for granted.

    Raises:
        RefusedError: the file is wrong, or there is no result.
    """
    text = _tail(folder / "output.txt")
    error = folder / "result" / ERROR
    if error.is_file():
        found = json.loads(error.read_text(encoding="utf-8"))
        raise _refused(str(found["where"])[:LINE], str(found["what"])[:TEXT])
    if not (folder / "result" / "lowered.json").is_file():
        last = (text.strip().splitlines() or ["it says nothing"])[-1][-LINE:]
        raise _refused(str(path), f"its process ended without a result: {last}")
    return replace(read_lowered(folder / "result", str(path)), output=text)


def design_path(path: Path) -> Path:
    """The file, refused where it is none or inside a port."""
    if not path.is_file():
        what = "is no file" if path.exists() else "there is no such file"
        raise _refused(str(path), what)
    found = path.resolve()
    for folder in {*path.absolute().parents, *found.parents}:
        mark = next((m for m in MARKS if (folder / m).is_file()), None)
        if mark is not None:
            what = f"lies inside a port ({folder} has {mark}), whose files are never run"
            raise _refused(str(path), what, remedy="copy it out and look at it first")
    return found


def _tail(path: Path) -> str:
    """The end of what the file printed."""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - OUTPUT_BYTES))
        return file.read().decode("utf-8", errors="replace")


def _refused(where: str, what: str, *, expected: str = "", remedy: str = "") -> RefusedError:
    return RefusedError((Problem(code="IRON-DESIGN", where=where, what=what, expected=expected, remedy=remedy),))
