"""Speed of the simulator: `python -m tests.bench.presim`.

A pipeline of cores with kernels that do nothing, so that what is measured is the simulator: objects with data are
copied by the DMAs, buffers poisoned when they are given back, writers and readers tracked, objects compared and summed
up. An operation is one acquire or release by a worker or a DMA.
"""

import time
from dataclasses import dataclass
from typing import Any, Final

import click
import numpy as np
from numpy.typing import NDArray

from presim.design import Acquire, Argument, Call, Design, Endpoint, Fifo, Kernel, Loop, Release, Tile, Transfer, Worker
from presim.simulate import KernelContext, SimData, SimOptions, simulate

AIM: Final = 300_000
"""Operations per second with all tracking on."""

STAGES: Final = 4
OBJECTS: Final = 20_000
BLOCK: Final = (16, 8)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One measurement; operations of all actors."""

    what: str
    operations: int
    seconds: float

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


def measure(what: str, *, shared: bool, data: bool, compared: bool = False) -> Figure:
    """Simulate one inference."""
    design = pipeline(STAGES, OBJECTS, shared=shared)
    x = np.random.default_rng(0).integers(-128, 128, (OBJECTS, *BLOCK)).astype(np.int8)
    fifos = [{fifo.name: x for fifo in design.fifos}] if compared else []
    given = SimData(kernels={"nothing": nothing}, inputs=[{"x": x}], outputs=[{"y": x}], fifos=fifos) if data else None
    begin = time.perf_counter()
    result = simulate(design, data=given, options=SimOptions(inferences=1, schedules=0))
    seconds = time.perf_counter() - begin
    if result.verdict != "completes":
        raise click.ClickException(result.text)
    return Figure(what=what, operations=result.operations, seconds=seconds)


@click.command()
def main() -> None:
    """Print operations per second; the aim is for the third row."""
    rows = (
        measure("without data, DMAs", shared=False, data=False),
        measure("with data and tracking, shared memory", shared=True, data=True),
        measure("with data and tracking, DMAs", shared=False, data=True),
        measure("the same, every fifo compared", shared=False, data=True, compared=True),
    )
    for row in rows:
        click.echo(
            f"{row.what:40} {row.operations:>9} operations {row.seconds:6.2f} s {row.per_second:>10,.0f} per second"
        )
    reached = rows[2].per_second >= AIM
    click.echo(f"aim {AIM:,} per second with all tracking on: {'reached' if reached else 'missed'}")


if __name__ == "__main__":
    main()
