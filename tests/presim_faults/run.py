"""`python -m tests.presim_faults.run [--write docs/presim-faults.md] [--only ID]`: break designs, see who notices."""

import sys
import tempfile
import time
from pathlib import Path
from typing import Final

import click

from tests.presim_faults.catalogue import FAULTS
from tests.presim_faults.edits import EditError
from tests.presim_faults.harness import BASES, Bench, Outcome
from tests.presim_faults.table import table

SEEDS: Final = 10


@click.command()
@click.option("--write", "path", type=click.Path(path_type=Path), help="Write the table here.")
@click.option("--only", multiple=True, metavar="ID", help="Only these faults; repeatable.")
def command(path: Path | None, only: tuple[str, ...]) -> None:
    """Try every fault, one at a time, then the sound designs; exit 1 where something is not as expected.

    The table is written only by a whole run in which everything is as expected.
    """
    unknown = sorted(set(only) - {f.id for f in FAULTS})
    if unknown:
        raise click.UsageError("no such fault: " + ", ".join(unknown))
    outcomes: list[Outcome] = []
    wrong = 0
    sound: dict[str, tuple[str, tuple[str, ...]]] = {}
    with tempfile.TemporaryDirectory(prefix="faults-") as scratch:
        bench = Bench(Path(scratch))
        for fault in (f for f in FAULTS if not only or f.id in only):
            start = time.monotonic()
            try:
                outcome = bench.try_fault(fault)
            except EditError as error:
                click.echo(f"{fault.id}: CANNOT BE APPLIED: {error}")
                wrong += 1
                continue
            outcomes.append(outcome)
            _tell(outcome, time.monotonic() - start)
        for base in BASES if not only else ():
            said = bench.say(base, seeds=SEEDS)
            sound[base] = (said.verdict, said.failed)
            wrong += said.verdict != "PASS"
            click.echo(f"sound {base}: {said.verdict} ({SEEDS} seeds; FAIL: {', '.join(said.failed) or 'none'})")
    wrong += sum(not o.as_expected for o in outcomes)
    caught = sum(o.caught for o in outcomes)
    click.echo(f"{len(outcomes)} faults: {caught} caught, {wrong} wrong")
    if path is not None and not wrong and not only:
        path.write_text(table(outcomes, sound), encoding="utf-8")
    sys.exit(1 if wrong else 0)


def _tell(outcome: Outcome, seconds: float) -> None:
    state = "caught" if outcome.caught else "survives, as known" if outcome.as_expected else ""
    state = state or "NOT AS EXPECTED: " + "; ".join(outcome.missing)
    click.echo(f"{outcome.fault.id}: {state} ({seconds:.1f} s; FAIL: {', '.join(outcome.said.failed) or 'none'})")
    click.echo(f"    {outcome.excerpt[:400]}")
    if not outcome.as_expected:
        for code, (verdict, summary) in outcome.said.items.items():
            if verdict != "PASS":
                click.echo(f"    {code} {verdict} {summary[:400]}")


if __name__ == "__main__":
    command()
