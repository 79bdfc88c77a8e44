"""The public strategies: valid manifests, flags that hold, values that matter, small counterexamples."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, find, given, settings
from hypothesis import strategies as st

from manifest.io import manifest_from_json, manifest_to_json
from manifest.model import QRANGE, Tensor
from oracle.run import Oracle
from oracle.strategies import (
    EIGHT_BIT,
    Case,
    add_cases,
    conv_cases,
    gemm_cases,
    graphs,
    pool_cases,
    quantizations,
    quantized_tensors,
    scales,
)
from oracle.value import Array

CASES: dict[str, Callable[..., st.SearchStrategy[Case]]] = {
    "conv": conv_cases,
    "gemm": gemm_cases,
    "add": add_cases,
    "pool": pool_cases,
}


@pytest.mark.parametrize("name", [*CASES, "graphs"])
@given(data=st.data())
def test_cases_are_valid_manifests_that_run(name: str, data: st.DataObject) -> None:
    case = data.draw({**CASES, "graphs": graphs}[name]())
    assert manifest_from_json(manifest_to_json(case.manifest)) == case.manifest
    names = {t.array for t in case.manifest.tensors if t.array is not None}
    assert names <= set(case.arrays)
    got = Oracle(case.manifest, case.arrays).run(case.inputs, keep="all")
    assert set(got) == {n for op in case.manifest.ops for n in op.outputs}


@pytest.mark.parametrize("name", list(CASES))
@given(data=st.data())
def test_flags_hold(name: str, data: st.DataObject) -> None:
    powers = data.draw(CASES[name](power_of_two=True, qoperator=False))
    quantised = [t.quant for t in powers.manifest.tensors if t.quant is not None and t.role != "bias"]
    assert quantised
    assert all(q.exponents is not None for q in quantised)
    kernel = data.draw(CASES[name](qoperator=True))
    (op,) = kernel.manifest.ops
    assert op.type == "MaxPool" or (op.origin == "qoperator" and op.requant is not None)
    if op.type != "MaxPool":
        assert op.requant is not None
        assert op.requant.reference == "scale_f32"


@given(quantized_tensors())
def test_quantized_tensors_hold_codes_of_their_type(drawn: tuple[Tensor, Array]) -> None:
    tensor, codes = drawn
    assert codes.dtype.name == tensor.dtype
    assert codes.shape[1:] == tensor.shape
    assert tensor.quant is not None
    low, high = QRANGE[tensor.dtype]
    assert all(low <= z <= high for z in tensor.quant.zero_points)


@given(scales(), scales(power_of_two=False))
def test_scales_are_positive_float32(any_scale: float, free: float) -> None:
    for scale in (any_scale, free):
        assert scale == float(np.float32(scale)) > 0


@given(quantizations("uint8", channels=3, axis=1))
def test_channels_have_a_scale_each(quant: Any) -> None:
    assert (len(quant.scales), len(quant.zero_points), quant.axis) == (3, 3, 1)


QUIET = settings(derandomize=True, database=None, max_examples=3000, suppress_health_check=list(HealthCheck))


@pytest.mark.parametrize("name", list(CASES))
def test_counterexamples_shrink_to_one_element(name: str) -> None:
    case = find(CASES[name](), lambda c: any(a.any() for a in c.inputs.values()), settings=QUIET)
    assert all(a.size == 1 and abs(int(a.item())) <= 1 for a in case.inputs.values())
    assert all(t.quant.scales == (1.0,) for t in case.manifest.tensors if t.quant is not None)


@pytest.mark.parametrize("name", list(CASES))
def test_most_outputs_are_neither_constant_nor_all_saturated(name: str) -> None:
    """Over a hundred cases the outputs show inner codes, and the seeds of ties: the strategies test something."""
    inner = total = 0

    @settings(derandomize=True, database=None, max_examples=100, suppress_health_check=list(HealthCheck))
    @given(CASES[name]())
    def collect(case: Case) -> None:
        nonlocal inner, total
        (op,) = case.manifest.ops
        assert op.requant is not None
        codes = Oracle(case.manifest, case.arrays).run(case.inputs)["y"]
        inner += int(np.count_nonzero((codes > op.requant.qmin) & (codes < op.requant.qmax)))
        total += codes.size

    collect()
    assert inner * 5 > total


def test_eight_bit_types() -> None:
    assert set(EIGHT_BIT) == {"int8", "uint8"}
