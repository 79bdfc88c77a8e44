"""A candidate, and a kernel as the rules look at it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from numpy.typing import NDArray

from bringup.lint.cxx import Loop, Source
from bringup.lint.loops import innermost

Array = NDArray[Any]
Confidence = Literal["high", "medium", "low"]
"""How sure the finding is; what it is worth on hardware nobody knows before it is measured."""

UNCONFIRMED: Final = "hardware unconfirmed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One thing about a kernel that may be worth a measurement.

    Attributes:
        kernel: symbol.
        file: path in the generated folder.
        line: from 1; 0 = the kernel as a whole.
        rule: key of `RULES`.
        lever_class: what kind of change it asks for.
        confidence: in the finding, not in a gain.
        text: the reason on one line; ends in `hardware unconfirmed`.
    """

    kernel: str
    file: str
    line: int
    rule: str
    lever_class: str
    confidence: Confidence
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """What a rule found: file and position (-1 = the kernel as a whole), how sure, why."""

    file: str
    position: int
    confidence: Confidence
    text: str


Hits = Iterator[Hit]


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """One kernel: its source and headers with everything blanked that it does not reach.

    Attributes:
        symbol: of the C function.
        file: of the kernel.
        row: of `generated.json`.
        device: of the folder.
        sources: by path; constants of the kernel count in all of them.
        arrays: contents of constant parameters by name, one for each call that passes others.
    """

    symbol: str
    file: str
    row: Mapping[str, Any]
    device: str
    sources: Mapping[str, Source]
    arrays: Mapping[str, tuple[Array, ...]] = field(default_factory=dict)

    def inner(self) -> Iterator[tuple[str, Source, Loop]]:
        """Innermost loops of everything that is reached."""
        for name, source in self.sources.items():
            for loop in innermost(source):
                yield name, source, loop

    def reaches(self, word: str) -> bool:
        """Whether a piece of text stands anywhere in the code that is reached."""
        return any(word in source.code for source in self.sources.values())

    def figure(self, name: str) -> int | None:
        """A compile-time figure of the kernel."""
        return self.sources[self.file].value(name)

    def parameters(self, *roles: str) -> list[Mapping[str, Any]]:
        """Parameters with one of these roles."""
        return [p for p in self.row.get("parameters", ()) if p["role"] in roles]
