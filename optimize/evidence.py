"""Evidence of phase 4: frozen numbers and hashes, filled by `phases.optimize.collect`, judged by the items.

Times are predicted by the timing model unless `basis` of a row says measured. None or an empty tuple means "not run".
"""

from dataclasses import dataclass
from typing import Literal

Basis = Literal["simulated", "measured"]
Outcome = Literal["confirmed", "no_change", "rejected", "void"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AblationEvidence:
    """What one group of kernels contributes: the design with it as a no-op that moves the same data.

    Attributes:
        dispatch: which.
        group: op, or class of ops.
        interval_cycles: saved per inference in a full pipeline.
        latency_cycles: saved of the first inference.
        share: of the whole interval, 0 to 1.
        rank: 1 = contributes most.
    """

    dispatch: str
    group: str
    interval_cycles: int
    latency_cycles: int
    share: float
    rank: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateEvidence:
    """One design that was tried.

    Attributes:
        name: of it.
        changed: what is different from the design before, in words.
        group: of the ablation that it works on, "" = the whole.
        tiles: core tiles.
        interval_cycles: simulated, per inference.
        latency_cycles: simulated.
        elements: compared with the oracle.
        mismatches: of them.
        verdict: of its simulation against the oracle.
        accepted: on the front, or the winner.
        reason: why not, "" where it is.
        turn: of the search, each with a ranking of its own; 0 = the whole design was changed.
        rank: of the group in that ranking, 1 = contributes most; 0 = the whole design was changed.
    """

    name: str
    changed: str
    group: str
    tiles: int
    interval_cycles: int
    latency_cycles: int
    elements: int
    mismatches: int
    verdict: str
    accepted: bool
    reason: str
    turn: int = 0
    rank: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmEvidence:
    """One design of the A/B record.

    Attributes:
        name: before or after.
        design_sha256: of the canonical designs.
        tiles: core tiles.
        interval_cycles: per inference.
        latency_cycles: of the first.
        gops: billions of operations per second at the clock of the catalogue; None = no clock is published.
        presim: verdict of its own presim gate.
        bringup: verdict of its own bring-up gate with its level.
        output_sha256: of all outputs on the canary, in target arithmetic, as the design gave them.
        basis: of the times.
    """

    name: str
    design_sha256: str
    tiles: int
    interval_cycles: int
    latency_cycles: int
    gops: float | None
    presim: str
    bringup: str
    output_sha256: str
    basis: Basis


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementEvidence:
    """How a design was placed: what the solver knows of this placement, and the independent check of legality.

    Attributes:
        dispatch: which.
        status: of the solver, `constructive` where the placement is not the solver's.
        cost: by the prices of the placer; None = no solver said.
        bound: every placement costs at least as much; None = no solver said.
        reproducible: no clock cut the solver off.
        legal: by the independent check.
        fault: the first thing that cannot be, "" = none.
    """

    dispatch: str
    status: str
    cost: float | None
    bound: float | None
    reproducible: bool
    legal: bool
    fault: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundaryEvidence:
    """A cut between dispatches, reconsidered for speed.

    Attributes:
        tensor: at the cut.
        bytes: that go out and in again.
        cycles: that the trip takes, predicted.
        alternative: what was tried instead, in words.
        better: whether that is faster and fits.
    """

    tensor: str
    bytes: int
    cycles: int
    alternative: str
    better: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RegimeChoice:
    """Which resource binds in a regime, and the design that it runs on.

    Attributes:
        regime: batch 1 or batch N.
        bound: compute, on_chip or dram.
        placement: short hash of the design.
        better: a design of the search that is better in this regime, "" = none is.
    """

    regime: str
    bound: str
    placement: str
    better: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScreenEvidence:
    """One static finding on an emitted kernel: a candidate, never a speed-up."""

    kernel: str
    rule: str
    confidence: str
    text: str
    confirmed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizeEvidence:
    """Everything the optimization gate judges.

    Attributes:
        device: of the port.
        level: of the bring-up gate that this stands on.
        goal: latency, throughput or tiles.
        dispatches: those on the array.
        ablation: rows of all dispatches.
        candidates: every design that was tried.
        before: the design of the port.
        after: the winner; None = nothing better was found, which is a result.
        placements: of the winner's dispatches.
        boundaries: cuts between dispatches; expected_boundaries says how many there are.
        expected_boundaries: cuts between dispatches on the array.
        regimes: batch 1 and batch N.
        bandwidth: name of the table, its basis and sha256.
        conversions: (op, cycles) that only move or convert on compute tiles, in the winner.
        conversions_expected: such ops in the manifest.
        streamed: (op, resident or streamed, why) for every op with weights.
        weighted_ops: ops with weights.
        screening: static findings on the emitted kernels.
        kernels: that were screened.
        manifest_sha256: of the canonical manifest.
    """

    device: str
    level: str
    goal: str
    dispatches: tuple[str, ...]
    ablation: tuple[AblationEvidence, ...]
    candidates: tuple[CandidateEvidence, ...]
    before: ArmEvidence | None
    after: ArmEvidence | None
    placements: tuple[PlacementEvidence, ...]
    boundaries: tuple[BoundaryEvidence, ...]
    expected_boundaries: int
    regimes: tuple[RegimeChoice, ...]
    bandwidth: tuple[str, str, str]
    conversions: tuple[tuple[str, int], ...]
    conversions_expected: int
    streamed: tuple[tuple[str, str, str], ...]
    weighted_ops: int
    screening: tuple[ScreenEvidence, ...]
    kernels: int
    manifest_sha256: str
