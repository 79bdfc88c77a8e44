"""Regimes: one inference on its own, and many in a row; what each is bound by."""

from collections.abc import Sequence
from math import ceil
from typing import Literal

from manifest.device import Device
from presim.design import Design
from presim.evidence import RegimeEvidence
from presim.timing.calibration import Calibration
from presim.timing.model import ActorTime, Timing
from presim.timing.predict import time_design


def regimes(
    designs: Sequence[Design], device: Device, calibration: Calibration, *, batch: int
) -> tuple[RegimeEvidence, ...]:
    """Predict batch 1 and batch N; dispatches run one after the other.

    Args:
        designs: of all dispatches, in order.
        device: its figures.
        calibration: coefficients.
        batch: N, at least 2.

    Raises:
        RefusedError: see `time_design`.
    """
    return tuple(
        _regime([time_design(d, device, calibration, inferences=n) for d in designs], n, calibration)
        for n in (1, batch)
    )


def _regime(timings: Sequence[Timing], batch: int, calibration: Calibration) -> RegimeEvidence:
    busiest = {kind: sum(_busiest(t, kind) for t in timings) / batch for kind in ("worker", "on_chip", "shim")}
    bound = max(busiest, key=lambda kind: busiest[kind])
    names: dict[str, Literal["compute", "on_chip", "dram"]] = {
        "worker": "compute",
        "on_chip": "on_chip",
        "shim": "dram",
    }
    return RegimeEvidence(
        name=f"batch {batch}",
        batch=batch,
        latency_cycles=ceil(sum(t.latency_cycles for t in timings)),
        interval_cycles=ceil(sum(t.interval_cycles for t in timings)),
        bound=names[bound],
        compute_cycles=ceil(busiest["worker"]),
        on_chip_cycles=ceil(busiest["on_chip"]),
        dram_cycles=ceil(busiest["shim"]),
        calibration_sha256=calibration.sha256,
    )


def _busiest(timing: Timing, kind: str) -> float:
    """Cycles of the actor of a kind that is busy longest, up to the last output: what it fetches ahead is no load."""
    found = max((_occupied(actor) for actor in timing.actors if actor.kind == kind), default=0.0)
    return min(found, timing.finished[-1])


def _occupied(actor: ActorTime) -> float:
    return actor.busy + actor.locks
