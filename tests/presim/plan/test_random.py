"""Random graphs, planned and simulated with data on arrays of many sizes, against the oracle."""

from hypothesis import given, settings
from hypothesis import strategies as st

from manifest.device import Device
from manifest.errors import RefusedError
from oracle.strategies import Case, add_cases, conv_cases, gemm_cases, graphs, pool_cases
from presim.design import Design
from tests.presim.plan.harness import GOOD, NPU2, plan_of, run_with_data, stored, whole, with_figures

DEVICES = st.sampled_from(
    [
        NPU2,
        with_figures(l1_bytes=1624),
        with_figures(core_tiles=2),
        with_figures(l1_bytes=2024, core_tiles=4),
        with_figures(core_bds=7),
    ]
)


def planned(case: Case, device: Device) -> Design | None:
    """The design; None where a small array refuses it, for a reason of the planner."""
    try:
        return plan_of(case.manifest, device)
    except RefusedError as error:
        if device is NPU2 or not all(p.code.startswith("PLAN-") for p in error.problems):
            raise
        return None


def check(case: Case, device: Device) -> bool:
    """Whether the graph was planned (small arrays may refuse); wrong results fail."""
    dispatch = whole(case.manifest)
    ends = [case.manifest.tensor(n).dtype for n in (*dispatch.inputs, *dispatch.outputs)]
    if not dispatch.ops or "float32" in ends:
        return False
    design = planned(case, device)
    if design is None:
        return False
    tensors = stored(case.manifest, case.arrays, case.inputs)
    result = run_with_data(design, case.manifest, case.arrays, tensors)
    assert result.verdict in GOOD, result.text
    assert result.sound, result.text
    return True


@given(graphs(max_links=6), DEVICES)
def test_graphs(case: Case, device: Device) -> None:
    check(case, device)


@given(st.one_of(conv_cases(), gemm_cases(), add_cases(), pool_cases()), DEVICES)
@settings(max_examples=100)
def test_single_ops(case: Case, device: Device) -> None:
    check(case, device)
