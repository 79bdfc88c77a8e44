"""`python -m phases presim-design`: run a design file of IRON 1.4 without the NPU."""

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click
from numpy.typing import NDArray

from bringup.execute.abi import ExternalAbi, PointerAbi, ScalarAbi
from bringup.execute.compile import build
from bringup.execute.run import HostResult, simulate_sources
from bringup.execute.task import HostTask
from manifest.device import DEFAULT_DEVICE
from manifest.errors import Problem, RefusedError
from manifest.io import read_npz, write_npz
from phases.exit_codes import GATE_NOT_PASSED, OK
from presim.iron.device import CHOICES
from presim.iron.feeds import expected_of, inputs_of, results_of
from presim.iron.lowered import External, Lowered
from presim.iron.run import DEFAULT_TIMEOUT_S, lower_file
from presim.iron.twins import load_twins, split_pairs
from presim.simulate import SimData, SimOptions, SimResult, simulate

Array = NDArray[Any]
PRINTED_BYTES: Final = 2000

EPILOG = """\b
Examples:
  python -m phases presim-design design.py --inputs x.npz
  python -m phases presim-design design.py --inputs x.npz --expect y.npz --kernel scale=scale.cc --kernel relu=twins.py
  python -m phases presim-design design.py --inputs x.npz --arg=--dev --arg=npu2 --outputs y.npz

This RUNS the design file, which is your code, in a process of its own against a stand-in for the package `aie` of
mlir-aie 1.4; and it runs the kernels that you give. A file inside a port is refused. The arrays have the names of the
parameters of the runtime sequence, and their shapes or one more axis in front, one entry for each inference; bfloat16
is carried as uint16. A kernel is a file in C++, compiled for the host with sanitizers, or FILE.py:FUNCTION, called
with a context and the arrays of its pointers. Sources of an ExternalFunction are taken where no file is given.

Exit codes: 0 it runs to its end and the results are right, 1 it hangs, faults or computes something else, 2 the file,
a kernel or the data are wrong, 4 there is no compiler.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is to be run."""

    lowered: Lowered
    inputs: tuple[Mapping[str, Array], ...]
    outputs: tuple[Mapping[str, Array], ...]
    kernels: Mapping[str, str]
    folder: Path
    schedules: int


@click.command(name="presim-design", epilog=EPILOG)
@click.argument("design", type=click.Path(path_type=Path))
@click.option("--inputs", required=True, type=click.Path(path_type=Path), help="Host tensors to fill from, an .npz.")
@click.option("--outputs", type=click.Path(path_type=Path), help="Where results go, an .npz.")
@click.option("--expect", type=click.Path(path_type=Path), help="Results to compare with, an .npz.")
@click.option(
    "--device",
    type=click.Choice(list(CHOICES)),
    default=DEFAULT_DEVICE,
    show_default=True,
    help="What iron.get_current_device() is.",
)
@click.option("--kernel", "kernels", multiple=True, metavar="SYMBOL=FILE", help="Code of a kernel; repeatable.")
@click.option("--arg", "arguments", multiple=True, metavar="VALUE", help="Argument of the design file; repeatable.")
@click.option("--schedules", type=click.IntRange(0, 100), default=3, show_default=True, help="Seeded orders.")
@click.option("--timeout", type=float, default=DEFAULT_TIMEOUT_S, show_default=True, help="Seconds of the file.")
def presim_design(
    design: Path,
    *,
    inputs: Path,
    outputs: Path | None,
    expect: Path | None,
    device: str,
    kernels: Sequence[str],
    arguments: Sequence[str],
    schedules: int,
    timeout: float,
) -> int:
    """Lower DESIGN, run it on INPUTS with tracked objects, and say whether it completes, hangs or is wrong."""
    _require_apart(design, inputs, outputs, expect)
    given = split_pairs(kernels)
    lowered = lower_file(design, argv=arguments, timeout_s=timeout, device=device)
    _say(lowered)
    feeds, leading = inputs_of(lowered, read_npz(inputs), str(inputs))
    expected: tuple[Mapping[str, Array], ...] = ()
    if expect is not None:
        expected, _ = expected_of(lowered, read_npz(expect), str(expect))
        if len(expected) != len(feeds):
            raise _refused(str(expect), f"results of {len(expected)} inferences", f"{len(feeds)}, as many as inputs")
    with tempfile.TemporaryDirectory(prefix="presim-design-") as folder:
        request = Request(
            lowered=lowered,
            inputs=feeds,
            outputs=expected,
            kernels={**_declared(lowered, design, Path(folder)), **given},
            folder=Path(folder),
            schedules=schedules,
        )
        result = _run(request)
    click.echo(f"verdict: {result.text}")
    for name, count in sorted(result.compared.items()):
        click.echo(f"compared: {count} elements of {name!r}")
    if outputs is not None and result.sound:
        write_npz(outputs, results_of(lowered, result.outputs, leading=leading))
        click.echo(f"results: {outputs}")
    return OK if result.sound else GATE_NOT_PASSED


def _require_apart(design: Path, inputs: Path, outputs: Path | None, expect: Path | None) -> None:
    """Results never replace what they come from."""
    if outputs is not None and outputs.resolve() in {p.resolve() for p in (design, inputs, expect) if p is not None}:
        where = f"--outputs {outputs}"
        raise _refused(where, "results would replace what they come from", "a file of its own")


def _say(lowered: Lowered) -> None:
    design = lowered.design
    parts = f"{len(design.workers)} workers, {len(design.fifos)} fifos, {len(design.sequence)} transfers"
    click.echo(f"design {design.dispatch!r} for {lowered.device}: {parts}")
    for note in design.notes:
        click.echo(f"note: {note}")
    for line in lowered.output[-PRINTED_BYTES:].splitlines():
        shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in line)
        click.echo(f"file: {shown}", err=True)


def _declared(lowered: Lowered, design: Path, folder: Path) -> dict[str, str]:
    """Sources that the design file itself names, by symbol."""
    found = {}
    for external in lowered.externals:
        if external.source_string is not None:
            path = folder / f"{external.symbol}.cc"
            path.write_text(external.source_string, encoding="utf-8")
            found[external.symbol] = str(path)
        elif external.source_file is not None:
            path = design.parent / external.source_file
            if path.is_file():
                found[external.symbol] = str(path)
    return found


def _run(request: Request) -> "SimResult | HostResult":
    called = {e.symbol for e in request.lowered.externals}
    unknown = sorted(set(request.kernels) - called)
    if unknown:
        where = f"--kernel {unknown[0]}"
        expected = ", ".join(sorted(called)) or "none"
        raise _refused(where, "the design calls no such kernel", expected, code="IRON-KERNEL")
    absent = sorted(called - set(request.kernels))
    if absent:
        what = f"no code for {', '.join(absent)}"
        where = "kernels"
        expected = f"--kernel {absent[0]}=FILE.cc or FILE.py:FUNCTION for each"
        raise _refused(where, what, expected, code="IRON-KERNEL")
    compiled = {s for s, file in request.kernels.items() if ".py" not in Path(file).suffix and ".py:" not in file}
    if not compiled:
        return _in_python(request)
    if compiled != called or request.lowered.traced:
        python = sorted(called - compiled) or ["the Python in core functions"]
        what = f"{sorted(compiled)[0]} in C++ and {python[0]} in Python"
        where = "kernels"
        remedy = "give Python functions for all of them"
        raise _refused(where, what, "all of one kind", remedy=remedy, code="IRON-KERNEL")
    return _compiled(request)


def _in_python(request: Request) -> SimResult:
    lowered = request.lowered
    data = SimData(
        kernels=lowered.kernels(load_twins(request.kernels)),
        inputs=request.inputs,
        arrays=lowered.arrays,
        outputs=request.outputs,
    )
    return simulate(lowered.design, data=data, options=SimOptions(schedules=request.schedules))


def _compiled(request: Request) -> HostResult:
    lowered = request.lowered
    sources: dict[str, bytes] = {}
    externals = []
    folders = []
    for external in lowered.externals:
        path = Path(request.kernels[external.symbol])
        name = f"{external.symbol}{path.suffix}"
        sources[name] = _bytes(path)
        folders += [path.resolve().parent, *(Path(d) for d in external.include_dirs if Path(d).is_dir())]
        externals.append(_abi(external, name))
    (request.folder / "build").mkdir()
    library = build(sources, externals, request.folder / "build", include=tuple(dict.fromkeys(folders)))
    task = HostTask(
        name="design",
        design=lowered.design,
        inputs=request.inputs,
        arrays=lowered.arrays,
        outputs=request.outputs,
        schedules=request.schedules,
    )
    (request.folder / "run").mkdir()
    return simulate_sources(task, library, request.folder / "run")


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        what = f"cannot be read ({error.strerror})"
        raise _refused(str(path), what, "a file in C++", code="IRON-KERNEL") from error


def _abi(external: External, source: str) -> ExternalAbi:
    parameters = tuple(
        ScalarAbi(dtype=t) if isinstance(t, str) else PointerAbi(dtype=t[0], elements=_elements(t[1]))
        for t in external.arg_types
    )
    flags = tuple(f for f in external.compile_flags if f.startswith(("-D", "-U")))
    return ExternalAbi(symbol=external.symbol, parameters=parameters, source=source, flags=flags)


def _elements(shape: tuple[int, ...]) -> int:
    count = 1
    for size in shape:
        count *= size
    return count


def _refused(where: str, what: str, expected: str, *, remedy: str = "", code: str = "IRON-DESIGN") -> RefusedError:
    return RefusedError((Problem(code=code, where=where, what=what, expected=expected, remedy=remedy),))
