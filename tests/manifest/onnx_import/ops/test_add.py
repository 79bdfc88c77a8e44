from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from manifest.errors import RefusedError
from manifest.onnx_import import Imported
from oracle.reference.kernel_numbers import kernel_numbers
from oracle.run import Oracle
from tests.qdq_models import Sketch, array_of, assert_exact, feeds_for, op_of, types


def add(
    scales: tuple[float, float, float], *, zeros: tuple[int, int, int] = (0, 0, 0), shapes: Any = ((1, 4), (1, 4))
) -> Sketch:
    s = Sketch()
    x = s.qdq(s.input("x", shapes[0]), scales[0], zeros[0], out="a")
    y = s.qdq(s.input("u", shapes[1]), scales[1], zeros[1], out="b")
    s.output(s.qdq(s.node("Add", [x, y], name="add"), scales[2], zeros[2], out="y"), None)
    return s


@pytest.mark.parametrize("zeros", [(0, 0, 0), (-128, 5, 3), (7, -3, -1)])
@pytest.mark.parametrize(
    ("scales", "multipliers", "shift"),
    [((0.5, 0.5, 0.5), (1, 1), 0), ((0.5, 0.125, 1.0), (4, 1), 3), ((2.0, 1.0, 0.25), (8, 4), 0)],
)
def test_operands_are_aligned_and_rounded_once(
    scales: tuple[float, float, float], multipliers: tuple[int, int], shift: int, zeros: tuple[int, int, int]
) -> None:
    op = op_of(assert_exact(add(scales, zeros=zeros)).manifest, "Add")
    assert op.inputs == ("a.q", "b.q")
    assert op.requant is not None
    assert (op.requant.reference, op.requant.target) == ("srs", "srs")
    assert (op.requant.multipliers, op.requant.shifts) == (multipliers, (shift,))
    assert op.accumulator is not None
    largest = [max(127 - z, 128 + z) for z in zeros[:2]]
    assert op.accumulator.bound == sum(m * v for m, v in zip(multipliers, largest, strict=True))


def test_other_scales_share_one_shift_and_one_rounding() -> None:
    op = op_of(add((0.05, 0.03, 0.06)).load().manifest, "Add")
    assert op.requant is not None
    assert (op.requant.reference, op.requant.target, len(op.requant.shifts)) == ("rational", "multiplier_shift", 1)
    assert max(op.requant.multipliers).bit_length() == 31
    assert op.accumulator is not None
    assert op.accumulator.bits == 64


@pytest.mark.parametrize("shapes", [((2, 4), (4,)), ((2, 1), (1, 4)), ((1, 2, 3, 3), (1, 2, 1, 1))])
def test_broadcasting(shapes: Any) -> None:
    assert_exact(add((0.5, 0.25, 1.0), shapes=shapes))


def test_scales_far_apart_are_noted_with_both_scales() -> None:
    (note,) = [n for n in add((2.0**-12, 8.0, 8.0)).load().manifest.notes if n.code == "ADD-SCALES-FAR-APART"]
    assert note.where == "add"
    assert "scale 0.000244141 of 'a.q'" in note.text
    assert "scale 8 of 'b.q'" in note.text
    assert "shift of 15" in note.text


@pytest.mark.parametrize(("exponent", "noted"), [(11, False), (12, True)])
def test_the_note_starts_at_a_shift_of_twelve(exponent: int, noted: bool) -> None:
    notes = add((2.0**-exponent, 1.0, 1.0)).load().manifest.notes
    assert any(n.code == "ADD-SCALES-FAR-APART" for n in notes) is noted


def with_constant(constant: str, s: Sketch) -> Sketch:
    x = s.qdq(s.input("x", (2, 4)), 0.5, out="a")
    s.output(s.qdq(s.node("Add", [constant, x], name="add"), 0.5, out="y"), (2, 4))
    return s


def test_a_quantised_constant() -> None:
    s = Sketch()
    imported = assert_exact(with_constant(s.weight([1, -2, 3, 4], 0.25, name="k"), s))
    assert op_of(imported.manifest, "Add").inputs == ("k", "a.q")
    assert imported.manifest.tensor("k").role == "constant"


@pytest.mark.parametrize("values", [[0.5, -1.25, 3.0, 0.0], [100.0], [0.1]])
def test_float_constants_become_integers_times_a_power_of_two(values: list[float]) -> None:
    s = Sketch()
    imported = assert_exact(with_constant(s.const(values, np.float32, "k"), s), target=len(values) > 1)
    tensor = imported.manifest.tensor("k")
    assert tensor.quant is not None
    assert tensor.quant.exponents is not None
    assert (array_of(imported, "k") * tensor.quant.scales[0]).tolist() == np.array(values, np.float32).astype(
        float
    ).tolist()


@pytest.mark.parametrize("values", [[1e-9, 1e9], [np.inf], [np.nan]])
def test_float_constants_that_integers_cannot_hold_are_refused(values: list[float]) -> None:
    s = Sketch()
    k = s.const(np.resize(values, 4), np.float32, "k")
    with pytest.raises(RefusedError, match=r"'k' is not (quantised|finite)"):
        with_constant(k, s).load()


def test_codes_are_not_added_as_integers() -> None:
    s = Sketch()
    q = s.q(s.input("x", (1, 4)), 0.5)
    s.output(s.dq(s.node("Add", [q, q], name="add"), 0.5, out="y"), (1, 4))
    with pytest.raises(RefusedError, match=r"node 'add' \(Add\): integer arithmetic of Add between"):
        s.load()


def test_an_exact_operand() -> None:
    s = Sketch()
    x = s.qdq(s.input("x", (1, 4)), 0.5, out="a")
    m = s.node("MatMul", [x, s.weight(np.eye(4) * 3, 0.25)])
    s.output(s.qdq(s.node("Add", [m, x]), 0.5, out="y"), (1, 4))
    manifest = assert_exact(s).manifest
    assert types(manifest) == ["QuantizeLinear", "MatMul", "Add", "DequantizeLinear"]
    op = op_of(manifest, "Add")
    assert op.requant is not None
    assert (op.requant.multipliers, op.requant.shifts) == ((1, 4), (2,))


def test_an_exact_operand_with_one_scale_per_channel_is_refused() -> None:
    s = Sketch()
    x = s.qdq(s.input("x", (1, 4)), 0.5)
    m = s.node("MatMul", [x, s.weight(np.eye(4) * 3, [0.25, 0.5, 0.25, 0.5], axis=1)], "m")
    s.output(s.qdq(s.node("Add", [m, x], name="add"), 0.5, out="y"), (1, 4))
    with pytest.raises(RefusedError, match=r"node 'add' \(Add\): input 'm' is exact with one scale per channel"):
        s.load()


def qlinear(*, constant: bool, scales: tuple[float, float, float] = (0.05, 0.03, 0.06)) -> Sketch:
    s = Sketch()
    x = s.q(s.input("x", (2, 4)), scales[0], 10, np.uint8, out="xq")
    if constant:
        other = s.const([1, 200, 3, 4], np.uint8, "k")
    else:
        other = s.q(s.input("u", (2, 4)), scales[1], 140, np.uint8, out="uq")
    names = [x, s.const(scales[0]), s.const(10, np.uint8), other, s.const(scales[1]), s.const(140, np.uint8)]
    names += [s.const(scales[2]), s.const(77, np.uint8)]
    s.output(s.node("QLinearAdd", names, "y", name="qadd", domain="com.microsoft"), (2, 4), 2)
    return s


@pytest.mark.parametrize("constant", [False, True])
def test_qlinearadd_has_its_zero_point_inside(constant: bool) -> None:
    op = op_of(assert_exact(qlinear(constant=constant), target=False).manifest, "Add")
    assert (op.origin, op.inputs) == ("qoperator", ("xq", "k" if constant else "uq"))
    assert op.requant is not None
    assert (op.requant.reference, op.requant.zero_point_inside) == ("scale_f32", True)
    ratios = [float(np.float32(s) / np.float32(0.06)) for s in (0.05, 0.03)]
    got = [m / 2.0 ** op.requant.shifts[0] for m in op.requant.multipliers]
    assert got == pytest.approx(ratios, rel=2**-29)


def test_the_bound_of_qlinearadd_counts_the_zero_point() -> None:
    op = op_of(qlinear(constant=False, scales=(0.5, 0.25, 1.0)).load().manifest, "Add")
    assert op.requant is not None
    assert (op.requant.multipliers, op.requant.shifts) == ((2, 1), (2,))
    assert op.accumulator is not None
    assert op.accumulator.bound == 2 * 245 + 140 + (77 << 2)


SCALES = [0.0241, 0.00713, 0.0119, 0.0167]


def several(
    count: int, dtype: Any, *, middle: tuple[str, ...] = (), factor: float = 1.0, swapped: bool = False
) -> Imported:
    """x0 + x1 [-> `middle`] [* factor] + x2 + ..., nothing rounded in between, then Q/DQ."""
    s = Sketch(21)
    zero = 128 if dtype == np.uint8 else 32768
    unit = 1.0 if dtype == np.uint8 else 1 / 256
    scales = [unit * v for v in SCALES[:count]]
    xs = [s.qdq(s.input(f"x{i}", (1, 4, 4, 4)), v, zero, dtype, out=f"a{i}") for i, v in enumerate(scales)]
    total = s.node("Add", xs[:2])
    for op in middle:
        attributes: dict[str, Any] = {"kernel_shape": [1, 1]} if op == "MaxPool" else {}
        total = s.node(op, [total], **attributes)
    if factor != 1.0:
        total = s.node("Mul", [total, s.const(factor)])
    for x in xs[2:]:
        total = s.node("Add", [x, total] if swapped else [total, x])
    s.output(s.qdq(total, sum(scales) * 0.7, zero, dtype, out="y"), (1, 4, 4, 4))
    return s.load()


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
@pytest.mark.parametrize(
    ("count", "options"),
    [(3, {}), (3, {"swapped": True}), (4, {}), (3, {"middle": ("Relu", "Transpose", "MaxPool")}), (3, {"factor": 0.3})],
)
def test_sums_of_several_codes_that_nothing_rounds_are_exact_up_to_ties(
    count: int, options: dict[str, Any], dtype: Any
) -> None:
    imported = several(count, dtype, **options)
    oracle = Oracle(imported.manifest, imported.arrays)
    feeds = feeds_for(imported, 200)
    reference = oracle.run(feeds, keep="quantized")["y.q"].astype(np.int64)
    target = oracle.run(feeds, arithmetic="target", keep="quantized")["y.q"].astype(np.int64)
    assert len(np.unique(reference)) > 150
    assert np.abs(reference - target).max() <= 1
    assert (reference != target).mean() < (0.001 if dtype == np.uint8 else 0.02)
    assert kernel_numbers(imported.manifest, imported.arrays).faults == ()


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_a_factor_that_would_make_the_integers_too_large_is_taken_as_the_unit(dtype: Any) -> None:
    imported = several(3, dtype, factor=0.3)
    (name,) = [t.name for t in imported.manifest.tensors if t.array is not None]
    assert array_of(imported, name).tolist() == 1
    quant = imported.manifest.tensor(name).quant
    assert quant is not None
    assert quant.scales == (float(np.float32(0.3)),)


def test_a_factor_of_a_coarse_sum_stays_an_integer_times_a_power_of_two() -> None:
    s = Sketch(21)
    xs = [s.qdq(s.input(f"x{i}", (1, 4)), 0.5, out=f"a{i}") for i in range(2)]
    s.output(s.qdq(s.node("Mul", [s.node("Add", xs), s.const(0.3, name="k")], name="m"), 0.5, out="y"), (1, 4))
    imported = s.load()
    assert abs(int(array_of(imported, "k"))) > 1 << 22
    requant = op_of(imported.manifest, "Mul").requant
    assert requant is not None
    assert requant.reference == "srs"


def test_a_clamp_beyond_the_sum_counts_into_its_size() -> None:
    """A Clip to at least 10,000 makes values that no sum reaches: the multipliers leave room for them."""
    s = Sketch(21)
    xs = [s.qdq(s.input(f"x{i}", (1, 4)), v, 0, np.uint16, out=f"a{i}") for i, v in enumerate(SCALES[:3])]
    clipped = s.node("Clip", [s.node("Add", xs[:2]), s.const(1e4)])
    s.output(s.qdq(s.node("Add", [clipped, xs[2]], name="last"), 0.3, 0, np.uint16, out="y"), (1, 4))
    imported = s.load()
    last = next(op for op in imported.manifest.ops if op.name == "last")
    assert last.requant is not None
    unit = Fraction(last.requant.multipliers[0], 1 << last.requant.shifts[0]) * Fraction(float(np.float32(0.3)))
    assert last.requant.multipliers[0] * (10**4 / unit) <= 1 << 62
