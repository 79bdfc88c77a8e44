"""The process that runs a design file: `python -m presim.iron.child FOLDER DEVICE DESIGN [ARGUMENT ...]`.

It runs the person's code. The package `aie` that the file imports is the stand-in, which this process alone has on
its path. What comes of it is written to FOLDER: the lowered design, or `error.json`.
"""

import contextlib
import json
import resource
import runpy
import sys
import traceback
from pathlib import Path
from typing import Final

from presim.iron.device import CHOICES, CLASSES, set_current_device
from presim.iron.errors import VERSION, StandInError
from presim.iron.jit import DesignKnownError
from presim.iron.lower import lower
from presim.iron.lowered import write_lowered
from presim.iron.program import RESOLVED

MEMORY_BYTES: Final = 4 << 30
FILE_BYTES: Final = 256 << 20
ERROR: Final = "error.json"
DEPTH: Final = 4000


def main(arguments: list[str]) -> int:
    """Run the file, write what came of it; returns 0 where there is a design."""
    folder, device, design, *rest = arguments
    limit()
    set_current_device(CLASSES[CHOICES[device]]())
    problem = run(Path(design), rest)
    if problem is None and not RESOLVED:
        problem = _problem(Path(design).name, "it ends without a resolved Program (Program.resolve_program())")
    if problem is None:
        try:
            write_lowered(lower(RESOLVED[0]), Path(folder))
        except StandInError as error:
            problem = _problem(Path(design).name, str(error))
    if problem is not None:
        (Path(folder) / ERROR).write_text(json.dumps(problem), encoding="utf-8")
    return 0 if problem is None else 1


def limit() -> None:
    """Bound memory and files of this process, no core file; time is the parent's."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_BYTES, FILE_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sys.setrecursionlimit(DEPTH)


def run(design: Path, arguments: list[str]) -> dict[str, str] | None:
    """Run the file as a script; what went wrong, None where a design came of it."""
    sys.argv = [design.name, *arguments]
    sys.path.insert(0, str(design.parent))
    try:
        runpy.run_path(str(design), run_name="__main__")
    except DesignKnownError:
        return None
    except StandInError as error:
        return _problem(error.site or design.name, str(error))
    except SystemExit as error:
        good = bool(RESOLVED) or error.code in {None, 0}
        text = f"it ends with exit code {error.code} before a Program is resolved"
        return None if good else _problem(design.name, text)
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 (the person's code raises what it likes)
        with contextlib.suppress(OSError):  # what it printed may be at its bound
            traceback.print_exc()
        return None if RESOLVED else _problem(_site(error, design), _text(error))
    return None


def _text(error: BaseException) -> str:
    if isinstance(error, ModuleNotFoundError) and (error.name or "").split(".")[0] == "aie":
        return f"there is no module {error.name!r} in {VERSION} as far as the stand-in knows"
    return f"{type(error).__name__}: {error}".splitlines()[0]


def _site(error: BaseException, design: Path) -> str:
    """Line of the design file in which an error came up."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [f.lineno for f in frames if Path(f.filename).name == design.name]
    return f"{design.name}:{lines[-1]}" if lines else design.name


def _problem(where: str, what: str) -> dict[str, str]:
    return {"where": where, "what": what}


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
