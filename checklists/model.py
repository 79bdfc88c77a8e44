"""Types of the checklists: verdicts, findings, items, waivers, gate reports. All frozen.

Why an item cannot say WAIVED: only a recorded decision of a person does, and `checklists.evaluate` applies it.
"""

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum
from typing import Final, Generic, Literal, TypeVar

GATE_SCHEMA_VERSION: Final = 1

Level = Literal["host", "hardware"]
Figure = int | float | str | bool | None
FigureTable = dict[str, Figure | tuple[str, ...]]
Figures = Mapping[str, Figure | tuple[str, ...]]

EvidenceT = TypeVar("EvidenceT")


class Verdict(StrEnum):
    """What is known about an item, or about a gate (a gate is only ever PASS, FAIL or NOT_RUN)."""

    PASS = "PASS"
    FAIL = "FAIL"
    NOT_RUN = "NOT_RUN"
    BLOCKED = "BLOCKED"
    NOT_APPLICABLE = "NOT_APPLICABLE"
    WAIVED = "WAIVED"


WAIVABLE: Final = frozenset({Verdict.FAIL, Verdict.NOT_RUN})


def one_line(text: str) -> str:
    """Return `text` with everything that is not printable escaped, so that a hostile name stays on one line."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def number(value: float | None) -> Figure:
    """Return `value` as JSON can carry it: NaN and infinities as the words `nan`, `inf`, `-inf`."""
    if value is None or math.isfinite(value):
        return value
    return str(float(value))


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What one item found.

    Attributes:
        verdict: any but WAIVED.
        summary: one line; on FAIL it names the tensor, the op, the element and the likely cause.
        figures: what was counted or measured, by a name with its unit (`need_bytes`, `sqnr_db`); finite.
        subjects: tensors, ops or device figures at fault. A waiver that names a subject covers it alone, and the
            finding is waived only if every subject is covered.
        ops: op by which a subject may also be waived (subject -> name of the op that writes it).
    """

    verdict: Verdict
    summary: str
    figures: Figures = field(default_factory=dict)
    subjects: tuple[str, ...] = ()
    ops: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.verdict is Verdict.WAIVED:
            msg = f"finding {self.summary!r}: an item cannot waive itself"
            raise ValueError(msg)
        if not self.summary.strip():
            msg = "finding: summary: expected one line of text, got nothing"
            raise ValueError(msg)
        for name, value in self.figures.items():
            if isinstance(value, float) and not math.isfinite(value):
                msg = f"finding: figure {name!r}: expected a finite number (see `number`), got {value}"
                raise ValueError(msg)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckItem(Generic[EvidenceT]):
    """One row of a checklist.

    Attributes:
        code: stable code (`BL001`), never reused.
        title: a few words.
        source: where the rule comes from.
        basis: what its figures are: proved, measured (on what), simulated, predicted or quoted.
        level: `host`, or `hardware` where a device is needed.
        run: the rule; a pure function of the evidence. Its docstring is rule, message and documentation.
    """

    code: str
    title: str
    source: str
    basis: str
    run: Callable[[EvidenceT], Finding]
    level: Level = "host"

    @property
    def rule(self) -> str:
        """The rule in words: the docstring of `run`."""
        return inspect.cleandoc(self.run.__doc__ or "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiver:
    """A recorded decision to accept a finding.

    Attributes:
        code: item code.
        reason: why it is acceptable.
        owner: who answers for it.
        until: last day on which it holds.
        subject: tensor, op or device figure that it is about; None = whatever the item finds.
    """

    code: str
    reason: str
    owner: str
    until: date
    subject: str | None = None

    def expired(self, today: date) -> bool:
        """Whether the last day is over."""
        return today > self.until

    def line(self) -> str:
        """The decision on one line."""
        about = f" for {self.subject!r}" if self.subject is not None else ""
        return one_line(f"{self.code}{about}: {self.reason} (owner {self.owner}, until {self.until.isoformat()})")


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemResult:
    """One item as judged: `found` is what the item said, `verdict` what counts after the waivers."""

    code: str
    title: str
    source: str
    basis: str
    level: Level
    found: Verdict
    verdict: Verdict
    summary: str
    figures: Figures
    subjects: tuple[str, ...] = ()
    waivers: tuple[Waiver, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class GateReport:
    """The judgement of one phase; written to `gates/<phase>.json` by `checklists.report`.

    Attributes:
        phase: `baseline`, `presim`, `bringup`, `optimize`.
        verdict: PASS, FAIL or NOT_RUN.
        level: the level that it was judged at.
        items: in the order of the checklist.
        inputs: name -> sha256 of everything that the gate read.
        upstream: file of the gate above -> sha256; empty for phase 1.
        tool_version: version of this package.
        expired_waivers: decisions that would have applied but are over; they have no effect.
        unused_waivers: decisions for items of this gate that met nothing to waive.
    """

    phase: str
    verdict: Verdict
    level: Level
    items: tuple[ItemResult, ...]
    inputs: Mapping[str, str] = field(default_factory=dict)
    upstream: Mapping[str, str] = field(default_factory=dict)
    tool_version: str = ""
    expired_waivers: tuple[Waiver, ...] = ()
    unused_waivers: tuple[Waiver, ...] = ()
    schema_version: int = GATE_SCHEMA_VERSION

    @property
    def words(self) -> str:
        """The verdict with its level, always said together."""
        return f"{self.verdict} at {self.level} level"

    @property
    def passed(self) -> bool:
        """Whether this gate opens the next phase."""
        return self.verdict is Verdict.PASS

    @property
    def waivers(self) -> tuple[Waiver, ...]:
        """Every decision that took effect, in item order."""
        return tuple(w for item in self.items for w in item.waivers)
