"""`python -m phases.bringup`: real sources for the design of phase 2, brought up stage by stage."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from phases import cli, runner
from phases.bringup.options import BACKENDS, LEVELS, Arguments, resolve
from phases.bringup.run import run as run_bringup
from phases.integrity import require_port
from phases.port import open_port, writing

EPILOG = """\b
Examples:
  python -m phases.bringup model.port --backend host --level host
  python -m phases.bringup model.port --backend xrt
  python -m phases.bringup model.port --backend replay --recordings from_the_board

\b
Every backend begins with the host: the emitted sources are compiled with sanitizers and executed inside the simulated
dataflow. `host` stops there; without `--level host` its hardware items stay BLOCKED and the exit code is 4.

\b
kernels/<op>/kernel.cc and twin.py in PORT stand for the emitted kernel of an op and for the simulator's: your code, run
on this machine. `python -m phases kernel-signature PORT` prints the names.

\b
Exit codes:
  0  the gate is PASS at the level that was asked for
  1  the gate is FAIL or NOT_RUN; everything was written
  2  something cannot be emitted, or another run holds the port; nothing was written
  3  a gate above is missing, not PASS, stale or tampered
  4  a device or compiler is absent
"""


@click.command(epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@cli.PORT_ARGUMENT
@click.option("--backend", type=click.Choice(BACKENDS), help="Where it runs beside the host. Default: host.")
@click.option("--level", type=click.Choice(LEVELS), help="What the gate is judged at. Default: hardware.")
@click.option("--schedules", type=click.IntRange(0, 100), help="Seeded schedules beside round-robin. Default: 3.")
@click.option("--recordings", type=click.Path(path_type=Path), help="Folder that test.py wrote on a board (replay).")
def command(**given: Any) -> int:
    """Emit IRON and AIE-API sources for PORT, execute them, bring them up one stage at a time, judge the gate.

    PORT is a folder whose baseline and presim gates are PASS. Options that are not given are those of the last run.
    What runs on the host is executed there and never called measured; only a device measures.
    """
    arguments = Arguments(**given)
    require_port(arguments.port)
    with writing(arguments.port) as healed:
        port = open_port(arguments.port)
        click.echo(f"device: {port.info.device} (from phase 1)")
        options = resolve(arguments, port)
        clearance = runner.clear(arguments.port, "presim")
        for note in (healed, *options.notes):
            if note:
                click.echo(f"note: {note}")
        return run_bringup(options, port, clearance, cli.console())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit code."""
    return cli.main(command, arguments, "python -m phases.bringup")


if __name__ == "__main__":
    cli.leave(main())
