"""`python -m tests.bringup_faults.run [--write docs/bringup-faults.md] [--only ID]`: break things, see who notices."""

import sys
import tempfile
import time
from pathlib import Path
from typing import Final

import click

from tests.bringup_faults.bases import BASES
from tests.bringup_faults.catalogue import FAULTS
from tests.bringup_faults.edits import EditError
from tests.bringup_faults.harness import Bench, Outcome
from tests.bringup_faults.table import table

SEEDS: Final = 10


@click.command()
@click.option("--write", "path", type=click.Path(path_type=Path), help="Write the table here.")
@click.option("--only", multiple=True, metavar="ID", help="Only these faults; repeatable.")
@click.option("--scratch", type=click.Path(path_type=Path), help="Keep ports and kernels here, an empty folder.")
def command(path: Path | None, only: tuple[str, ...], scratch: Path | None) -> None:
    """Try every fault, one at a time, then the sound files; exit 1 where something is not as expected.

    The table is written only by a whole run in which everything is as expected.
    """
    unknown = sorted(set(only) - {f.id for f in FAULTS})
    if unknown:
        raise click.UsageError("no such fault: " + ", ".join(unknown))
    outcomes: list[Outcome] = []
    wrong = 0
    sound: dict[str, tuple[str, tuple[str, ...]]] = {}
    with tempfile.TemporaryDirectory(prefix="faults-") as folder:
        bench = Bench(scratch or Path(folder))
        for fault in sorted((f for f in FAULTS if not only or f.id in only), key=lambda f: list(BASES).index(f.base)):
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
            said = bench.sound(base, seeds=SEEDS)
            sound[base] = (said.verdict, said.failed)
            wrong += said.verdict != "PASS"
            click.echo(f"sound {base}: {said.verdict} ({SEEDS} seeds; FAIL: {', '.join(said.failed) or 'none'})")
        bench.close()
    wrong += sum(not o.as_expected for o in outcomes)
    click.echo(f"{len(outcomes)} faults: {sum(o.caught for o in outcomes)} caught, {wrong} wrong")
    if path is not None and not wrong and not only:
        order = [f.id for f in FAULTS]
        path.write_text(table(sorted(outcomes, key=lambda o: order.index(o.fault.id)), sound), encoding="utf-8")
    sys.exit(1 if wrong else 0)


def _tell(outcome: Outcome, seconds: float) -> None:
    state = "caught" if outcome.caught else "survives, as known" if outcome.as_expected else ""
    state = state or "NOT AS EXPECTED: " + "; ".join(outcome.missing)
    click.echo(f"{outcome.fault.id}: {state} ({seconds:.1f} s; FAIL: {', '.join(outcome.said.failed) or 'none'})")
    click.echo(f"    {outcome.excerpt[:600]}")
    if not outcome.as_expected:
        for code, (verdict, summary) in outcome.said.items.items():
            if verdict not in ("PASS", "NOT_APPLICABLE") and "not judged at host level" not in summary:
                click.echo(f"    {code} {verdict} {summary[:700]}")


if __name__ == "__main__":
    command()
