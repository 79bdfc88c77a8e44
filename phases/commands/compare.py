"""`python -m phases compare`: which tensor of two dumps differs first, and the likely cause."""

from pathlib import Path

import click

from manifest.io import read_npz
from phases import cli
from phases.api import load
from phases.bringup.comparing import Comparison, TensorDifference, compare_dumps
from phases.exit_codes import GATE_NOT_PASSED, OK

EPILOG = """\b
Examples:
  python -m phases oracle digits.port --inputs x.npz --outputs expected.npz --all-tensors --arithmetic target
  python -m phases compare expected.npz from_the_board.npz --port digits.port
  python -m phases compare a.npz b.npz --fail-on-difference

\b
Exit codes: 0 compared, whatever the answer; 1 with --fail-on-difference where something differs or nothing was
compared; 2 a file cannot be read; 3 the port was tampered with.
"""
SHOWN_CAUSES = 3


@click.command(epilog=EPILOG)
@click.argument("expected", type=click.Path(path_type=Path))
@click.argument("got", type=click.Path(path_type=Path))
@click.option("--port", type=click.Path(path_type=Path), help="Gives graph order, op, and causes in its arithmetic.")
@click.option("--fail-on-difference", is_flag=True, help="Exit 1 where something differs or nothing was compared.")
def compare(expected: Path, got: Path, port: Path | None, fail_on_difference: bool) -> int:
    """Compare two .npz dumps of tensors, EXPECTED and GOT, exactly, by their names.

    The dumps may come from anywhere: the oracle, a board, another framework. Integers are compared exactly and floats
    too; nothing is rounded.
    """
    loaded = load(port) if port is not None else None
    found = compare_dumps(read_npz(expected), read_npz(got), loaded)
    _print(found)
    nothing = not any(row.elements for row in found.rows)
    differs = nothing or found.first is not None or bool(found.missing or found.extra)
    return GATE_NOT_PASSED if differs and fail_on_difference else OK


def _print(found: Comparison) -> None:
    rows = cli.table("tensor", "elements", "different", "largest difference", "first element", "expected", "got")
    for row in found.rows:
        if not row.same:
            first = row.note or str(list(row.index))
            cells = (row.name, row.elements, row.different, f"{row.largest:g}", first, row.expected, row.got)
            rows.add_row(*(cli.plain("" if cell is None else cell) for cell in cells))
    same = len([row for row in found.rows if row.same])
    elements = sum(row.elements for row in found.rows)
    if same < len(found.rows):
        cli.console().print(rows)
    for label, names in (("only expected", found.missing), ("only got", found.extra)):
        if names:
            click.echo(cli.plain(f"{label}: {', '.join(names)}").plain)
    if not found.rows:
        click.echo("nothing was compared: the dumps share no name")
        return
    click.echo(f"{same} of {len(found.rows)} tensors are the same; {elements} elements compared")
    if found.first is not None:
        _print_first(found, found.first)


def _print_first(found: Comparison, first: TensorDifference) -> None:
    op = f", made by op {found.op!r}" if found.op else ""
    what = first.note or f"element {list(first.index)} is {first.got}, expected {first.expected}"
    click.echo(cli.plain(f"first difference: tensor {first.name!r}{op}: {what}").plain)
    for cause in found.causes[:SHOWN_CAUSES]:
        word = "cause" if cause.certain else "likely cause"
        click.echo(cli.plain(f"{word}: {cause.line()}").plain)
    if first.different and not first.note and not found.causes:
        click.echo("no single change of layout, shift, rounding, saturation, bias, zero point or weights predicts it")
    if found.not_tried:
        click.echo(cli.plain(f"note: {found.not_tried}").plain)
