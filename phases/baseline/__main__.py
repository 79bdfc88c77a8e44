"""`python -m phases.baseline`: from a model and real data to a validated manifest, oracle and gate."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from manifest.device import DEFAULT_DEVICE, DEVICES
from manifest.errors import RefusedError
from phases import cli
from phases.baseline.options import Arguments, resolve
from phases.baseline.run import run as run_baseline
from phases.port import writing

EPILOG = """\b
Examples:
  python -m phases.baseline model.onnx --data real.npz
  python -m phases.baseline model.onnx --shape image=1,3,224,224 --device npu1
  python -m phases.baseline model.port              rerun with the options of the last run

\b
Exit codes:
  0  the gate is PASS
  1  the gate is FAIL or NOT_RUN; everything was written
  2  the input is wrong or beyond reach, or another run holds the port; nothing was written
  3  the port was tampered with
  4  a tool or device that was asked for is absent
"""


@click.command(epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.argument("model", type=click.Path(path_type=Path))
@click.option(
    "--data", type=click.Path(path_type=Path), help="Real inputs: an .npz by input names, labels y or y_eval."
)
@click.option("--out", type=click.Path(path_type=Path), help="The port. Default: <model stem>.port in this folder.")
@click.option("--device", help=f"{', '.join(DEVICES)}. Default: {DEFAULT_DEVICE}.")
@click.option("--shape", "shapes", multiple=True, metavar="NAME=1,3,224,224", help="Shape of an input; repeatable.")
@click.option("--host-ops/--no-host-ops", default=None, help="Let unsupported ops run on the host between dispatches.")
@click.option("--cut", "cuts", multiple=True, metavar="TENSOR", help="End a dispatch at this tensor; repeatable.")
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), help="Of the random inputs. Default: 0.")
@click.option("--max-samples", type=click.IntRange(1), help="Use at most so many samples. Default: all.")
def command(**given: Any) -> int:
    """Lock the numbers of MODEL: import it, hold the integer oracle against onnxruntime, judge the gate.

    MODEL is an ONNX file, or the folder of an earlier run (a rerun; options given here rule over the old ones).
    Results go to stdout, progress to stderr. Without --data the gate cannot pass: the real-data items say NOT_RUN.
    """
    arguments = Arguments(**given)
    if arguments.is_rerun and arguments.out is not None and not _same_folder(arguments.out, arguments.model):
        msg = "--out: a rerun stays in its own folder; give the model to make another port"
        raise click.UsageError(msg)
    with writing(arguments.port) as healed:
        try:
            options = resolve(arguments)
        except RefusedError:
            if arguments.device is None:
                click.echo(f"device: {DEFAULT_DEVICE} (default; choose another with --device)")
            raise
        click.echo(options.device_line)
        for note in (healed, *options.notes):
            if note:
                click.echo(f"note: {note}")
        return run_baseline(options, cli.console())


def _same_folder(a: Path, b: Path) -> bool:
    """Whether two paths lead to one place, links followed."""
    return os.path.realpath(a) == os.path.realpath(b)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit code."""
    return cli.main(command, arguments, "python -m phases.baseline")


if __name__ == "__main__":
    cli.leave(main())
