"""`docs/bringup-faults.md` from the outcomes of a whole run."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from tests.bringup_faults.harness import Outcome

EXCERPT: Final = 260

HEAD: Final = """# Seeded faults: the bring-up gate against generated code broken on purpose

Written by `python -m tests.bringup_faults.run --write docs/bringup-faults.md`; `--only ID` tries one. Per row phases 1
and 2 make a port, one fault goes into what the emitter gets or gives (the hashes agree with the wrong file, so nothing
but its numbers tells), into the folder on disk, into a driver that is a double of pyxrt, or into recordings, and the
whole of phase 3 runs on it. A fault counts as caught where each item named here is FAIL (BLOCKED or NOT_RUN where the
row says so) and the summary of the first one names the place and, where the cause can be known, the cause, word by
word. Everything is executed on this host or made up by the double, nothing is measured.
"""
COLUMNS: Final = (
    "| fault | what is broken | in | step that caught it | item | diagnosis asked for | also FAIL | what was said |\n"
    "|---|---|---|---|---|---|---|---|\n"
)
SURVIVING: Final = """
## Survivors

Not noticed, with the reason.

| fault | what is broken | in | gate | why |
|---|---|---|---|---|
"""
SOUND: Final = """
## Sound files

The same files without a fault, under round-robin and ten seeded schedules: no item is FAIL.

| base | gate | items that are FAIL |
|---|---|---|
"""
WHERE: Final = {
    "given": "constants",
    "emitted": "emitted file",
    "disk": "file on disk",
    "driver": "driver",
    "recording": "recordings",
}
_STEP: Final = re.compile(r"(?P<order>\d\d)_(?P<kind>stage|chain|dispatch)_[^']+")


def table(outcomes: Sequence[Outcome], sound: Mapping[str, tuple[str, tuple[str, ...]]]) -> str:
    """The document.

    Args:
        outcomes: of every fault.
        sound: gate verdict and items that are FAIL, by base.
    """
    caught = [o for o in outcomes if o.caught]
    left = [o for o in outcomes if not o.caught]
    count = f"\n{len(outcomes)} faults: {len(caught)} caught, {len(left)} known survivors.\n\n"
    text = HEAD + count + COLUMNS + "".join(map(row_of, caught))
    if left:
        text += SURVIVING + "".join(map(row_of, left))
    return text + SOUND + "".join(sound_row(name, *said) for name, said in sound.items())


def step_of(outcome: Outcome) -> str:
    """Step whose failure the first item tells; else what was looked at."""
    found = _STEP.search(outcome.excerpt)
    if found is not None:
        return found[0]
    if not outcome.fault.items:
        return "emission"
    return {"BU002": "static rules", "BU003": "hashes", "BU010": "outputs"}.get(outcome.fault.items[0], "device")


def _cells(outcome: Outcome) -> Iterable[str]:
    fault, said = outcome.fault, outcome.said
    who = ", ".join(fault.items) if fault.items else f"refused, exit {said.exit}"
    who += f" {fault.verdict}" if fault.verdict != "FAIL" else ""
    also = ", ".join(code for code in said.failed if code not in fault.items)
    place = f"{WHERE[fault.where]}, {fault.base}"
    return (fault.id, fault.breaks, place, step_of(outcome), who, fault.cause or "-", also, _short(outcome.excerpt))


def _survivor(outcome: Outcome) -> Iterable[str]:
    fault = outcome.fault
    return (fault.id, fault.breaks, f"{WHERE[fault.where]}, {fault.base}", outcome.said.verdict, fault.survives)


def row_of(outcome: Outcome) -> str:
    """The row of a fault in the document."""
    return _row(_cells(outcome) if outcome.caught else _survivor(outcome))


def sound_row(name: str, verdict: str, failed: Sequence[str]) -> str:
    """The row of sound files."""
    return _row((name, verdict, ", ".join(failed) or "none"))


def rows_of(text: str) -> dict[str, str]:
    """The rows of a document by their first cell, of faults and of sound files."""
    rows = {line.split(" | ")[0].removeprefix("| "): f"{line}\n" for line in text.splitlines() if line.startswith("| ")}
    return {name: row for name, row in rows.items() if name not in ("fault", "base")}


def _short(text: str) -> str:
    """An excerpt; hashes and the numbers of lines, which change with every word of a source, are left out."""
    text = re.sub(r"\b[0-9a-f]{64}\b", "...", text)
    text = re.sub(r"\b([0-9a-f]{12})\b(?=[,) ])", "...", text)
    text = re.sub(r"(\.(?:cc|h|py)):\d+", r"\1", text)
    return text if len(text) <= EXCERPT else text[: EXCERPT - 3].rsplit(" ", 1)[0] + " ..."


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(c.replace("|", "\\|").replace("\n", " ") for c in cells) + " |\n"
