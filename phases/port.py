"""The port on disk: what a person and the phases read of it, and how a phase writes it.

Reading (no lock; every byte is checked against the last commit)::

    port = open_port(Path("digits.port"))        # UpstreamError where it is tampered or interrupted
    manifest_bytes = port.read("manifest.json")
    port.info.device, port.info.model.locate(port.root)

Writing, as phase 1 does it::

    with writing(out):                           # lock (LockedError), heal, and Ctrl-C held back while committing
        person = read_person(out)                # port.toml, waivers.toml as bytes: parse these, not the files
        ...                                      # work; a refusal leaves nothing behind
        files = {"port.json": info.to_bytes(), "manifest.json": ..., "tensors.npz": ..., "data/canary.npz": ...}
        report = runner.judge("baseline", evidence, out, files=files, person=person, waivers=..., today=...)
        files["gates/baseline.json"] = report_to_json(report)
        files |= reports                         # "reports/report.html": b"..."
        write_phase(out, "baseline", files, person)

`write_phase` changes all files at one commit point (see `phases.journal`). A file that the phase wrote last time
and does not write now is removed; files of other phases stay; files that the port does not list are never touched.
"""

import os
import secrets
import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Final

from manifest.errors import Problem, RefusedError, UpstreamError
from manifest.io import sha256_hex
from phases import journal
from phases.disk import DISK, Disk
from phases.integrity import require_sound
from phases.lock import held_here, port_lock
from phases.record import PortInfo
from phases.state import (
    JOURNAL,
    KERNELS,
    PORT_TOML,
    STATE,
    WAIVERS_TOML,
    State,
    UnsafePathError,
    check_name,
    is_person,
    read_small,
    sha256_of,
)

MAX_PERSON_FILE_BYTES: Final = 1 << 20
MAX_PERSON_FILES: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Port:
    """A port whose files were all as committed when it was opened.

    Attributes:
        root: its folder.
        state: names and hashes of its files.
        info: what phase 1 was given.
    """

    root: Path
    state: State
    info: PortInfo

    def read(self, name: str) -> bytes:
        """The content of a file, checked once more against the last commit.

        Raises:
            UpstreamError: it changed, or the port does not list it.
        """
        expected = self.state.files.get(name)
        if expected is None:
            msg = f"{name}: missing: not among the files of the port"
            raise UpstreamError(msg)
        try:
            data = (self.root / name).read_bytes()
        except OSError as error:
            msg = f"{name}: tampered: cannot be read ({error.strerror})"
            raise UpstreamError(msg) from error
        if sha256_hex(data) != expected:
            msg = f"{name}: tampered: changed since the last run"
            raise UpstreamError(msg)
        return data


def open_port(root: Path) -> Port:
    """Open a port for reading; STALE is allowed, gates are not looked at.

    Raises:
        RefusedError: `root` is no port.
        UpstreamError: it is tampered or interrupted; one line per file.
        LockedError: another run is changing it right now.
    """
    state, info = require_sound(root)
    return Port(root=root, state=state, info=info)


def read_person(root: Path, names: tuple[str, ...] = (PORT_TOML, WAIVERS_TOML)) -> dict[str, bytes]:
    """The person's own files as they are now; absent ones are left out.

    Args:
        root: the port.
        names: files, and folders (`kernels/`) that are read with everything in them.

    Raises:
        RefusedError: one is a link, no regular file, unreadable, above 1 MiB, or has a name that a port cannot list;
            a folder holds too many.
    """
    found: dict[str, bytes] = {}
    problems = []
    for name in names:
        for one in _inside(root, name) if name.endswith("/") else (name,):
            try:
                data = _person_file(root, one)
            except (UnsafePathError, ValueError, OSError) as error:
                problems.append(Problem(code="PORT-PERSON-FILE", where=str(root / one), what=str(error)))
                continue
            if data is not None and len(data) > MAX_PERSON_FILE_BYTES:
                limit = f"at most {MAX_PERSON_FILE_BYTES} bytes"
                where = str(root / one)
                problems.append(Problem(code="PORT-PERSON-FILE", where=where, what="too large", expected=limit))
            elif data is not None:
                found[one] = data
    if len(found) > MAX_PERSON_FILES:
        limit, got = f"at most {MAX_PERSON_FILES}", str(len(found))
        what = "too many files"
        problems.append(Problem(code="PORT-PERSON-FILE", where=str(root), what=what, expected=limit, got=got))
    if problems:
        raise RefusedError(tuple(problems))
    return found


def _person_file(root: Path, name: str) -> bytes | None:
    """The content of a file, one byte more than is allowed at most; None where there is none."""
    check_name(name)
    if sha256_of(root, name) is None:
        return None
    if f"{name}/" == KERNELS:
        msg = f"{name} is no folder"
        raise UnsafePathError(msg)
    with (root / name).open("rb") as file:
        return file.read(MAX_PERSON_FILE_BYTES + 1)


def _inside(root: Path, folder: str) -> list[str]:
    """Names of everything in a folder of the port that is no folder itself; a link is a name, never followed."""
    found: list[str] = []
    if (root / folder.rstrip("/")).is_symlink() or (root / folder).is_file():
        return [folder.rstrip("/")]
    for place, folders, files in os.walk(root / folder):
        links = [name for name in folders if (Path(place) / name).is_symlink()]
        found += [(Path(place) / name).relative_to(root).as_posix() for name in (*files, *links)]
        if len(found) > MAX_PERSON_FILES:
            break
    return sorted(found)


@contextmanager
def writing(root: Path) -> Iterator[str]:
    """Hold a port for a run of a phase and heal what a dead run left; yields what was healed, in words, or "".

    Raises:
        LockedError: another run holds it.
        RefusedError: `root` is something else than a port, or a folder with more than the person's own files.
        UpstreamError: `state.json`, or what a dead run left, was tampered with.
    """
    with port_lock(root):
        _require_ours(root)
        healed = journal.heal(root) if root.exists() else ""
        _state_of(root)
        yield healed


def write_phase(
    root: Path, phase: str, files: Mapping[str, bytes], person: Mapping[str, bytes], *, disk: Disk = DISK
) -> None:
    """Commit the files of a phase as one; the caller is inside `writing`.

    Args:
        root: the port.
        phase: whose files they are.
        files: name -> content of everything that the phase has to say, its gate and reports included.
        person: the person's own files as the phase read them; their hashes are recorded, nothing is written.
        disk: the file system.

    Raises:
        RefusedError: a file that is not ours stands where one has to go, or the disk refused; nothing changed.
        UpstreamError: `state.json` was tampered with.
    """
    if not held_here(root):
        msg = f"{root}: write_phase outside writing()"
        raise RuntimeError(msg)
    for name in files:
        if is_person(check_name(name)):
            msg = f"{name} is the person's own"
            raise ValueError(msg)
    before = _state_of(root)
    after = _next_state(before, phase, files, person)
    gone = [n for n in before.owners.get(phase, ()) if n not in after.files and not is_person(n)]
    writes: dict[str, bytes | None] = {**dict.fromkeys(gone), **files, STATE: after.to_bytes()}
    _refuse_foreign(root, before, files)
    with _ctrl_c_after():
        try:
            journal.commit(root, writes, disk=disk)
        except (UnsafePathError, OSError) as error:
            what = f"cannot be written ({getattr(error, 'strerror', None) or error})"
            raise RefusedError((Problem(code="PORT-WRITE", where=str(root), what=what),)) from error


def _next_state(before: State, phase: str, files: Mapping[str, bytes], person: Mapping[str, bytes]) -> State:
    """The state after a commit: what the phase said now instead of what it said before."""
    mine = set(before.owners.get(phase, ()))
    others = {n for p, names in before.owners.items() if p != phase for n in names}
    kept = {n: h for n, h in before.files.items() if n not in mine or n in others}
    now = {name: sha256_hex(data) for name, data in {**files, **person}.items()}
    owners = {p: tuple(n for n in names if n not in files) for p, names in before.owners.items() if p != phase}
    return State(files={**kept, **now}, owners={**owners, phase: tuple(now)})


def _state_of(root: Path) -> State:
    path = root / STATE
    data = read_small(path)
    if data is None and (path.exists() or path.is_symlink()):
        msg = f"{STATE}: tampered: no regular file, or it cannot be read"
        raise UpstreamError(msg)
    return State() if data is None else State.from_bytes(data)


def _require_ours(root: Path) -> None:
    """Refuse a folder that holds something else; the person's own files may be there before the first run."""
    if not root.exists() and not root.is_symlink():
        return
    remedy = "choose another folder with --out"
    if not root.is_dir():
        raise RefusedError((Problem(code="PORT-OUT-TAKEN", where=str(root), what="not a folder", remedy=remedy),))
    names = sorted(path.name for path in root.iterdir())
    if STATE in names or JOURNAL in names:
        return
    alien = [n for n in names if n not in (PORT_TOML, WAIVERS_TOML, "kernels") and not journal.is_leftover(n)]
    if alien:
        what = "the folder is not empty and not a port, so it is left untouched"
        got = ", ".join(repr(n) for n in alien[:3]) + (f" and {len(alien) - 3} more" if len(alien) > 3 else "")
        raise RefusedError((Problem(code="PORT-OUT-TAKEN", where=str(root), what=what, got=got, remedy=remedy),))


def _refuse_foreign(root: Path, before: State, files: Mapping[str, bytes]) -> None:
    """Never overwrite what the port does not list."""
    problems = []
    for name in sorted(set(files) - set(before.files)):
        try:
            taken = sha256_of(root, name) is not None
            why = "a file that this tool did not write stands where it would write"
        except UnsafePathError as error:
            taken, why = True, str(error)
        if taken:
            remedy = "move it away and run again"
            problems.append(Problem(code="PORT-FILE-TAKEN", where=str(root / name), what=why, remedy=remedy))
    if problems:
        raise RefusedError(tuple(problems))


@contextmanager
def _ctrl_c_after() -> Iterator[None]:
    """Hold Ctrl-C back until the commit is through, so that it leaves the port before or after it, not within."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    pressed: list[int] = []

    def remember(number: int, _frame: FrameType | None) -> None:
        pressed.append(number)

    previous = signal.signal(signal.SIGINT, remember)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)
    if pressed:
        raise KeyboardInterrupt


def write_person(root: Path, name: str, data: bytes, *, disk: Disk = DISK) -> None:
    """Replace one of the person's own files at their request, as a whole; the caller is inside `writing`.

    Raises:
        RefusedError: the disk refused, or a link stands there.
    """
    if not held_here(root) or not is_person(name):
        msg = f"{name}: write_person outside writing(), or not a person's file"
        raise RuntimeError(msg)
    try:
        sha256_of(root, name)
        beside = root / f".{name}.{secrets.token_hex(8)}.new"
        disk.write(beside, data)
        disk.replace(beside, root / name)
        disk.sync(root)
    except (UnsafePathError, OSError) as error:
        what = f"cannot be written ({getattr(error, 'strerror', None) or error})"
        raise RefusedError((Problem(code="PORT-WRITE", where=str(root / name), what=what),)) from error
