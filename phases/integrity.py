"""Is a port as its last commit left it? Reads only, takes no lock, follows no link.

Verdicts, strongest first: TAMPERED (a file of ours changed, by name), INTERRUPTED (a pending commit; a rerun
heals), STALE (the person's own files, the model or the data changed; a rerun takes them in), OK. Files that
`state.json` does not list are named, not judged.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from manifest.errors import PortError, Problem, RefusedError, UpstreamError
from manifest.io import is_canonical
from phases.journal import Journal, foreign, is_leftover, read_journal, steps
from phases.lock import busy_error, held_here, is_busy
from phases.pipeline import PHASES
from phases.record import PORT_JSON, PortInfo
from phases.state import JOURNAL, STATE, State, UnsafePathError, is_person, read_small, sha256_file, sha256_of

ATTEMPTS: Final = 3
UNKNOWN_SHOWN: Final = 20
FOREIGN: Final = "tampered: neither as before nor as after the interrupted run"
OWN_NAMES: Final = (STATE, JOURNAL, PORT_JSON, "tensors.npz", "gates")
"""A folder with any of these was a port."""
CANONICAL: Final = ("gates/", PORT_JSON, "manifest.json", "design.json", "options/", "optimized/", "evidence/")


class Condition(StrEnum):
    """What a reader says of a port."""

    OK = "OK"
    STALE = "STALE"
    INTERRUPTED = "INTERRUPTED"
    TAMPERED = "TAMPERED"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One file and what is wrong with it, in words."""

    name: str
    reason: str

    def line(self) -> str:
        """The fault on one line, hostile names escaped."""
        text = f"{self.name}: {self.reason}"
        return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Integrity:
    """What a look at all files of a port gave.

    Attributes:
        state: the last commit; None where `state.json` is absent or not to be believed.
        info: `port.json`; None likewise.
        tampered: files of ours that changed.
        stale: files of the person, model or data that changed.
        interrupted: what is pending, "" where nothing is.
        unknown: files that the port does not list.
        unverified: model or data that is no longer there; verdicts are kept.
    """

    state: State | None
    info: PortInfo | None
    tampered: tuple[Fault, ...] = ()
    stale: tuple[Fault, ...] = ()
    interrupted: str = ""
    unknown: tuple[str, ...] = ()
    unverified: tuple[Fault, ...] = ()

    @property
    def condition(self) -> Condition:
        """The strongest verdict that holds."""
        if self.tampered:
            return Condition.TAMPERED
        if self.interrupted:
            return Condition.INTERRUPTED
        return Condition.STALE if self.stale else Condition.OK

    @property
    def faults(self) -> tuple[Fault, ...]:
        """Everything that keeps the port from being used, strongest first."""
        pending = (Fault(name=JOURNAL, reason=f"interrupted: {self.interrupted}"),) if self.interrupted else ()
        return (*self.tampered, *pending, *self.stale)

    def unknown_lines(self) -> list[str]:
        """The files that the port does not list, one line each, the first of very many."""
        lines = [
            Fault(name=n, reason="not a file of the port, not judged").line() for n in self.unknown[:UNKNOWN_SHOWN]
        ]
        more = len(self.unknown) - UNKNOWN_SHOWN
        return [*lines, f"and {more} more files that the port does not list"] if more > 0 else lines


def is_port(root: Path) -> bool:
    """Whether a folder is a port, whole or not: it has a state or a pending commit."""
    return any((root / name).is_symlink() or (root / name).exists() for name in (STATE, JOURNAL))


def inspect(root: Path) -> Integrity:
    """Look at every file of a port.

    Raises:
        RefusedError: `root` is no port.
        LockedError: another run is changing it right now.
    """
    require_port(root)
    for _ in range(ATTEMPTS):
        before = _fingerprint(root)
        found = _inspect(root)
        is_ours_and_empty = before == (None, None) and held_here(root)
        is_changing = bool(found.interrupted) and not is_ours_and_empty and is_busy(root)
        if _fingerprint(root) == before and not is_changing:
            return found
    raise busy_error(root)


def require_sound(root: Path) -> tuple[State, PortInfo]:
    """The state and record of a port whose files are all as committed; STALE is allowed.

    Raises:
        RefusedError: `root` is no port.
        UpstreamError: it is tampered or interrupted; one line per file.
        LockedError: another run is changing it right now.
    """
    found = inspect(root)
    if found.tampered or found.interrupted or found.state is None or found.info is None:
        lines = [f.line() for f in found.faults if f not in found.stale]
        raise UpstreamError("\n".join(lines or [f"{root}: nothing was committed yet"]))
    return found.state, found.info


def require_port(root: Path) -> None:
    """Refuse a path where no port is.

    Raises:
        RefusedError: says what is there.
    """
    if is_port(root):
        return
    remedy = "give the folder that `python -m phases.baseline MODEL` wrote"
    if not root.is_dir():
        what = "no such folder" if not root.exists() else "not a folder"
        raise RefusedError((Problem(code="PORT-ABSENT", where=str(root), what=what, remedy=remedy),))
    names = sorted(path.name for path in root.iterdir())
    if names and not any(name in OWN_NAMES or is_leftover(name) for name in names):
        raise RefusedError((Problem(code="PORT-NOT-A-PORT", where=str(root), what="not a port", remedy=remedy),))


def _fingerprint(root: Path) -> tuple[bytes | None, bytes | None]:
    return read_small(root / STATE), read_small(root / JOURNAL)


def _inspect(root: Path) -> Integrity:
    tampered: list[Fault] = list(_leaving_links(root))
    pending: Journal | None = None
    try:
        pending = read_journal(root)
    except PortError as error:
        tampered.append(_told(JOURNAL, error))
    found = steps(root, pending) if pending is not None else {}
    tampered += [Fault(name=n, reason=FOREIGN) for n in foreign(found)]
    state, fault = _state(root, pending)
    tampered += fault
    listed = dict(state.files) if state is not None else {}
    changed = [f for f in _changed(root, listed) if f.name not in found]
    tampered += [f for f in changed if not is_person(f.name)]
    info, info_fault = _info(root, listed, skip=PORT_JSON in found or any(f.name == PORT_JSON for f in tampered))
    tampered += info_fault
    sources = list(_sources(root, info))
    known = {STATE, JOURNAL, *listed, *found, *(pending.beside(n) for n in found if pending is not None)}
    unknown = [name for name in _names(root) if name not in known]
    fresh = [n for n in unknown if _is_new_input(n, listed)]
    return Integrity(
        state=state,
        info=info,
        tampered=_unique(tampered),
        stale=(
            *(f for f in changed if is_person(f.name)),
            *(Fault(name=n, reason="stale: new since the last run") for n in fresh),
            *(fault for is_stale, fault in sources if is_stale),
        ),
        interrupted=_pending_words(root, pending),
        unknown=tuple(n for n in unknown if n not in fresh),
        unverified=tuple(fault for is_stale, fault in sources if not is_stale),
    )


def _pending_words(root: Path, pending: Journal | None) -> str:
    if pending is not None:
        return "a run died while it wrote; run the phase again to heal"
    leftover = not is_port(root) and not any((root / n).exists() for n in OWN_NAMES)
    return "nothing was committed yet; run `python -m phases.baseline`" if leftover else ""


def _state(root: Path, pending: Journal | None) -> tuple[State | None, list[Fault]]:
    """The state of the last commit; a state that is missing or changed is a fault."""
    path = root / STATE
    data = read_small(path)
    if data is None:
        first = pending is not None and STATE in pending.changes and pending.changes[STATE].old is None
        if first or (pending is None and not any((root / n).exists() for n in OWN_NAMES)):
            return None, []
        reason = "tampered: it is a symbolic link" if path.is_symlink() else "tampered: missing or unreadable"
        return None, [Fault(name=STATE, reason=reason)]
    try:
        return State.from_bytes(data), []
    except PortError as error:
        return None, [_told(STATE, error)]


def _changed(root: Path, listed: Mapping[str, str]) -> Iterator[Fault]:
    """Listed files that are not as committed, and JSON of ours that is not its own canonical form."""
    for name, expected in sorted(listed.items()):
        word = "stale" if is_person(name) else "tampered"
        try:
            got = sha256_of(root, name)
        except UnsafePathError as error:
            yield Fault(name=name, reason=f"tampered: {error}")
            continue
        if got is None:
            yield Fault(name=name, reason=f"{word}: missing")
        elif got != expected:
            hashes = f"sha256 {got[:12]}, was {expected[:12]}"
            yield Fault(name=name, reason=f"{word}: changed since the last run ({hashes})")
        elif name.endswith(".json") and name.startswith(CANONICAL) and not is_canonical((root / name).read_bytes()):
            yield Fault(name=name, reason="tampered: not its own canonical form")


def _info(root: Path, listed: Mapping[str, str], *, skip: bool) -> tuple[PortInfo | None, list[Fault]]:
    if skip or PORT_JSON not in listed:
        missing = listed and not skip
        return None, [Fault(name=PORT_JSON, reason="tampered: not among the files of the port")] if missing else []
    try:
        return PortInfo.from_bytes((root / PORT_JSON).read_bytes()), []
    except PortError as error:
        return None, [_told(PORT_JSON, error)]


def _sources(root: Path, info: PortInfo | None) -> Iterator[tuple[bool, Fault]]:
    """Model and data: (True, fault) where changed, (False, fault) where absent."""
    for role, source in info.sources if info is not None else ():
        try:
            path = Path(os.path.realpath(source.locate(root)))
            got = sha256_file(path) if path.is_file() else None
        except OSError:
            got = None
        if got is None:
            yield False, Fault(name=source.path, reason=f"{role}: not there, not re-verified; verdicts are kept")
            continue
        if got != source.sha256:
            reason = f"stale: {role} changed since the last run (sha256 {got[:12]}, was {source.sha256[:12]})"
            yield True, Fault(name=source.path, reason=reason)


def _is_new_input(name: str, listed: Mapping[str, str]) -> bool:
    """Whether a phase whose gate is there would have read this file, had it been there."""
    readers = [phase for phase in PHASES if phase.gate in listed]
    return any(name == read or (read.endswith("/") and name.startswith(read)) for p in readers for read in p.reads)


def _names(root: Path) -> Iterator[str]:
    """Every file of the folder, links as themselves, in a stable order."""
    for folder, inner, files in os.walk(root, followlinks=False):
        inner.sort()
        links = [n for n in inner if (Path(folder) / n).is_symlink()]
        for name in sorted([*files, *links]):
            yield (Path(folder) / name).relative_to(root).as_posix()


def _leaving_links(root: Path) -> Iterator[Fault]:
    """Symbolic links that lead out of the port, or nowhere, or in a circle."""
    inside = root.resolve()
    for name in _names(root):
        path = root / name
        if not path.is_symlink():
            continue
        try:
            target = path.resolve(strict=True)
        except (OSError, RuntimeError):
            yield Fault(name=name, reason="tampered: a symbolic link that leads nowhere")
            continue
        if not target.is_relative_to(inside):
            yield Fault(name=name, reason=f"tampered: a symbolic link that leaves the port ({target})")


def _told(name: str, error: PortError) -> Fault:
    text = str(error)
    return Fault(name=name, reason=text.removeprefix(f"{name}: ").removeprefix("[JSON-CANONICAL] "))


def _unique(faults: list[Fault]) -> tuple[Fault, ...]:
    """One fault per file, the first one told."""
    return tuple({fault.name: fault for fault in reversed(faults)}.values())[::-1]
