import numpy as np
import pytest

from manifest.errors import RefusedError
from tests.qdq_models import Sketch, assert_exact, op_of


def concat(*scales: tuple[float, int], out: tuple[float, int] = (0.5, 3), quantize: bool = True) -> Sketch:
    s = Sketch()
    parts = [s.qdq(s.input(f"x{i}", (1, i + 1, 2)), k, z, out=f"a{i}") for i, (k, z) in enumerate(scales)]
    c = s.node("Concat", parts, "c", name="cat", axis=-2)
    c = s.qdq(c, *out, out="y") if quantize else s.qdq(s.node("Mul", [c, s.const(1.0)]), *out, out="y")
    s.output(c)
    return s


def test_one_quantization_passes_codes() -> None:
    op = op_of(assert_exact(concat((0.5, 3), (0.5, 3))).manifest, "Concat")
    assert dict(op.attributes) == {"axis": 1}
    assert op.requant is not None
    assert (op.requant.reference, op.requant.target) == ("identity", "identity")


def test_other_scales_have_one_multiplier_and_shift_each() -> None:
    op = op_of(assert_exact(concat((0.5, 3), (0.25, 3), (1.0, -7))).manifest, "Concat")
    assert op.requant is not None
    assert (op.requant.reference, op.requant.target) == ("srs", "srs")
    assert (op.requant.multipliers, op.requant.shifts) == ((1, 1, 1), (0, 1, -1))


def test_scales_beside_powers_of_two_are_proved_one_by_one() -> None:
    op = op_of(concat((0.3, 3), (0.7, 3), out=(0.7, 3)).load().manifest, "Concat")
    assert op.requant is not None
    assert (op.requant.reference, op.requant.target) == ("rational", "multiplier_shift")
    assert "all 256 sums" in op.requant.proof
    assert (op.requant.multipliers[1], op.requant.shifts[1]) == (1, 0)


def test_without_a_quantize_behind_it_codes_stay() -> None:
    manifest = assert_exact(concat((0.5, 3), (0.5, 3), quantize=False)).manifest
    tensor = manifest.tensor("c")
    assert (tensor.dtype, tensor.onnx_dtype, tensor.shape) == ("int8", "float32", (1, 3, 2))


def test_on_codes_scales_have_to_agree() -> None:
    for zero, fits in ((3, True), (4, False)):
        s = Sketch()
        a = s.q(s.input("x", (1, 2)), 0.5, 3)
        b = s.q(s.input("u", (1, 2)), 0.5, zero)
        s.output(s.dq(s.node("Concat", [a, b], name="cat", axis=1), 0.5, 3, out="y"), (1, 4))
        if fits:
            assert op_of(assert_exact(s).manifest, "Concat").requant is not None
        else:
            with pytest.raises(RefusedError, match=r"node 'cat' \(Concat\): integers of different scales"):
                s.load()


def test_a_constant_part() -> None:
    s = Sketch()
    x = s.qdq(s.input("x", (1, 2)), 0.5, 3)
    c = s.node("Concat", [s.weight([[1, -2, 3]], 0.25, name="k"), x], axis=1)
    s.output(s.qdq(c, 0.25, out="y"), (1, 5))
    manifest = assert_exact(s).manifest
    assert op_of(manifest, "Concat").inputs[0] == "k"
    assert manifest.tensor("k").role == "constant"


def test_an_exact_part_is_refused() -> None:
    s = Sketch()
    x = s.qdq(s.input("x", (1, 2)), 0.5)
    m = s.node("MatMul", [x, s.weight(np.eye(2), 0.5)], "m")
    s.output(s.qdq(s.node("Concat", [x, m], name="cat", axis=1), 0.5, out="y"), (1, 4))
    with pytest.raises(RefusedError, match=r"node 'cat' \(Concat\): input 'm' of Concat is not quantised"):
        s.load()


def test_shapes_have_to_fit() -> None:
    s = Sketch()
    parts = [s.qdq(s.input("x", (1, 2)), 0.5), s.qdq(s.input("u", (2, 2)), 0.5)]
    s.output(s.qdq(s.node("Concat", parts, name="cat", axis=1), 0.5, out="y"), (1, 4))
    with pytest.raises(RefusedError, match=r"node 'cat' \(Concat\): shapes do not fit"):
        s.load()


def test_qlinearconcat() -> None:
    s = Sketch()
    names = [s.const(0.0613), s.const(77, np.uint8)]
    for i, (scale, zero) in enumerate(((0.05, 10), (0.0613, 77))):
        q = s.q(s.input(f"x{i}", (1, 3)), scale, zero, np.uint8, out=f"q{i}")
        names += [q, s.const(scale), s.const(zero, np.uint8)]
    s.output(s.node("QLinearConcat", names, "y", name="cat", domain="com.microsoft", axis=1), (1, 6), 2)
    op = op_of(assert_exact(s).manifest, "Concat")
    assert (op.origin, op.inputs) == ("qoperator", ("q0", "q1"))
    assert op.requant is not None
    assert (op.requant.reference, op.requant.multipliers[1], op.requant.shifts[1]) == ("scale_f32", 1, 0)
    f32 = np.float32
    expected = np.rint((np.arange(-10, 246).astype(f32) * f32(0.05)) / f32(0.0613))
    scaled = np.arange(-10, 246) * op.requant.multipliers[0] / 2.0 ** op.requant.shifts[0]
    np.testing.assert_array_equal(np.clip(np.rint(scaled), -77, 178), np.clip(expected, -77, 178))
