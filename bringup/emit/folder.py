"""Writing the generated folder: fresh, whole or not at all."""

import os
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path, PurePosixPath

from manifest.errors import Problem, RefusedError


def write(files: Mapping[str, bytes], folder: Path) -> None:
    """Write all files into a folder that is not there yet.

    They are written beside it and moved into place at once, so that no reader sees a part of them.

    Args:
        files: relative path -> content.
        folder: new, or empty.

    Raises:
        RefusedError: it exists with something in it, a path leaves it, or the disk refuses.
    """
    for name in files:
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or not path.parts:
            raise _refused(name, "a path that leaves the folder")
    if os.path.lexists(folder) and (folder.is_symlink() or not folder.is_dir() or any(folder.iterdir())):
        raise _refused(str(folder), "it is there already; generated files go into a fresh folder")
    beside = None
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        beside = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
        for name, data in sorted(files.items()):
            _write(beside / name, data)
        beside.chmod(0o755)
        with suppress(FileNotFoundError):
            folder.rmdir()
        beside.rename(folder)
    except OSError as error:
        raise _refused(str(folder), f"it cannot be written ({error.strerror or error})") from error
    finally:
        if beside is not None:
            shutil.rmtree(beside, ignore_errors=True)


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _refused(where: str, what: str) -> RefusedError:
    return RefusedError((Problem(code="EMIT-FOLDER", where=where, what=what),))
