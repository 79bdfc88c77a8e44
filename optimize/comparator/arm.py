"""One arm of an A/B comparison as its JSON file gives it; numbers are integers, so that every limit is exact.

Why a file without provenance is no input at all: a number that nobody can trace to a commit, a compiler and a kernel
says nothing, and a number of a simulator is a prediction, whatever it is called.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal

from manifest.errors import Problem, RefusedError

Metric = Literal["traced_cycles", "wall_ns"]

SCHEMA_VERSION: Final = 1
METRICS: Final[tuple[Metric, ...]] = ("traced_cycles", "wall_ns")
MEASURED: Final = "measured"
MAX_BYTES: Final = 16 << 20
MAX_VALUE: Final = 1 << 62
MAX_WORDS: Final = 500
_COMMIT: Final = re.compile(r"[0-9a-f]{7,64}")
_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_PLAIN: Final = ("compiler", "timestamp", "host", "device", "session")
_KEYS: Final = frozenset(
    ["schema_version", "arm", "basis", "metric", "kernel", "calls", "truncated", "values", "provenance"]
)
_OPTIONAL: Final = frozenset(["unchanged", "pinned"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """Where the numbers of an arm come from.

    Attributes:
        commit: of the sources, hexadecimal.
        compiler: version, word for word.
        kernel_sha256: of the kernel's object or source.
        timestamp: ISO 8601 with a time zone.
        host: that the device is in.
        device: as the driver reports it.
        session: the same for arms that were measured in one sitting.
    """

    commit: str
    compiler: str
    kernel_sha256: str
    timestamp: str
    host: str
    device: str
    session: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Unchanged:
    """A kernel that is the same in both arms, and its traced cycles per call (the least of them)."""

    kernel: str
    cycles: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """One measured arm.

    Attributes:
        name: of the arm.
        metric: what `values` are: traced cycles, or nanoseconds of wall clock where there is no trace.
        kernel: that was changed.
        calls: of the kernel that were made.
        truncated: the trace lost events.
        values: one for each call that was measured, > 0.
        unchanged: with traced cycles alone.
        pinned: the process was held to fixed cores; with wall clock alone.
        provenance: of the numbers.
    """

    name: str
    metric: Metric
    kernel: str
    calls: int
    truncated: bool
    values: tuple[int, ...]
    unchanged: Unchanged | None
    pinned: bool
    provenance: Provenance


def read_arm(data: bytes, where: str) -> Arm:
    """Read an arm.

    Args:
        data: of the file.
        where: the file, for messages.

    Raises:
        RefusedError: everything that is wrong with it: form, provenance, numbers of a simulation.
    """
    if len(data) > MAX_BYTES:
        raise RefusedError((Problem(code="AB-FORM", where=where, what="too large", expected=f"{MAX_BYTES} bytes"),))
    try:
        value = json.loads(data, object_pairs_hook=_once, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        what = "not the JSON of an arm"
        got = str(error)[:MAX_WORDS]
        raise RefusedError((Problem(code="AB-FORM", where=where, what=what, got=got),)) from error
    if not isinstance(value, dict):
        raise RefusedError((Problem(code="AB-FORM", where=where, what="not an object", got=type(value).__name__),))
    reader = _Reader(value, where)
    return reader.arm()


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        msg = "a key stands twice in one object"
        raise ValueError(msg)
    return found


def _no_constant(text: str) -> None:
    msg = f"{text} is no number"
    raise ValueError(msg)


class _Reader:
    """Reads keys and keeps what is wrong."""

    def __init__(self, value: Mapping[str, Any], where: str) -> None:
        self.value = value
        self.where = where
        self.problems: list[Problem] = []

    def arm(self) -> Arm:
        """The arm; raises with all problems."""
        self.keys()
        basis = self.get("basis", _word, "a word")
        if basis is not None and basis != MEASURED:
            what = "not measured on a device: what a simulator or a schedule says of hardware is a prediction"
            self.add("AB-SIMULATED", "basis", what, f'"{MEASURED}"', repr(basis), remedy="measure it, with a trace")
        name, kernel = self.get("arm", _word, "a word"), self.get("kernel", _word, "a word")
        metric = self.get("metric", lambda v: v in METRICS, " or ".join(METRICS))
        calls = self.get("calls", _count, "an integer above 0")
        truncated = self.get("truncated", lambda v: isinstance(v, bool), "true or false")
        values = self.get("values", _counts, "a list of integers above 0")
        if values is not None and calls is not None and len(values) > calls:
            self.add("AB-FORM", "values", "more values than calls", f"at most {calls}", str(len(values)))
        self.absent("pinned" if metric == "traced_cycles" else "unchanged", metric)
        unchanged = self.unchanged(kernel) if metric == "traced_cycles" else None
        pinned = metric == "wall_ns" and self.pinned()
        provenance = self.provenance()
        if self.problems or provenance is None:
            raise RefusedError(tuple(self.problems))
        return Arm(
            name=str(name),
            metric="wall_ns" if metric == "wall_ns" else "traced_cycles",
            kernel=str(kernel),
            calls=int(calls),
            truncated=bool(truncated),
            values=tuple(values),
            unchanged=unchanged,
            pinned=bool(pinned),
            provenance=provenance,
        )

    def keys(self) -> None:
        """Version and unknown keys."""
        if self.value.get("schema_version") != SCHEMA_VERSION or isinstance(self.value.get("schema_version"), bool):
            got = repr(self.value.get("schema_version"))[:MAX_WORDS]
            self.add("AB-FORM", "schema_version", "another version", str(SCHEMA_VERSION), got)
        for key in sorted(set(self.value) - _KEYS - _OPTIONAL):
            self.add("AB-FORM", key, "an unknown key", ", ".join(sorted(_KEYS | _OPTIONAL)))

    def get(self, key: str, good: Callable[[Any], bool], expected: str) -> Any:
        """A value in its form; None = a problem was noted."""
        if key not in self.value:
            self.add("AB-FORM", key, "missing", expected)
            return None
        if not good(self.value[key]):
            self.add("AB-FORM", key, "in another form", expected, repr(self.value[key])[:80])
            return None
        return self.value[key]

    def absent(self, key: str, metric: object) -> None:
        """A key that belongs to the other metric."""
        if key in self.value and metric is not None:
            self.add("AB-FORM", key, f"does not belong to metric {metric}")

    def unchanged(self, kernel: object) -> Unchanged | None:
        """The kernel that both arms have to agree on."""
        row = self.get("unchanged", lambda v: isinstance(v, dict), "an object with kernel and cycles")
        if row is None:
            return None
        if set(row) != {"kernel", "cycles"} or not _word(row["kernel"]) or not _count(row["cycles"]):
            self.add("AB-FORM", "unchanged", "in another form", "kernel: a word, cycles: an integer above 0")
            return None
        if row["kernel"] == kernel:
            self.add("AB-FORM", "unchanged", "is the kernel that was changed", "another kernel of the same trace")
            return None
        return Unchanged(kernel=row["kernel"], cycles=row["cycles"])

    def pinned(self) -> Any:
        """Whether a run by wall clock was held to fixed cores."""
        return self.get("pinned", lambda v: isinstance(v, bool), "true or false")

    def provenance(self) -> Provenance | None:
        """Where the numbers come from; every field is needed."""
        row = self.value.get("provenance")
        row = row if isinstance(row, dict) else {}
        tests: dict[str, tuple[Callable[[Any], bool], str]] = {
            "commit": (lambda v: _matches(_COMMIT, v), "7 to 64 hexadecimal digits"),
            "kernel_sha256": (lambda v: _matches(_SHA256, v), "64 hexadecimal digits"),
            **dict.fromkeys(_PLAIN, (_word, "a word")),
            "timestamp": (_instant, "ISO 8601 with a time zone"),
        }
        before = len(self.problems)
        for key, (good, expected) in tests.items():
            if not good(row.get(key)):
                got = repr(row[key])[:80] if key in row else "none"
                remedy = "numbers without provenance are not compared: record it with the run"
                self.add("AB-PROVENANCE", f"provenance.{key}", "unknown", expected, got, remedy=remedy)
        for key in sorted(set(row) - set(tests)):
            self.add("AB-FORM", f"provenance.{key}", "an unknown key", ", ".join(sorted(tests)))
        return Provenance(**row) if len(self.problems) == before else None

    def add(self, code: str, key: str, what: str, expected: str = "", got: str = "", *, remedy: str = "") -> None:
        """Note a problem."""
        where = f"{self.where}: {key}"
        self.problems.append(Problem(code=code, where=where, what=what, expected=expected, got=got, remedy=remedy))


def _word(value: object) -> bool:
    return isinstance(value, str) and len(value.strip()) > 0 and len(value) <= MAX_WORDS and value.isprintable()


def _count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value <= MAX_VALUE


def _counts(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(map(_count, value))


def _matches(pattern: "re.Pattern[str]", value: object) -> bool:
    return isinstance(value, str) and pattern.fullmatch(value) is not None


def _instant(value: object) -> bool:
    if not isinstance(value, str):
        return False
    try:
        return datetime.fromisoformat(value).tzinfo is not None
    except ValueError:
        return False
