"""Predicted times of the designs: regimes for the gate, the trace, a few lines for the person."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from manifest.device import Device
from manifest.errors import RefusedError
from presim.design import Design
from presim.evidence import RegimeEvidence
from presim.timing import Timing, load_calibration, regimes, time_design, trace_json, unknown_figures

TRACED: Final = 3
"""Inferences in the trace."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Predicted:
    """What the timing model says; empty where it cannot say anything, `lines` then says why.

    Attributes:
        regimes: batch 1 and batch N.
        unknown: device figures that the model needs and that are not published.
        trace: bytes of `trace.json`, b"" = none.
        lines: for the end of the run.
        timings: of each dispatch, a few inferences in a row.
    """

    regimes: tuple[RegimeEvidence, ...]
    unknown: tuple[str, ...]
    trace: bytes
    lines: tuple[str, ...]
    timings: tuple[Timing, ...] = ()


def predict(designs: Sequence[Design], device: Device, *, batch: int) -> Predicted:
    """Predict the times of designs that run one after the other.

    Args:
        designs: of all dispatches.
        device: its figures; where one is unknown nothing is predicted.
        batch: N of the second regime.
    """
    calibration = load_calibration()
    try:
        found = regimes(designs, device, calibration, batch=batch)
        timings = [time_design(d, device, calibration, inferences=TRACED) for d in designs]
    except RefusedError as error:
        words = tuple(f"no times: {p.line()}" for p in error.problems)
        return Predicted(regimes=(), unknown=unknown_figures(device), trace=b"", lines=words)
    lines = (*_regime_lines(found, device.clock_mhz.value), *_slowest(timings))
    return Predicted(regimes=found, unknown=(), trace=trace_json(timings), lines=lines, timings=tuple(timings))


def _regime_lines(found: Sequence[RegimeEvidence], clock_mhz: int | None) -> Iterator[str]:
    for regime in found:
        rate = "" if clock_mhz is None else f", {clock_mhz * 1e6 / max(1, regime.interval_cycles):,.0f} per second"
        yield (
            f"{regime.name}: latency {regime.latency_cycles:,} cycles, one in {regime.interval_cycles:,} cycles{rate}, "
            f"{regime.bound}-bound (simulated; host time per dispatch not in it)"
        )


def _slowest(timings: Sequence[Timing]) -> Iterator[str]:
    """The worker that sets the pace of each dispatch."""
    for timing in timings:
        workers = [a for a in timing.actors if a.kind == "worker"]
        if workers:
            worst = max(workers, key=lambda a: (a.busy + a.locks, a.actor))
            share = 100 * worst.busy / max(1.0, worst.busy + worst.locks)
            cycles = (worst.busy + worst.locks) / timing.inferences
            words = f"{cycles:,.0f} cycles, {share:.0f} % in kernels (simulated)"
            yield f"{timing.design}: {worst.actor} sets the pace: {words}"
