"""`python -m phases draw`: the placed designs of a port as a picture."""

from collections.abc import Sequence
from pathlib import Path

import click

from checklists.items.words import counted
from manifest.device import load_device
from manifest.errors import Problem, RefusedError
from phases import cli
from phases.exit_codes import OK
from phases.integrity import is_port
from phases.port import Port, open_port
from presim.design import Design
from presim.design_io import DESIGN_FILE, design_from_json
from presim.draw import draw as draw_designs
from presim.static import structure

EPILOG = """\b
Examples:
  python -m phases draw digits.port
  python -m phases draw digits.port --dispatch d1 --out d1.svg

Shows the part of the array that is used: workers with the memory and DMA channels that they take, every fifo by its way
(shared memory, DMA, memory tile, host), cascades, host transfers; names in full beside the pointer. Without --out the
picture lies beside the port, digits.design.svg for digits.port.
"""


@click.command(epilog=EPILOG)
@cli.PORT_ARGUMENT
@click.option("--dispatch", help="One dispatch; without it all of them, one below the other.")
@click.option("--out", type=click.Path(path_type=Path), help="Where the picture goes, an .svg.")
def draw(port: Path, dispatch: str | None, out: Path | None) -> int:
    """Draw the placed designs of PORT as SVG; needs a port that phase 2 has planned."""
    opened = open_port(port)
    designs = _chosen(design_from_json(opened.read(DESIGN_FILE)), dispatch)
    target = port.resolve().with_suffix(".design.svg") if out is None else out
    _require_free(target, opened)
    picture = draw_designs(designs, load_device(designs[0].device))
    try:
        target.write_bytes(picture)
    except OSError as error:
        what = f"the picture cannot be written ({error.strerror})"
        raise RefusedError((Problem(code="DRAW-UNWRITABLE", where=str(target), what=what),)) from error
    fifos = sum(len(design.fifos) for design in designs)
    cores = sum(len(design.workers) for design in designs)
    counts = (counted(len(designs), "dispatch", "dispatches"), counted(cores, "core"), counted(fifos, "fifo"))
    click.echo(f"{', '.join(counts)}: {target}")
    return OK


def _chosen(designs: Sequence[Design], dispatch: str | None) -> tuple[Design, ...]:
    """The designs that are asked for, all of one device, sound and placed."""
    found = tuple(d for d in designs if dispatch in (None, d.dispatch))
    if not found:
        names = ", ".join(d.dispatch for d in designs) or "none: nothing of this model runs on the array"
        what = "no such dispatch" if dispatch is not None else "no dispatch to draw"
        raise RefusedError(
            (Problem(code="DRAW-DISPATCH", where="--dispatch", what=what, expected=names, got=dispatch or ""),)
        )
    problems = [p for design in found for p in _faults(design, found[0].device)]
    if problems:
        raise RefusedError(tuple(problems))
    return found


def _faults(design: Design, device: str) -> list[Problem]:
    where = f"dispatch {design.dispatch!r}"
    problems = [Problem(code="DRAW-DESIGN", where=f"{where}, {f.where}", what=f.text) for f in structure(design)]
    if design.device != device:
        what = "the designs are for different devices, one picture shows one"
        problems.append(Problem(code="DRAW-DESIGN", where=where, what=what, expected=device, got=design.device))
    ends = [end for fifo in design.fifos for end in (fifo.producer, *fifo.consumers)]
    if any(end.tile is None for end in ends) or any(worker.tile is None for worker in design.workers):
        problems.append(Problem(code="DRAW-UNPLACED", where=where, what="it has parts that are on no tile"))
    return problems


def _require_free(target: Path, port: Port) -> None:
    """Refuse to write among the files of this port or of any other; links are followed, hard links are found."""
    place = target.resolve()
    other = next((folder for folder in place.parents if is_port(folder)), None)
    if other is None and place.exists() and not place.is_dir():
        other = next((port.root for name in port.state.files if _same_file(port.root / name, place)), None)
    if other is not None or place == port.root.resolve():
        what, expected = "the picture would lie among the files of a port", "a file outside of it"
        raise RefusedError((Problem(code="DRAW-OUT", where=f"--out {target}", what=what, expected=expected),))


def _same_file(a: Path, b: Path) -> bool:
    try:
        return a.samefile(b)
    except OSError:
        return False
