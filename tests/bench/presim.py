"""Speed of the simulator, and of phase 2 by model: `python -m tests.bench.presim`.

A pipeline of cores with kernels that do nothing, so that what is measured is the simulator: objects with data are
copied by the DMAs, buffers poisoned when they are given back, writers and readers tracked, objects compared and summed
up. An operation is one acquire or release by a worker or a DMA. Of several runs the quickest counts; the seconds of the
processor stand beside those of the clock, on a machine with other work they differ.

By model: the seconds of phase 2 in its own clock, what plans and places (twice, to compare both) and what simulates
(every stage alone, the chain, the whole under every schedule, three inputs each), and all of it.
"""

import contextlib
import io
import json
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click
import numpy as np
from numpy.typing import NDArray

from phases.baseline.__main__ import main as baseline
from phases.presim.__main__ import main as presim
from presim.design import Acquire, Argument, Call, Design, Endpoint, Fifo, Kernel, Loop, Release, Tile, Transfer, Worker
from presim.simulate import KernelContext, SimData, SimOptions, simulate
from tests.presim_models.report import files_of

AIM: Final = 300_000
"""Operations per second with all tracking on."""

AIM_SECONDS: Final = 5.0
"""Phase 2 of digits_cnn in all."""

MODELS: Final = ("digits_mlp", "digits_cnn", "cntk_mnist", "mnist_resnet", "branching")
STAGES: Final = 4
OBJECTS: Final = 20_000
BLOCK: Final = (16, 8)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One measurement; operations of all actors, seconds of the clock and of the processor."""

    what: str
    operations: int
    seconds: float
    busy: float

    @property
    def per_second(self) -> float:
        """Operations per second."""
        return self.operations / self.seconds


def pipeline(stages: int, objects: int, *, shared: bool) -> Design:
    """Workers in a row, each moves one object at a time; neighbours share a memory or use DMAs."""
    tiles = [Tile(column=0 if shared else 2 * i, row=2 + i % 4 if shared else 2) for i in range(stages)]
    shim = Endpoint(actor="shim0", kind="shim", tile=Tile(column=0, row=0, kind="shim"))
    cores = [Endpoint(actor=f"w{i}", tile=tile) for i, tile in enumerate(tiles)]
    ends = [shim, *cores, shim]
    fifos = tuple(
        Fifo(name=f"f{i}", shape=BLOCK, dtype="int8", producer=ends[i], consumers=(ends[i + 1],))
        for i in range(stages + 1)
    )
    workers = tuple(
        Worker(name=f"w{i}", tile=tiles[i], program=(Loop(times=objects, body=_steps(f"f{i}", f"f{i + 1}")),))
        for i in range(stages)
    )
    sequence = (
        Transfer(fifo="f0", direction="fill", tensor="x", objects=objects),
        Transfer(fifo=f"f{stages}", direction="drain", tensor="y", objects=objects, wait=True),
    )
    kernel = Kernel(name="nothing", op="", type="nothing")
    return Design(dispatch="bench", device="npu2", workers=workers, fifos=fifos, kernels=(kernel,), sequence=sequence)


def _steps(source: str, target: str) -> tuple[Acquire | Call | Release, ...]:
    arguments = (Argument(kind="fifo", name=source), Argument(kind="fifo", name=target))
    return (
        Acquire(fifo=source, count=1),
        Acquire(fifo=target, count=1),
        Call(kernel="nothing", arguments=arguments),
        Release(fifo=source, count=1),
        Release(fifo=target, count=1),
    )


def nothing(_: KernelContext, source: NDArray[Any], target: NDArray[Any]) -> None:
    """The cheapest kernel that is right."""
    target[...] = source


def measure(what: str, *, shared: bool, data: bool, compared: bool = False, objects: int = OBJECTS) -> Figure:
    """Simulate one inference."""
    design = pipeline(STAGES, objects, shared=shared)
    x = np.random.default_rng(0).integers(-128, 128, (objects, *BLOCK)).astype(np.int8)
    fifos = [{fifo.name: x for fifo in design.fifos}] if compared else []
    given = SimData(kernels={"nothing": nothing}, inputs=[{"x": x}], outputs=[{"y": x}], fifos=fifos) if data else None
    begin, busy = time.perf_counter(), time.process_time()
    result = simulate(design, data=given, options=SimOptions(inferences=1, schedules=0))
    seconds, busy = time.perf_counter() - begin, time.process_time() - busy
    if result.verdict != "completes":
        raise click.ClickException(result.text)
    return Figure(what=what, operations=result.operations, seconds=seconds, busy=busy)


def speed(repeats: int, objects: int) -> None:
    """Print operations per second; the aim is for the third row."""
    cases: tuple[tuple[str, dict[str, bool]], ...] = (
        ("without data, DMAs", {"shared": False, "data": False}),
        ("with data and tracking, shared memory", {"shared": True, "data": True}),
        ("with data and tracking, DMAs", {"shared": False, "data": True}),
        ("the same, every fifo compared", {"shared": False, "data": True, "compared": True}),
    )
    rows = []
    for what, asked in cases:
        runs = [measure(what, objects=objects, **asked) for _ in range(repeats)]
        row = max(runs, key=lambda r: r.per_second)
        rows.append(row)
        click.echo(
            f"{what:40} {row.operations:>9} operations {row.seconds:6.2f} s ({row.busy:.2f} s of the processor)"
            f" {row.per_second:>10,.0f} per second"
        )
    reached = rows[2].per_second >= AIM
    click.echo(f"aim {AIM:,} per second with all tracking on: {'reached' if reached else 'missed'}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase2:
    """Seconds of phase 2 of one model; `whole` has also checks, timing, judging and writing in it."""

    model: str
    plan: float
    simulate: float
    whole: float


def phase2(model: str, device: str, folder: Path) -> Phase2:
    """Port a model through phase 1, then time phase 2.

    Raises:
        click.ClickException: a gate is not PASS.
    """
    source, data = files_of(model)
    port = folder / model
    first = ["--data", str(data), "--device", device, "--out", str(port)]
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(out):
        code = baseline([str(source), *first])
        begin = time.perf_counter()
        code = code or presim([str(port)])
        whole = time.perf_counter() - begin
    if code:
        msg = f"{model}: exit {code}\n{out.getvalue()}"
        raise click.ClickException(msg)
    seconds = json.loads((port / "reports" / "run.json").read_text())["presim"]["seconds"]
    simulated = (v for name, v in seconds.items() if name.endswith((" alone", " as a whole")) or "chain with" in name)
    return Phase2(model=model, plan=seconds["planning and placing"], simulate=sum(simulated), whole=whole)


@click.command()
@click.option("--repeats", type=click.IntRange(1), default=3, show_default=True, help="Runs, of which the best counts.")
@click.option("--objects", type=click.IntRange(1), default=OBJECTS, show_default=True, help="Through the pipeline.")
@click.option("--models", multiple=True, default=MODELS, show_default=True, help="Models to time phase 2 of.")
@click.option("--device", default="npu2", show_default=True)
def main(repeats: int, objects: int, models: tuple[str, ...], device: str) -> None:
    """Print operations per second, and seconds to plan and to simulate by model."""
    speed(repeats, objects)
    for model in models:
        if not files_of(model)[0].is_file():
            click.echo(f"{model}: not measured, {files_of(model)[0].name} is not there")
            continue
        runs = []
        for _ in range(repeats):
            with tempfile.TemporaryDirectory() as folder:
                runs.append(phase2(model, device, Path(folder)))
        row = min(runs, key=lambda r: r.whole)
        words = f"plan and place {row.plan:5.2f} s, simulate {row.simulate:5.2f} s, phase 2 in all {row.whole:5.2f} s"
        aim = ""
        if model == "digits_cnn":
            aim = f"; aim {AIM_SECONDS:g} s: {'reached' if row.whole < AIM_SECONDS else 'missed'}"
        click.echo(f"{model:14} on {device}: {words}{aim}")


if __name__ == "__main__":
    main()
