"""`python -m phases ab`: the verdict over two measured arms of one kernel."""

from pathlib import Path

import click

from manifest.errors import Problem, RefusedError
from optimize.comparator import Arm, judge_arms, read_arm
from optimize.comparator.arm import MAX_BYTES
from phases import cli
from phases.exit_codes import OK

EPILOG = """\b
Each file is one arm:
  {"schema_version": 1, "arm": "before", "basis": "measured", "metric": "traced_cycles",
   "kernel": "gemm_0", "calls": 40, "truncated": false,
   "values": [1200, 1201, ...],                        cycles of every call that was traced, at least 20
   "unchanged": {"kernel": "relu_0", "cycles": 310},   a kernel that is the same in both arms
   "provenance": {"commit": "0a1b2c3", "compiler": "peano 19.0", "kernel_sha256": "<64 hex digits>",
                  "timestamp": "2026-01-31T12:00:00+00:00", "host": "name", "device": "as the driver says",
                  "session": "the same in both arms"}}
Only where there is no trace: "metric": "wall_ns", values in ns, "pinned": true, and no "unchanged".

\b
Verdicts:
  confirmed   every call is faster than every call before; wall clock: by more than 19.1 us + 3 %
  rejected    every call is slower than every call before; wall clock: by more than 13.3 us + 3 %
  no change   the ranges overlap, or wall clock is within its noise
  void        fewer than 20 runs, a spread of 1 % or more, fewer than half of the calls, a truncated trace, an
              unchanged kernel that is not the same to the cycle, or anything but the kernel is different

\b
Exit codes: 0 judged, whatever the verdict; 2 a file is malformed, has no provenance, or is not measured.
"""


@click.command(epilog=EPILOG)
@click.argument("before", type=click.Path(path_type=Path))
@click.argument("after", type=click.Path(path_type=Path))
def ab(before: Path, after: Path) -> int:
    """Compare two measured arms, BEFORE and AFTER, of one changed kernel."""
    found = judge_arms(*_both(before, after))
    for name, (least, largest) in (("before", found.before), ("after", found.after)):
        click.echo(f"{name}: {least} to {largest} {found.unit}")
    for reason in found.reasons:
        click.echo(cli.plain(reason).plain)
    click.echo(f"verdict: {found.word}")
    return OK


def _both(before: Path, after: Path) -> tuple[Arm, Arm]:
    """Both arms, or the problems of both."""
    arms: list[Arm] = []
    problems: list[Problem] = []
    for path in (before, after):
        try:
            arms.append(read_arm(_bytes(path), str(path)))
        except RefusedError as error:
            problems += error.problems
    if problems:
        raise RefusedError(tuple(problems))
    return arms[0], arms[1]


def _bytes(path: Path) -> bytes:
    """The content of a file, one byte more than is allowed at most."""
    try:
        with path.open("rb") as file:
            return file.read(MAX_BYTES + 1)
    except OSError as error:
        what = f"cannot be read ({error.strerror})"
        raise RefusedError((Problem(code="AB-FORM", where=str(path), what=what),)) from error
