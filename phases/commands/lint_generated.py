"""`python -m phases lint-generated`: static rules on the generated sources of a port."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import click

from bringup.lint import RULES, lint
from manifest.errors import UpstreamError
from phases import cli
from phases.exit_codes import GATE_NOT_PASSED, OK
from phases.port import Port, open_port

FOLDER: Final = "generated/"
ABSENT: Final = "LINT-GENERATED"

EPILOG = """\b
Examples:
  python -m phases lint-generated digits.port
  python -m phases lint-generated --rules

Reads what phase 3 emitted, compiles and runs nothing. Exit 0: no finding; 1: findings, one line each; 3: the port
has no generated sources, or they were changed.
"""


def _rules(context: click.Context, _: click.Parameter, value: bool) -> None:
    if value and not context.resilient_parsing:
        for code, title in RULES.items():
            click.echo(f"{code}  {title}")
        context.exit()


@click.command(epilog=EPILOG)
@cli.PORT_ARGUMENT
@click.option("--rules", is_flag=True, is_eager=True, expose_value=False, callback=_rules, help="List the rules.")
def lint_generated(port: Path) -> int:
    """Hold the generated sources of PORT against the rules for kernels and IRON designs."""
    files = generated_files(open_port(port))
    found = lint(files)
    for finding in found:
        click.echo(cli.plain(f"{FOLDER}{finding.file}:{finding.line}: {finding.rule} {finding.text}").plain)
    click.echo(f"{len(found)} findings of {len(RULES)} rules in {len(files)} files")
    return GATE_NOT_PASSED if found else OK


def generated_files(port: Port) -> Mapping[str, bytes]:
    """The generated folder of a port, path in it -> content, every byte checked.

    Raises:
        UpstreamError: there is none, or a file was changed.
    """
    names = sorted(name for name in port.state.files if name.startswith(FOLDER))
    if not names:
        msg = f"[{ABSENT}] {FOLDER}: expected generated sources; got none; remedy: run phases.bringup"
        raise UpstreamError(msg)
    return {name.removeprefix(FOLDER): port.read(name) for name in names}
