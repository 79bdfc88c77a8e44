"""`python -m phases equivalence`: hold a decomposition against the whole on real data."""

from pathlib import Path

import click

from manifest.io import sha256_hex
from phases.exit_codes import GATE_NOT_PASSED, OK
from phases.integrity import require_port
from phases.presim.equivalence import compare, read_equivalence
from phases.presim.records import EQUIVALENCES, record
from presim.decompositions import DECOMPOSITIONS

EPILOG = (
    """\b
Examples:
  python -m phases equivalence examples/probes/chunked_softmax.json
  python -m phases equivalence scores.json --port model.port

\b
Decompositions:
"""
    + "\n".join(f"  {row.name}: {row.text}" for row in DECOMPOSITIONS.values())
    + """

The file says name, decomposition, chunks, data and the allowed difference; see phases/presim/equivalence.py. With
--port the outcome becomes evidence of the presim gate.

Exit codes: 0 every chunk length holds, 1 one does not, 2 the file or its data are wrong.
"""
)


@click.command(epilog=EPILOG)
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--port", type=click.Path(path_type=Path), help="Keep the outcome as evidence in this port.")
def equivalence(file: Path, port: Path | None) -> int:
    """Compute the decomposition that FILE names in chunks and as a whole, and compare every element."""
    read = read_equivalence(file)
    if port is not None:
        require_port(port)
    rows = compare(read)
    good = True
    for row in rows:
        holds = row.mismatches == 0
        good = good and holds
        words = "equal" if holds else f"{row.mismatches} differ"
        difference = f"largest difference {row.largest_difference:.3g}, allowed {row.allowed:.3g}"
        click.echo(f"{row.name}: {row.elements} elements, {words}; {difference} (computed on this host)")
        if port is not None:
            value = {
                "file_sha256": sha256_hex(file.read_bytes()),
                "decomposition": row.decomposition,
                "elements": row.elements,
                "mismatches": row.mismatches,
                "largest_difference": min(row.largest_difference, 1e308),
                "allowed": row.allowed,
            }
            click.echo(f"recorded: {port / record(port, EQUIVALENCES, row.name, value)}")
    return OK if good else GATE_NOT_PASSED
