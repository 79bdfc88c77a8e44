"""The few steps by which a commit changes the disk, each durable or undone as a whole.

Why a class: tests hand in one that stops after any single step, or forgets what was not synced, and look at
what a reader then sees.
"""

import os
from contextlib import suppress
from pathlib import Path


class Disk:
    """The real file system."""

    def mkdir(self, path: Path) -> None:
        """Make one folder."""
        path.mkdir()

    def write(self, path: Path, data: bytes) -> None:
        """Write a file under a new name and sync it; FileExistsError where the name is taken."""
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())

    def replace(self, source: Path, target: Path) -> None:
        """Put `source` in the place of `target`, atomically."""
        source.replace(target)

    def unlink(self, path: Path) -> None:
        """Remove a file; nothing happens where there is none."""
        path.unlink(missing_ok=True)

    def rmdir(self, path: Path) -> None:
        """Remove a folder if it is empty."""
        with suppress(OSError):
            path.rmdir()

    def sync(self, folder: Path) -> None:
        """Make the names in a folder durable."""
        with suppress(FileNotFoundError):
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)


DISK = Disk()
