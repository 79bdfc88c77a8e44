"""What a rule finds, and the generated folder as rules read it."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

INDEX: Final = "generated.json"
KERNELS: Final = "kernels/"
DESIGN: Final = "design.py"


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class LintFinding:
    """One breach of one rule.

    Attributes:
        file: path in the folder.
        line: from 1; 0 = the file as a whole.
        rule: key of `RULES`.
        text: what is wrong, on one line.
    """

    file: str
    line: int
    rule: str
    text: str


@dataclass(frozen=True, slots=True)
class Folder:
    """The generated folder."""

    files: Mapping[str, bytes]

    def index(self) -> Mapping[str, Any]:
        """`generated.json`; empty where it is none."""
        try:
            value = json.loads(self.files[INDEX])
        except (KeyError, ValueError):
            return {}
        return value if isinstance(value, dict) else {}

    def text(self, name: str) -> str:
        """A file as text."""
        return self.files[name].decode("utf-8", errors="replace")

    def sources(self) -> Iterator[str]:
        """Paths of kernels and their headers."""
        return (n for n in sorted(self.files) if n.startswith(KERNELS) and n.endswith((".cc", ".h")))

    def kernels(self) -> Iterator[str]:
        """Paths of kernels."""
        return (n for n in self.sources() if n.endswith(".cc"))

    def designs(self) -> Iterator[str]:
        """Paths of design files."""
        return (n for n in sorted(self.files) if n.rpartition("/")[2] == DESIGN)
