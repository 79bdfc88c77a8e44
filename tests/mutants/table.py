"""`docs/mutants.md` from the outcomes of a whole run."""

import re
from collections.abc import Iterable, Sequence
from typing import Final

from tests.mutants.harness import Mutant, Outcome

EXCERPT: Final = 240

HEAD: Final = """# Mutants: the gate against an oracle and an importer broken on purpose

Written by `python -m tests.mutants.run --write docs/mutants.md`; `--only ID` tries one. Per row the packages are
copied, one thing is broken, and phase 1 runs on the copy with a small model and data on which a sound copy is PASS. A
mutant counts as caught where each item named here is FAIL and its summary names tensor and op (and the likely cause,
where one can be told), or where the run refuses, or `phases check` ends, by name with the exit code given. Models are
built in `tests/mutants/models.py`; `digits_cnn` is the example in `examples/digits`.
"""
SURVIVING: Final = """
## Survivors

Not caught by a gate. Each is caught by the unit test named, which was run on the broken copy.

| mutant | broken | file | model | gate | why | unit test |
|---|---|---|---|---|---|---|
"""
COLUMNS: Final = "| mutant | broken | file | model | verdict | item | what was said |\n|---|---|---|---|---|---|---|\n"


def table(outcomes: Sequence[Outcome]) -> str:
    """The document."""
    caught = [o for o in outcomes if o.caught]
    left = [o for o in outcomes if not o.caught]
    count = f"\n{len(outcomes)} mutants: {len(caught)} caught, {len(left)} known survivors.\n\n"
    rows = "".join(_row(_cells(o)) for o in caught)
    survivors = "".join(_row(_survivor(o)) for o in left)
    return HEAD + count + COLUMNS + rows + (SURVIVING + survivors if left else "")


def _cells(outcome: Outcome) -> Iterable[str]:
    mutant, run = outcome.mutant, outcome.run
    verdict = f"gate {run.verdict}" if mutant.items else f"exit {run.exit}"
    return (mutant.id, mutant.breaks, _files(mutant), mutant.model, verdict, _who(mutant), _short(outcome.excerpt))


def _survivor(outcome: Outcome) -> Iterable[str]:
    mutant = outcome.mutant
    gate = f"gate {outcome.run.verdict}"
    return (mutant.id, mutant.breaks, _files(mutant), mutant.model, gate, mutant.survives, mutant.unit_test)


def _who(mutant: Mutant) -> str:
    if mutant.items:
        return ", ".join(mutant.items)
    return "`check --rerun`" if mutant.rerun else "`check`" if mutant.touch else "refused"


def _files(mutant: Mutant) -> str:
    return ", ".join(dict.fromkeys(e.file for e in mutant.edits)) or mutant.touch


def _short(text: str) -> str:
    """An excerpt; whole hashes, which differ from run to run, are left out."""
    text = re.sub(r"\b[0-9a-f]{64}\b", "...", text)
    return text if len(text) <= EXCERPT else text[: EXCERPT - 3].rsplit(" ", 1)[0] + " ..."


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(c.replace("|", "\\|").replace("\n", " ") for c in cells) + " |\n"
