"""`python -m phases probe`: simulate the smallest design of one mechanism."""

from pathlib import Path

import click

from manifest.io import sha256_hex
from phases.exit_codes import GATE_NOT_PASSED, OK
from phases.integrity import require_port
from phases.presim.probe import read_probe, run_probe
from phases.presim.records import PROBES, record

EPILOG = """\b
Examples:
  python -m phases probe examples/probes/sliding_window.json
  python -m phases probe ring.json --port digits.port

The file says name, design, expected verdict, and values where it has some; see phases/presim/probe.py. With --port the
outcome becomes evidence: the presim gate of a port wants a probe for every mechanism that the tool does not know.

Exit codes: 0 the simulator says what the file expects, 1 something else, 2 the file is wrong.
"""


@click.command(epilog=EPILOG)
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--port", type=click.Path(path_type=Path), help="Keep the outcome as evidence in this port.")
def probe(file: Path, port: Path | None) -> int:
    """Simulate the design of FILE under several schedules and hold the verdict against the expected one."""
    read = read_probe(file)
    if port is not None:
        require_port(port)
    outcome = run_probe(read)
    click.echo(f"{read.name}: {outcome.result.text}")
    counts = f"{outcome.result.inferences} inferences, {outcome.result.schedules} schedules"
    click.echo(f"simulated: {counts}, {sum(outcome.result.compared.values())} elements compared")
    click.echo("as expected" if outcome.passed else f"not as expected: {outcome.why}")
    if port is not None:
        kept = record(port, PROBES, read.name, outcome.record(sha256_hex(file.read_bytes())))
        click.echo(f"recorded: {port / kept}; `python -m phases.presim {port}` takes it in")
    return OK if outcome.passed else GATE_NOT_PASSED
