"""`python -m phases status`: where a port stands."""

from pathlib import Path

import click
from rich.console import Console

from phases import cli
from phases.exit_codes import OK
from phases.gates import GateView, first_open
from phases.pipeline import phase_named
from phases.runner import Survey, survey
from phases.summary import print_items


@click.command(epilog="\b\nExample:\n  python -m phases status digits.port")
@cli.PORT_ARGUMENT
def status(port: Path) -> int:
    """Show phases, verdicts, items, and what changed since the last run. Exit 0 whatever it shows; see `check`."""
    seen = survey(port)
    console = cli.console()
    _print_port(console, seen)
    _print_phases(console, seen.gates)
    for view in seen.gates:
        if view.report is not None:
            console.print()
            console.print(cli.plain(f"{view.phase}: {phase_named(view.phase).question}"))
            print_items(console, view.report)
    return OK


def _print_port(console: Console, seen: Survey) -> None:
    found = seen.integrity
    console.print(cli.plain(f"port: {seen.root}"))
    if found.info is not None:
        data = found.info.data.path if found.info.data is not None else "none"
        console.print(cli.plain(f"device: {found.info.device}   model: {found.info.model.path}   data: {data}"))
    console.print("files: ", cli.verdict_text(found.condition), sep="")
    for fault in (*found.faults, *found.unverified):
        console.print(cli.plain(f"  {fault.line()}"))
    for line in found.unknown_lines():
        console.print(cli.plain(f"  {line}"))


def _print_phases(console: Console, gates: tuple[GateView, ...]) -> None:
    rows = cli.table("phase", "gate", "why")
    for view in gates:
        words = "; ".join(view.reasons)
        if view.report is not None and not view.reasons and (item := first_open(view.report)) is not None:
            words = f"{item.code} {item.title}: {item.verdict}: {item.summary}"
        rows.add_row(view.phase, cli.verdict_text(view.words), cli.plain(words))
    console.print(rows)
