"""What phase 4 was asked to do: command line and the last run, resolved into one frozen value."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any, Final, Literal

from checklists.model import Level, Waiver
from manifest.device import load_device
from manifest.errors import UpstreamError
from manifest.io import canonical_json, parse_canonical
from optimize.bandwidth import read_json, table_from
from phases.pipeline import item_codes, phase_named
from phases.port import Port, read_person
from phases.state import WAIVERS_TOML
from phases.waivers import parse_waivers

OPTIONS: Final = "options/optimize.json"
SCHEMA_VERSION: Final = 1
Goal = Literal["latency", "throughput", "tiles"]
GOALS: Final[tuple[Goal, ...]] = ("latency", "throughput", "tiles")
LEVELS: Final[tuple[Level, ...]] = ("host", "hardware")
DEFAULTS: Final[Mapping[str, Any]] = {
    "goal": "throughput",
    "max_tiles": 0,
    "plans": 60,
    "level": "host",
    "bandwidth": None,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Arguments:
    """The command line as given; None = not given."""

    port: Path
    goal: str | None = None
    max_tiles: int | None = None
    plans: int | None = None
    level: str | None = None
    bandwidth: Path | None = None
    accept_nondeterministic: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizeOptions:
    """One run of phase 4.

    Attributes:
        out: the port.
        goal: what better means.
        max_tiles: core tiles at most, 0 = all of the device.
        plans: designs that may be planned.
        level: what the gate is judged at.
        bandwidth: the JSON of a table that replaces the default one: a rerun needs nothing from outside.
        accept_nondeterministic: write a placement that a clock cut off.
        waivers: content of `waivers.toml`.
        person: the person's own files as read.
        today: the day that waivers are judged by.
        notes: remarks for the person, one line each.
    """

    out: Path
    goal: Goal = "throughput"
    max_tiles: int = 0
    plans: int = 60
    level: Level = "host"
    bandwidth: Mapping[str, Any] | None = None
    accept_nondeterministic: bool = False
    waivers: tuple[Waiver, ...] = ()
    person: Mapping[str, bytes] = field(default_factory=dict)
    today: date
    notes: tuple[str, ...] = ()

    def to_bytes(self) -> bytes:
        """The content of `options/optimize.json`."""
        asked = {name: getattr(self, name) for name in DEFAULTS}
        return canonical_json({"schema_version": SCHEMA_VERSION, **asked})


def resolve(arguments: Arguments, port: Port, *, today: date | None = None) -> OptimizeOptions:
    """Resolve a command line; options that are not given are those of the last run.

    Raises:
        RefusedError: everything that is wrong with the bandwidth table or `waivers.toml`.
        UpstreamError: `options/optimize.json` was tampered with.
    """
    day = today or date.today()
    last = _last(port)
    given = {name: getattr(arguments, name) for name in DEFAULTS}
    if arguments.bandwidth is not None:
        given["bandwidth"] = read_json(arguments.bandwidth)
        table_from(given["bandwidth"], load_device(port.info.device), f"--bandwidth {arguments.bandwidth.name}")
    asked: dict[str, Any] = {name: last[name] if value is None else value for name, value in given.items()}
    person = read_person(port.root, phase_named("optimize").reads)
    waivers = parse_waivers(person.get(WAIVERS_TOML), item_codes(), str(port.root / WAIVERS_TOML))
    return OptimizeOptions(
        out=port.root,
        **asked,
        accept_nondeterministic=arguments.accept_nondeterministic,
        waivers=waivers,
        person=person,
        today=day,
        notes=tuple(f"waiver without effect, it is over: {w.line()}" for w in waivers if w.expired(day)),
    )


def _last(port: Port) -> dict[str, Any]:
    """What the last run was asked, or the defaults."""
    if OPTIONS not in port.state.files:
        return dict(DEFAULTS)
    value = parse_canonical(port.read(OPTIONS), OPTIONS)
    good = isinstance(value, dict) and value.get("schema_version") == SCHEMA_VERSION
    if not good or not set(DEFAULTS) <= set(value):
        msg = f"{OPTIONS}: tampered: expected options of schema_version {SCHEMA_VERSION}"
        raise UpstreamError(msg)
    return dict(value)
