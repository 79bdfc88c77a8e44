from typing import Any

import numpy as np
import pytest

from manifest.errors import RefusedError
from tests.qdq_models import Sketch, array_of, assert_exact, op_of


def mul(constant: str, s: Sketch, *, first: bool = False, shape: tuple[int, ...] = (2, 4)) -> Sketch:
    x = s.qdq(s.input("x", shape), 0.5, 3, out="a")
    s.output(s.qdq(s.node("Mul", [constant, x] if first else [x, constant], name="mul"), 0.5, -5, out="y"), shape)
    return s


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("value", [0.5, 3.0, -1.25, 1.0048828125, [0.5, 1.0, 2.0, -4.0]])
def test_float_constants_are_exact_integers(value: Any, first: bool) -> None:
    s = Sketch()
    imported = assert_exact(mul(s.const(value, name="k"), s, first=first))
    op = op_of(imported.manifest, "Mul")
    assert op.inputs == ("a.q", "k")
    tensor = imported.manifest.tensor("k")
    assert tensor.quant is not None
    assert (tensor.dtype, tensor.role) == ("int32", "constant")
    assert (array_of(imported, "k") * tensor.quant.scales[0]).tolist() == np.asarray(value).tolist()


def test_the_factor_lies_in_the_multiplier_of_the_product() -> None:
    s = Sketch()
    op = op_of(mul(s.const(1.0048828125), s).load().manifest, "Mul")
    assert op.requant is not None
    assert (op.requant.reference, op.requant.target, op.requant.shifts) == ("srs", "srs", (10,))
    assert op.accumulator is not None
    assert op.accumulator.bound == 131 * 1029


def test_a_quantised_constant() -> None:
    s = Sketch()
    op = op_of(assert_exact(mul(s.weight([10, -20, 30, 40], 0.125, 7, name="k"), s)).manifest, "Mul")
    assert op.requant is not None
    assert op.requant.shifts == (3,)
    assert op.accumulator is not None
    assert op.accumulator.bound == 131 * 33


def test_two_activations_are_refused_by_name() -> None:
    s = Sketch()
    other = s.qdq(s.input("u", (2, 4)), 0.5)
    with pytest.raises(RefusedError, match=r"node 'mul' \(Mul\): Mul of two activations is not supported"):
        mul(other, s).load()


def test_of_an_exact_tensor() -> None:
    s = Sketch()
    x = s.qdq(s.input("x", (1, 4)), 0.5)
    m = s.node("MatMul", [x, s.weight(np.eye(4) * 5, 0.25)], "m")
    s.output(s.qdq(s.node("Mul", [m, s.const(1.5)]), 0.5, out="y"), (1, 4))
    op = op_of(assert_exact(s).manifest, "Mul")
    assert op.inputs[0] == "m"
    assert op.requant is not None
    assert op.requant.shifts == (3,)


def test_of_an_exact_tensor_with_one_scale_per_channel() -> None:
    s = Sketch()
    x = s.qdq(s.input("x", (1, 4)), 0.5)
    m = s.node("MatMul", [x, s.weight(np.eye(4) * 5, [0.25, 0.5, 0.25, 0.5], axis=1)], "m")
    s.output(s.qdq(s.node("Mul", [m, s.const(1.5)], name="mul"), 0.5, out="y"), (1, 4))
    with pytest.raises(RefusedError, match=r"node 'mul' \(Mul\): input 'm' is exact with one scale per channel"):
        s.load()


@pytest.mark.parametrize("first", [False, True])
def test_qlinearmul_by_a_constant(first: bool) -> None:
    s = Sketch()
    x = s.q(s.input("x", (2, 4)), 0.05, 10, np.uint8, out="xq")
    a = [x, s.const(0.05), s.const(10, np.uint8)]
    k = [s.const([1, 200, 3, 4], np.uint8, "k"), s.const(0.03), s.const(140, np.uint8)]
    names = [*(k if first else a), *(a if first else k), s.const(0.06), s.const(77, np.uint8)]
    s.output(s.node("QLinearMul", names, "y", name="qm", domain="com.microsoft"), (2, 4), 2)
    op = op_of(assert_exact(s, target=False).manifest, "Mul")
    assert (op.origin, op.inputs) == ("qoperator", ("xq", "k"))
    assert op.requant is not None
    assert (op.requant.reference, op.requant.zero_point_inside) == ("scale_f32", True)
    f32 = np.float32
    expected = float(f32(f32(0.05) * f32(0.03)) / f32(0.06))
    assert op.requant.multipliers[0] / 2.0 ** op.requant.shifts[0] == expected
