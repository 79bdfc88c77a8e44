"""`python -m phases kernel-signature`: what a kernel of one's own has to be called with, and where to put it."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from bringup.emit.emit import INDEX
from bringup.kernels.custom import FOLDER, KERNEL, RUN, TWIN, declaration, folders_of
from manifest.errors import Problem, RefusedError, UpstreamError
from manifest.io import parse_canonical
from phases import cli
from phases.commands.lint_generated import generated_files
from phases.exit_codes import OK
from phases.port import open_port

EPILOG = """\b
Examples:
  python -m phases kernel-signature digits.port
  python -m phases kernel-signature digits.port --op conv1

\b
A file at the path that is printed takes the place of the emitted kernel in the next run of phase 3: same signature,
same packed constants, same gate. It begins with event0, sets rounding and saturation, ends with event1, and may
include the emitted headers. The emitted kernel in generated/kernels/ is the place to start from.
twin.py beside it is numpy, `run(context, *arrays)`: arrays in the order of the planned design's call, outputs are
written in place, context.attributes and context.scalars as in presim/kernels. It is run in the simulator in the place
of the tool's own kernel, in a limited process, by phase 3 and by `python -m pytest PORT/regress`.

\b
Both are your code and are executed on this machine. Exit 2: no such op; 3: phase 3 has emitted nothing yet.
"""


@click.command(epilog=EPILOG)
@cli.PORT_ARGUMENT
@click.option("--op", help="Name of an op of the manifest. Default: all that have kernels.")
def kernel_signature(port: Path, op: str | None) -> int:
    """Print the C signatures of the emitted kernels of PORT, and the files that would stand for them."""
    files = generated_files(open_port(port))
    if INDEX not in files:
        msg = f"[LINT-GENERATED] generated/{INDEX}: expected the index of the generated sources; got none"
        raise UpstreamError(msg)
    index = parse_canonical(files[INDEX], INDEX)
    ops: dict[str, dict[str, Mapping[str, Any]]] = {}
    for symbol, row in index["kernels"].items():
        if row["op"]:
            ops.setdefault(row["op"], {})[symbol] = row
    if op is not None and op not in ops:
        what = "no op with kernels has this name"
        raise RefusedError((Problem(code="CUSTOM-OP", where=f"--op {op}", what=what, expected=", ".join(ops)),))
    folders = folders_of(list(ops))
    for name in [op] if op is not None else list(ops):
        for line in _lines(name, f"{FOLDER}{folders[name]}", ops[name]):
            click.echo(cli.plain(line).plain)
    return OK


def _lines(op: str, folder: str, rows: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """What is printed of an op."""
    yield f"op {op!r}"
    single = len(rows) == 1
    for symbol, row in rows.items():
        parameters = [
            f"{'' if p['writes'] else 'const '}{_c_type(p['dtype'])} *__restrict {p['name']}" for p in row["parameters"]
        ]
        function = RUN if single else row["type"]
        yield f"  {folder}/{KERNEL if single else f'{symbol}.cc'}"
        yield f"    {declaration(symbol, [*parameters, *(f'int32_t {s}' for s in row['scalars'])])}"
        for p in row["parameters"]:
            access = "written" if p["writes"] else "read"
            yield f"      {p['name']}: {p['role']}, {p['dtype']} {tuple(p['shape'])}, {access}"
        modes = ", ".join(m for m in (row["rounding"], row["saturation"]) if m)
        yield f"      modes: {modes or 'none set'}"
        yield f"    {folder}/{TWIN}: {function}(context, *arrays)"


def _c_type(dtype: str) -> str:
    return {"float32": "float", "float64": "double", "bfloat16": "bfloat16"}.get(dtype, f"{dtype}_t")
