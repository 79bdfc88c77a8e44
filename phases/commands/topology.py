"""`python -m phases topology`: say whether dataflow topologies run, hang, or cannot work."""

from pathlib import Path

import click

from manifest.errors import Problem, RefusedError
from phases.exit_codes import GATE_NOT_PASSED, OK
from presim.topology import MAX_STEPS, difference, judge_topology
from presim.topology_file import MAX_BYTES, read_topologies

EPILOG = """\b
Examples:
  python -m phases topology cases.json
  python -m phases topology cases.json --fail-on-difference

The file is a JSON object of cases by name. A case has `nodes`, each a list of [times, [steps]] with steps
["w", edge, n] (put n tokens), ["r", edge, n] (take n) and ["p", edge, n] (wait until n are there, take none), and
`edges` with `depth` and `init`. One line of JSON per case: `verdict` is runs, runs_leaving_tokens, deadlock, rejected
or inconclusive; `edge` and `least_depth` are the smallest change that lets it run, verified by running it.

Exit codes: 0 every case was judged, 2 the file is wrong; with --fail-on-difference 1 where a verdict is not the
`verdict_class` (and `least_depth_that_runs`) that the file has.
"""


@click.command(epilog=EPILOG)
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--max-steps",
    type=click.IntRange(1),
    default=MAX_STEPS,
    show_default=True,
    help="Instructions of one run; a case that needs more is inconclusive.",
)
@click.option("--fail-on-difference", is_flag=True, help="Exit 1 where a verdict is not the one that the file has.")
def topology(file: Path, max_steps: int, fail_on_difference: bool) -> int:
    """Judge every topology of FILE and print one line of JSON for each, in the order of the file."""
    differences = []
    for case in read_topologies(_read(file), str(file)):
        judged = judge_topology(case, max_steps=max_steps)
        click.echo(judged.line())
        differences.append(difference(case, judged))
    differing = [text for text in differences if text]
    if fail_on_difference:
        for text in differing:
            click.echo(text, err=True)
    return GATE_NOT_PASSED if fail_on_difference and differing else OK


def _read(file: Path) -> bytes:
    """The bytes of a regular file of bearable size."""
    try:
        if not file.is_file():
            what = "is no file" if file.exists() else "there is no such file"
            raise RefusedError((Problem(code="TOPOLOGY-FILE", where=str(file), what=what),))
        size = file.stat().st_size
        if size > MAX_BYTES:
            problem = Problem(
                code="TOPOLOGY-FILE", where=str(file), what="too large", expected=f"{MAX_BYTES} bytes", got=str(size)
            )
            raise RefusedError((problem,))
        return file.read_bytes()
    except OSError as error:
        what = f"cannot be read ({error.strerror})"
        raise RefusedError((Problem(code="TOPOLOGY-FILE", where=str(file), what=what),)) from error
