"""Single ops against onnxruntime itself, without optimisation: QOperator kernels bit for bit, QDQ with 2**k scales."""

from collections.abc import Callable

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from oracle.cpu import read_cpu_flags
from oracle.run import Oracle
from oracle.strategies import Case, add_cases, conv_cases, gemm_cases, pool_cases
from tests.oracle import onnx_of

FLAGS = read_cpu_flags()


def check(case: Case, convert: Callable[[Case], onnx_of.Model]) -> None:
    want = onnx_of.run(convert(case))
    got = Oracle(case.manifest, case.arrays, fma=FLAGS.fma).run(case.inputs)["y"]
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got, want)


@given(conv_cases(qoperator=True))
def test_qlinearconv(case: Case) -> None:
    check(case, onnx_of.qoperator)


@given(gemm_cases(qoperator=True))
def test_qgemm_and_qlinearmatmul(case: Case) -> None:
    assume(case.manifest.ops[0].type == "Gemm" or not case.manifest.ops[0].inputs[2])
    check(case, onnx_of.qoperator)


@given(add_cases(qoperator=True))
def test_qlinearadd(case: Case) -> None:
    check(case, onnx_of.qoperator)


@given(pool_cases(qoperator=True))
def test_qlinear_averages(case: Case) -> None:
    op = case.manifest.ops[0]
    assume(op.type != "MaxPool")
    check(case, onnx_of.qoperator)


def small(case: Case) -> bool:
    """Whether float32 holds every sum: 8-bit inputs, no bias finer than the product."""
    tensors = case.manifest.by_name()
    op = case.manifest.ops[0]
    bias = op.bias
    return all(tensors[n].dtype in ("int8", "uint8") for n in case.manifest.model.inputs) and (
        bias is None or (bias.kind != "rescaled" and min(bias.shifts, default=0) >= 0)
    )


@given(st.one_of(conv_cases(power_of_two=True, qoperator=False), gemm_cases(power_of_two=True, qoperator=False)))
def test_qdq_products_with_power_of_two_scales(case: Case) -> None:
    assume(small(case))
    if case.manifest.ops[0].type == "MatMul":
        assume(not case.manifest.ops[0].inputs[2])
    check(case, onnx_of.qdq)


@given(add_cases(power_of_two=True, qoperator=False))
def test_qdq_add_with_power_of_two_scales(case: Case) -> None:
    assume(small(case))
    check(case, onnx_of.qdq)


@given(pool_cases(power_of_two=True, qoperator=False))
def test_qdq_pools_with_power_of_two_scales(case: Case) -> None:
    assume(small(case))
    check(case, onnx_of.qdq)
