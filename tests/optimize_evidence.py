"""An optimization evidence that passes every item at both levels, to be broken one field at a time."""

from optimize.evidence import (
    AblationEvidence,
    ArmEvidence,
    Basis,
    BoundaryEvidence,
    CandidateEvidence,
    OptimizeEvidence,
    PlacementEvidence,
    RegimeChoice,
    ScreenEvidence,
)


def ablation(group: str, cycles: int, rank: int) -> AblationEvidence:
    """A row of a ranking over an interval of 1000 cycles."""
    return AblationEvidence(
        dispatch="d0", group=group, interval_cycles=cycles, latency_cycles=cycles, share=cycles / 1000, rank=rank
    )


def candidate(name: str, group: str, *, accepted: bool, reason: str = "", rank: int = 0) -> CandidateEvidence:
    """A candidate that is equal to the oracle."""
    return CandidateEvidence(
        name=name,
        changed="cas_num 2",
        group=group,
        tiles=4,
        interval_cycles=800,
        latency_cycles=900,
        elements=100,
        mismatches=0,
        verdict="completes",
        accepted=accepted,
        reason=reason,
        turn=int(rank > 0),
        rank=rank,
    )


def arm(name: str, *, tiles: int, interval: int, latency: int, basis: Basis = "measured") -> ArmEvidence:
    """One side of the record."""
    return ArmEvidence(
        name=name,
        design_sha256=name[0] * 64,
        tiles=tiles,
        interval_cycles=interval,
        latency_cycles=latency,
        gops=1.5,
        presim="PASS",
        bringup="PASS at host level",
        output_sha256="e" * 64,
        basis=basis,
    )


def good_optimize() -> OptimizeEvidence:
    """Passes every item at both levels."""
    return OptimizeEvidence(
        device="npu2",
        level="hardware",
        goal="throughput",
        dispatches=("d0",),
        ablation=(ablation("conv", 600, 1), ablation("gemm", 100, 2)),
        candidates=(
            candidate("c1", "conv", accepted=True, rank=1),
            candidate("c2", "gemm", accepted=False, reason="slower", rank=2),
        ),
        before=arm("before", tiles=3, interval=1000, latency=1200),
        after=arm("after", tiles=4, interval=999, latency=1200),
        placements=(
            PlacementEvidence(dispatch="d0", status="optimal", cost=4, bound=4, reproducible=True, legal=True),
        ),
        boundaries=(BoundaryEvidence(tensor="t", bytes=64, cycles=100, alternative="one dispatch", better=False),),
        expected_boundaries=1,
        regimes=(
            RegimeChoice(regime="batch 1", bound="compute", placement="a"),
            RegimeChoice(regime="batch 8", bound="dram", placement="b"),
        ),
        bandwidth=("default", "assumed", "f" * 64),
        conversions=(("permute", 12),),
        conversions_expected=1,
        streamed=(("conv", "resident", "fits"), ("gemm", "streamed", "does not fit")),
        weighted_ops=2,
        screening=(ScreenEvidence(kernel="k", rule="wider mmul", confidence="likely", text="8x8x8 exists"),),
        kernels=2,
        manifest_sha256="a" * 64,
    )
