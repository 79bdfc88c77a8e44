"""What phase 3 was asked to do: command line and the last run, resolved into one frozen value."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any, Final

from bringup.backends.options import BackendOptions
from checklists.model import Level, Waiver
from manifest.errors import Problem, RefusedError, UpstreamError
from manifest.io import canonical_json, parse_canonical
from phases.pipeline import item_codes, phase_named
from phases.port import Port, read_person
from phases.state import WAIVERS_TOML
from phases.waivers import parse_waivers

OPTIONS: Final = "options/bringup.json"
BUILD: Final = "generated/build"
"""Where the Makefile of the generated folder puts its results; nothing in it is a file of the port."""
SCHEMA_VERSION: Final = 1
BACKENDS: Final = ("host", "xrt", "replay")
LEVELS: Final[tuple[Level, ...]] = ("host", "hardware")
DEFAULTS: Final[Mapping[str, Any]] = {"backend": "host", "level": "hardware", "schedules": 3}


@dataclass(frozen=True, slots=True, kw_only=True)
class Arguments:
    """The command line as given; None = not given."""

    port: Path
    backend: str | None = None
    level: str | None = None
    schedules: int | None = None
    recordings: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BringupOptions:
    """One run of phase 3.

    Attributes:
        out: the port.
        backend: where the jobs run beside the host.
        level: what the gate is judged at.
        schedules: seeded schedules beside round-robin, on the host.
        recordings: folder of what a board recorded, for `replay`.
        waivers: content of `waivers.toml`.
        person: the person's own files as read.
        today: the day that waivers are judged by.
        notes: remarks for the person, one line each.
    """

    out: Path
    backend: str = "host"
    level: Level = "hardware"
    schedules: int = 3
    recordings: Path | None = None
    waivers: tuple[Waiver, ...] = ()
    person: Mapping[str, bytes] = field(default_factory=dict)
    today: date
    notes: tuple[str, ...] = ()

    @property
    def backend_options(self) -> BackendOptions:
        """What backends are told. What is executed is a fresh copy of the sources, what was built lies in the port."""
        build = self.out / BUILD
        return BackendOptions(schedules=self.schedules, build=build, dated=False, recordings=self.recordings)

    def to_bytes(self) -> bytes:
        """The content of `options/bringup.json`."""
        asked = {"backend": self.backend, "level": self.level, "schedules": self.schedules}
        return canonical_json({"schema_version": SCHEMA_VERSION, **asked})


def resolve(arguments: Arguments, port: Port, *, today: date | None = None) -> BringupOptions:
    """Resolve a command line; options that are not given are those of the last run.

    Raises:
        RefusedError: everything that is wrong with the options and `waivers.toml`.
        UpstreamError: `options/bringup.json` was tampered with.
    """
    day = today or date.today()
    last = last_options(port)
    given = {"backend": arguments.backend, "level": arguments.level, "schedules": arguments.schedules}
    asked: dict[str, Any] = {name: last[name] if value is None else value for name, value in given.items()}
    person = read_person(port.root, phase_named("bringup").reads)
    problems: list[Problem] = list(_recordings(asked["backend"], arguments.recordings))
    waivers: tuple[Waiver, ...] = ()
    try:
        waivers = parse_waivers(person.get(WAIVERS_TOML), item_codes(), str(port.root / WAIVERS_TOML))
    except RefusedError as error:
        problems += error.problems
    if problems:
        raise RefusedError(tuple(problems))
    return BringupOptions(
        out=port.root,
        backend=asked["backend"],
        level=asked["level"],
        schedules=asked["schedules"],
        recordings=arguments.recordings,
        waivers=waivers,
        person=person,
        today=day,
        notes=tuple(f"waiver without effect, it is over: {w.line()}" for w in waivers if w.expired(day)),
    )


def _recordings(backend: str, folder: Path | None) -> tuple[Problem, ...]:
    """What is wrong with the folder of recordings."""
    if (backend == "replay") != (folder is not None):
        what = "--backend replay judges recordings" if folder is None else "recordings belong to --backend replay"
        got = "none" if folder is None else str(folder)
        return (Problem(code="BRINGUP-RECORDINGS", where="--recordings", what=what, expected="a folder", got=got),)
    if folder is not None and not folder.is_dir():
        return (
            Problem(
                code="BRINGUP-RECORDINGS",
                where=str(folder),
                what="no such folder",
                expected="a folder that test.py of the generated folder wrote on the board",
            ),
        )
    return ()


def last_options(port: Port) -> dict[str, Any]:
    """What the last run was asked, or the defaults."""
    if OPTIONS not in port.state.files:
        return dict(DEFAULTS)
    value = parse_canonical(port.read(OPTIONS), OPTIONS)
    good = isinstance(value, dict) and value.get("schema_version") == SCHEMA_VERSION
    if not good or not set(DEFAULTS) <= set(value):
        msg = f"{OPTIONS}: tampered: expected options of schema_version {SCHEMA_VERSION}"
        raise UpstreamError(msg)
    return dict(value)
