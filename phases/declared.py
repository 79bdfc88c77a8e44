"""`port.toml`: what the person declares about a port. Every key is optional; an unknown one is refused by name.

::

    data = "../real.npz"            # relative to the port
    labels = "y"                    # array of the data with the class numbers; default y_eval or y
    device = "npu2"

    [shapes]                        # open dimensions of inputs
    image = [1, 3, 224, 224]

    [preprocessing]                 # for all inputs; [preprocessing.image] for one
    mean = [123.675, 116.28, 103.53]
    scale = [0.0171, 0.0175, 0.0174]
    layout = "NHWC"
    minimum = 0
    maximum = 255

    [thresholds]
    max_accuracy_drop = 0.01
    min_sqnr_db = 20.0
    min_top1_agreement = 0.98

The keys of `[preprocessing]` are judged by `phases.baseline.preprocessing`, which knows the inputs.
"""

import difflib
import math
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Final, TypeVar

from manifest.errors import Problem, RefusedError
from phases.state import PORT_TOML

KEYS: Final = ("data", "labels", "device", "preprocessing", "shapes", "thresholds")
MAX_DIMENSION: Final = 2**31 - 1

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """Limits of the accuracy item.

    Attributes:
        max_accuracy_drop: largest loss of accuracy against the float model, 0..1.
        min_sqnr_db: lowest SQNR of the outputs, dB.
        min_top1_agreement: lowest share of samples with the same top-1 class, 0..1.
    """

    max_accuracy_drop: float = 0.01
    min_sqnr_db: float = 15.0
    min_top1_agreement: float = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """Content of `port.toml`.

    Attributes:
        data: path of the data as written, relative to the port; None = not declared.
        labels: name of the array with the labels, None = not declared.
        device: device name, None = not declared.
        shapes: input name -> shape.
        preprocessing: the table as written; judged where the inputs are known.
        thresholds: limits of the accuracy item.
    """

    data: str | None = None
    labels: str | None = None
    device: str | None = None
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    preprocessing: Mapping[str, Any] = field(default_factory=dict)
    thresholds: Thresholds = field(default_factory=Thresholds)


def parse_declared(data: bytes | None, where: str = PORT_TOML) -> Declared:
    """Read `port.toml`.

    Args:
        data: its bytes, None where there is none.
        where: its name for messages.

    Raises:
        RefusedError: everything that is wrong with it.
    """
    if data is None:
        return Declared()
    table = read_toml(data, where)
    problems = list(unknown_keys(table, KEYS, where))

    def taken(key: str, read: Callable[[Any], T | None], expected: str, absent: T) -> T:
        if key not in table:
            return absent
        value = read(table[key])
        if value is None:
            at, got = f"{where}: {key}", repr(table[key])[:80]
            problems.append(Problem(code="TOML-VALUE", where=at, what="bad value", expected=expected, got=got))
            return absent
        return value

    declared = Declared(
        data=taken("data", _text, "a path", "") or None,
        labels=taken("labels", _text, "the name of an array in the data", "") or None,
        device=taken("device", _text, "a device name", "") or None,
        shapes=taken("shapes", _shapes, "input = [1, 3, 224, 224] per input", {}),
        preprocessing=taken("preprocessing", _table, "a table", {}),
        thresholds=_thresholds(table.get("thresholds", {}), f"{where}: thresholds", problems),
    )
    if problems:
        raise RefusedError(tuple(problems))
    return declared


def read_toml(data: bytes, where: str) -> dict[str, Any]:
    """The table in a TOML file of the person.

    Raises:
        RefusedError: not UTF-8, or not TOML; with line and column.
    """
    try:
        return tomllib.loads(data.decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        got = str(error) or type(error).__name__
        raise RefusedError((Problem(code="TOML-SYNTAX", where=where, what="not TOML", got=got),)) from error


def unknown_keys(table: Mapping[str, Any], known: Iterable[str], where: str) -> list[Problem]:
    """One problem for every key that means nothing, with the nearest one that does."""
    known = tuple(known)
    problems = []
    for key in table:
        if key not in known:
            near = difflib.get_close_matches(key, known, 1)
            remedy = f"did you mean {near[0]!r}?" if near else ""
            what, expected = f"unknown key {key!r}", ", ".join(known)
            problems.append(Problem(code="TOML-KEY", where=where, what=what, expected=expected, remedy=remedy))
    return problems


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value.strip() and value.isprintable() else None


def _table(value: Any) -> dict[str, Any] | None:
    return dict(value) if isinstance(value, dict) else None


def _shapes(value: Any) -> dict[str, tuple[int, ...]] | None:
    if not isinstance(value, dict):
        return None
    for shape in value.values():
        if not isinstance(shape, list) or not all(type(d) is int and 1 <= d <= MAX_DIMENSION for d in shape):
            return None
    return {name: tuple(shape) for name, shape in value.items()}


def _thresholds(value: Any, where: str, problems: list[Problem]) -> Thresholds:
    if not isinstance(value, dict):
        what, got = "bad value", repr(value)[:80]
        problems.append(Problem(code="TOML-VALUE", where=where, what=what, expected="a table", got=got))
        return Thresholds()
    names = tuple(f.name for f in fields(Thresholds))
    problems += unknown_keys(value, names, where)
    good = {}
    for name in names:
        if name not in value:
            continue
        number = value[name]
        share = not name.endswith("_db")
        is_number = isinstance(number, int | float) and not isinstance(number, bool) and math.isfinite(number)
        if not is_number or (share and not 0 <= number <= 1):
            expected = "a share from 0 to 1" if share else "a number of dB"
            what, got = "bad value", repr(number)[:80]
            problems.append(Problem(code="TOML-VALUE", where=f"{where}.{name}", what=what, expected=expected, got=got))
        else:
            good[name] = float(number)
    return Thresholds(**good)
