"""`python -m phases repro`: one op of a port as ONNX, inputs and expected outputs."""

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from bringup.emit import write
from manifest.errors import Problem, RefusedError
from manifest.io import write_npz
from phases import cli
from phases.bringup.repro import Repro, repro_of
from phases.exit_codes import OK
from phases.port import open_port

EPILOG = """\b
Example:
  python -m phases repro digits.port --op /conv1/Conv --output conv1.repro

The folder holds model.onnx, inputs.npz and expected.npz. The expected outputs are those of the oracle for the file as
written; onnxruntime is run on them at once and the number of elements that differ is printed.
"""


@click.command(epilog=EPILOG)
@cli.PORT_ARGUMENT
@click.option("--op", required=True, help="Name of an op of the manifest.")
@click.option("--output", required=True, type=click.Path(path_type=Path), help="A folder that does not exist yet.")
def repro(port: Path, op: str, output: Path) -> int:
    """Cut one op out of the model of PORT, with the canary's inputs and what has to come out."""
    if os.path.lexists(output):
        raise RefusedError(
            (
                Problem(
                    code="OPTION-OUTPUTS", where=f"--output {output}", what="is there already", expected="a new name"
                ),
            )
        )
    found = repro_of(open_port(port), op)
    files = {"model.onnx": found.model, "inputs.npz": _npz(found.inputs), "expected.npz": _npz(found.expected)}
    write(files, output)
    _tell(found, output)
    return OK


def _npz(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """The bytes of an archive."""
    with tempfile.TemporaryDirectory(prefix="repro-") as folder:
        path = Path(folder) / "arrays.npz"
        write_npz(path, dict(arrays))
        return path.read_bytes()


def _tell(found: Repro, output: Path) -> None:
    if len(found.stage.ops) > 1:
        click.echo(cli.plain(f"note: unrounded values bind these ops together: {', '.join(found.stage.ops)}").plain)
    if not found.real:
        click.echo("note: the port has too few real inputs; some are made up")
    for name, array in found.expected.items():
        elements = int(np.prod(array.shape))
        text = f"output {name!r}: onnxruntime differs in {found.different[name]} of {elements} elements"
        click.echo(cli.plain(text).plain)
    click.echo(f"written: {output}/model.onnx, inputs.npz, expected.npz")
