"""`python -m phases`: the commands around a port.

Why commands are loaded by name: `status` and `check` should not wait for onnx and onnxruntime.
"""

import importlib
from collections.abc import Sequence
from typing import Final

import click

from phases import cli

COMMANDS: Final = (
    "status", "check", "diff", "explain", "waive", "oracle", "compare", "repro", "topology", "draw", "probe",
    "equivalence", "lint-generated", "presim-design", "kernel-signature", "ab",
)  # fmt: skip

EPILOG = """\b
A port is made by:  python -m phases.baseline model.onnx --data real.npz
Then:               python -m phases status model.port
"""


class Commands(click.Group):
    """A group whose commands are modules of `phases.commands` with a click command of the same name."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names, in the order in which a person meets them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load a command, None where there is none of this name."""
        if cmd_name not in COMMANDS:
            return None
        module = cmd_name.replace("-", "_")
        found = getattr(importlib.import_module(f"phases.commands.{module}"), module)
        if not isinstance(found, click.Command):
            msg = f"phases.commands.{module}.{module}: expected a click command"
            raise TypeError(msg)
        return found


@click.group(
    cls=Commands, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110}
)
def commands() -> None:
    """Look at ports of ONNX models, check them, run their oracle, accept deviations."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit code."""
    return cli.main(commands, arguments, "python -m phases")


if __name__ == "__main__":
    cli.leave(main())
