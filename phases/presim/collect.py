"""Fills the evidence of phase 2: every figure that the presim gate judges is simulated or predicted here.

The order is the point: every stage alone, then the chain grown by one stage at a time, then every dispatch as a whole
on inputs that differ, each fed with what the one before it gave.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from checklists.items.presim_runs import ENDED, MIN_INPUTS
from manifest.device import Device
from manifest.errors import RefusedError, UpstreamError
from manifest.io import canonical_json, parse_canonical, sha256_hex
from manifest.model import Dispatch
from oracle.run import Oracle
from phases.presim.mechanisms import mechanism_evidence
from phases.presim.options import PresimOptions
from phases.presim.predicting import Predicted
from phases.presim.records import equivalences_of, probes_of
from phases.presim.regress import Suite, suite_files
from phases.presim.simulation import Bench, Run, bench_of, evidence_of, failed, handed_on, run_piece, run_whole
from phases.presim.source import Source, different_inputs, target_tensors
from phases.presim.stages import Unit, cut, units_of
from presim.decompositions import DECOMPOSED
from presim.design import Design
from presim.design_io import DESIGN_FILE, design_errors, design_from_json, design_to_json
from presim.evidence import (
    BudgetRow,
    PresimEvidence,
    RegressionEvidence,
    RunEvidence,
    StaticEvidence,
)
from presim.kernels.agreement import disagreements
from presim.simulate import SimOptions, margins
from presim.static import CHECKS, budget_rows, check_design, scope_of, structure
from presim.static.budget import CHANNELS, DATA, DESCRIPTORS, LOCKS, PROGRAM

Array = NDArray[Any]
Progress = Callable[[str], None]

BUDGET_CHECKS: Final = frozenset({CHANNELS, DATA, DESCRIPTORS, LOCKS, PROGRAM})
"""Static checks that are budgets: judged by their rows, need against have, and not a second time."""

MARGIN_INFERENCES: Final = 2
MARGIN_STEPS: Final = 1_000_000
"""Instructions that all runs for the margins of a dispatch may take together, about a second."""

BUDGETS: Final = ("bytes of data memory", "bytes of program memory", "buffer descriptors", "locks")
"""Budgets that every dispatch has rows of, whatever its device."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Collected:
    """Evidence, and what it speaks of.

    Attributes:
        evidence: for the gate.
        units: names of the stages, in order.
    """

    evidence: PresimEvidence
    units: tuple[str, ...]


def collect(
    source: Source,
    designs: Sequence[Design],
    again: Sequence[Design],
    options: PresimOptions,
    *,
    device: Device,
    records: Mapping[str, bytes],
    predicted: Predicted,
    progress: Progress,
) -> Collected:
    """Simulate and count everything.

    Args:
        source: of the port.
        designs: one per dispatch on the array.
        again: planned a second time from the same bytes.
        options: of the run.
        device: of the port.
        records: probes and equivalences of the port.
        predicted: times of the designs.
        progress: takes a few words per step.
    """
    bench = _Benches(source, designs, options, progress)
    bench.run()
    data = design_to_json(designs)
    constants = frozenset(t.name for t in source.manifest.tensors if t.array is not None)
    kernels = [kernel for design in designs for kernel in design.kernels if kernel.op]
    progress("static checks and the regression suite")
    evidence = PresimEvidence(
        device=device.name,
        design_device=", ".join(sorted({design.device for design in designs})),
        design_sha256=sha256_hex(data),
        manifest_sha256=sha256_hex(source.files["manifest.json"]),
        stages_expected=bench.names,
        stages=tuple(bench.alone),
        chain=tuple(bench.chain),
        full=tuple(bench.full),
        static=tuple(row for design in designs for row in static_evidence(design, device)),
        budgets=tuple(row for design in designs for row in budget_evidence(design, device)),
        unset_modes=tuple(k.name for k in kernels if not k.rounding or not k.saturation),
        kernels=len(kernels),
        kernel_faults=tuple(row for design in designs for row in disagreements(design, source.manifest)),
        mechanisms=mechanism_evidence(tuple(designs), probes_of(records), constants),
        equivalences=equivalences_of(records),
        decompositions=tuple(sorted({DECOMPOSED[k.type] for k in kernels if k.type in DECOMPOSED})),
        margins=bench.margins(),
        regimes=predicted.regimes,
        regimes_unknown=predicted.unknown,
        regression=_regression(source, data, bench.names) if designs else None,
        dispatches=tuple(d.name for d in source.manifest.dispatches if d.where == "npu"),
        static_expected=("structure", *(c.__name__ for c in CHECKS if c.__name__ not in BUDGET_CHECKS)),
        budgets_expected=BUDGETS,
        design_again_sha256=sha256_hex(design_to_json(again)),
        design_reload_equal=_reads_back(data, designs),
        design_errors=design_errors(parse_canonical(data, DESIGN_FILE)),
    )
    return Collected(evidence=evidence, units=bench.names)


def static_evidence(design: Design, device: Device) -> tuple[StaticEvidence, ...]:
    """Every static check of a dispatch that is no budget; the structure alone where that is not sound."""
    found = []
    for checked in check_design(design, device):
        if checked.rule not in BUDGET_CHECKS:
            rows = [(f.severity, f.where, f.text) for f in checked.findings]
            found.append(
                StaticEvidence(
                    dispatch=design.dispatch,
                    check=checked.rule,
                    looked_at=checked.looked_at,
                    findings=tuple((where, text) for severity, where, text in rows if severity == "error"),
                    unknown=tuple(dict.fromkeys(f.figure for f in checked.findings if f.severity == "unknown")),
                    warnings=tuple((where, text) for severity, where, text in rows if severity == "warning"),
                )
            )
    return tuple(found)


def budget_evidence(design: Design, device: Device) -> tuple[BudgetRow, ...]:
    """Every budget of every tile of a dispatch; none where its structure is not sound.

    A dispatch that only moves data takes nothing of core tiles: a row of 0 says so.
    """
    if structure(design):
        return ()
    rows = budget_rows(scope_of(design, device))
    bare = [what for what in BUDGETS if not design.workers and what not in {row.what for row in rows}]
    nothing = [BudgetRow(dispatch=design.dispatch, place="no core tile", what=what, need=0, have=0) for what in bare]
    return (*rows, *nothing)


class _Benches:
    """The simulations of all dispatches, in their order."""

    def __init__(self, source: Source, designs: Sequence[Design], options: PresimOptions, progress: Progress) -> None:
        self.source = source
        self.options = options
        self.progress = progress
        self.inputs = different_inputs(source, MIN_INPUTS)
        self.oracle = Oracle(source.manifest, source.arrays)
        tensors = target_tensors(source, self.inputs.feeds)
        self.benches = {
            design.dispatch: bench_of(design, source.manifest, source.arrays, tensors, self.inputs)
            for design in designs
        }
        self.units = {name: units_of(bench.design, source.manifest) for name, bench in self.benches.items()}
        self.alone: list[RunEvidence] = []
        self.chain: list[RunEvidence] = []
        self.full: list[RunEvidence] = []
        self.numbers = count()

    @property
    def names(self) -> tuple[str, ...]:
        """Of all units."""
        return tuple(unit.name for units in self.units.values() for unit in units)

    def run(self) -> None:
        """Stages alone, chain, wholes."""
        for name, bench in self.benches.items():
            for unit in self.units[name]:
                self.progress(f"stage {unit.name} alone")
                if unit.workers:
                    self.alone.append(self.piece(bench, unit.workers, name=unit.name))
        for name, bench in self.benches.items():
            self.grow(bench, self.units[name])
        self.progress("every dispatch as a whole")
        self.wholes()

    def grow(self, bench: Bench, units: Iterable[Unit]) -> None:
        """The chain of a dispatch, one unit more each time."""
        workers: frozenset[str] = frozenset()
        first = ""
        for unit in units:
            workers |= unit.workers
            first = first or unit.name
            self.progress(f"chain with stage {unit.name}")
            name = f"{bench.design.dispatch}: {first}" + (f" to {unit.name}" if unit.name != first else "")
            if unit.workers:
                self.chain.append(self.piece(bench, workers, name=name, added=unit.name))

    def piece(self, bench: Bench, workers: frozenset[str], *, name: str, added: str = "") -> RunEvidence:
        piece = cut(bench.design, workers, bench.manifest, bench.counts)
        run = _guarded(lambda: run_piece(bench, piece))
        return evidence_of(
            run,
            name=name,
            order=next(self.numbers),
            dispatch=bench.design.dispatch,
            added=added,
            inferences=1,
            real=self.inputs.real,
        )

    def wholes(self) -> None:
        """Every dispatch, on the host or the array, on all inputs; each gets what the ones before gave."""
        handed = [{n: array[i] for n, array in self.inputs.feeds.items()} for i in range(self.inputs.count)]
        for dispatch in self.source.manifest.dispatches:
            bench = self.benches.get(dispatch.name)
            if bench is None:
                given = self.on_host(dispatch, handed)
            else:
                self.progress(f"dispatch {dispatch.name} as a whole")
                given = self.whole(bench, handed)
            for row, outputs in zip(handed, given, strict=True):
                row.update(outputs)

    def whole(self, bench: Bench, handed: Sequence[Mapping[str, Array]]) -> Sequence[Mapping[str, Array]]:
        run = _guarded(lambda: run_whole(bench, handed, schedules=self.options.schedules))
        name = bench.design.dispatch
        self.full.append(
            evidence_of(
                run,
                name=name,
                order=next(self.numbers),
                dispatch=name,
                inferences=self.inputs.count,
                real=self.inputs.real,
            )
        )
        return handed_on(bench, run.result)

    def margins(self) -> tuple[tuple[str, int, int], ...]:
        """How shallow every pool could be, of the dispatches that run; as far as the bound of steps goes."""
        self.progress("how shallow every fifo could be")
        ended = [run.dispatch for run in self.full if run.verdict in ENDED]
        options = SimOptions(inferences=MARGIN_INFERENCES, fix_steps=MARGIN_STEPS)
        return tuple(
            (f"{name}: {margin.fifo} at {margin.side}", margin.depth, margin.least)
            for name in ended
            for margin in margins(self.benches[name].design, options=options)
            if margin.least is not None
        )

    def on_host(self, dispatch: Dispatch, handed: Sequence[Mapping[str, Array]]) -> Sequence[Mapping[str, Array]]:
        if dispatch.where != "host" or not all(set(dispatch.inputs) <= set(row) for row in handed):
            return [{} for _ in handed]
        feeds = {name: np.stack([row[name] for row in handed]) for name in dispatch.inputs}
        computed = self.oracle.run_ops(dispatch.ops, feeds, arithmetic="target", keep="stored")
        return [{name: computed[name][i] for name in dispatch.outputs} for i in range(len(handed))]


def _guarded(work: Callable[[], Run]) -> Run:
    """A run; one that the simulator refuses is a fault of the design."""
    try:
        return work()
    except RefusedError as error:
        return failed(error)


def _regression(source: Source, design: bytes, names: tuple[str, ...]) -> RegressionEvidence:
    """Run the suite as it will stand in the port, on the bytes that will be written."""
    files = {**source.files, DESIGN_FILE: design, **suite_files(names)}
    suite = Suite(files.__getitem__, frozenset(files))
    failures = [name for name in names if suite.failure(name)]
    return RegressionEvidence(stages=len(suite.places), tests=len(names), failed=len(failures), names=tuple(failures))


def _reads_back(data: bytes, designs: Sequence[Design]) -> bool:
    try:
        return design_from_json(data) == tuple(designs) and canonical_json(parse_canonical(data, DESIGN_FILE)) == data
    except UpstreamError:
        return False
