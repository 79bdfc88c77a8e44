"""A module of this project in a process of its own, for code that is not ours: clean environment, own folder, an end.

The child sets its own bounds on memory, files and processor time; this keeps accidents small and is no protection
against a hostile file.
"""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
OUTPUT: Final = "output.txt"
WORK: Final = "work"


def run_module(
    module: str, arguments: Sequence[str], folder: Path, *, timeout_s: float, path: Sequence[Path] = ()
) -> bool:
    """Run a module; what it prints goes to `output.txt` in the folder.

    Args:
        module: dotted name.
        arguments: of its command line.
        folder: holds an empty folder `work`, the child's own.
        timeout_s: seconds that it may take.
        path: folders in front of this project on PYTHONPATH.

    Returns:
        False where it had to be ended.
    """
    environment = {
        "PATH": os.defpath,
        "HOME": str(folder / WORK),
        "LANG": "C.UTF-8",
        "PYTHONPATH": os.pathsep.join(map(str, (*path, ROOT))),
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONSAFEPATH": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
    }
    with (folder / OUTPUT).open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-s", "-m", module, *arguments],
            cwd=folder / WORK,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return False
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    return True
