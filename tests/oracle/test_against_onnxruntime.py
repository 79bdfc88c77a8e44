"""Single ops against onnxruntime itself, without optimisation: QOperator kernels bit for bit, QDQ with 2**k scales."""

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from manifest.model import Accumulator, Bias
from oracle.cpu import read_cpu_flags
from oracle.run import Oracle
from oracle.sketch import Sketch, quantization, requantization
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


ORDER_DECIDES = (
    # scale and zero point of a, b and y; codes on which a * ra + (b * rb + c) and b * rb + (a * ra + c) round apart
    ((0.37, 208), (0.02, 219), (0.1, 207), 155, 167),
    ((0.021, 10), (0.07, 83), (0.03, 193), 15, 80),
    ((0.013, 248), (1 / 3, 110), (0.06, 20), 18, 116),
    ((0.06, 91), (0.021, 168), (0.1, 191), 51, 218),
)
SHAPES = (
    ((1,), (1,)),
    ((2, 1), (2, 1)),
    ((3,), (3,)),
    ((1,), (5,)),
    ((5,), (1,)),
    ((2, 1), (1, 5)),
    ((1, 5), (2, 1)),
    ((2, 1, 1), (1, 5, 1)),
    ((3, 1), (2, 3, 1)),
    ((2, 1, 3), (1, 4, 3)),
    ((17,), (17,)),
)


@pytest.mark.parametrize("numbers", ORDER_DECIDES)
@pytest.mark.parametrize("shapes", SHAPES)
def test_qlinearadd_takes_its_inputs_in_the_kernels_order(
    numbers: tuple[tuple[float, int], tuple[float, int], tuple[float, int], int, int],
    shapes: tuple[tuple[int, ...], tuple[int, ...]],
) -> None:
    sketch = Sketch()
    inputs = {}
    for name, shape, (scale, point), code in zip("ab", shapes, numbers[:2], numbers[3:], strict=True):
        sketch.activation(name, shape, "uint8", quantization([scale], [point]), role="input")
        inputs[name] = np.full((1, *shape), code, np.uint8)
    out = quantization([numbers[2][0]], [numbers[2][1]])
    sketch.activation("y", np.broadcast_shapes(*shapes), "uint8", out, role="output")
    ratios = [Fraction(1), Fraction(1)]
    requant = requantization(ratios, "uint8", reference="scale_f32", inside=True, shared_shift=True)
    sketch.op("Add", ("a", "b"), "y", requant=requant, origin="qoperator")
    check(Case(manifest=sketch.manifest(["a", "b"], ["y"]), arrays={}, inputs=inputs), onnx_of.qoperator)


def test_int32_accumulators_of_qlinearconv_wrap() -> None:
    sketch = Sketch()
    one = quantization([1.0], [0])
    sketch.activation("x", (1, 1, 1, 1), "int8", one, role="input")
    sketch.constant("w", np.full((1, 1, 1, 1), 127, np.int8), one)
    sketch.constant("b", np.array([2**31 - 1], np.int32), one, role="bias")
    sketch.activation("y", (1, 1, 1, 1), "int8", quantization([2.0**24], [0]), role="output")
    sketch.op(
        "Conv",
        ("x", "w", "b"),
        "y",
        requant=requantization([Fraction(1, 2**24)], "int8", reference="scale_f32"),
        attributes={"kernel_shape": (1, 1), "strides": (1, 1), "dilations": (1, 1), "pads": (0, 0, 0, 0), "group": 1},
        bias=Bias(kind="accumulator"),
        origin="qoperator",
        accumulator=Accumulator(bits=32, bound=2**32),
    )
    inputs = {"x": np.array([[127], [0], [-128]], np.int8).reshape(3, 1, 1, 1, 1)}
    case = Case(manifest=sketch.manifest(["x"], ["y"]), arrays=sketch.arrays, inputs=inputs)
    check(case, onnx_of.qoperator)
    oracle = Oracle(case.manifest, case.arrays)
    assert oracle.run(inputs)["y"].ravel().tolist() == [-128, 127, 127]
    assert oracle.run(inputs, arithmetic="target")["y"].ravel().tolist() == [-128, 127, 127]
