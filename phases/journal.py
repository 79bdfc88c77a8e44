"""The commit point of a port: many files change as one, whatever instant the process or the power dies.

Steps of `commit`, in this order:

1. `journal.json` names every file to change with its old and new sha256 (renamed into place, synced);
2. each new content goes to `.<name>.<token>.new` in its own folder; files and folders are synced;
3. renames and removals, folders synced, `state.json` last;
4. `journal.json` is removed.

A reader that finds a journal looks at the disk: every file ready or done = the commit can be finished; none begun =
it can be rolled back; anything else was not us. `heal` does the first or the second. Until step 4 ends, a reader
says INTERRUPTED; before step 1 ends and after step 4 it says OK.

Why the journal comes before the new contents: leftovers of a dead run are then known by name, and never taken for
files of a person.
"""

import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path, PurePosixPath
from typing import Any, Final

from manifest.errors import UpstreamError
from manifest.io import sha256_hex
from phases.disk import DISK, Disk
from phases.state import JOURNAL, STATE, UnsafePathError, check_name, read_small, seal, sha256_of, unseal, walk_to

JOURNAL_SCHEMA_VERSION: Final = 1
TOKEN_BYTES: Final = 8


class Step(Enum):
    """How far the change of one file has come."""

    WAITING = "old content, no complete new one beside it"
    READY = "old content, complete new one beside it"
    DONE = "new content"
    FOREIGN = "neither the old nor the new content"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One file: sha256 before and after; None = absent. They differ."""

    old: str | None
    new: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Journal:
    """A pending commit.

    Attributes:
        token: part of the names of the new files.
        changes: name -> change, `state.json` among them.
        folders: folders that the commit makes, parents first; `.` = the port itself.
    """

    token: str
    changes: Mapping[str, Change]
    folders: tuple[str, ...]

    def to_bytes(self) -> bytes:
        """The bytes of `journal.json`."""
        changes = {name: [c.old, c.new] for name, c in self.changes.items()}
        value = {"schema_version": JOURNAL_SCHEMA_VERSION, "token": self.token, "changes": changes}
        return seal({**value, "folders": list(self.folders)})

    @classmethod
    def from_bytes(cls, data: bytes) -> "Journal":
        """Read `journal.json`.

        Raises:
            UpstreamError: a byte was changed, or it is not a journal of this version.
        """
        value = unseal(data, JOURNAL)
        try:
            return cls._from_value(value)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            msg = f"{JOURNAL}: tampered: {error}"
            raise UpstreamError(msg) from error

    @classmethod
    def _from_value(cls, value: Mapping[str, Any]) -> "Journal":
        if value["schema_version"] != JOURNAL_SCHEMA_VERSION:
            msg = f"schema_version: expected {JOURNAL_SCHEMA_VERSION}, got {value['schema_version']!r}"
            raise ValueError(msg)
        if len(value["token"]) != 2 * TOKEN_BYTES or set(value["token"]) - set("0123456789abcdef"):
            msg = f"token: got {value['token']!r}"
            raise ValueError(msg)
        changes = {}
        for name, (old, new) in value["changes"].items():
            changes[name if name == STATE else check_name(name)] = Change(old=old, new=new)
        folders = tuple(f if f == "." else check_name(f) for f in value["folders"])
        return cls(token=value["token"], changes=changes, folders=folders)

    def beside(self, name: str) -> str:
        """Name of the new content of a file, in its folder."""
        path = PurePosixPath(name)
        return str(path.with_name(f".{path.name}.{self.token}.new"))


def is_leftover(name: str) -> bool:
    """Whether a name in the port is that of a journal which was never put in place."""
    return name.startswith(f".{JOURNAL}.") and name.endswith(".new")


def read_journal(root: Path) -> Journal | None:
    """The pending commit of a port, None where there is none.

    Raises:
        UpstreamError: the journal was tampered with.
    """
    path = root / JOURNAL
    data = read_small(path)
    if data is None:
        if path.exists() or path.is_symlink():
            msg = f"{JOURNAL}: tampered: no regular file, or it cannot be read"
            raise UpstreamError(msg)
        return None
    return Journal.from_bytes(data)


def steps(root: Path, journal: Journal) -> dict[str, Step]:
    """How far each file of a pending commit has come."""
    return {name: _step(root, journal, name, change) for name, change in journal.changes.items()}


def _step(root: Path, journal: Journal, name: str, change: Change) -> Step:
    try:
        current = sha256_of(root, name)
        if current == change.new:
            return Step.DONE
        if current != change.old:
            return Step.FOREIGN
        ready = change.new is None or sha256_of(root, journal.beside(name)) == change.new
    except UnsafePathError:
        return Step.FOREIGN
    return Step.READY if ready else Step.WAITING


def foreign(found: Mapping[str, Step]) -> tuple[str, ...]:
    """Files of a pending commit that neither it nor the commit before left like this; empty = can be healed."""
    bad = [name for name, step in found.items() if step is Step.FOREIGN]
    if not bad and Step.WAITING in found.values() and Step.DONE in found.values():
        bad = [name for name, step in found.items() if step is Step.WAITING]
    return tuple(sorted(bad))


def commit(root: Path, writes: Mapping[str, bytes | None], *, disk: Disk = DISK) -> None:
    """Change all files of `writes` as one; the caller holds the lock and has healed the port.

    Args:
        root: the port; made if it is not there (its parent is).
        writes: name -> new content, None = remove; has to hold `state.json`.
        disk: the file system.

    Raises:
        UnsafePathError: a link or a folder stands where a file has to go.
        OSError: the disk refused (full, read-only); the port is as it was.
    """
    changes = {}
    for name, data in writes.items():
        old, new = sha256_of(root, name), None if data is None else sha256_hex(data)
        if old != new:
            changes[name] = Change(old=old, new=new)
    if not changes:
        return
    folders = tuple(_missing_folders(root, changes))
    journal = Journal(token=secrets.token_hex(TOKEN_BYTES), changes=changes, folders=folders)
    try:
        _prepare(root, journal, writes, disk)
    except OSError:
        _roll_back(root, journal, disk)
        raise
    _finish(root, journal, disk)


def heal(root: Path, *, disk: Disk = DISK) -> str:
    """Finish or roll back a pending commit; the caller holds the lock.

    Returns:
        What was done, in words; "" where nothing was pending.

    Raises:
        UpstreamError: the journal, or a file that it names, was changed by someone else.
    """
    journal = read_journal(root)
    if journal is None:
        for path in sorted(root.iterdir()):
            if is_leftover(path.name):
                disk.unlink(path)
        return ""
    found = steps(root, journal)
    if bad := foreign(found):
        msg = f"{', '.join(bad)}: tampered: neither as before nor as after the interrupted run"
        raise UpstreamError(msg)
    if Step.WAITING in found.values():
        _roll_back(root, journal, disk)
        return "an interrupted run was rolled back"
    _finish(root, journal, disk)
    return "an interrupted run was finished"


def _prepare(root: Path, journal: Journal, writes: Mapping[str, bytes | None], disk: Disk) -> None:
    """Steps 1 and 2."""
    if "." in journal.folders:
        disk.mkdir(root)
        disk.sync(root.parent)
    pending = root / journal.beside(JOURNAL)
    disk.write(pending, journal.to_bytes())
    disk.replace(pending, root / JOURNAL)
    disk.sync(root)
    for folder in journal.folders:
        if folder != ".":
            disk.mkdir(root / folder)
            disk.sync((root / folder).parent)
    for name in journal.changes:
        data = writes[name]
        if data is not None:
            disk.write(walk_to(root, journal.beside(name)), data)
    for folder_path in _touched(root, journal):
        disk.sync(folder_path)


def _finish(root: Path, journal: Journal, disk: Disk) -> None:
    """Steps 3 and 4, from wherever a dead run left them."""
    names = sorted(journal.changes, key=lambda name: (name == STATE, name))
    for name in names:
        if name == STATE:
            for folder in _touched(root, journal):
                disk.sync(folder)
        target = walk_to(root, name)
        if journal.changes[name].new is None:
            disk.unlink(target)
        elif (beside := root / journal.beside(name)).exists():
            disk.replace(beside, target)
    disk.sync(root)
    disk.unlink(root / JOURNAL)
    disk.sync(root)


def _roll_back(root: Path, journal: Journal, disk: Disk) -> None:
    """Remove what step 2 wrote, then the journal, then a port that this commit had made."""
    for name in journal.changes:
        disk.unlink(root / journal.beside(name))
    for folder in reversed(journal.folders):
        if folder != ".":
            disk.rmdir(root / folder)
    disk.unlink(root / journal.beside(JOURNAL))
    for folder_path in _touched(root, journal):
        disk.sync(folder_path)
    disk.unlink(root / JOURNAL)
    disk.sync(root)
    if "." in journal.folders:
        disk.rmdir(root)


def _touched(root: Path, journal: Journal) -> list[Path]:
    """Folders whose names the commit changes, the port itself last."""
    inner = {(root / name).parent for name in journal.changes} - {root}
    return [*sorted(inner), root]


def _missing_folders(root: Path, changes: Mapping[str, Change]) -> Iterator[str]:
    """Folders that the commit has to make, parents first."""
    if not root.exists():
        yield "."
    wanted = {parent for name, c in changes.items() if c.new is not None for parent in PurePosixPath(name).parents}
    for folder in sorted(str(p) for p in wanted if str(p) != "."):
        if not (root / folder).exists():
            yield folder
