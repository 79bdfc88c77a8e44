"""What costs time: each op, and each type of kernel, as a no-op that moves the same data.

A no-op acquires, releases and calls as before, and computes nothing. What the design gains by it is the most that work
on this group alone can gain; a group that gains nothing waits for another one. Predicted by the timing model.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Final, Literal

from manifest.device import Device
from presim.design import Call, Design
from presim.steps import steps_of
from presim.timing import Calibration, time_design

Kind = Literal["op", "type"]
KINDS: Final[tuple[Kind, ...]] = ("op", "type")
MOVEMENT: Final = "data movement"
"""Group of the kernels that belong to no op."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AblationRow:
    """What one group contributes.

    Attributes:
        dispatch: which.
        kind: `op`, or `type` of kernel.
        group: name of the op, or of the type.
        interval_cycles: saved per inference in a full pipeline.
        latency_cycles: saved of the first inference.
        share: of the whole interval that is saved, 0 to 1.
        busy_cycles: of the busiest worker of the group per inference, where ranks would be equal.
        rank: 1 = contributes most, among the groups of its kind.
    """

    dispatch: str
    kind: Kind
    group: str
    interval_cycles: int
    latency_cycles: int
    share: float
    busy_cycles: int
    rank: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Saved:
    kind: Kind
    group: str
    interval: float
    latency: float
    busy: float

    @property
    def key(self) -> tuple[int, int, int, str]:
        """Most saved first; groups that save nothing by what they do."""
        return -ceil(self.interval), -ceil(self.latency), -ceil(self.busy), self.group


def ablate(
    design: Design,
    device: Device,
    calibration: Calibration,
    *,
    inferences: int = 3,
    kinds: Sequence[Kind] = KINDS,
) -> tuple[AblationRow, ...]:
    """Rank the ops of a design, then its types of kernels, by what they contribute.

    Args:
        design: placed or not.
        device: its figures.
        calibration: coefficients.
        inferences: back to back, at least 2, so that there is an interval.
        kinds: of the groups.

    Raises:
        RefusedError: the timing model has no times for the design.
    """
    if inferences < 2:
        msg = f"inferences: expected 2 or more, got {inferences}"
        raise ValueError(msg)
    whole = time_design(design, device, calibration, inferences=inferences)
    busy = _busy(design, {a.actor: (a.busy + a.locks) / inferences for a in whole.actors})
    timed: dict[frozenset[str], tuple[float, float]] = {}
    saved: list[_Saved] = []
    for kind, group, kernels in _groups(design):
        if kind not in kinds:
            continue
        if kernels not in timed:
            without = time_design(design, device, calibration, inferences=inferences, idle=kernels)
            timed[kernels] = without.interval_cycles, without.latency_cycles
        interval, latency = timed[kernels]
        saved.append(
            _Saved(
                kind=kind,
                group=group,
                interval=max(0.0, whole.interval_cycles - interval),
                latency=max(0.0, whole.latency_cycles - latency),
                busy=max((busy.get(kernel, 0.0) for kernel in kernels), default=0.0),
            )
        )
    return tuple(_rows(design.dispatch, saved, whole.interval_cycles))


def ranked(rows: Collection[AblationRow], by: Literal["interval", "latency"] = "interval") -> tuple[str, ...]:
    """Names of the ops, the one that contributes most first."""
    ops = [row for row in rows if row.kind == "op" and row.group != MOVEMENT]
    if by == "latency":
        ops.sort(key=lambda row: (-row.latency_cycles, row.rank))
    return tuple(row.group for row in ops)


def _rows(dispatch: str, saved: list[_Saved], interval: float) -> Iterator[AblationRow]:
    for kind in KINDS:
        mine = sorted((s for s in saved if s.kind == kind), key=lambda s: s.key)
        for rank, row in enumerate(mine, 1):
            yield AblationRow(
                dispatch=dispatch,
                kind=row.kind,
                group=row.group,
                interval_cycles=ceil(row.interval),
                latency_cycles=ceil(row.latency),
                share=round(row.interval / interval, 4) if interval else 0.0,
                busy_cycles=ceil(row.busy),
                rank=rank,
            )


def _groups(design: Design) -> Iterator[tuple[Kind, str, frozenset[str]]]:
    """(kind, group, its kernels)."""
    ops: dict[str, list[str]] = {}
    types: dict[str, list[str]] = {}
    for kernel in design.kernels:
        ops.setdefault(kernel.op or MOVEMENT, []).append(kernel.name)
        types.setdefault(kernel.type, []).append(kernel.name)
    yield from (("op", name, frozenset(kernels)) for name, kernels in ops.items())
    yield from (("type", name, frozenset(kernels)) for name, kernels in types.items())


def _busy(design: Design, cycles: Mapping[str, float]) -> dict[str, float]:
    """Cycles of the worker that a kernel runs on."""
    return {
        call.kernel: cycles.get(worker.name, 0.0)
        for worker in design.workers
        for call in steps_of(worker.program)
        if isinstance(call, Call)
    }
