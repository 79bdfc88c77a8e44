"""Exact tensors, requantizing moves and constants against the slow second meaning."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manifest.model import QRANGE, Accumulator, AttributeValue, Bias, DType, Quantization, Requantization
from oracle.sketch import Sketch, quantization, requantization
from oracle.strategies import ACTIVATIONS, Case, codes, quantizations, scales, zero_points
from tests.oracle.test_ops_against_naive import check

Attributes = dict[str, AttributeValue]


class Draft:
    """Draws what the cases of this file need."""

    def __init__(self, data: st.DataObject, *, dtypes: Sequence[DType] = ACTIVATIONS) -> None:
        self.data = data
        self.dtypes = list(dtypes)
        self.powers = data.draw(st.booleans(), label="powers of two")
        self.sketch = Sketch()
        self.inputs: dict[str, np.ndarray[Any, Any]] = {}
        self.feeds = data.draw(st.integers(1, 2), label="feeds")

    def dtype(self) -> DType:
        return self.data.draw(st.sampled_from(self.dtypes))

    def input(self, name: str, shape: tuple[int, ...], dtype: DType | None = None) -> Fraction:
        """A quantised graph input; returns its scale."""
        dtype = dtype or self.dtype()
        quant = self.data.draw(quantizations(dtype, power_of_two=self.powers))
        self.sketch.activation(name, shape, dtype, quant, role="input")
        self.inputs[name] = self.data.draw(codes(dtype, (self.feeds, *shape)), label=name)
        return Fraction(quant.scales[0])

    def output(self, shape: tuple[int, ...], unit: Fraction) -> tuple[DType, Fraction]:
        dtype = self.dtype()
        step = 2.0 ** self.data.draw(st.integers(-2, 8)) if self.powers else self.data.draw(st.integers(3, 2000)) / 8
        quant = quantization([float(unit) * step], [self.data.draw(zero_points(dtype))])
        self.sketch.activation("y", shape, dtype, quant, role="output")
        return dtype, Fraction(quant.scales[0])

    def exact(self, name: str, shape: tuple[int, ...]) -> str:
        return self.sketch.activation(name, shape, "exact", role="accumulator")

    def conv(self, channels: int = 2, *, biased: bool = True) -> tuple[str, list[Fraction]]:
        """An exact 2x2 Conv of a new input (1, 1, 3, 3) with scales per channel; returns (name, units)."""
        sx = self.input("x", (1, 1, 3, 3), self.data.draw(st.sampled_from(["int8", "uint8"])))
        quant = self.data.draw(quantizations("int8", channels=channels, axis=0, power_of_two=self.powers))
        self.sketch.constant("w", self.data.draw(codes("int8", (channels, 1, 2, 2))), quant)
        units = [sx * Fraction(s) for s in quant.scales]
        name, bias = "", None
        if biased and self.data.draw(st.booleans(), label="bias"):
            shift = self.data.draw(st.integers(-3, 3), label="bias shift")
            stored = np.array(self.data.draw(st.lists(st.integers(-99, 99), min_size=channels, max_size=channels)))
            exact = [float(u) * 2.0**shift for u in units]
            self.sketch.constant("b", stored.astype(np.int32), quantization(exact, [0] * channels, 0), role="bias")
            name, bias = "b", Bias(kind="shifted", shifts=(shift,))
        attributes: Attributes = {
            "kernel_shape": (2, 2),
            "strides": (1, 1),
            "pads": (0, 0, 0, 0),
            "dilations": (1, 1),
            "group": 1,
        }
        made = self.exact("c", (1, channels, 2, 2))
        self.sketch.op("Conv", ("x", "w", name), made, attributes=attributes, bias=bias)
        return made, units

    def check(self) -> None:
        manifest = self.sketch.manifest(list(self.inputs), ["y"])
        check(Case(manifest=manifest, arrays=self.sketch.arrays, inputs=self.inputs))


def per_channel(draft: Draft, units: list[Fraction], dtype: DType, sy: Fraction) -> Requantization:
    return requantization([u / sy for u in units], dtype)


@given(st.data())
def test_conv_exact_relu_quantize(data: st.DataObject) -> None:
    draft = Draft(data)
    made, units = draft.conv()
    draft.sketch.op("Relu", (made,), draft.exact("r", (1, 2, 2, 2)))
    dtype, sy = draft.output((1, 2, 2, 2), units[0])
    draft.sketch.op("QuantizeLinear", ("r",), "y", requant=per_channel(draft, units, dtype, sy))
    draft.check()


@given(st.data())
def test_conv_exact_clip_quantize(data: st.DataObject) -> None:
    draft = Draft(data)
    made, units = draft.conv()
    low = data.draw(st.sampled_from([-np.inf, -1.0, 0.0, 0.1]))
    high = data.draw(st.sampled_from([np.inf, 6.0, 0.3]))
    attributes: Attributes = {"minimum": float(np.float32(low)), "maximum": float(np.float32(high))}
    draft.sketch.op("Clip", (made,), draft.exact("r", (1, 2, 2, 2)), attributes=attributes)
    dtype, sy = draft.output((1, 2, 2, 2), units[0])
    draft.sketch.op("QuantizeLinear", ("r",), "y", requant=per_channel(draft, units, dtype, sy))
    draft.check()


@given(st.data())
def test_conv_exact_global_average_quantize(data: st.DataObject) -> None:
    draft = Draft(data)
    made, units = draft.conv()
    factor = data.draw(st.sampled_from([1.0, 1.5]))
    dtype, sy = draft.output((1, 2, 1, 1), units[0])
    ratios = [u * Fraction(factor) / 4 / sy for u in units]
    requant = requantization(ratios, dtype)
    draft.sketch.op("GlobalAveragePool", (made,), "y", requant=requant, attributes={"factor": factor})
    draft.check()


@given(st.data())
def test_conv_exact_max_pool_transpose_quantize(data: st.DataObject) -> None:
    draft = Draft(data)
    made, units = draft.conv()
    attributes: Attributes = {
        "kernel_shape": (2, 1),
        "strides": (1, 1),
        "pads": (0, 0, 0, 0),
        "dilations": (1, 1),
        "ceil_mode": 0,
    }
    draft.sketch.op("MaxPool", (made,), draft.exact("m", (1, 2, 1, 2)), attributes=attributes)
    perm: Attributes = {"perm": (0, 1, 3, 2)}
    draft.sketch.op("Transpose", ("m",), draft.exact("t", (1, 2, 2, 1)), attributes=perm)
    dtype, sy = draft.output((1, 2, 2, 1), units[0])
    draft.sketch.op("QuantizeLinear", ("t",), "y", requant=per_channel(draft, units, dtype, sy))
    draft.check()


@given(st.data())
def test_conv_exact_flatten_dequantize(data: st.DataObject) -> None:
    """Channels of different scales mixed on one axis: only the float values are asked for."""
    draft = Draft(data)
    made, _ = draft.conv()
    draft.sketch.op("Flatten", (made,), draft.exact("f", (1, 8)), attributes={"axis": 1})
    draft.sketch.activation("y", (1, 8), "float32", role="output")
    draft.sketch.op("DequantizeLinear", ("f",), "y", host=True)
    draft.check()


@given(st.data())
def test_exact_plus_codes(data: st.DataObject) -> None:
    draft = Draft(data)
    made, units = draft.conv(channels=1, biased=False)
    sb = draft.input("b", (1, 1, 2, 2))
    dtype, sy = draft.output((1, 1, 2, 2), max(units[0], sb))
    requant = requantization([units[0] / sy, sb / sy], dtype, shared_shift=True)
    draft.sketch.op("Add", (made, "b"), "y", requant=requant)
    draft.check()


@given(st.data())
def test_exact_sum_kept_exact_then_dequantized(data: st.DataObject) -> None:
    draft = Draft(data)
    made, _ = draft.conv()
    draft.input("z", (2, 1, 1))
    draft.sketch.op("Add", (made, "z"), draft.exact("s", (1, 2, 2, 2)))
    draft.sketch.activation("y", (1, 2, 2, 2), "float32", role="output")
    draft.sketch.op("DequantizeLinear", ("s",), "y", host=True)
    draft.check()


@given(st.data())
def test_bias_of_any_scale_behind_an_exact_conv(data: st.DataObject) -> None:
    """A float bias makes the value an integer times a rational plus a rational; Relu and rounding stay exact."""
    draft = Draft(data)
    made, units = draft.conv(biased=False)
    real = np.array([data.draw(st.floats(-9, 9, width=32)) for _ in range(2)], np.float32)
    draft.sketch.constant("f", real, role="bias")
    rounded = np.array([round(Fraction(float(v)) / u) for v, u in zip(real, units, strict=True)])
    key = draft.sketch.store(np.clip(rounded, -(2**31), 2**31 - 1).astype(np.int32))
    old = draft.sketch.ops.pop()
    draft.sketch.op(
        "Conv",
        ("x", "w", "f"),
        made,
        attributes=dict(old.attributes),
        bias=Bias(kind="rescaled", target_array=key),
    )
    draft.sketch.op("Relu", (made,), draft.exact("r", (1, 2, 2, 2)))
    dtype, sy = draft.output((1, 2, 2, 2), units[0])
    draft.sketch.op("QuantizeLinear", ("r",), "y", requant=per_channel(draft, units, dtype, sy))
    manifest = draft.sketch.manifest(["x"], ["y"])
    check(Case(manifest=manifest, arrays=draft.sketch.arrays, inputs=draft.inputs), arithmetics=("reference",))


@given(st.data())
def test_mul_by_a_constant(data: st.DataObject) -> None:
    draft = Draft(data)
    sx = draft.input("x", (1, 2, 3))
    shape = data.draw(st.sampled_from([(), (1,), (3,), (2, 1)]))
    quant = data.draw(quantizations("int16", power_of_two=draft.powers))
    draft.sketch.constant("m", data.draw(codes("int16", shape)), quant, role="constant")
    unit = sx * Fraction(quant.scales[0])
    dtype, sy = draft.output((1, 2, 3), unit)
    draft.sketch.op("Mul", ("x", "m"), "y", requant=requantization([unit / sy], dtype))
    draft.check()


@given(st.data())
def test_qlinearmul(data: st.DataObject) -> None:
    draft = Draft(data, dtypes=("uint8",))
    units = [draft.input("x", (2, 3)), draft.input("z", (3,))]
    dtype, sy = draft.output((2, 3), units[0] * units[1])
    requant = requantization([units[0] * units[1] / sy], dtype, reference="scale_f32", inside=True)
    draft.sketch.op("Mul", ("x", "z"), "y", requant=requant, origin="qoperator")
    draft.check()


@given(st.data())
def test_mul_of_a_float_constant_stays_exact(data: st.DataObject) -> None:
    draft = Draft(data)
    draft.input("x", (2, 3))
    values = np.array(data.draw(st.lists(st.floats(-4, 4, width=16), min_size=3, max_size=3)), np.float32)
    draft.sketch.constant("m", values, role="constant")
    draft.sketch.op("Mul", ("x", "m"), draft.exact("p", (2, 3)))
    draft.sketch.activation("y", (2, 3), "float32", role="output")
    draft.sketch.op("DequantizeLinear", ("p",), "y", host=True)
    draft.check()


def folded(draft: Draft, bounds: Attributes, dtype: str, limits: tuple[int, int] | None) -> tuple[int, int]:
    """Limits on the codes of y with the real bounds of a Clip in them, as the importer has it."""
    quant = draft.sketch.tensors["y"].quant
    assert quant is not None
    low, high = limits or QRANGE[dtype]
    ends = (
        round(Fraction(float(str(bounds[name]))) / Fraction(quant.scales[0])) + quant.zero_points[0]
        for name in ("minimum", "maximum")
    )
    return tuple(min(max(end, low), high) for end in ends)  # type: ignore[return-value]  # two of them


@pytest.mark.parametrize("op_type", ["Relu", "Clip", "Transpose", "Reshape", "QuantizeLinear"])
@given(data=st.data())
def test_moves_and_clamps_that_requantize(op_type: str, data: st.DataObject) -> None:
    draft = Draft(data)
    sx = draft.input("x", (2, 3))
    attributes: Attributes = {}
    shape = (2, 3)
    if op_type == "Clip":
        attributes = {"minimum": -1.5, "maximum": float(np.float32(data.draw(scales())))}
    elif op_type != "Relu":
        attributes, shape = ({"perm": (1, 0)}, (3, 2)) if op_type != "QuantizeLinear" else ({}, (2, 3))
    dtype, sy = draft.output(shape, sx)
    limits = data.draw(st.sampled_from([None, (QRANGE[dtype][0], QRANGE[dtype][1] - 1)]))
    if op_type == "Clip":
        limits = folded(draft, attributes, dtype, limits)
    requant = requantization([sx / sy], dtype, limits=limits)
    draft.sketch.op(op_type, ("x",), "y", requant=requant, attributes=attributes)
    draft.check()


@pytest.mark.parametrize("op_type", ["Relu", "Transpose", "Reinterpret"])
@given(data=st.data())
def test_moves_that_keep_the_codes_of_channels(op_type: str, data: st.DataObject) -> None:
    """Per-channel activations pass through what moves them; the axis of the scales moves along."""
    draft = Draft(data)
    dtype = draft.dtype()
    quant: Quantization = data.draw(quantizations(dtype, channels=3, axis=1, power_of_two=draft.powers))
    draft.sketch.activation("x", (2, 3), dtype, quant, role="input")
    draft.inputs["x"] = data.draw(codes(dtype, (draft.feeds, 2, 3)))
    moved = quantization(quant.scales, quant.zero_points, 0) if op_type == "Transpose" else quant
    shape = (3, 2) if op_type == "Transpose" else (2, 3)
    draft.sketch.activation("y", shape, dtype, moved, role="output")
    attributes: Attributes = {"perm": (1, 0)} if op_type == "Transpose" else {}
    draft.sketch.op(op_type, ("x",), "y", attributes=attributes)
    draft.check()


@pytest.mark.parametrize("kernel", [False, True])
@given(data=st.data())
def test_concat_of_different_scales(kernel: bool, data: st.DataObject) -> None:
    draft = Draft(data, dtypes=("uint8",) if kernel else ACTIVATIONS)
    units = [draft.input(name, (1, n, 2)) for n, name in ((1, "a"), (2, "b"))]
    dtype, sy = draft.output((1, 4, 2), max(units))
    quant = draft.sketch.tensors["y"].quant
    assert quant is not None
    same = np.asarray(data.draw(codes(dtype, (1, 1, 2))))
    draft.sketch.constant("k", same, quant, role="constant")
    ratios = [u / sy for u in units] + [Fraction(1)]
    requant = requantization(ratios, dtype, reference="scale_f32" if kernel else None)
    origin: Any = "qoperator" if kernel else "qdq"
    draft.sketch.op("Concat", ("a", "b", "k"), "y", requant=requant, attributes={"axis": 1}, origin=origin)
    draft.check()


@given(st.data())
def test_matmul_of_two_activations_in_batches(data: st.DataObject) -> None:
    draft = Draft(data)
    units = [draft.input("a", (2, 3, 4)), draft.input("b", (4, 2))]
    unit = units[0] * units[1]
    dtype, sy = draft.output((2, 3, 2), unit)
    draft.sketch.op(
        "MatMul",
        ("a", "b", ""),
        "y",
        requant=requantization([unit / sy], dtype),
        accumulator=Accumulator(bits=64, bound=2**34),
    )
    draft.check()


@pytest.mark.parametrize("shapes", [((3,), (3, 2), (2,)), ((2, 3), (3,), (2,)), ((3,), (3,), ())])
@given(data=st.data())
def test_matmul_of_vectors(shapes: tuple[tuple[int, ...], ...], data: st.DataObject) -> None:
    draft = Draft(data)
    units = [draft.input("a", shapes[0]), draft.input("b", shapes[1])]
    unit = units[0] * units[1]
    dtype, sy = draft.output(shapes[2], unit)
    accumulator = Accumulator(bits=64, bound=2**34)
    requant = requantization([unit / sy], dtype)
    draft.sketch.op("MatMul", ("a", "b", ""), "y", requant=requant, accumulator=accumulator)
    draft.check()


@pytest.mark.parametrize("op_type", ["MaxPool", "Transpose", "Reshape"])
@given(data=st.data())
def test_a_clamp_fused_into_a_move_that_keeps_the_codes(op_type: str, data: st.DataObject) -> None:
    draft = Draft(data)
    dtype = draft.dtype()
    draft.input("x", (1, 1, 2, 2), dtype)
    forms: dict[str, tuple[tuple[int, ...], Attributes]] = {
        "MaxPool": ((1, 1, 2, 1), {"kernel_shape": (1, 2), "strides": (1, 1), "pads": (0,) * 4, "dilations": (1, 1)}),
        "Transpose": ((1, 1, 2, 2), {"perm": (0, 1, 3, 2)}),
        "Reshape": ((4,), {"shape": (4,)}),
    }
    shape, attributes = forms[op_type]
    draft.sketch.activation("y", shape, dtype, draft.sketch.tensors["x"].quant, role="output")
    low, high = QRANGE[dtype]
    first = data.draw(st.integers(low, high))
    limits = (first, data.draw(st.integers(first, high)))
    requant = replace(requantization([Fraction(1)], dtype, reference="identity", limits=limits), target="identity")
    draft.sketch.op(op_type, ("x",), "y", requant=requant, attributes=attributes)
    draft.check()


@pytest.mark.parametrize("shape", [(2, 2, 1), (1, 2, 2), (2, 1, 2), (4,)])
@given(data=st.data())
def test_channels_of_an_exact_product_through_a_reshape(shape: tuple[int, ...], data: st.DataObject) -> None:
    """(2, 2) with scales along axis 1: the axis of the same size in front of it is another one."""
    draft = Draft(data)
    draft.input("x", (2, 3), "int8")
    quant = data.draw(quantizations("int8", channels=2, axis=1, power_of_two=draft.powers))
    draft.sketch.constant("w", data.draw(codes("int8", (3, 2))), quant)
    draft.sketch.op("MatMul", ("x", "w", ""), draft.exact("p", (2, 2)))
    draft.sketch.op("Reshape", ("p",), draft.exact("r", shape), attributes={"shape": shape})
    draft.sketch.activation("y", shape, "float32", role="output")
    draft.sketch.op("DequantizeLinear", ("r",), "y", host=True)
    draft.check()
