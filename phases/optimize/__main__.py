"""`python -m phases.optimize`: what limits the design, and a better one with gates of its own."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from phases import cli, runner
from phases.integrity import require_port
from phases.optimize.adopt import adopt as adopt_design
from phases.optimize.options import GOALS, LEVELS, Arguments, resolve
from phases.optimize.run import run as run_optimize
from phases.port import open_port, writing

EPILOG = """\b
Examples:
  python -m phases.optimize model.port --goal throughput
  python -m phases.optimize model.port --goal latency --max-tiles 16
  python -m phases.optimize model.port --adopt

\b
Times are predicted by the timing model and never called measured. Every candidate is simulated bit for bit against the
oracle before its time counts; the winner runs phases 2 and 3 in a scratch port before it is called better.

\b
Exit codes:
  0  the gate is PASS at the level that was asked for (a run that finds nothing better can pass)
  1  the gate is FAIL or NOT_RUN; everything was written
  2  the device lacks figures, the table is malformed, or another run holds the port; nothing was written
  3  a gate above is missing, not PASS, stale or tampered
  4  a device or compiler is absent
"""


@click.command(epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@cli.PORT_ARGUMENT
@click.option("--goal", type=click.Choice(GOALS), help="What better means. Default: throughput.")
@click.option("--max-tiles", type=click.IntRange(0, 1000), help="Core tiles at most; 0 = all. Default: 0.")
@click.option("--plans", type=click.IntRange(1, 10_000), help="Designs that may be planned per dispatch. Default: 60.")
@click.option("--level", type=click.Choice(LEVELS), help="What the gate is judged at. Default: host.")
@click.option(
    "--bandwidth",
    type=click.Path(path_type=Path),
    help="JSON: a bandwidth table in place of the default one; kept for reruns.",
)
@click.option("--accept-nondeterministic", is_flag=True, help="Take a placement that the wall clock cut off.")
@click.option("--adopt", is_flag=True, help="Make the design that was found the design; runs phases 2 and 3.")
def command(adopt: bool, **given: Any) -> int:
    """Rank what costs time in PORT, search for a better design, prove the winner, judge the gate.

    PORT is a folder whose gates are PASS through bring-up. Options that are not given are those of the last run.
    """
    arguments = Arguments(**given)
    require_port(arguments.port)
    with writing(arguments.port) as healed:
        port = open_port(arguments.port)
        click.echo(f"device: {port.info.device} (from phase 1)")
        if healed:
            click.echo(f"note: {healed}")
        if adopt:
            return adopt_design(port, cli.console())
        options = resolve(arguments, port)
        clearances = (runner.clear(arguments.port, "baseline"), runner.clear(arguments.port, "bringup"))
        for note in options.notes:
            click.echo(f"note: {note}")
        return run_optimize(options, port, clearances, cli.console())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit code."""
    return cli.main(command, arguments, "python -m phases.optimize")


if __name__ == "__main__":
    cli.leave(main())
