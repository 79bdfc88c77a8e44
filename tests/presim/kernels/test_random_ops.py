"""Random ops and chains, object by object, against the oracle and the slow second meaning in Python integers."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from numpy.typing import NDArray

from manifest.model import Op
from oracle.run import Oracle
from oracle.strategies import Case, add_cases, conv_cases, gemm_cases, graphs, pool_cases
from presim.kernels.attributes import Part, kernel_of
from tests.oracle.naive import Naive
from tests.presim.kernels.driver import Bench

Array = NDArray[Any]


def on_array(case: Case, op: Op) -> bool:
    """Whether the op reads and writes integers."""
    ends = [case.manifest.tensor(n).dtype for n in (op.inputs[0], op.outputs[0])]
    return op.where == "npu" and "float32" not in ends


def check(case: Case, *, parts: bool = False) -> None:
    """Every op from the oracle's tensors."""
    stored = Oracle(case.manifest, case.arrays).run(case.inputs, arithmetic="target", keep="stored")
    naive = Naive(case.manifest, case.arrays).run(case.inputs, "target")
    tensors = {**case.inputs, **stored}
    bench = Bench(manifest=case.manifest, arrays=case.arrays)
    for feed in range(len(next(iter(case.inputs.values())))):
        for op in case.manifest.ops:
            if not on_array(case, op):
                continue
            inputs = {n: tensors[n][feed] for n in op.inputs if n in tensors}
            got = bench.run(op, inputs)
            name = op.outputs[0]
            np.testing.assert_array_equal(got, stored[name][feed], err_msg=f"{op.type} against the oracle")
            compare(bench, name, got, naive[name][feed])
            if parts:
                pieces(bench, op, inputs, got)


def compare(bench: Bench, name: str, got: Array, naive: Array) -> None:
    """Codes as they are; an accumulator by its exact value."""
    if naive.dtype != object:
        np.testing.assert_array_equal(got, naive, err_msg="against Python integers")
        return
    form = bench.forms.of(name)
    for index in np.ndindex(got.shape):
        unit = form.units[0] if len(form.units) == 1 else form.units[index[form.axis or 0]]
        assert int(got[index]) * unit == naive[index]


def pieces(bench: Bench, op: Op, inputs: dict[str, Array], whole: Array) -> None:
    """The first channel and the others by themselves, where the kernel can be split."""
    total = whole.shape[1] if whole.ndim == 4 else whole.shape[-1] if whole.ndim else 1
    if total < 2 or kernel_of(op, bench.manifest) not in ("conv", "gemm", "max_pool", "average_pool", "add"):
        return
    axis = 1 if whole.ndim == 4 else whole.ndim - 1
    halves = [bench.run(op, inputs, Part(out_first=a, out_count=n)) for a, n in ((0, 1), (1, total - 1))]
    np.testing.assert_array_equal(np.concatenate(halves, axis), whole)


@given(conv_cases())
def test_conv(case: Case) -> None:
    check(case, parts=True)


@given(gemm_cases())
def test_gemm_and_matmul(case: Case) -> None:
    check(case, parts=True)


@given(add_cases())
def test_add(case: Case) -> None:
    ranks = {len(t.shape) == 4 for t in case.manifest.tensors if t.array is None}
    if len(ranks) == 1:
        check(case, parts=True)


@given(pool_cases())
def test_pools(case: Case) -> None:
    check(case, parts=True)


@given(graphs())
def test_chains(case: Case) -> None:
    check(case)


@pytest.mark.parametrize("kernel", ["matmul"])
@given(case=gemm_cases())
def test_a_matrix_product_with_whole_operands(kernel: str, case: Case) -> None:
    stored = Oracle(case.manifest, case.arrays).run(case.inputs, arithmetic="target", keep="stored")
    bench = Bench(manifest=case.manifest, arrays=case.arrays)
    for op in case.manifest.ops:
        if op.type in ("Gemm", "MatMul") and on_array(case, op):
            inputs = {n: case.inputs[n][0] for n in op.inputs if n in case.inputs}
            got = bench.run(op, inputs, Part(kernel=kernel))
            np.testing.assert_array_equal(got, stored[op.outputs[0]][0])
