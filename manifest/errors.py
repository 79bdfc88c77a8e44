"""Errors of the project: one base class, one line each (where, what, expected, got, remedy).

Why one module: the command line prints a `PortError` as lines and gives every other exception a
traceback, so everything that a person can cause has to be one of these.
"""

from dataclasses import dataclass
from typing import Final


class PortError(Exception):
    """Base of every error that a person can cause; its text is one line and needs no traceback."""


_NOTHING: Final = "''"
"""How a place is called whose name is empty (an option that was given as nothing)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing that is wrong with an input.

    Attributes:
        code: stable code, `<AREA>-<KEBAB>` (for example `ONNX-SCALE-ZERO`), documented in `docs/errors.md`.
        where: file, node, tensor or option, quoted as the person wrote it.
        what: the fault in a few words; names op type and reason.
        expected: what would have been right, or "".
        got: what was found, or "".
        remedy: what to do about it, or "".
    """

    code: str
    where: str
    what: str
    expected: str = ""
    got: str = ""
    remedy: str = ""

    def line(self) -> str:
        """The problem on one line; control characters of hostile names are escaped."""
        parts = [f"{self.where or _NOTHING}: {self.what}"]
        if self.expected:
            parts.append(f"expected {self.expected}")
        if self.got:
            parts.append(f"got {self.got}")
        if self.remedy:
            parts.append(f"remedy: {self.remedy}")
        text = f"[{self.code}] " + "; ".join(parts)
        return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


class RefusedError(PortError):
    """The input is wrong or beyond the tool's reach (exit 2); carries every problem found in one run."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        if not problems:
            msg = "RefusedError needs at least one problem"
            raise ValueError(msg)
        self.problems = problems
        super().__init__("\n".join(p.line() for p in problems))


class LockedError(PortError):
    """Another run holds the port (exit 2)."""


class UpstreamError(PortError):
    """A gate above is missing, not PASS, stale or tampered, or the port is interrupted (exit 3)."""


class UnavailableError(PortError):
    """What was asked needs a tool or a device that is absent (exit 4)."""
