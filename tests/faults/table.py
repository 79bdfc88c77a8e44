"""Runs every seeded fault and writes `docs/faults.md`: `python -m tests.faults.table`."""

import sys
import tempfile
from pathlib import Path
from typing import Final

import pytest

from checklists.model import Verdict
from tests.faults.bench import examples, judge
from tests.faults.catalogue import FAULTS

ROOT: Final = Path(__file__).resolve().parents[2]
PAGE: Final = ROOT / "docs" / "faults.md"
SHOWN: Final = 240

HEAD: Final = """# Faults: the presim gate against designs broken on purpose

Written by `python -m tests.faults.table`; the same faults are tests (`tests/faults`). Each row takes a sound design,
breaks one thing, and runs stages alone, chain, whole, static checks and budgets over it. A fault counts as caught where
every item named here is FAIL and the first one's summary names the place. Sound designs pass under ten schedule seeds.

"""
COLUMNS: Final = "| fault | broken | design | items that FAIL | what was said |\n|---|---|---|---|---|\n"


def main() -> int:
    """Write the page; 1 where a fault is not caught."""
    rows, missed = [], 0
    with tempfile.TemporaryDirectory() as folder:
        made = examples(ROOT, Path(folder), ROOT.parent / "shared")
        for broken in FAULTS:
            with pytest.MonkeyPatch.context() as patch:
                report = judge(made[broken.example], broken, patch)
            failed = [item.code for item in report.items if item.verdict is Verdict.FAIL]
            said = next((i.summary for i in report.items if i.code == broken.items[0]), "")
            missed += not set(broken.items) <= set(failed) or broken.place not in said
            text = said if len(said) <= SHOWN else f"{said[:SHOWN]} ..."
            cells = (broken.id, broken.what, broken.example, ", ".join(failed), text.replace("|", "\\|"))
            rows.append(f"| {' | '.join(cells)} |\n")
            print(f"{broken.id}: {', '.join(failed)}")
    PAGE.write_text(f"{HEAD}{len(FAULTS)} faults, {missed} missed.\n\n{COLUMNS}{''.join(rows)}", encoding="utf-8")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
