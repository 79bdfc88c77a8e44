"""Designs of all dispatches held against the oracle, and their times: what makes a candidate worth looking at.

Why exactness first: a time of a design that computes something else says nothing. A candidate with one wrong bit is
refused before it is timed.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from checklists.items.presim_runs import MIN_INPUTS
from manifest.device import Device
from manifest.errors import Problem, RefusedError
from oracle.run import Oracle
from phases.presim.simulation import bench_of, handed_on, run_whole
from phases.presim.source import Inputs, Source, different_inputs, target_tensors
from presim.design import Design
from presim.timing import Calibration, Timing, time_design

Array = NDArray[Any]
INFERENCES: Final = 3
EXACT: Final = frozenset({"completes", "completes_leaving"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """What the simulation of one dispatch showed.

    Attributes:
        verdict: of it.
        text: in one line.
        elements: compared with the oracle.
        mismatches: where the first one stopped the run.
    """

    verdict: str
    text: str
    elements: int
    mismatches: int

    @property
    def exact(self) -> bool:
        """Whether it ran to its end and everything was equal."""
        return self.verdict in EXACT and self.elements > 0 and not self.mismatches


class Trial:
    """Inputs and oracle of a port, for any design of it."""

    def __init__(self, source: Source, device: Device, calibration: Calibration) -> None:
        self.source = source
        self.device = device
        self.calibration = calibration
        self.inputs: Inputs = different_inputs(source, MIN_INPUTS)
        self.tensors = target_tensors(source, self.inputs.feeds)
        self.oracle = Oracle(source.manifest, source.arrays)
        self.tried: list[tuple[Design, Tried]] = []

    def time(self, design: Design) -> Timing:
        """Times of a design that is exact.

        Raises:
            RefusedError: it is not, or the device lacks figures.
        """
        found = self.simulate(design)
        if not found.exact:
            raise RefusedError(
                (Problem(code="OPTIMIZE-INEXACT", where=f"dispatch {design.dispatch}", what=found.text),)
            )
        return time_design(design, self.device, self.calibration, inferences=INFERENCES)

    def simulate(self, design: Design) -> Tried:
        """A dispatch on all inputs, fed with the oracle's tensors."""
        known = next((tried for simulated, tried in self.tried if simulated is design), None)
        if known is not None:
            return known
        bench = bench_of(design, self.source.manifest, self.source.arrays, self.tensors, self.inputs)
        try:
            result = run_whole(bench, bench.tensors, schedules=0).result
            found = Tried(
                verdict=result.verdict,
                text=result.text,
                elements=sum(result.compared.values()),
                mismatches=0 if result.mismatch is None else result.mismatch.different,
            )
        except RefusedError as error:
            found = Tried(verdict="fault", text=error.problems[0].line(), elements=0, mismatches=0)
        self.tried.append((design, found))
        return found

    def outputs(self, designs: Sequence[Design]) -> str:
        """Hash of the graph outputs of all inputs, each dispatch fed with what the ones before gave; "" = no end."""
        by_dispatch = {d.dispatch: d for d in designs}
        handed: list[dict[str, Array]] = [
            {n: a[i] for n, a in self.inputs.feeds.items()} for i in range(self.inputs.count)
        ]
        for dispatch in self.source.manifest.dispatches:
            design = by_dispatch.get(dispatch.name)
            if design is None:
                feeds = {n: np.stack([row[n] for row in handed]) for n in dispatch.inputs}
                computed = self.oracle.run_ops(dispatch.ops, feeds, arithmetic="target", keep="stored")
                given: Sequence[Mapping[str, Array]] = [
                    {n: computed[n][i] for n in dispatch.outputs} for i in range(len(handed))
                ]
            else:
                bench = bench_of(design, self.source.manifest, self.source.arrays, self.tensors, self.inputs)
                result = run_whole(bench, handed, schedules=0).result
                if result.verdict not in EXACT:
                    return ""
                given = handed_on(bench, result)
            for row, outputs in zip(handed, given, strict=True):
                row.update(outputs)
        digest = hashlib.sha256()
        for row in handed:
            for name in self.source.manifest.model.outputs:
                digest.update(np.ascontiguousarray(row[name]).tobytes())
        return digest.hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """Designs that run one after the other.

    Attributes:
        tiles: core tiles of the largest.
        interval_cycles: of all, per inference.
        latency_cycles: of all.
        macs: per inference.
    """

    tiles: int
    interval_cycles: int
    latency_cycles: int
    macs: int


def times_of(designs: Sequence[Design], timings: Sequence[Timing]) -> Times:
    """Times of all dispatches together."""
    macs = sum(a.macs for t in timings for a in t.actors if a.kind == "worker")
    return Times(
        tiles=max((len(d.workers) for d in designs), default=0),
        interval_cycles=sum(ceil(t.interval_cycles) for t in timings),
        latency_cycles=sum(ceil(t.latency_cycles) for t in timings),
        macs=macs // INFERENCES,
    )
