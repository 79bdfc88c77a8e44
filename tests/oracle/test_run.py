"""The oracle as a whole: what it refuses, what it returns, chunks, exact values of single elements."""

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracle.run
from manifest.errors import RefusedError
from manifest.model import Bias
from oracle.run import Oracle
from oracle.sketch import Sketch, quantization, requantization
from oracle.strategies import Case, add_cases, conv_cases, graphs, pool_cases
from oracle.value import Array
from tests.oracle.naive import Naive
from tests.oracle.naive_base import rounded

HALF = quantization([0.5], [3])


def small() -> tuple[Oracle, dict[str, Array]]:
    """x, z -> Q -> Add -> a (codes) -> Transpose t (float in ONNX) -> exact product e -> y (float)."""
    sketch = Sketch()
    for name in ("x", "z"):
        sketch.activation(name, (2, 2), "float32", role="input")
        sketch.activation(f"{name}.q", (2, 2), "int8", HALF)
        sketch.op("QuantizeLinear", (name,), f"{name}.q", host=True)
    sketch.activation("a", (2, 2), "uint8", quantization([1.0], [128]))
    requant = requantization([Fraction(1, 2), Fraction(1, 2)], "uint8", shared_shift=True)
    sketch.op("Add", ("x.q", "z.q"), "a", requant=requant)
    sketch.activation("t", (2, 2), "uint8", quantization([1.0], [128]), onnx_dtype="float32")
    sketch.op("Transpose", ("a",), "t", attributes={"perm": (1, 0)})
    sketch.constant("w", np.array([[3], [1]], np.int8), quantization([0.1], [0]))
    sketch.activation("e", (2, 1), "exact", role="accumulator")
    sketch.op("MatMul", ("t", "w", ""), "e")
    sketch.activation("y", (2, 1), "float32", role="output")
    sketch.op("DequantizeLinear", ("e",), "y", host=True)
    inputs = {"x": np.arange(12, dtype=np.float32).reshape(3, 2, 2), "z": np.ones((3, 2, 2), np.float32)}
    return Oracle(sketch.manifest(["x", "z"], ["y"]), sketch.arrays), inputs


def lines(error: pytest.ExceptionInfo[RefusedError]) -> list[str]:
    return [p.line() for p in error.value.problems]


def test_all_faults_of_the_inputs_are_told_at_once() -> None:
    model, inputs = small()
    with pytest.raises(RefusedError) as error:
        model.run({"x": inputs["x"].astype(np.float64), "extra": inputs["x"]})
    assert lines(error) == [
        "[ORACLE-INPUT-UNKNOWN] input 'extra': is no input; expected 'x', 'z'",
        "[ORACLE-INPUT-DTYPE] input 'x': has another dtype; expected float32; got float64; remedy: convert it first",
        "[ORACLE-INPUT-MISSING] input 'z': is missing; expected float32 (feeds, 2, 2)",
    ]


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"x": np.zeros((2, 2), np.float32)}, r"expected \(feeds, 2, 2\); got \(2, 2\)"),
        ({"x": np.zeros((3, 2, 3), np.float32)}, r"expected \(feeds, 2, 2\); got \(3, 2, 3\)"),
        (
            {"x": np.zeros((2, 2, 2), np.float32)},
            "differ in their number of feeds; expected one number; got 'x': 2, 'z': 3",
        ),
        ({"x": np.zeros((3, 2, 2), ">f4")}, "got >f4"),
    ],
)
def test_inputs_of_another_form_are_refused(changes: Mapping[str, Array], match: str) -> None:
    model, inputs = small()
    with pytest.raises(RefusedError, match=match):
        model.run({**inputs, **changes})


def test_unknown_ops_and_tensors_are_refused() -> None:
    model, inputs = small()
    with pytest.raises(RefusedError, match="op 'nothing': the manifest has no such op"):
        model.run_ops(["nothing"], {})
    with pytest.raises(RefusedError, match="tensor 'q': is made by none"):
        model.exact(["transpose_3"], {}, "q", np.zeros((1, 3), np.int64))
    with pytest.raises(RefusedError, match="input 'a': is missing; expected uint8"):
        model.run_ops(["transpose_3"], inputs)


@pytest.mark.parametrize(
    ("keep", "names"),
    [
        ("outputs", ["y"]),
        ("quantized", ["x.q", "z.q", "a", "y"]),
        ("all", ["x.q", "z.q", "a", "t", "e", "y"]),
    ],
)
def test_what_is_kept(keep: Any, names: list[str]) -> None:
    model, inputs = small()
    got = model.run(inputs, keep=keep)
    assert list(got) == names
    forms = {"x.q": "int8", "z.q": "int8", "a": "uint8", "t": "uint8", "e": "float32", "y": "float32"}
    assert {n: a.dtype.name for n, a in got.items()} == {n: forms[n] for n in names}
    assert all(len(a) == 3 and a.flags.c_contiguous for a in got.values())


def test_ops_by_name_give_what_leaves_them_in_storage_form() -> None:
    model, inputs = small()
    whole = model.run(inputs, keep="all")
    got = model.run_ops(["transpose_3", "add_2"], {"x.q": whole["x.q"], "z.q": whole["z.q"], "x": inputs["x"]})
    assert list(got) == ["t"]
    np.testing.assert_array_equal(got["t"], whole["t"])
    assert list(model.run_ops(["add_2", "transpose_3"], whole, keep="quantized")) == ["a"]


def test_no_feeds_give_no_results() -> None:
    model, inputs = small()
    got = model.run({n: a[:0] for n, a in inputs.items()}, keep="all")
    assert {n: a.shape for n, a in got.items()}["y"] == (0, 2, 1)


def test_inputs_are_left_alone_and_results_are_fresh() -> None:
    model, inputs = small()
    before = {n: a.copy() for n, a in inputs.items()}
    first = model.run(inputs, keep="all")
    kept = {n: a.copy() for n, a in first.items()}
    model.run({n: a + 7 for n, a in inputs.items()}, keep="all")
    for name, array in before.items():
        np.testing.assert_array_equal(inputs[name], array)
    for name, array in kept.items():
        np.testing.assert_array_equal(first[name], array)


def test_feeds_of_any_memory_layout_are_taken() -> None:
    model, inputs = small()
    want = model.run(inputs)["y"]
    strange = {n: np.asfortranarray(np.repeat(a, 2, axis=0))[::2] for n, a in inputs.items()}
    np.testing.assert_array_equal(model.run(strange)["y"], want)


@given(case=st.one_of(graphs(), conv_cases(), pool_cases(), add_cases()))
def test_results_do_not_depend_on_how_feeds_are_cut(case: Case) -> None:
    feeds = {n: np.concatenate([a] * 3) for n, a in case.inputs.items()}
    whole = Oracle(case.manifest, case.arrays).run(feeds, keep="all")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(oracle.run, "_MAX_CHUNK", 2)
        cut = Oracle(case.manifest, case.arrays).run(feeds, keep="all")
    for name, array in whole.items():
        np.testing.assert_array_equal(cut[name], array)


@given(case=conv_cases())
def test_results_do_not_depend_on_how_rows_are_cut(case: Case) -> None:
    whole = Oracle(case.manifest, case.arrays).run(case.inputs, keep="all")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("oracle.ops.conv._BLOCK_BYTES", 1)
        cut = Oracle(case.manifest, case.arrays).run(case.inputs, keep="all")
    np.testing.assert_array_equal(cut["y"], whole["y"])


def test_scratch_memory_stays_bounded_over_many_feeds() -> None:
    """A Conv over 64 channels of 64 x 64: 40 feeds would expand to 750 MB of columns."""
    sketch = Sketch()
    one = quantization([1.0], [0])
    sketch.activation("x", (1, 64, 64, 64), "int8", one, role="input")
    sketch.constant("w", np.ones((1, 64, 3, 3), np.int8), one)
    sketch.activation("y", (1, 1, 64, 64), "int8", quantization([512.0], [0]), role="output")
    attributes: Any = {"kernel_shape": (3, 3), "strides": (1, 1), "pads": (1,) * 4, "dilations": (1, 1), "group": 1}
    sketch.op("Conv", ("x", "w", ""), "y", requant=requantization([Fraction(1, 512)], "int8"), attributes=attributes)
    model = Oracle(sketch.manifest(["x"], ["y"]), sketch.arrays)
    got = model.run({"x": np.ones((40, 1, 64, 64, 64), np.int8)})["y"]
    assert got[:, 0, 0, 1:-1, 1:-1].min() == got[:, 0, 0, 1:-1, 1:-1].max() == 1
    assert model.scratch_bytes < 64 << 20


@given(case=st.one_of(conv_cases(), pool_cases(), add_cases()), data=st.data())
def test_exact_values_of_single_elements(case: Case, data: st.DataObject) -> None:
    """Exact value times scale is the real value of the slow meaning, and rounds to the code of the QDQ reading."""
    (op,) = case.manifest.ops
    unrounded = replace(op, origin="qdq", requant=None)
    tensors = tuple(replace(t, dtype="exact", quant=None) if t.name == "y" else t for t in case.manifest.tensors)
    kept = replace(case.manifest, ops=(unrounded,), tensors=tensors)
    real = Naive(kept, case.arrays).run(case.inputs)["y"] if op.origin == "qdq" else None
    shape = (len(next(iter(case.inputs.values()))), *case.manifest.tensor("y").shape)
    count = data.draw(st.integers(0, 3))
    drawn = [[data.draw(st.integers(0, n - 1)) for n in shape] for _ in range(count)]
    indices = np.array(drawn, np.int64).reshape(count, len(shape))
    model = Oracle(case.manifest, case.arrays)
    values = model.exact([op.name], case.inputs, "y", indices)
    assert len(values) == count
    quant, requant = case.manifest.tensor("y").quant, op.requant
    assert quant is not None
    assert requant is not None
    codes = model.run(case.inputs)["y"]
    for index, value in zip(indices, values, strict=True):
        assert value is not None
        if real is not None:
            assert value * Fraction(quant.scales[0]) == real[tuple(index)]
            code = rounded(value, "conv_even") + quant.zero_points[0]
            assert min(max(code, requant.qmin), requant.qmax) == codes[tuple(index)]


def test_exact_values_of_floats_codes_and_chains() -> None:
    model, inputs = small()
    inputs["x"][0, 0, 1] = np.nan
    inputs["x"][0, 1, 1] = 0.3
    rows = np.array([[0, 0, 1], [0, 1, 1]])
    assert model.exact(["quantizelinear_0"], inputs, "x.q", rows) == [None, Fraction(float(np.float32(0.3))) * 2]
    whole = model.run(inputs, keep="all")
    assert model.exact(["transpose_3"], whole, "t", rows) == [int(whole["t"][tuple(r)]) - 128 for r in rows]
    (value,) = model.exact(["transpose_3", "matmul_4"], whole, "e", np.array([[1, 0, 0]]))
    t = whole["t"][1, 0].astype(int) - 128
    assert value == (3 * int(t[0]) + int(t[1])) * Fraction(float(np.float32(0.1)))
    assert model.exact(["matmul_4", "dequantizelinear_5"], whole, "y", np.array([[0, 0, 0]])) == [None]


def test_exact_values_keep_a_bias_of_any_scale() -> None:
    sketch = Sketch()
    sketch.activation("x", (1, 1), "int8", quantization([1.0], [0]), role="input")
    sketch.constant("w", np.ones((1, 1), np.int8), quantization([1.0], [0]))
    sketch.constant("b", np.array([0.1], np.float32), role="bias")
    sketch.activation("y", (1, 1), "int8", quantization([2.0], [0]), role="output")
    requant = requantization([Fraction(1, 2)], "int8", reference="rational")
    sketch.op("Gemm", ("x", "w", "b"), "y", requant=requant, bias=Bias(kind="rescaled"))
    model = Oracle(sketch.manifest(["x"], ["y"]), sketch.arrays)
    got = model.exact(["gemm_0"], {"x": np.full((1, 1, 1), 3, np.int8)}, "y", np.zeros((1, 3), np.int64))
    assert got == [(3 + Fraction(float(np.float32(0.1)))) / 2]


@pytest.mark.parametrize(
    ("op_type", "match"),
    [("LSTM", "has no function on float32"), ("Conv", "weight 'z' is not constant")],
)
def test_ops_without_meaning_are_refused_by_name(op_type: str, match: str) -> None:
    sketch = Sketch()
    for name in ("x", "z"):
        sketch.activation(name, (1, 1, 1, 1), "int8", HALF, role="input")
    sketch.activation("y", (1, 1, 1, 1), "int8", HALF, role="output")
    sketch.op(op_type, ("x", "z"), "y", attributes={"perm": (0, 1, 2, 3)})
    model = Oracle(sketch.manifest(["x", "z"], ["y"]), sketch.arrays)
    with pytest.raises(RefusedError, match=match):
        model.run({n: np.zeros((1, 1, 1, 1, 1), np.int8) for n in ("x", "z")})


def test_windows_of_padding_alone_are_refused() -> None:
    sketch = Sketch()
    sketch.activation("x", (1, 1, 1, 1), "int8", HALF, role="input")
    sketch.activation("y", (1, 1, 1, 1), "int8", HALF, role="output")
    attributes: Any = {"kernel_shape": (2, 1), "strides": (1, 1), "pads": (1, 0, 1, 0), "dilations": (2, 1)}
    sketch.op("MaxPool", ("x",), "y", attributes=attributes)
    model = Oracle(sketch.manifest(["x"], ["y"]), sketch.arrays)
    with pytest.raises(RefusedError, match="window that holds only padding"):
        model.run({"x": np.zeros((1, 1, 1, 1, 1), np.int8)})
