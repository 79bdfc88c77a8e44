"""One run at a time on one port: `flock` on `.<name>.lock` beside the port, gone when the run ends.

Why beside the port: a refused run must leave no port, and the lock must not count among its files. Why `fcntl`
and no library: only who can compare the locked file with the one of that name may remove it without letting two
runs in. The kernel drops the lock of a killed run; its file is then taken over by the next one.
"""

import fcntl
import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from manifest.errors import LockedError, Problem, RefusedError

MAX_HOLDER_BYTES: Final = 4096
ATTEMPTS: Final = 3
"""A reader that asks whether a port is busy holds the lock for an instant; a run tries again past it."""
PAUSE_S: Final = 0.02
_held: dict[Path, int] = {}


def lock_path(port: Path) -> Path:
    """The lock file of a port; links on the way are followed first, so that one port has one lock.

    Raises:
        RefusedError: the root folder, which has no folder above it.
    """
    resolved = Path(os.path.realpath(port))  # `resolve` raises where links go in a circle
    if not resolved.name:
        what, remedy = "the root folder cannot be a port", "choose another folder with --out"
        raise RefusedError((Problem(code="PORT-OUT-TAKEN", where=str(port), what=what, remedy=remedy),))
    return resolved.with_name(f".{resolved.name}.lock")


def held_here(port: Path) -> bool:
    """Whether this process holds the lock of a port."""
    return lock_path(port) in _held


@contextmanager
def port_lock(port: Path) -> Iterator[None]:
    """Hold a port for writing.

    Missing folders above the port are made, and removed again if nothing was put into them.

    Raises:
        LockedError: another run holds it; says which process on which host.
        RefusedError: the folder cannot hold a lock (absent rights, read-only disk).
    """
    path = lock_path(port)
    if path in _held:
        raise LockedError(_busy(port, "this process"))
    try:
        made, descriptor = _acquire(port, path)
    except OSError as error:
        what = f"the folder cannot hold the port ({error.strerror})"
        remedy = "choose another place with --out"
        raise RefusedError((Problem(code="PORT-LOCK", where=str(path.parent), what=what, remedy=remedy),)) from error
    _held[path] = descriptor
    try:
        yield
    finally:
        del _held[path]
        with suppress(OSError):
            path.unlink()
        os.close(descriptor)
        for folder in made:
            with suppress(OSError):
                folder.rmdir()


def is_busy(port: Path) -> bool:
    """Whether some process, this one included, holds the port now."""
    path = lock_path(port)
    if path in _held:
        return True
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


def busy_error(port: Path) -> LockedError:
    """The error for a port that another run holds, with what is known of that run."""
    return LockedError(_busy(port, _holder(lock_path(port))))


def _acquire(port: Path, path: Path) -> tuple[list[Path], int]:
    """Open and lock the file of that name; again where a run that ended removed it in between."""
    made: list[Path] = []
    while True:
        _make_parents(path.parent, made)
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
        except FileNotFoundError:
            continue
        try:
            _lock(descriptor)
        except BlockingIOError as error:
            os.close(descriptor)
            raise busy_error(port) from error
        except OSError:
            os.close(descriptor)
            raise
        if _is_named(descriptor, path):
            holder = json.dumps({"pid": os.getpid(), "host": socket.gethostname()})
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, holder.encode(), 0)
            return made, descriptor
        os.close(descriptor)


def _lock(descriptor: int) -> None:
    """Lock an open file, or BlockingIOError after a few attempts."""
    for attempt in range(ATTEMPTS):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if attempt == ATTEMPTS - 1:
                raise
            time.sleep(PAUSE_S)
        else:
            return


def _make_parents(folder: Path, made: list[Path]) -> None:
    """Make the folders above the port, and remember which, deepest first."""
    missing = []
    while not folder.exists():
        missing.append(folder)
        folder = folder.parent
    for path in reversed(missing):
        with suppress(FileExistsError):
            path.mkdir()
            made.insert(0, path)


def _is_named(descriptor: int, path: Path) -> bool:
    """Whether the open file is still the one of that name."""
    try:
        named = path.lstat()
    except FileNotFoundError:
        return False
    return os.path.samestat(os.fstat(descriptor), named)


def _holder(path: Path) -> str:
    """Who holds the lock, as far as its file says."""
    try:
        with path.open("rb") as file:
            value = json.loads(file.read(MAX_HOLDER_BYTES))
        return f"process {int(value['pid'])} on {str(value['host'])[:100]!r}"
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"


def _busy(port: Path, holder: str) -> str:
    return f"[PORT-BUSY] {port}: another run holds the port; held by {holder}; remedy: wait until it has ended"
