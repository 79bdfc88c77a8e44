from typing import Any

import numpy as np
import onnx
import pytest

from manifest.errors import RefusedError
from tests.qdq_models import FLOAT, Sketch, assert_exact, op_of, types


def matmul(
    left: tuple[int, ...], right: tuple[int, ...], *, scale: Any = 0.5, axis: int = 1, out: Any = None
) -> Sketch:
    s = Sketch()
    rng = np.random.default_rng(0)
    x = s.qdq(s.input("x", left), 0.25, 3, np.uint8, out="a")
    attributes = {"axis": axis} if np.ndim(scale) else {}
    w = s.weight(rng.integers(-50, 51, right), scale, name="w", **attributes)
    s.output(s.qdq(s.node("MatMul", [x, w], name="mm"), 4.0, out="y"), out)
    return s


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((2, 4), (4, 3)),
        ((4,), (4, 3)),
        ((2, 4), (4,)),
        ((3, 2, 4), (4, 3)),
        ((2, 3, 2, 4), (4, 3)),
        ((2, 2, 4), (2, 4, 3)),
        ((4,), (4,)),
    ],
)
def test_products_of_every_rank_equal_onnxruntime(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    op = op_of(assert_exact(matmul(left, right)).manifest, "MatMul")
    assert op.inputs == ("a.q", "w", "")
    assert op.accumulator is not None


def test_one_scale_per_column() -> None:
    op = op_of(assert_exact(matmul((2, 4), (4, 3), scale=[0.25, 0.5, 1.0])).manifest, "MatMul")
    assert op.requant is not None
    assert op.requant.shifts == (6, 5, 4)


def test_one_scale_per_row_is_refused() -> None:
    with pytest.raises(RefusedError, match=r"weight of MatMul 'mm' has its scales along axis 0; expected .*\(axis 1\)"):
        matmul((2, 4), (4, 3), scale=[0.25, 0.5, 1.0, 2.0], axis=0).load()


@pytest.mark.parametrize(("left", "right", "axis"), [((4,), (4, 3), 1), ((2, 3, 4), (2, 4, 3), 2)])
def test_one_scale_per_column_needs_two_matrices(left: tuple[int, ...], right: tuple[int, ...], axis: int) -> None:
    with pytest.raises(RefusedError, match=r"node 'mm' \(MatMul\): one scale per column of a batch of matrices"):
        matmul(left, right, scale=[0.25, 0.5, 1.0], axis=axis).load()


@pytest.mark.parametrize(("left", "right"), [((4,), (4, 3)), ((2, 3, 4), (2, 4, 3)), ((3, 4), (4, 3))])
def test_a_constant_behind_other_products_is_an_add(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    s = Sketch()
    x = s.qdq(s.input("x", left), 0.25)
    m = s.node("MatMul", [x, s.weight(np.ones(right), 0.5)])
    s.output(s.qdq(s.node("Add", [m, s.weight([1, 2, 3], 0.125)]), 4.0, out="y"))
    kinds = types(assert_exact(s).manifest)
    assert ("Add" in kinds) == (left != (3, 4))


def test_the_bound_of_a_batched_weight_is_that_of_its_worst_column() -> None:
    s = Sketch()
    x = s.qdq(s.input("x", (2, 1, 2)), 0.25, out="a")
    w = np.array([[[1, -2], [3, 4]], [[10, 0], [-1, 1]]])
    s.output(s.qdq(s.node("MatMul", [x, s.weight(w, 0.5)]), 4.0, out="y"), (2, 1, 2))
    accumulator = op_of(assert_exact(s).manifest, "MatMul").accumulator
    assert accumulator is not None
    assert accumulator.bound == 128 * 11


def test_a_constant_on_the_left() -> None:
    s = Sketch()
    x = s.qdq(s.input("x", (4, 3)), 0.25, out="a")
    m = s.node("MatMul", [s.weight(np.arange(8).reshape(2, 4) - 4, 0.5, name="w"), x])
    s.output(s.qdq(m, 4.0, out="y"), (2, 3))
    op = op_of(assert_exact(s).manifest, "MatMul")
    assert op.inputs == ("w", "a.q", "")
    assert op.accumulator is not None
    assert op.accumulator.bound == 128 * (4 + 3 + 2 + 1 + 0 + 1 + 2 + 3)


def two(left: tuple[int, ...], right: tuple[int, ...]) -> Sketch:
    s = Sketch()
    x = s.qdq(s.input("x", left), 0.25, 120, np.uint8, out="a")
    y = s.qdq(s.input("u", right), 0.5, -5, np.int8, out="b")
    s.output(s.qdq(s.node("MatMul", [x, y], "m", name="mm"), 16.0, 100, np.uint8, out="y"), None)
    return s


@pytest.mark.parametrize(("left", "right"), [((2, 4), (4, 3)), ((2, 5, 4), (2, 4, 3)), ((3, 1, 2, 4), (2, 4, 2))])
def test_two_activations(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    op = op_of(assert_exact(two(left, right)).manifest, "MatMul")
    assert op.inputs == ("a.q", "b.q", "")
    assert op.accumulator is not None
    assert op.accumulator.bound == 4 * 135 * 132
    assert op.requant is not None
    assert (op.requant.reference, op.requant.shifts) == ("srs", (7,))


def test_a_constant_added_behind_two_activations_is_an_add() -> None:
    s = Sketch()
    x = s.qdq(s.input("x", (2, 4)), 0.25)
    y = s.qdq(s.input("u", (4, 3)), 0.5)
    a = s.node("Add", [s.node("MatMul", [x, y]), s.weight([1, 2, 3], 0.125)])
    s.output(s.qdq(a, 4.0, out="y"), (2, 3))
    manifest = assert_exact(s).manifest
    assert op_of(manifest, "Add").inputs[0] == op_of(manifest, "MatMul").outputs[0]


def qlinear(scales: Any, zeros: Any, *, constant: bool = True) -> Sketch:
    s = Sketch()
    x = s.q(s.input("x", (2, 4)), 0.1, 7, np.uint8, out="xq")
    if constant:
        w = s.const(np.arange(12).reshape(4, 3) - 6, np.int8, "w")
    else:
        w = s.q(s.input("u", (4, 3)), scales, zeros, np.int8, out="w")
    names = [x, s.const(0.1), s.const(7, np.uint8), w, s.const(scales), s.const(zeros, np.int8)]
    s.output(s.node("QLinearMatMul", [*names, s.const(0.03), s.const(100, np.uint8)], "y", name="q"), (2, 3), 2)
    return s


@pytest.mark.parametrize(("scales", "zeros"), [(0.02, 0), ([0.02, 0.03, 0.01], [0, 0, 0]), (0.02, 5)])
def test_qlinearmatmul_with_a_weight(scales: Any, zeros: Any) -> None:
    op = op_of(assert_exact(qlinear(scales, zeros), target=False).manifest, "MatMul")
    assert (op.origin, op.inputs) == ("qoperator", ("xq", "w", ""))
    assert op.requant is not None
    assert op.requant.reference == "scale_f32"


def test_qlinearmatmul_of_two_activations() -> None:
    op = op_of(assert_exact(qlinear(0.02, 3, constant=False), target=False).manifest, "MatMul")
    assert op.inputs == ("xq", "w", "")
    assert op.origin == "qoperator"


def test_shapes_that_do_not_fit() -> None:
    with pytest.raises(RefusedError, match=r"node 'mm' \(MatMul\): MatMul shapes do not fit"):
        matmul((2, 4), (3, 4), out=(2, 4)).load()


def integer_to_float(*, bias: bool = False, constant: bool = True, element: int = FLOAT) -> Sketch:
    s = Sketch()
    x = s.input("x", (2, 4), element)
    q = x if element != FLOAT else s.q(x, 0.1, 7, np.uint8, out="xq")
    w = s.const(np.arange(12).reshape(4, 3) - 6, np.int8, "w") if constant else s.q(s.input("u", (4, 3)), 0.02, out="w")
    names = [q, w, s.const(0.1), s.const([0.02, 0.03, 0.01] if constant else 0.02), s.const(7, np.uint8)]
    names += [s.const([0, 0, 0] if constant else 0, np.int8)]
    names += [s.const([1.0, 2.0, 3.0])] if bias else []
    s.output(s.node("MatMulIntegerToFloat", names, "y", name="m", domain="com.microsoft"), (2, 3))
    return s


@pytest.mark.parametrize("element", [FLOAT, onnx.TensorProto.UINT8])
def test_matmulintegertofloat_of_a_dumped_graph_stays_exact(element: int) -> None:
    manifest = assert_exact(integer_to_float(element=element)).manifest
    op = op_of(manifest, "MatMul")
    assert (op.origin, op.requant, op.outputs) == ("qoperator", None, ("y#exact",))
    quant = manifest.tensor(op.inputs[0]).quant
    assert quant is not None
    assert quant.zero_points == (7,)


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [({"bias": True}, "with a bias is not supported"), ({"constant": False}, "of two activations is not supported")],
)
def test_other_forms_of_matmulintegertofloat_are_refused(kwargs: dict[str, Any], message: str) -> None:
    with pytest.raises(RefusedError, match=rf"node 'm' \(MatMulIntegerToFloat\): MatMulIntegerToFloat {message}"):
        integer_to_float(**kwargs).load()
