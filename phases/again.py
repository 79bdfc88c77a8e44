"""What two runs of a phase on the same inputs wrote differently; reports have clocks and are left out."""

from collections.abc import Mapping
from typing import Final

from phases.port import Port

CLOCKED: Final = "reports/"


def different_files(before: Port, after: Port, phase: str) -> tuple[str, ...]:
    """One line per file of a phase that is not the same in both ports.

    Args:
        before: the port.
        after: the one that was made anew.
        phase: whose files.
    """
    old, new = _judged(before, phase), _judged(after, phase)
    lines = []
    for name in sorted({*old, *new}):
        if old.get(name) != new.get(name):
            got = "another content" if name in old and name in new else "only in one of the two"
            lines.append(f"{name}: rerun: {got}")
    return tuple(lines)


def _judged(port: Port, phase: str) -> Mapping[str, str]:
    """Hashes of what a phase wrote, reports left out."""
    names = port.state.owners.get(phase, ())
    return {name: port.state.files[name] for name in names if not name.startswith(CLOCKED)}
