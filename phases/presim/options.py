"""What phase 2 was asked to do: command line and the last run, resolved into one frozen value.

Why `options/presim.json` holds the directives themselves and not their file: a rerun needs nothing from outside, and
the gate hashes what was asked.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any, Final

from checklists.model import Waiver
from manifest.errors import Problem, RefusedError, UpstreamError
from manifest.io import canonical_json, parse_canonical
from manifest.model import Manifest
from phases.design_rules import RULES_FILE, learned
from phases.pipeline import item_codes
from phases.port import Port, read_person
from phases.state import WAIVERS_TOML
from phases.waivers import parse_waivers
from presim.directives import Directives, directives_of, read_directives

OPTIONS: Final = "options/presim.json"
ADOPTED: Final = "optimized/adopted/design.json"
"""The design that phase 4 made the design of the port."""
ADOPTED_OWNER: Final = "adopted"
"""Whose files these are in `state.json`: of no phase, so that a rerun of one leaves them."""
SCHEMA_VERSION: Final = 1
DEFAULT_BATCH: Final = 8
DEFAULT_SCHEDULES: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Arguments:
    """The command line as given; None = not given."""

    port: Path
    directives: Path | None = None
    batch: int | None = None
    schedules: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PresimOptions:
    """One run of phase 2.

    Attributes:
        out: the port.
        directives: for planner and placer.
        asked: the person's directives as JSON values.
        rules: design rules that were learned before and add to them, in words.
        batch: N of the second regime.
        schedules: seeded schedules beside round-robin.
        adopted: the design is the one that phase 4 found, and nothing is planned.
        waivers: content of `waivers.toml`.
        person: the person's own files as read.
        today: the day that waivers are judged by.
        notes: remarks for the person, one line each.
    """

    out: Path
    directives: Directives = field(default_factory=Directives)
    asked: Mapping[str, Any] = field(default_factory=dict)
    rules: tuple[str, ...] = ()
    batch: int = DEFAULT_BATCH
    schedules: int = DEFAULT_SCHEDULES
    adopted: bool = False
    waivers: tuple[Waiver, ...] = ()
    person: Mapping[str, bytes] = field(default_factory=dict)
    today: date
    notes: tuple[str, ...] = ()

    def to_bytes(self) -> bytes:
        """The content of `options/presim.json`."""
        return canonical_json(
            {
                "schema_version": SCHEMA_VERSION,
                "directives": dict(self.asked),
                "batch": self.batch,
                "schedules": self.schedules,
                "adopted": self.adopted,
            }
        )


def resolve(
    arguments: Arguments, port: Port, manifest: Manifest, *, today: date | None = None, adopt: bool = False
) -> PresimOptions:
    """Resolve a command line; options that are not given are those of the last run.

    Args:
        arguments: as given.
        port: open.
        manifest: of it.
        today: the day that waivers are judged by, the current one if None.
        adopt: from now on the design is the one that phase 4 found.

    Raises:
        RefusedError: everything that is wrong with the directives and `waivers.toml`.
        UpstreamError: `options/presim.json` was tampered with.
    """
    day = today or date.today()
    last = _last(port)
    problems: list[Problem] = []
    directives, asked = Directives(), last["directives"]
    rules: tuple[str, ...] = ()
    waivers: tuple[Waiver, ...] = ()
    person = read_person(port.root)
    try:
        if arguments.directives is None:
            directives = directives_of(asked, manifest, f"directives of the last run ({OPTIONS})")
        else:
            directives = read_directives(arguments.directives, manifest)
            asked = json.loads(arguments.directives.read_text(encoding="utf-8"))
        more, rules = learned(port, asked)
        if more:
            directives = directives_of({**more, **asked}, manifest, f"directives and {RULES_FILE}")
    except RefusedError as error:
        problems += error.problems
    try:
        waivers = parse_waivers(person.get(WAIVERS_TOML), item_codes(), str(port.root / WAIVERS_TOML))
    except RefusedError as error:
        problems += error.problems
    if problems:
        raise RefusedError(tuple(problems))
    notes = [f"waiver without effect, it is over: {w.line()}" for w in waivers if w.expired(day)]
    if arguments.directives is None and asked:
        notes.append(f"directives of the last run for {', '.join(map(repr, asked))}; --directives FILE replaces them")
    notes += [f"design rule of the last bring-up: {rule}" for rule in rules]
    adopted = adopt or (arguments.directives is None and last["adopted"])
    if last["adopted"]:
        words = "the design of phase 4 stays the design" if adopted else "the design of phase 4 is given up"
        notes.append(f"{words}; --directives FILE plans anew")
    return PresimOptions(
        out=port.root,
        directives=directives,
        asked=asked,
        rules=rules,
        batch=last["batch"] if arguments.batch is None else arguments.batch,
        schedules=last["schedules"] if arguments.schedules is None else arguments.schedules,
        adopted=adopted,
        waivers=waivers,
        person=person,
        today=day,
        notes=tuple(notes),
    )


def _last(port: Port) -> dict[str, Any]:
    """What the last run was asked, or the defaults."""
    if OPTIONS not in port.state.files:
        return {"directives": {}, "batch": DEFAULT_BATCH, "schedules": DEFAULT_SCHEDULES, "adopted": False}
    value = parse_canonical(port.read(OPTIONS), OPTIONS)
    good = isinstance(value, dict) and value.get("schema_version") == SCHEMA_VERSION
    if not good or not {"directives", "batch", "schedules", "adopted"} <= set(value):
        msg = f"{OPTIONS}: tampered: expected options of schema_version {SCHEMA_VERSION}"
        raise UpstreamError(msg)
    return dict(value)
