"""`docs/presim-faults.md` from the outcomes of a whole run."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from tests.presim_faults.harness import Outcome

EXCERPT: Final = 240

HEAD: Final = """# Seeded faults: the presim gate against designs broken on purpose

Written by `python -m tests.presim_faults.run --write docs/presim-faults.md`; `--only ID` tries one. Per row phase 1
makes a port of an example, the planner's design gets one fault (or the tiles get other constants than the manifest's),
and the whole of phase 2 runs on it. A fault counts as caught where each item named here is FAIL and its summary names
the place (worker, fifo, kernel, tile or figure) that the catalogue asks for word by word. Everything is simulated,
nothing measured.
"""
COLUMNS: Final = "| fault | broken | design | item | also FAIL | what was said |\n|---|---|---|---|---|---|\n"
SURVIVING: Final = """
## Survivors

Not noticed, with the reason.

| fault | broken | design | gate | why |
|---|---|---|---|---|
"""
SOUND: Final = """
## Sound designs

The same designs without a fault, under round-robin and ten seeded schedules: no item is FAIL.

| design | gate | items that are FAIL |
|---|---|---|
"""


def table(outcomes: Sequence[Outcome], sound: Mapping[str, tuple[str, tuple[str, ...]]]) -> str:
    """The document.

    Args:
        outcomes: of every fault.
        sound: gate verdict and items that are FAIL, by sound design.
    """
    caught = [o for o in outcomes if o.caught]
    left = [o for o in outcomes if not o.caught]
    count = f"\n{len(outcomes)} faults: {len(caught)} caught, {len(left)} known survivors.\n\n"
    text = HEAD + count + COLUMNS + "".join(map(row_of, caught))
    if left:
        text += SURVIVING + "".join(map(row_of, left))
    return text + SOUND + "".join(sound_row(name, *said) for name, said in sound.items())


def _cells(outcome: Outcome) -> Iterable[str]:
    fault, said = outcome.fault, outcome.said
    who = ", ".join(fault.items) if fault.items else f"refused, exit {said.exit}"
    also = ", ".join(code for code in said.failed if code not in fault.items)
    return (fault.id, fault.breaks, fault.base, who, also, _short(outcome.excerpt))


def _survivor(outcome: Outcome) -> Iterable[str]:
    fault = outcome.fault
    return (fault.id, fault.breaks, fault.base, outcome.said.verdict, fault.survives)


def row_of(outcome: Outcome) -> str:
    """The row of a fault in the document."""
    return _row(_cells(outcome) if outcome.caught else _survivor(outcome))


def sound_row(name: str, verdict: str, failed: Sequence[str]) -> str:
    """The row of a sound design."""
    return _row((name, verdict, ", ".join(failed) or "none"))


def rows_of(text: str) -> dict[str, str]:
    """The rows of a document by their first cell, of faults and of sound designs."""
    rows = {line.split(" | ")[0].removeprefix("| "): f"{line}\n" for line in text.splitlines() if line.startswith("| ")}
    return {name: row for name, row in rows.items() if name not in ("fault", "design")}


def _short(text: str) -> str:
    """An excerpt; whole hashes are left out."""
    text = re.sub(r"\b[0-9a-f]{64}\b", "...", text)
    return text if len(text) <= EXCERPT else text[: EXCERPT - 3].rsplit(" ", 1)[0] + " ..."


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(c.replace("|", "\\|").replace("\n", " ") for c in cells) + " |\n"
