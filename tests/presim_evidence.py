"""A presim evidence that passes every item, to be broken one field at a time."""

from presim.evidence import (
    BudgetRow,
    EquivalenceEvidence,
    MechanismEvidence,
    PresimEvidence,
    RegimeEvidence,
    RegressionEvidence,
    RunEvidence,
    StaticEvidence,
)


def run(name: str, order: int, *, added: str = "", inputs: int = 1) -> RunEvidence:
    """A simulation without a fault."""
    return RunEvidence(
        name=name,
        order=order,
        added=added,
        verdict="completes",
        text="completes",
        inferences=inputs,
        schedules=4,
        boundaries=2,
        elements=100,
        mismatches=0,
        dispatch="d0",
        distinct_inputs=inputs,
        real_inputs=1,
    )


def regime(name: str, batch: int) -> RegimeEvidence:
    """Figures at their limits."""
    return RegimeEvidence(
        name=name,
        batch=batch,
        latency_cycles=90,
        interval_cycles=90,
        bound="compute",
        compute_cycles=90,
        on_chip_cycles=90,
        dram_cycles=89,
        calibration_sha256="c" * 64,
    )


def good_presim() -> PresimEvidence:
    """Passes every item."""
    return PresimEvidence(
        device="npu2",
        design_device="npu2",
        design_sha256="a" * 64,
        manifest_sha256="b" * 64,
        stages_expected=("conv", "gemm"),
        stages=(run("conv", 0), run("gemm", 1)),
        chain=(run("d0: conv", 2, added="conv"), run("d0: conv to gemm", 3, added="gemm")),
        full=(run("d0", 4, inputs=3),),
        static=(
            StaticEvidence(dispatch="d0", check="tiles", looked_at=3),
            StaticEvidence(dispatch="d0", check="queues", looked_at=2),
        ),
        budgets=(
            BudgetRow(dispatch="d0", place="core (0, 2)", what="l1_bytes", need=64, have=64, figure="l1_bytes"),
            BudgetRow(dispatch="d0", place="mem (0, 1)", what="locks", need=2, have=64, figure="mem_locks"),
        ),
        unset_modes=(),
        kernels=2,
        mechanisms=(
            MechanismEvidence(name="broadcast", uses=1, known=True),
            MechanismEvidence(
                name="ring",
                uses=1,
                known=False,
                probe_verdict="completes",
                probe_sha256="d" * 64,
                probe_passed=True,
            ),
        ),
        equivalences=(
            EquivalenceEvidence(
                name="scores",
                decomposition="chunked_softmax",
                elements=10,
                mismatches=0,
                largest_difference=1e-6,
                allowed=1e-6,
            ),
        ),
        decompositions=("chunked_softmax",),
        margins=(("d0: f at shared", 4, 3),),
        regimes=(regime("batch 1", 1), regime("batch 8", 8)),
        regression=RegressionEvidence(stages=2, tests=2, failed=0),
        dispatches=("d0",),
        static_expected=("tiles", "queues"),
        budgets_expected=("l1_bytes", "locks"),
        design_again_sha256="a" * 64,
        design_reload_equal=True,
    )
