"""`waivers.toml`: deviations that a person accepts. Read for the gates, written by `phases waive` or by hand.

::

    [[waiver]]
    code = "BL011"
    tensor = "conv1_out_q"      # or op = "..." or figure = "..." (a device figure); none = whatever the item finds
    reason = "one code in 10,000 elements; accuracy unchanged"
    owner = "someone@example.org"
    until = 2027-06-30          # last day on which it holds

Why tomlkit for writing: comments and order of a hand-written file survive.
"""

from collections.abc import Mapping
from datetime import date, datetime
from typing import Any, Final, Literal

import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import AoT

from checklists.model import Waiver
from manifest.errors import Problem, RefusedError
from phases.declared import read_toml, unknown_keys
from phases.state import WAIVERS_TOML

Subject = Literal["tensor", "op", "figure"]
SUBJECTS: Final[tuple[Subject, ...]] = ("tensor", "op", "figure")
TABLE: Final = "waiver"
KEYS: Final = ("code", *SUBJECTS, "reason", "owner", "until")
MAX_TEXT: Final = 2000


def parse_waivers(data: bytes | None, codes: frozenset[str], where: str = WAIVERS_TOML) -> tuple[Waiver, ...]:
    """Read `waivers.toml`.

    Args:
        data: its bytes, None where there is none.
        codes: codes of all checklist items.
        where: its name for messages.

    Raises:
        RefusedError: everything that is wrong with it. An expired waiver is not wrong, it has no effect.
    """
    if data is None:
        return ()
    table = read_toml(data, where)
    problems = list(unknown_keys(table, (TABLE,), where))
    rows = table.get(TABLE, [])
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        what = "bad value"
        raise RefusedError(
            (*problems, Problem(code="TOML-VALUE", where=where, what=what, expected=f"[[{TABLE}]] tables"))
        )
    found: dict[tuple[str, str | None], Waiver] = {}
    for number, row in enumerate(rows, 1):
        at = f"{where}: waiver {number}"
        problems += unknown_keys(row, KEYS, at)
        waiver = _one(row, codes, at, problems)
        if waiver is None:
            continue
        if (waiver.code, waiver.subject) in found:
            what, remedy = "the same code and subject once more", "keep one of the two"
            problems.append(Problem(code="WAIVER-TWICE", where=at, what=what, got=waiver.line(), remedy=remedy))
        found[waiver.code, waiver.subject] = waiver
    if problems:
        raise RefusedError(tuple(problems))
    return tuple(found.values())


def _one(row: Mapping[str, Any], codes: frozenset[str], at: str, problems: list[Problem]) -> Waiver | None:
    before = len(problems)

    def wrong(key: str, expected: str) -> None:
        got = repr(row[key])[:80] if key in row else "nothing"
        problems.append(
            Problem(code="WAIVER-FIELD", where=f"{at}: {key}", what="bad value", expected=expected, got=got)
        )

    if row.get("code") not in codes:
        wrong("code", "code of a checklist item (`python -m phases explain --all`)")
    for key in ("reason", "owner"):
        if not is_text(row.get(key)):
            wrong(key, f"words, on one line, at most {MAX_TEXT} characters")
    named = [key for key in SUBJECTS if key in row]
    if len(named) > 1:
        wrong(named[1], f"one of {', '.join(SUBJECTS)}, not several")
    for key in named:
        if not isinstance(row[key], str) or not row[key]:
            wrong(key, "a name")
    until = _day(row.get("until"))
    if until is None:
        wrong("until", "a date, 2027-06-30")
    if len(problems) > before or until is None:
        return None
    subject = row[named[0]] if named else None
    return Waiver(code=row["code"], reason=row["reason"], owner=row["owner"], until=until, subject=subject)


def is_text(value: object) -> bool:
    """Whether a reason or owner says something, on one line."""
    return isinstance(value, str) and bool(value.strip()) and value.isprintable() and len(value) <= MAX_TEXT


def _day(value: object) -> date | None:
    if isinstance(value, date):
        return None if isinstance(value, datetime) else value
    try:
        return date.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None


def add_waiver(data: bytes | None, waiver: Waiver, kind: Subject | None) -> tuple[bytes, bool]:
    """Put a waiver into `waivers.toml`; one for the same code and subject is renewed.

    Args:
        data: its bytes as they are, valid (`parse_waivers`); None where there is none.
        waiver: the decision.
        kind: key of its subject, None where it has none.

    Returns:
        The new bytes, and whether one was renewed.
    """
    text = data.decode("utf-8") if data is not None else "# Accepted deviations, see `python -m phases waive --help`.\n"
    try:
        document = tomlkit.parse(text)
    except TOMLKitError as error:
        what, got = "cannot be edited", str(error)
        raise RefusedError((Problem(code="TOML-SYNTAX", where=WAIVERS_TOML, what=what, got=got),)) from error
    rows = document.get(TABLE)
    if not isinstance(rows, AoT):
        rows = tomlkit.aot()
        for row in document.get(TABLE, []):
            rows.append(tomlkit.item(dict(row)))
        document[TABLE] = rows
    same = [row for row in rows if row["code"] == waiver.code and _subject(row) == waiver.subject]
    for row in same:
        row["reason"], row["owner"], row["until"] = waiver.reason, waiver.owner, waiver.until
    if not same:
        rows.append(_table(waiver, kind))
    return tomlkit.dumps(document).encode("utf-8"), bool(same)


def _subject(row: Mapping[str, Any]) -> str | None:
    return next((str(row[key]) for key in SUBJECTS if key in row), None)


def _table(waiver: Waiver, kind: Subject | None) -> Any:
    table = tomlkit.table()
    table["code"] = waiver.code
    if kind is not None:
        table[kind] = waiver.subject
    table["reason"] = waiver.reason
    table["owner"] = waiver.owner
    table["until"] = waiver.until
    return table
