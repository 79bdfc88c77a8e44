"""Target arithmetic in every rounding and saturation mode, wrapping accumulators, tables."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manifest.errors import RefusedError
from manifest.model import Accumulator, Bias
from oracle.fixedpoint import ROUNDINGS
from oracle.requantize import FloatFinish, Output, RationalFinish, affine
from oracle.run import Oracle
from oracle.sketch import Sketch, quantization, requantization
from oracle.strategies import Case, conv_cases, gemm_cases
from oracle.value import Array
from tests.oracle.naive_base import rounded
from tests.oracle.test_ops_against_naive import check


def with_requant(case: Case, **changes: object) -> Case:
    """The case with fields of its only op's requantization exchanged."""
    (op,) = case.manifest.ops
    assert op.requant is not None
    changed = replace(op, requant=replace(op.requant, **changes))  # type: ignore[arg-type]
    return replace(case, manifest=replace(case.manifest, ops=(changed,)))


@pytest.mark.parametrize("mode", ROUNDINGS)
@given(case=conv_cases(qoperator=False))
def test_target_rounds_as_the_manifest_says(mode: str, case: Case) -> None:
    check(with_requant(case, rounding=mode), arithmetics=("target",))


@given(case=gemm_cases(qoperator=False))
def test_target_without_saturation_wraps(case: Case) -> None:
    check(with_requant(case, saturation="none"), arithmetics=("target",))


def _narrow(bits: int) -> Case:
    """x * 127 + bias with a bias near 2**31 into a 32- or 64-bit accumulator."""
    sketch = Sketch()
    one = quantization([1.0], [0])
    sketch.activation("x", (1, 1), "int8", one, role="input")
    sketch.constant("w", np.full((1, 1), 127, np.int8), one)
    sketch.constant("b", np.array([2**31 - 1], np.int32), one, role="bias")
    sketch.activation("y", (1, 1), "int16", quantization([2.0**20], [0]), role="output")
    sketch.op(
        "Gemm",
        ("x", "w", "b"),
        "y",
        requant=requantization([Fraction(1, 2**20)], "int16"),
        attributes={"transA": 0, "transB": 0, "alpha": 1.0, "beta": 1.0},
        bias=Bias(kind="accumulator"),
        accumulator=Accumulator(bits=bits, bound=2**31 + 2**14),
    )
    inputs: dict[str, Array] = {"x": np.array([[[1]], [[0]], [[-1]]], np.int8)}
    return Case(manifest=sketch.manifest(["x"], ["y"]), arrays=sketch.arrays, inputs=inputs)


@pytest.mark.parametrize(("bits", "want"), [(32, [-2048, 2048, 2048]), (64, [2048, 2048, 2048])])
def test_target_accumulators_wrap_at_their_width(bits: int, want: list[int]) -> None:
    case = _narrow(bits)
    got = Oracle(case.manifest, case.arrays).run(case.inputs, arithmetic="target")["y"]
    assert got.ravel().tolist() == want
    check(case)


@pytest.mark.parametrize("mode", ["conv_even", "pos_inf"])
def test_wrapping_comes_before_any_rounding(mode: str) -> None:
    case = with_requant(_narrow(32), rounding=mode)
    check(case, arithmetics=("target",))


def test_a_bias_of_any_scale_needs_half_even() -> None:
    sketch = Sketch()
    one = quantization([1.0], [0])
    sketch.activation("x", (1, 1), "int8", one, role="input")
    sketch.constant("w", np.ones((1, 1), np.int8), one)
    sketch.constant("b", np.array([0.1], np.float32), role="bias")
    sketch.activation("y", (1, 1), "int8", one, role="output")
    requant = replace(requantization([Fraction(1)], "int8"), rounding="floor")
    sketch.op("Gemm", ("x", "w", "b"), "y", requant=requant, bias=Bias(kind="rescaled"))
    oracle = Oracle(sketch.manifest(["x"], ["y"]), sketch.arrays)
    with pytest.raises(RefusedError, match="floor needs an integer accumulator"):
        oracle.run({"x": np.zeros((1, 1, 1), np.int8)}, arithmetic="target")


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16"])
def test_table_of_the_target_is_indexed_from_the_lowest_code(dtype: str) -> None:
    info = np.iinfo(dtype)
    sketch = Sketch()
    sketch.activation("x", (4,), dtype, quantization([1.0], [0]), role="input")  # type: ignore[arg-type]
    sketch.activation("y", (4,), "int8", quantization([0.5], [0]), role="output")
    table = (np.arange(info.max - info.min + 1) % 251 - 125).astype(np.int8)
    key = sketch.store(table)
    requant = replace(requantization([Fraction(2)], "int8"), target="lut", lut=key)
    sketch.op("Relu", ("x",), "y", requant=requant)
    codes = np.array([[info.min, info.min + 1, 0, info.max]], dtype)
    got = Oracle(sketch.manifest(["x"], ["y"]), sketch.arrays).run({"x": codes}, arithmetic="target")["y"]
    assert got.ravel().tolist() == [int(table[int(c) - info.min]) for c in codes.ravel()]


def test_a_table_of_the_wrong_length_is_refused() -> None:
    sketch = Sketch()
    sketch.activation("x", (1,), "int8", quantization([1.0], [0]), role="input")
    sketch.activation("y", (1,), "int8", quantization([0.5], [0]), role="output")
    key = sketch.store(np.zeros(255, np.int8))
    requant = replace(requantization([Fraction(2)], "int8"), target="lut", lut=key)
    sketch.op("Relu", ("x",), "y", requant=requant)
    oracle = Oracle(sketch.manifest(["x"], ["y"]), sketch.arrays)
    with pytest.raises(RefusedError, match="table does not fit the input; expected 256 entries"):
        oracle.run({"x": np.zeros((1, 1), np.int8)}, arithmetic="target")


OUTPUT = Output(dtype="int8", points=(0,), qmin=-128, qmax=127)


@pytest.mark.parametrize(
    ("ratio", "bound", "precision"),
    [
        (Fraction(1, 4), 2**24, np.float32),
        (Fraction(1, 4), 2**24 + 1, np.float64),
        (Fraction(1, 4), 2**53, np.float64),
        (Fraction(1, 4), 2**53 + 1, None),
        (Fraction(1, 3), 2**10, None),
    ],
)
def test_the_cheapest_exact_route_is_taken(ratio: Fraction, bound: int, precision: type | None) -> None:
    finish = affine(OUTPUT, [ratio], [Fraction(0)], inside=False, bound=bound)
    if precision is None:
        assert isinstance(finish, RationalFinish)
    else:
        assert isinstance(finish, FloatFinish)
        assert finish.precision == np.dtype(precision)


@given(st.data())
def test_long_blocks_are_cut_without_mixing_up_channels(data: st.DataObject) -> None:
    """More elements than one block, channel axis in front and in the middle."""
    axis = data.draw(st.integers(0, 1))
    channels = 5
    ratios = [Fraction(data.draw(st.integers(1, 99)), data.draw(st.integers(1, 99))) for _ in range(channels)]
    shape = (channels, 3, 9000) if axis == 0 else (3, channels, 9000)
    acc = np.random.default_rng(0).integers(-99, 100, shape).astype(np.float32)
    out = np.empty(shape, np.int8)
    output = replace(OUTPUT, rank=3, axis=axis, points=tuple(range(channels)))
    affine(output, ratios, [Fraction(0)] * channels, inside=False, bound=99)(acc.copy(), out)
    for c in range(channels):
        taken, codes = np.take(acc, c, axis), np.take(out, c, axis)
        for value in np.unique(taken):
            want = max(-128, min(127, rounded(int(value) * ratios[c], "conv_even") + c))
            assert np.all(codes[taken == value] == want)
