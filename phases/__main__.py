"""`python -m phases`: the commands around a port."""

import sys
from collections.abc import Sequence

import click

from phases import cli
from phases.commands.check import check
from phases.commands.diff import diff
from phases.commands.explain import explain
from phases.commands.oracle import oracle
from phases.commands.status import status
from phases.commands.waive import waive

EPILOG = """\b
A port is made by:  python -m phases.baseline model.onnx --data real.npz
Then:               python -m phases status model.port
"""


@click.group(epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
def commands() -> None:
    """Look at ports of ONNX models, check them, run their oracle, accept deviations."""


for _command in (status, check, diff, explain, waive, oracle):
    commands.add_command(_command)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit code."""
    return cli.main(commands, arguments, "python -m phases")


if __name__ == "__main__":
    sys.exit(main())
