"""Search for designs of dense networks, and one layer over the whole array: `python -m tests.bench.design_search`.

The models are those that were measured with a peer, built anew; its seconds stand beside ours as they were quoted, on
another day and load. Every cycle is predicted by the timing model, none is measured.

One layer grows with the array: every core has the same slice of the weights, whatever their number, so that the cycles
between inferences would stay those of one core if inputs, outputs and the cascade cost nothing. Efficiency is that of
one core divided by that of the array, per core.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import click

from manifest.device import Device, load_device
from manifest.onnx_import import Imported
from optimize.bandwidth import default_table
from optimize.search import Goal, SearchContext, SearchResult, search
from presim.design import Design
from presim.directives import Directive, Directives, Parallelism
from presim.place import place
from presim.plan import design_of
from presim.timing import Calibration, Timing, load_calibration, time_design
from tests.bench.design_models import DEVICE, MODELS, dense_layer
from tests.presim.plan.harness import whole

AIM_SECONDS: Final = 10.0
INFERENCES: Final = 2
SLICE: Final = (416, 112)
"""Inputs and outputs of one core: 46,592 weights."""

ROWS: Final = 8
GRIDS: Final = ((1, 1), (1, 4), (2, 4), (4, 4), (4, 8), (8, 8), (16, 8), (24, 8), (32, 8), (37, 8))
"""(beside each other, in a cascade): 1 to 296 cores."""

STREAMS: Final = 12
PEER_EFFICIENCY: Final = "98.6 %"


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A search of one model, seconds of the clock and of the processor."""

    name: str
    result: SearchResult
    seconds: float
    busy: float
    peer_seconds: str


def context_of(imported: Imported, device: Device, calibration: Calibration, given: Directives) -> SearchContext:
    """A model on a device, all its ops in one dispatch."""
    dispatch = whole(imported.manifest)

    def planned(directives: Directives) -> Design:
        return place(design_of(imported.manifest, device, directives, dispatch), device, directives)

    return SearchContext(
        manifest=imported.manifest,
        dispatch=dispatch,
        device=device,
        calibration=calibration,
        directives=given,
        plan=planned,
        time=lambda design: time_design(design, device, calibration, inferences=INFERENCES),
    )


def searched(name: str, goal: Goal, plans: int) -> Found:
    """Search a model."""
    device, calibration = load_device(DEVICE), load_calibration()
    build, peer = MODELS[name]
    imported = build()
    start, busy = time.perf_counter(), time.process_time()
    result = search(context_of(imported, device, calibration, Directives()), goal, None, plans)
    return Found(
        name=name,
        result=result,
        seconds=time.perf_counter() - start,
        busy=time.process_time() - busy,
        peer_seconds=peer,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaled:
    """One layer on `cores` cores.

    Attributes:
        cores: workers.
        interval: cycles between inferences, simulated.
        efficiency: against one core, 0 to 1.
        peak: multiply-accumulates of the dense peak of all cores, 0 to 1.
        bound: what is busiest, in words.
        host: bytes per cycle that the host moves, both ways, and what the table allows.
        seconds: to plan and place.
    """

    cores: int
    interval: float
    efficiency: float
    peak: float
    bound: str
    host: tuple[float, float]
    seconds: float


def scaled(grids: Sequence[tuple[int, int]] = GRIDS) -> tuple[Scaled, ...]:
    """One dense layer on more and more cores; the first grid is the baseline."""
    device, calibration = load_device(DEVICE), load_calibration()
    table = default_table(device, calibration)
    allowed = sum(c.fill + c.drain for c in table.columns)
    found: list[Scaled] = []
    for count, length in grids:
        imported = dense_layer(ROWS, SLICE[0] * length, SLICE[1] * count)
        (op,) = [o.name for o in imported.manifest.ops if o.where == "npu"]
        asked = Directive(parallelism=Parallelism(cas_num=count, cas_length=length), host_streams=STREAMS)
        start = time.perf_counter()
        context = context_of(imported, device, calibration, Directives())
        design = context.plan(Directives(by_op={op: asked}))
        seconds = time.perf_counter() - start
        timing = context.time(design)
        interval, cores = timing.interval_cycles, len(design.workers)
        macs = ROWS * SLICE[0] * length * SLICE[1] * count
        moved = ROWS * (SLICE[0] * length + SLICE[1] * count)
        found.append(
            Scaled(
                cores=cores,
                interval=interval,
                efficiency=(found[0].interval if found else interval) / interval,
                peak=macs / interval / cores / (device.int8_macs_per_cycle.value or 1),
                bound=bound_of(timing),
                host=(moved / interval, allowed),
                seconds=seconds,
            )
        )
    return tuple(found)


def bound_of(timing: Timing) -> str:
    """What is busiest, with the share of the interval that it is busy, and the busiest of the others."""
    busiest: dict[str, float] = {}
    for actor in timing.actors:
        busiest[actor.kind] = max(busiest.get(actor.kind, 0.0), (actor.busy + actor.locks) / timing.inferences)
    names = {"worker": "cores", "on_chip": "streams on the array", "shim": "streams of the host"}
    rows = sorted(busiest.items(), key=lambda item: -item[1])
    return ", ".join(f"{names[kind]} {cycles / timing.interval_cycles:.0%}" for kind, cycles in rows)


def row_of(found: Found) -> str:
    """One line of the table of models."""
    first, best = found.result.candidates[0], found.result.best
    words = "refused" if best is None else f"{best.tiles:4} {best.interval_cycles:9,} {best.latency_cycles:9,}"
    refused = sum(c.reason.startswith("refused") for c in found.result.candidates)
    return (
        f"{found.name:20} {first.tiles:5} {first.interval_cycles:9,} {first.latency_cycles:9,}   {words}"
        f"   {found.result.plans:3} {refused:3} {len(found.result.front):3}"
        f"   {found.seconds:6.1f} {found.busy:6.1f}   {found.peer_seconds:>8}"
    )


@click.command()
@click.option("--goal", type=click.Choice(("latency", "throughput", "tiles")), default="throughput")
@click.option("--plans", type=click.IntRange(1), default=5, help="Budget of each search.")
def main(goal: Goal, plans: int) -> None:
    """Search the models and scale one layer."""
    click.echo(f"{DEVICE}, goal {goal}, {plans} plans each; cycles are simulated, the peer's seconds are quoted")
    click.echo(
        f"{'model':20} {'planner: tiles, interval, latency':>25}   {'best: tiles, interval, latency':>24}"
        "   plans refused front   s (clock, processor)   peer s"
    )
    for name in MODELS:
        found = searched(name, goal, plans)
        click.echo(row_of(found) + ("" if found.seconds <= AIM_SECONDS else f"   above {AIM_SECONDS:.0f} s"))
    click.echo(
        f"\none dense layer, {ROWS} rows, {SLICE[0]} x {SLICE[1]} weights a core (the peer reports "
        f"{PEER_EFFICIENCY} on 296 tiles)"
    )
    click.echo("tiles  interval  efficiency  of peak  host B/cycle (allowed)   plan s  busiest")
    for row in scaled():
        click.echo(
            f"{row.cores:5} {row.interval:9,.1f} {row.efficiency:10.1%} {row.peak:8.1%}"
            f"  {row.host[0]:8.1f} ({row.host[1]:.0f}) {row.seconds:13.1f}  {row.bound}"
        )
    click.echo(
        "A core is bound by loading its weights: every row is a call of its own and reads all of them. Left out by the "
        "model, and so optimistic: contention of streams for switches and of channels for external memory."
    )


if __name__ == "__main__":
    main()
