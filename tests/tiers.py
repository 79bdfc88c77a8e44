"""Runs the test tiers part by part and prints the seconds of each.

`python -m tests.tiers test|corpus|nightly`: every part runs even when an earlier one fails; the exit code is 1
if any part failed. A part that runs no test fails.
"""

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
BIN: Final = Path(sys.executable).parent
PYTEST: Final = (sys.executable, "-m", "pytest", "-q", "-n", "2", "--dist", "worksteal")
FAST: Final = "not slow and not hardware and not corpus"

Part = tuple[str, tuple[str, ...]]

STATIC: Final[tuple[Part, ...]] = (
    ("lint", (str(BIN / "ruff"), "check", ".")),
    ("format", (str(BIN / "ruff"), "format", "--check", ".")),
    ("types", (str(BIN / "mypy"),)),
    ("imports", (str(BIN / "lint-imports"), "--config", "importlinter.ini")),
    ("generated docs", (sys.executable, "-m", "phases.docs", "--check")),
)
TIERS: Final[dict[str, tuple[Part, ...]]] = {
    "test": (
        *STATIC,
        ("property tests", (*PYTEST, "-m", f"property and {FAST}")),
        ("end to end", (*PYTEST, "-m", FAST, "tests/e2e")),
        ("model cases", (*PYTEST, "-m", FAST, "tests/cases")),
        (
            "unit tests",
            (*PYTEST, "-m", f"not property and {FAST}", "--ignore=tests/e2e", "--ignore=tests/cases"),
        ),
    ),
    "corpus": (("corpus", (*PYTEST, "-m", "corpus")),),
    "nightly": (*STATIC, ("everything", (*PYTEST, "-m", "not hardware"))),
}


def main(tier: str) -> int:
    """Run one tier; print a table of parts, verdicts and seconds."""
    environment = dict(os.environ, PYTHONHASHSEED="0")
    if tier == "nightly":
        environment["HYPOTHESIS_PROFILE"] = "nightly"
    rows: list[tuple[str, bool, float]] = []
    for name, command in TIERS[tier]:
        print(f"== {name}", flush=True)
        start = time.monotonic()
        done = subprocess.run(command, cwd=ROOT, env=environment, check=False)
        rows.append((name, done.returncode == 0, time.monotonic() - start))
    print(f"== {tier}: seconds by part")
    for name, passed, seconds in rows:
        print(f"  {name:<16} {'passed' if passed else 'FAILED'} {seconds:7.1f}")
    failed = sum(not passed for _, passed, _ in rows)
    print(f"  {'total':<16} {sum(seconds for _, _, seconds in rows):14.1f}")
    print(f"parts: {len(rows) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in TIERS:
        sys.exit(f"usage: python -m tests.tiers {'|'.join(TIERS)}")
    sys.exit(main(sys.argv[1]))
