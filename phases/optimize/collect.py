"""Fills the evidence of phase 4: ablation, search, the winner's own gates, and what the checklist asks beside."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from checklists.report import load_report
from manifest.clearance import Clearance
from manifest.device import Device
from manifest.io import sha256_hex
from manifest.model import Dispatch
from optimize.ablation import MOVEMENT, AblationRow, ablate
from optimize.evidence import (
    AblationEvidence,
    ArmEvidence,
    CandidateEvidence,
    OptimizeEvidence,
    PlacementEvidence,
)
from optimize.placement.solve import Solution
from optimize.screening import screen_evidence
from optimize.search import Candidate, SearchContext, SearchResult, goal_key, search
from phases.optimize.options import OptimizeOptions
from phases.optimize.placing import placed, placement_evidence, proved
from phases.optimize.scratch import prove
from phases.optimize.traffic import Traffic, regime_choices, table_of, traffic_of
from phases.optimize.trial import INFERENCES, Times, Trial, times_of
from phases.port import Port
from phases.presim.source import MANIFEST, Source
from presim.design import Design
from presim.design_io import design_to_json
from presim.directives import Directives
from presim.plan import plan
from presim.timing import Calibration, time_design

Progress = Callable[[str], None]
GENERATED: Final = "generated/"


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What a run works on.

    Attributes:
        port: open, its gates PASS through bring-up.
        source: of it.
        designs: of the port.
        device: of the port.
        directives: of the person, as phase 2 had them.
        clearance: of the baseline gate, for the planner.
        calibration: of the timing model.
        level: of the bring-up gate.
        scratch: an empty folder.
    """

    port: Port
    source: Source
    designs: tuple[Design, ...]
    device: Device
    directives: Directives
    clearance: Clearance
    calibration: Calibration
    level: str
    scratch: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What came of it.

    Attributes:
        evidence: for the gate.
        winner: designs that are better for the goal and passed gates of their own; () = none.
        results: of the search, by dispatch.
        ablation: of the designs before.
    """

    evidence: OptimizeEvidence
    winner: tuple[Design, ...] = ()
    results: Mapping[str, SearchResult] = field(default_factory=dict)
    ablation: tuple[AblationRow, ...] = ()


def collect(work: Work, options: OptimizeOptions, progress: Progress) -> Found:
    """Rank, search, prove.

    Raises:
        RefusedError: the device lacks figures that times need, or the bandwidth table is malformed.
        UnavailableError: there is no compiler.
    """
    return _Run(work, options, progress).found()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """A design that the search asked for; looked up by identity, since each call has values of its own."""

    directives: Directives
    planned: Design
    placed: Design


class _Run:
    """One run of phase 4."""

    def __init__(self, work: Work, options: OptimizeOptions, progress: Progress) -> None:
        self.work = work
        self.options = options
        self.progress = progress
        self.trial = Trial(work.source, work.device, work.calibration)
        self.solutions: list[tuple[Design, Solution]] = []
        self.plans: list[_Plan] = []
        self.dispatches = {d.name: d for d in work.source.manifest.dispatches if d.where == "npu"}

    def found(self) -> Found:
        """Everything."""
        work = self.work
        rows: list[AblationRow] = []
        table = table_of(self.options.bandwidth, work.device, work.calibration)
        for design in work.designs:
            self.progress(f"ablation of {design.dispatch}")
            rows += ablate(design, work.device, work.calibration, inferences=INFERENCES, kinds=("op",))
        results = {}
        for name, dispatch in self.dispatches.items():
            self.progress(f"searching {name}")
            results[name] = search(self.context(dispatch), self.options.goal, self.most(), self.options.plans)
        before = self.times(work.designs)
        winner, after, proofs = self.winner(results, before)
        final = winner or work.designs
        traffic = traffic_of(work.source.manifest, final, table, work.device, work.calibration)
        ranking = tuple(_ablation(row) for row in rows)
        evidence = self.evidence(ranking, results, traffic, winner)
        gates = [load_report(work.port.read(f"gates/{name}.json")) for name in ("presim", "bringup")]
        stands = str(gates[0].verdict), gates[1].words
        arms = {"before": self.arm("before", work.designs, before, stands)}
        if winner and after is not None:
            arms["after"] = self.arm("after", winner, after, proofs)
        evidence = replace(evidence, before=arms["before"], after=arms.get("after"))
        return Found(evidence=evidence, winner=winner, results=results, ablation=tuple(rows))

    def most(self) -> int | None:
        """Core tiles that a design may have."""
        return self.options.max_tiles or None

    def context(self, dispatch: Dispatch) -> SearchContext:
        """What the search of a dispatch works with."""
        return SearchContext(
            manifest=self.work.source.manifest,
            dispatch=dispatch,
            device=self.work.device,
            calibration=self.work.calibration,
            directives=self.work.directives,
            plan=lambda directives: self.planned(dispatch, directives),
            time=self.trial.time,
        )

    def planned(self, dispatch: Dispatch, directives: Directives) -> Design:
        """A dispatch, planned and placed; the gate above is held against the manifest each time."""
        design = plan(
            self.work.source.manifest,
            self.work.device,
            directives,
            self.work.clearance,
            manifest_bytes=self.work.source.files[MANIFEST],
            dispatch=dispatch.name,
        )
        final = placed(design, self.work.device, directives)
        self.plans.append(_Plan(directives=directives, planned=design, placed=final))
        return final

    def times(self, designs: Sequence[Design]) -> Times:
        """Simulated times of designs that run one after the other."""
        rows = [time_design(d, self.work.device, self.work.calibration, inferences=INFERENCES) for d in designs]
        return times_of(designs, rows)

    def winner(
        self, results: Mapping[str, SearchResult], before: Times
    ) -> tuple[tuple[Design, ...], Times | None, tuple[str, str]]:
        """(designs, their times, verdicts of their own presim and bring-up gates); nothing where none is better."""
        best = {name: self.better(name, result) for name, result in results.items()}
        if not any(best.values()):
            return (), None, ("", "")
        designs = tuple(best.get(d.dispatch) or d for d in self.work.designs)
        designs = tuple(self.placed_with_proof(d) for d in designs)
        after = self.times(designs)
        if goal_key(self.options.goal, _triple(after)) >= goal_key(self.options.goal, _triple(before)):
            return (), None, ("", "")
        self.progress("phases 2 and 3 on the winner")
        proof = prove(self.work.port, designs, self.work.scratch / "port", self.work.scratch / "work")
        return designs, after, proof.words

    def placed_with_proof(self, design: Design) -> Design:
        """A design placed by CP-SAT where that is better, and still exact; else as it is."""
        self.progress(f"placing {design.dispatch}")
        made = next((p for p in self.plans if p.placed is design), None)
        if made is None:
            return design  # that of the port, which stays
        accept = self.options.accept_nondeterministic
        found, solution = proved(made.planned, self.work.device, made.directives, accept_cut=accept)
        if not self.trial.simulate(found).exact:
            return design
        if solution is not None:
            self.solutions.append((found, solution))
        return found

    def better(self, name: str, result: SearchResult) -> Design | None:
        """The best design of a dispatch where it beats that of the port for the goal."""
        now = next(d for d in self.work.designs if d.dispatch == name)
        timing = time_design(now, self.work.device, self.work.calibration, inferences=INFERENCES)
        here = _triple(times_of((now,), (timing,)))
        best = result.best
        if best is None or best.design is None:
            return None
        return best.design if goal_key(self.options.goal, best.triple) < goal_key(self.options.goal, here) else None

    def evidence(
        self,
        ranking: tuple[AblationEvidence, ...],
        results: Mapping[str, SearchResult],
        traffic: Traffic,
        winner: tuple[Design, ...],
    ) -> OptimizeEvidence:
        """Everything but the two arms."""
        work = self.work
        kernels = {
            n.removeprefix(GENERATED): work.port.read(n) for n in work.port.state.files if n.startswith(GENERATED)
        }
        final = winner or work.designs
        return OptimizeEvidence(
            device=work.device.name,
            level=work.level,
            goal=self.options.goal,
            dispatches=tuple(self.dispatches),
            ablation=ranking,
            candidates=tuple(self.candidate(name, c) for name, r in results.items() for c in r.candidates),
            before=None,
            after=None,
            placements=tuple(self.placement(design) for design in final),
            boundaries=traffic.boundaries,
            expected_boundaries=max(0, len(self.dispatches) - 1),
            regimes=regime_choices(final, results, work.device, work.calibration),
            bandwidth=traffic.bandwidth,
            conversions=traffic.conversions,
            conversions_expected=traffic.conversions_expected,
            streamed=traffic.streamed,
            weighted_ops=traffic.weighted_ops,
            screening=tuple(screen_evidence(kernels)),
            kernels=len([n for n in kernels if n.endswith(".cc")]),
            manifest_sha256=sha256_hex(work.source.files[MANIFEST]),
        )

    def placement(self, design: Design) -> PlacementEvidence:
        """How a design lies, by code that the placer does not share."""
        solution = next((s for d, s in self.solutions if d is design), None)
        return placement_evidence(design, self.work.device, solution)

    def candidate(self, dispatch: str, c: Candidate) -> CandidateEvidence:
        """A candidate in numbers, also one that was rejected because it is not exact; no plan, nothing compared."""
        made = next((p for p in self.plans if p.directives is c.directives), None)
        tried = None if made is None else self.trial.simulate(made.placed)
        return CandidateEvidence(
            name=f"{dispatch}: {c.name}",
            changed=c.changed,
            group=c.group,
            tiles=c.tiles,
            interval_cycles=c.interval_cycles,
            latency_cycles=c.latency_cycles,
            elements=0 if tried is None else tried.elements,
            mismatches=0 if tried is None else tried.mismatches,
            verdict="" if tried is None else tried.verdict,
            accepted=c.accepted,
            reason=c.reason,
            turn=c.turn,
            rank=c.rank,
        )

    def arm(self, name: str, designs: Sequence[Design], times: Times, proofs: tuple[str, str]) -> ArmEvidence:
        """One side of the A/B record."""
        clock = self.work.device.clock_mhz.value
        gops = None
        if clock is not None and times.interval_cycles:
            gops = round(2 * times.macs * clock / times.interval_cycles / 1000, 3)
        return ArmEvidence(
            name=name,
            design_sha256=sha256_hex(design_to_json(tuple(designs))),
            tiles=times.tiles,
            interval_cycles=times.interval_cycles,
            latency_cycles=times.latency_cycles,
            gops=gops,
            presim=proofs[0],
            bringup=proofs[1],
            output_sha256=self.trial.outputs(designs),
            basis="simulated",
        )


def _triple(times: Times) -> tuple[float, float, float]:
    return times.tiles, times.interval_cycles, times.latency_cycles


def _ablation(row: AblationRow) -> AblationEvidence:
    group = "movement of data" if row.group == MOVEMENT else row.group
    return AblationEvidence(
        dispatch=row.dispatch,
        group=group,
        interval_cycles=row.interval_cycles,
        latency_cycles=row.latency_cycles,
        share=row.share,
        rank=row.rank,
    )
