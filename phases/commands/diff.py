"""`python -m phases diff`: what moved between two manifests and their designs."""

from pathlib import Path
from typing import Any

import click
from numpy.typing import NDArray

from manifest.diff import Difference
from manifest.diff import diff as differences
from manifest.errors import Problem, RefusedError
from manifest.io import load_arrays, manifest_from_json
from manifest.model import Manifest
from phases import cli
from phases.design_diff import Moved, design_diff
from phases.exit_codes import GATE_NOT_PASSED, OK
from phases.integrity import inspect, is_port
from presim.design_io import DESIGN_FILE, design_from_json

EPILOG = """\b
Examples:
  python -m phases diff before.port after.port
  python -m phases diff old/manifest.json new.port

Exit codes: 0 the same, 1 different, 2 one of the two cannot be read, 3 a design was tampered with.
"""


@click.command(epilog=EPILOG)
@click.argument("a", type=click.Path(path_type=Path))
@click.argument("b", type=click.Path(path_type=Path))
def diff(a: Path, b: Path) -> int:
    """Show what differs between A and B, ports or manifest.json files.

    Scale, zero point, shift, shape, op, weights; of two ports with a design.json also workers, tiles, fifos and depths.
    """
    manifest_a, arrays_a = _load(a)
    manifest_b, arrays_b = _load(b)
    if arrays_a is None or arrays_b is None:
        click.echo("note: no tensors.npz beside one of the two, so weights are not compared", err=True)
        arrays_a = arrays_b = {}
    found: list[Difference | Moved] = [*differences(manifest_a, manifest_b, arrays_a, arrays_b), *_designs(a, b)]
    if not found:
        click.echo("no difference")
        return OK
    rows = cli.table("where", "what", str(a), str(b))
    for row in found:
        rows.add_row(cli.plain(row.where), cli.plain(row.what), cli.plain(row.before), cli.plain(row.after))
    cli.console().print(rows)
    click.echo(f"{len(found)} difference{'' if len(found) == 1 else 's'}")
    return GATE_NOT_PASSED


def _designs(a: Path, b: Path) -> tuple[Moved, ...]:
    """What moved between the designs, where both have one; says so where one alone has."""
    files = [_beside(path, DESIGN_FILE) for path in (a, b)]
    present = [file.is_file() for file in files]
    if not all(present):
        if any(present):
            click.echo(f"note: only {(a, b)[present.index(True)]} has a design, so designs are not compared", err=True)
        return ()
    designs = [design_from_json(file.read_bytes(), str(file)) for file in files]
    return design_diff(*designs)


def _beside(path: Path, name: str) -> Path:
    """A file of a port, or beside a manifest file."""
    return path / name if path.is_dir() else path.with_name(name)


def _load(path: Path) -> tuple[Manifest, dict[str, NDArray[Any]] | None]:
    """Manifest and arrays of a port or a manifest file; says so where the port was tampered with."""
    file = _beside(path, "manifest.json") if path.is_dir() else path
    if path.is_dir() and is_port(path):
        for fault in inspect(path).tampered:
            click.echo(f"note: {path}: {fault.line()}", err=True)
    try:
        data = file.read_bytes()
    except OSError as error:
        what = f"cannot be read ({error.strerror})"
        raise RefusedError(
            (Problem(code="PORT-ABSENT", where=str(file), what=what, expected="a manifest.json"),)
        ) from error
    arrays = file.with_name("tensors.npz")
    return manifest_from_json(data), load_arrays(arrays) if arrays.is_file() else None
