"""`python -m tests.mutants.run [--write docs/mutants.md] [--only ID]`: break it on purpose, see who notices."""

import sys
import tempfile
import time
from pathlib import Path

import click

from tests.mutants.catalogue import MUTANTS
from tests.mutants.harness import Bench, MutationError, Outcome
from tests.mutants.table import table


@click.command()
@click.option("--write", "path", type=click.Path(path_type=Path), help="Write the table here.")
@click.option("--only", multiple=True, metavar="ID", help="Only these mutants; repeatable.")
def command(path: Path | None, only: tuple[str, ...]) -> None:
    """Try every mutant, one at a time; exit 1 where one is not caught by the right item with the right words.

    The table is written only by a whole run in which everything is as expected.
    """
    unknown = sorted(set(only) - {m.id for m in MUTANTS})
    if unknown:
        raise click.UsageError("no such mutant: " + ", ".join(unknown))
    chosen = [m for m in MUTANTS if not only or m.id in only]
    outcomes: list[Outcome] = []
    broken = 0
    with tempfile.TemporaryDirectory(prefix="mutants-") as scratch:
        bench = Bench(Path(scratch))
        for mutant in chosen:
            start = time.monotonic()
            try:
                outcome = bench.try_mutant(mutant)
            except MutationError as error:
                click.echo(f"{mutant.id}: CANNOT BE APPLIED: {error}")
                broken += 1
                continue
            outcomes.append(outcome)
            state = "caught" if outcome.caught else "survives, as known" if outcome.as_expected else ""
            state = state or "NOT AS EXPECTED: " + "; ".join(outcome.missing)
            seconds = time.monotonic() - start
            click.echo(f"{mutant.id}: {state} ({seconds:.1f} s; FAIL: {', '.join(outcome.noticed) or 'none'})")
            click.echo(f"    {outcome.excerpt[:400]}")
    wrong = sum(not o.as_expected for o in outcomes) + broken
    caught = sum(o.caught for o in outcomes)
    click.echo(f"{len(chosen)} mutants: {caught} caught, {len(chosen) - caught - wrong} known survivors, {wrong} wrong")
    if path is not None and not wrong and not only:
        path.write_text(table(outcomes), encoding="utf-8")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    command()
