"""A bring-up evidence that passes every item at both levels, to be broken one field at a time."""

from dataclasses import replace

from bringup.evidence import (
    BringupEvidence,
    LintEvidence,
    MemoryRow,
    RuleEvidence,
    Runs,
    StepEvidence,
    StepKind,
)

CANARY = "c" * 64
SOURCES = (("kernels/conv.cc", "1" * 64), ("kernels/gemm.cc", "2" * 64))


def step(
    kind: StepKind, name: str, order: int, *, parts: tuple[str, ...], added: str, runs: Runs = "host"
) -> StepEvidence:
    """A step without a fault."""
    whole = kind in ("dispatch", "handoff")
    return StepEvidence(
        name=f"d0/{order:02}_{kind}_{name}",
        kind=kind,
        runs=runs,
        dispatch="" if kind == "handoff" else "d0",
        order=order,
        parts=parts,
        added=(added,),
        sources=SOURCES,
        status="completed",
        text="completes",
        inferences=3 if whole else 1,
        distinct_inputs=3 if whole else 1,
        real_inputs=1,
        canary_sha256=CANARY,
        schedules=4,
        boundaries=2,
        elements=100,
        mismatches=0,
        driver_status="" if runs == "host" else "ERT_CMD_STATE_COMPLETED",
        planned_sha256="d" * 64,
        lowered_sha256="d" * 64,
    )


def steps(first: int, runs: Runs) -> tuple[StepEvidence, ...]:
    """Two stages, their chain, the dispatch and the hand-off."""
    return (
        step("stage", "conv", first, parts=("conv",), added="conv", runs=runs),
        step("stage", "gemm", first + 1, parts=("gemm",), added="gemm", runs=runs),
        step("chain", "conv", first + 2, parts=("conv",), added="conv", runs=runs),
        step("chain", "gemm", first + 3, parts=("conv", "gemm"), added="gemm", runs=runs),
        step("dispatch", "d0", first + 4, parts=("conv", "gemm"), added="d0", runs=runs),
        step("handoff", "hand-off", first + 5, parts=("d0", "d1"), added="hand-off", runs=runs),
    )


def good_bringup() -> BringupEvidence:
    """Passes every item at both levels."""
    return BringupEvidence(
        device="npu2",
        backend="xrt",
        manifest_sha256="a" * 64,
        design_sha256="b" * 64,
        toolchain_profile="1.4.0",
        generated=SOURCES,
        on_disk=SOURCES,
        stages_expected=("conv", "gemm"),
        dispatches=("d0",),
        handoffs_expected=1,
        canary_sha256=CANARY,
        steps=(*steps(0, "host"), *steps(6, "hardware")),
        lint=LintEvidence(rules=("restrict",), files=2),
        memory=(MemoryRow(dispatch="d0", place="core (0, 2)", need=65536, have=65536),),
        rules=(RuleEvidence(event="op 'fc1' split", recorded=True),),
        emitted_again_equal=True,
        device_reported="NPU Strix",
        device_name="npu2",
        stack=(("conv", 1024, 1024),),
    )


def changed(evidence: BringupEvidence, index: int, **fields: object) -> BringupEvidence:
    """The evidence with fields of one step changed."""
    rows = list(evidence.steps)
    rows[index] = replace(rows[index], **fields)  # type: ignore[arg-type]
    return replace(evidence, steps=tuple(rows))
