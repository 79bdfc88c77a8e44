"""`python -m phases oracle`: run the exact integer model on given inputs."""

import os
from pathlib import Path

import click

from checklists.items.words import counted
from manifest.errors import Problem, RefusedError
from manifest.io import write_npz
from phases import cli
from phases.api import Arithmetic, LoadedPort, load
from phases.exit_codes import OK
from phases.feeds import read_feeds
from phases.state import is_taken

EPILOG = """\b
Examples:
  python -m phases oracle digits.port --inputs x.npz --outputs y.npz
  python -m phases oracle digits.port --inputs x.npz --outputs all.npz --all-tensors --arithmetic target

The .npz of inputs holds arrays by ONNX input name (or in_0, in_1, ... by position, or x for a single input), in the
model's exact shape or with one more axis in front; the results come back likewise, under their ONNX names.
"""


@click.command(epilog=EPILOG)
@cli.PORT_ARGUMENT
@click.option("--inputs", required=True, type=click.Path(path_type=Path), help="Inputs, an .npz.")
@click.option("--outputs", required=True, type=click.Path(path_type=Path), help="Where results go, an .npz.")
@click.option("--all-tensors", is_flag=True, help="Every quantised tensor, not the graph outputs alone.")
@click.option(
    "--arithmetic",
    type=click.Choice(["reference", "target"]),
    default="reference",
    show_default=True,
    help="reference: the file as written; target: what the kernels compute.",
)
def oracle(port: Path, inputs: Path, outputs: Path, all_tensors: bool, arithmetic: Arithmetic) -> int:
    """Run the oracle of PORT, whatever its gate says; refuses a port that was tampered with (exit 3)."""
    loaded = load(port)
    _require_free(outputs, inputs, loaded)
    feeds = read_feeds(inputs, loaded.manifest)
    results = loaded.run_feeds(feeds, all_tensors=all_tensors, arithmetic=arithmetic)
    write_npz(outputs, results)
    for note in feeds.notes:
        click.echo(f"note: {note}")
    form = counted(feeds.count, "feed") if feeds.leading else "one feed in the model's exact shape"
    click.echo(f"{counted(len(results), 'tensor')}, {form}, {arithmetic} arithmetic: {outputs}")
    return OK


def _require_free(outputs: Path, inputs: Path, loaded: LoadedPort) -> None:
    """Refuse to write results over the inputs, or under a name of the port that means something."""
    root, target = Path(os.path.realpath(loaded.port.root)), Path(os.path.realpath(outputs))
    name = target.relative_to(root).as_posix() if target.is_relative_to(root) else ""
    if target == Path(os.path.realpath(inputs)) or is_taken(name) or name in loaded.port.state.files:
        what, expected = "results would replace what they come from, or a file of the port", "a file of its own"
        raise RefusedError(
            (Problem(code="OPTION-OUTPUTS", where=f"--outputs {outputs}", what=what, expected=expected),)
        )
