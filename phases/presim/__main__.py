"""`python -m phases.presim`: from the manifest of phase 1 to a placed dataflow, simulated against the oracle."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from manifest.io import manifest_from_json
from phases import cli, runner
from phases.integrity import require_port
from phases.pipeline import PHASES
from phases.port import open_port, writing
from phases.presim.options import Arguments, resolve
from phases.presim.run import run as run_presim
from phases.presim.source import MANIFEST

EPILOG = """\b
Examples:
  python -m phases.presim model.port
  python -m phases.presim model.port --directives directives.json --batch 16

\b
The file of directives: {onnx node name: {"parallelism": {"cas_num": 2, "cas_length": 1, "contract": "inner"},
"placement": {"row": 0, "col": 1}, "layout": "...", "weights": "resident" or "streamed", "depth": 3, "edges": "direct"
or "memtile", "host_streams": 4}}; every key is optional, an unknown one is refused.

\b
Exit codes:
  0  the gate is PASS
  1  the gate is FAIL or NOT_RUN; everything was written
  2  the input is wrong or does not fit the device, or another run holds the port; nothing was written
  3  the baseline gate is missing, not PASS, stale or tampered
"""


@click.command(epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@cli.PORT_ARGUMENT
@click.option(
    "--directives", type=click.Path(path_type=Path), help="JSON: parallelism, placement, weights and more by node."
)
@click.option("--batch", type=click.IntRange(2, 2**20), help="N of the second regime. Default: 8.")
@click.option(
    "--schedules",
    type=click.IntRange(0, 100),
    help="Seeded schedules beside round-robin. Default: 3; with fewer the gate cannot pass.",
)
def command(**given: Any) -> int:
    """Plan and place a dataflow for PORT, simulate it bit for bit against the oracle, judge the gate.

    PORT is the folder that `python -m phases.baseline` wrote, its gate PASS. Options that are not given are those of
    the last run. Results go to stdout, progress to stderr. Everything is simulated or predicted, nothing measured.
    """
    arguments = Arguments(**given)
    require_port(arguments.port)
    with writing(arguments.port) as healed:
        port = open_port(arguments.port)
        click.echo(f"device: {port.info.device} (from phase 1)")
        manifest = manifest_from_json(port.read(MANIFEST))
        options = resolve(arguments, port, manifest)
        clearance = runner.clear(arguments.port, PHASES[0].name)
        for note in (healed, *options.notes):
            if note:
                click.echo(f"note: {note}")
        return run_presim(options, port, clearance, cli.console())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit code."""
    return cli.main(command, arguments, "python -m phases.presim")


if __name__ == "__main__":
    cli.leave(main())
