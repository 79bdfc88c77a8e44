"""A baseline evidence that passes every item, to be broken one field at a time."""

from oracle.evidence import (
    AccumulatorBound,
    AccuracyEvidence,
    BaselineEvidence,
    BudgetEvidence,
    Comparison,
    CpuEvidence,
    DispatchBudget,
    InputRange,
    KernelEvidence,
    LevelDisagreement,
    ManifestEvidence,
    SchemeEvidence,
    TargetDeviation,
    TensorComparison,
)


def row(tensor: str, op: str, op_type: str) -> TensorComparison:
    """A tensor without a mismatch."""
    return TensorComparison(
        tensor=tensor,
        op=op,
        op_type=op_type,
        elements=100,
        mismatches=0,
        near_ties=0,
        reference_inexact=0,
        unexplained=0,
    )


def good_evidence() -> BaselineEvidence:
    """Passes every item with real data."""
    rows = (row("conv_out", "conv", "Conv"), row("gemm_out", "gemm", "Gemm"))
    dispatch = DispatchBudget(
        name="d0",
        need_bytes=1000,
        have_bytes=1000,
        weights_bytes=600,
        window_bytes=300,
        skip_bytes=100,
        cores_needed=4,
        cores_have=4,
        kernel_bodies=2,
        bodies_per_core=1.0,
        program_bytes=4096,
        program_have_bytes=4096,
        program_assumed=True,
        shim_channels_need=2,
        shim_channels_have=2,
    )
    return BaselineEvidence(
        data=True,
        scheme=SchemeEvidence(
            tensors=5, unlocked=(), claims_power_of_two=True, scales=5, power_of_two=5, exceptions=()
        ),
        manifest=ManifestEvidence(
            schema_errors=(),
            first_sha256="a" * 64,
            second_sha256="a" * 64,
            reload_equal=True,
            layouts=2,
            layout_failures=(),
        ),
        budget=BudgetEvidence(
            device="npu2",
            dispatches=(dispatch,),
            cuts=(),
            concatenation_elements=0,
            concatenation_mismatches=0,
        ),
        accumulators=(
            AccumulatorBound(op="conv", bound=2**31 - 1, bits=32, reached=2**31 - 1),
            AccumulatorBound(op="gemm", bound=9, bits=32, reached=9),
        ),
        random_ops=Comparison(
            kind="random_op", reference="onnxruntime, optimisations off", samples=8, tensors_expected=2, tensors=rows
        ),
        comparisons=(
            Comparison(
                kind="disable_all",
                reference="onnxruntime, optimisations off",
                samples=10,
                tensors_expected=2,
                tensors=rows,
            ),
        ),
        cpu=CpuEvidence(
            flags=("avx2", "avx512_vnni"),
            integer_kernels_exact=True,
            hazard_ops=("conv",),
            reference_used="optimisations off",
            switched=False,
        ),
        accuracy=AccuracyEvidence(
            samples=100,
            labels=True,
            accuracy=0.96,
            float_accuracy=0.97,
            sqnr_db=30.0,
            cosine=0.999,
            top1_agreement=0.98,
            max_accuracy_drop=0.01,
            min_sqnr_db=20.0,
            min_top1_agreement=0.95,
            worst_layers=(("conv_out", 18.5),),
            majority_share=0.1,
            against="float model",
        ),
        target=TargetDeviation(samples=10, elements=2000, deviating=0, tensors=()),
        inputs=(
            InputRange(
                name="x",
                samples=10,
                minimum=0.0,
                maximum=1.0,
                representable_minimum=-1.0,
                representable_maximum=127 / 128,
                declared_minimum=0.0,
                declared_maximum=1.0,
                clipped=500,
                elements=1000,
                used_codes_fraction=0.5,
            ),
        ),
        levels=LevelDisagreement(elements=2000, disagreeing=3),
        kernel=KernelEvidence(ops=2, accumulators=1000, faults=()),
    )
