"""`python -m phases check`: may this port be built on?"""

import tempfile
from pathlib import Path

import click

from phases import cli
from phases.exit_codes import OK, UPSTREAM
from phases.gates import last_present
from phases.pipeline import NAMES
from phases.runner import obstacles, survey

EPILOG = """\b
Examples:
  python -m phases check digits.port
  python -m phases check digits.port --through baseline --rerun

\b
Exit codes: 0 every gate is PASS and every byte is as committed; 3 otherwise, one line per reason;
2 no port there, or another run is writing it.
"""


@click.command(epilog=EPILOG)
@cli.PORT_ARGUMENT
@click.option("--through", type=click.Choice(NAMES), help="Last phase that has to be PASS. Default: the last present.")
@click.option("--rerun", is_flag=True, help="Also compute the phases anew from the recorded model and data, elsewhere.")
def check(port: Path, through: str | None, rerun: bool) -> int:
    """Check that no file of PORT changed and that its gates are PASS; names each file and reason."""
    seen = survey(port)
    lines = obstacles(seen, through)
    for line in lines:
        click.echo(line)
    for fault in seen.integrity.unverified:
        click.echo(f"note: {fault.line()}")
    for line in seen.integrity.unknown_lines():
        click.echo(f"note: {line}")
    if lines:
        click.echo(f"{port}: {len(lines)} reason{'' if len(lines) == 1 else 's'} not to build on it")
        return UPSTREAM
    if rerun:
        with tempfile.TemporaryDirectory(prefix="aie-port-check-") as scratch:
            different = _rerun(port, Path(scratch), through or last_present(seen.gates))
        for line in different:
            click.echo(line)
        if different:
            return UPSTREAM
        click.echo("rerun: the gate and everything it was judged on came out byte for byte the same")
    last = through if through is not None else last_present(seen.gates)
    click.echo(f"{port}: {seen.gate(last).words} through {last}; every file as committed")
    return OK


def _rerun(port: Path, scratch: Path, through: str) -> tuple[str, ...]:
    """What comes out differently, phase by phase; the first phase with a difference ends it."""
    from phases.baseline import recheck as baseline  # noqa: PLC0415  (brings onnx and onnxruntime)
    from phases.bringup import recheck as bringup  # noqa: PLC0415  (needed for this option alone)
    from phases.presim import recheck as presim  # noqa: PLC0415  (likewise)

    elsewhere = scratch / port.resolve().name
    different = baseline.differences(port, scratch)
    for phase, again in ((NAMES[1], presim), (NAMES[2], bringup)):
        if different or NAMES.index(through) < NAMES.index(phase):
            return different
        different = again.differences(port, elsewhere)
    return different
