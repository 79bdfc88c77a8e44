"""Designs in tables: how every op is spread, which worker is where, which fifo holds what, how it was validated."""

from collections.abc import Sequence

from phases.reports.tables import Table
from presim.design import Call, Design, Fifo, Tile
from presim.evidence import PresimEvidence, RunEvidence
from presim.steps import steps_of
from presim.timing import Timing


def design_tables(designs: Sequence[Design], evidence: PresimEvidence) -> tuple[Table, ...]:
    """The tables of phase 2.

    Args:
        designs: one per dispatch on the array.
        evidence: what was simulated and predicted.
    """
    return (
        Table(
            title="Spread of every op",
            basis="planned; padding is the part of the weights that is filled up",
            columns=("dispatch", "op", "split", "parts", "padding", "weights", "multiply-accumulates"),
            rows=tuple(
                (
                    d.dispatch,
                    s.op,
                    s.kind.replace("_", " "),
                    str(s.parts),
                    f"{100 * s.padding_fraction:.1f} %",
                    "resident" if s.resident_weights else "streamed from a memory tile",
                    str(s.macs),
                )
                for d in designs
                for s in d.splits
            ),
        ),
        Table(
            title="Workers",
            basis="planned and placed; tiles as column, row",
            columns=("dispatch", "worker", "tile", "kernels", "stage"),
            rows=tuple(
                (d.dispatch, w.name, _tile(w.tile), ", ".join(_kernels(d, w.name)), w.stage)
                for d in designs
                for w in d.workers
            ),
        ),
        Table(
            title="Fifos",
            basis="planned and placed; depth as declared, per end where it differs",
            columns=("dispatch", "fifo", "object", "depth", "from", "to", "tensor"),
            rows=tuple(
                (d.dispatch, f.name, f"{f.dtype} {_shape(f.shape)}", str(f.depth), _end(f, None), _ends(f), f.tensor)
                for d in designs
                for f in d.fifos
            ),
        ),
        Table(
            title="Validation in its order",
            basis="simulated, each run held against the oracle",
            columns=("run", "what", "added", "verdict", "inferences", "schedules", "fifos", "elements"),
            rows=tuple(_run(run) for run in sorted(_runs(evidence), key=lambda r: r.order)),
        ),
        Table(
            title="Margins",
            basis="simulated on counts: the least depth with which the dispatch still runs, the others as they are",
            columns=("pool", "depth", "least depth that runs"),
            rows=tuple((name, str(depth), str(least)) for name, depth, least in evidence.margins),
        ),
        Table(
            title="Regimes",
            basis="predicted from calibration data, never measured",
            columns=("regime", "batch", "latency cycles", "interval cycles", "bound", "compute", "on-chip", "DRAM"),
            rows=tuple(
                (
                    r.name,
                    str(r.batch),
                    str(r.latency_cycles),
                    str(r.interval_cycles),
                    r.bound.replace("_", "-"),
                    str(r.compute_cycles),
                    str(r.on_chip_cycles),
                    str(r.dram_cycles),
                )
                for r in evidence.regimes
            ),
        ),
    )


def time_table(timings: Sequence[Timing]) -> Table:
    """Busy and stalled cycles of every worker and DMA over the inferences of a timing."""
    return Table(
        title="Busy and waiting",
        basis="predicted from calibration data, never measured; cycles of all inferences in a row",
        columns=("dispatch", "inferences", "who", "kind", "where", "working", "locks", "waiting", "waits most for"),
        rows=tuple(
            (
                timing.design,
                str(timing.inferences),
                actor.actor,
                actor.kind.replace("_", "-"),
                actor.place,
                f"{actor.busy:.0f}",
                f"{actor.locks:.0f}",
                f"{actor.stall:.0f}",
                actor.stalled_on,
            )
            for timing in timings
            for actor in timing.actors
        ),
    )


def _runs(evidence: PresimEvidence) -> tuple[RunEvidence, ...]:
    return (*evidence.stages, *evidence.chain, *evidence.full)


def _run(run: RunEvidence) -> tuple[str, ...]:
    counts = (run.inferences, run.schedules, run.boundaries, run.elements)
    return (str(run.order), run.name, run.added, run.verdict, *map(str, counts))


def _kernels(design: Design, worker: str) -> list[str]:
    """Kernel types of a worker's ops, by the names that its program calls."""
    types = {k.name: k.type for k in design.kernels}
    names = _called(design, worker)
    return list(dict.fromkeys(types[n] for n in names if n in types))


def _called(design: Design, worker: str) -> tuple[str, ...]:
    steps = [s for w in design.workers if w.name == worker for s in steps_of(w.program)]
    return tuple(dict.fromkeys(s.kernel for s in steps if isinstance(s, Call)))


def _tile(tile: Tile | None) -> str:
    return "not placed" if tile is None else f"{tile.kind} {tile.column}, {tile.row}"


def _shape(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape))


def _end(fifo: Fifo, index: int | None) -> str:
    end = fifo.producer if index is None else fifo.consumers[index]
    depth = "" if end.depth is None else f" (depth {end.depth})"
    return f"{end.actor}{depth}"


def _ends(fifo: Fifo) -> str:
    return ", ".join(_end(fifo, i) for i in range(len(fifo.consumers)))
