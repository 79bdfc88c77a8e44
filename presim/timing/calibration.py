"""Coefficients of the timing model: data, each with its source and the clock that it is in."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from manifest.errors import Problem, RefusedError

DIRECTORY: Final = Path(__file__).resolve().parent.parent / "calibration"
DEFAULT: Final = "assumed-1"
NAMES: Final = (
    "mac_utilisation",
    "vector_passes",
    "call_cycles",
    "lock_cycles",
    "descriptor_cycles",
    "hop_cycles",
    "shim_derate",
    "dispatch_microseconds",
)
FRACTIONS: Final = frozenset({"mac_utilisation", "shim_derate"})
KEYS: Final = frozenset({"value", "unit", "basis", "source", "clock"})
BASES: Final = ("quoted", "assumed", "measured")


@dataclass(frozen=True, slots=True, kw_only=True)
class Coefficient:
    """One figure.

    Attributes:
        value: 0 or more; a fraction is above 0 and at most 1.
        unit: in words.
        basis: `quoted`: somebody measured it and says so; `assumed`: nobody did; `measured`: by the person.
        source: who, or why.
        clock: `array clock`, `host` or `independent`.
    """

    value: float
    unit: str
    basis: Literal["quoted", "assumed", "measured"]
    source: str
    clock: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """All coefficients of a file; `sha256` of its bytes."""

    name: str
    sha256: str
    coefficients: Mapping[str, Coefficient]

    def value(self, name: str) -> float:
        """Value of a coefficient."""
        return self.coefficients[name].value


def load_calibration(path: Path | None = None) -> Calibration:
    """Read a calibration.

    Args:
        path: file of the person; None = the one that comes with the package.

    Raises:
        RefusedError: everything that is wrong with it.
    """
    file = path or DIRECTORY / f"{DEFAULT}.json"
    try:
        data = file.read_bytes()
        value = json.loads(data)
    except (OSError, ValueError) as error:
        raise RefusedError((_problem(file, "cannot be read as JSON", got=type(error).__name__),)) from error
    table = value.get("coefficients") if isinstance(value, dict) else None
    if not isinstance(table, dict):
        raise RefusedError((_problem(file, "holds no table `coefficients`"),))
    problems = [
        _problem(file, f"unknown coefficient {name!r}", expected=", ".join(NAMES)) for name in table.keys() - NAMES
    ]
    problems += [_problem(file, f"coefficient {name!r} is missing") for name in NAMES if name not in table]
    found = {}
    for name in NAMES:
        if name in table and not _wrong(name, table[name]):
            found[name] = Coefficient(**table[name])
        elif name in table:
            expected = f"{', '.join(sorted(KEYS))}; {_wrong(name, table[name])}"
            problems.append(_problem(file, f"coefficient {name!r} is malformed", expected=expected))
    if problems:
        raise RefusedError(tuple(problems))
    return Calibration(
        name=str(value.get("name", file.stem)), sha256=hashlib.sha256(data).hexdigest(), coefficients=found
    )


def _wrong(name: str, row: Any) -> str:
    """What is wrong with a row, "" where nothing is."""
    if not isinstance(row, dict) or row.keys() != KEYS:
        return "exactly these keys"
    value = row["value"]
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e9:
        return "value: a number of 0 or more"
    if name in FRACTIONS and not 0 < value <= 1:
        return "value: above 0, at most 1"
    return "" if row["basis"] in BASES else f"basis: one of {', '.join(BASES)}"


def _problem(file: Path, what: str, *, expected: str = "", got: str = "") -> Problem:
    return Problem(code="TIMING-CALIBRATION", where=str(file), what=what, expected=expected, got=got)
