"""What a static check says."""

from dataclasses import dataclass
from typing import Literal

Severity = Literal["error", "warning", "unknown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticFinding:
    """One thing that is wrong, doubtful, or cannot be judged.

    Attributes:
        rule: name of the check, a key of `presim.static.CHECKS`.
        severity: `error` it cannot work; `warning` it works on some toolchains or with luck; `unknown` a figure of the
            device is not published.
        where: fifo, worker, link, tile or transfer.
        text: what is wrong, and what would be right.
        used: the number that was judged, None where there is none.
        limit: what it was held against, None = none or unknown.
        figure: name of the device figure that is unknown, "" otherwise.
    """

    rule: str
    severity: Severity
    where: str
    text: str
    used: int | None = None
    limit: int | None = None
    figure: str = ""

    def line(self) -> str:
        """The finding on one line."""
        return f"{self.rule}: {self.where}: {self.text}"


def error(rule: str, where: str, text: str, *, used: int | None = None, limit: int | None = None) -> StaticFinding:
    """A finding that refuses the design."""
    return StaticFinding(rule=rule, severity="error", where=where, text=text, used=used, limit=limit)


def warning(rule: str, where: str, text: str, *, used: int | None = None, limit: int | None = None) -> StaticFinding:
    """A finding that a person has to look at."""
    return StaticFinding(rule=rule, severity="warning", where=where, text=text, used=used, limit=limit)


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What one check looked at, and what it found."""

    rule: str
    looked_at: int
    findings: tuple[StaticFinding, ...]
