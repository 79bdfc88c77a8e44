"""Strategies for single ops: a manifest with one op, its constants and inputs."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from manifest.model import QRANGE, Accumulator, AttributeValue, Bias, DType, Quantization
from oracle.sketch import Sketch, quantization, requantization
from oracle.strategies.tensors import (
    ACTIVATIONS,
    EIGHT_BIT,
    Array,
    Case,
    Draw,
    codes,
    quantizations,
    scales,
    zero_points,
)


def _output(draw: Draw, unit: Fraction, *, power_of_two: bool, dtypes: Sequence[DType]) -> tuple[DType, Quantization]:
    """Output quantization whose scale is up to 2**16 units, so that codes neither vanish nor all saturate."""
    dtype = draw(st.sampled_from(list(dtypes)))
    scale = float(unit) * 2.0 ** draw(st.integers(-1, 16))
    if not power_of_two:
        scale *= draw(st.integers(5, 9)) / 7
    return dtype, quantization([scale], [draw(zero_points(dtype))])


def _accumulator(draw: Draw, bound: int) -> Accumulator:
    return Accumulator(bits=draw(st.sampled_from([32, 64])) if bound < 1 << 31 else 64, bound=bound)


KERNEL_TYPES: Final[tuple[tuple[DType, DType, DType], ...]] = (
    ("uint8", "uint8", "uint8"),
    ("uint8", "int8", "uint8"),
    ("int8", "int8", "int8"),
)
"""Types of input, weight and output that onnxruntime's QLinearConv and QLinearMatMul take together."""


@st.composite
def _weights(
    draw: Draw, shape: tuple[int, ...], channel_axis: int, dtype: DType, *, power_of_two: bool, one_point: bool
) -> tuple[Array, Quantization]:
    channels = shape[channel_axis] if draw(st.booleans()) else None
    quant = draw(quantizations(dtype, channels=channels, axis=channel_axis, power_of_two=power_of_two))
    if one_point:
        quant = quantization(quant.scales, quant.zero_points[:1] * len(quant.scales), quant.axis)
    return draw(codes(dtype, shape)), quant


def _bias(draw: Draw, sketch: Sketch, units: list[Fraction], channels: int, *, simple: bool) -> tuple[str, Bias | None]:
    """A bias of any kind (only none or `accumulator` where `simple`); returns (tensor name, description)."""
    kinds = ["none", "accumulator"] if simple else ["none", "accumulator", "shifted", "rescaled", "float"]
    kind = draw(st.sampled_from(kinds))
    if kind == "none":
        return "", None
    wide = units * channels if len(units) == 1 else units
    if kind == "float":
        real = draw(hnp.arrays(np.float32, channels, elements=st.floats(-8, 8, width=32)))
        sketch.constant("b", real, role="bias")
        values = [Fraction(float(v)) for v in real]
        return "b", _rescaled(sketch, values, wide)
    stored = draw(hnp.arrays(np.int32, channels, elements=st.integers(-4000, 4000)))
    if kind == "accumulator":
        sketch.constant("b", stored, quantization([float(u) for u in wide], [0] * channels, 0), role="bias")
        return "b", Bias(kind="accumulator")
    if kind == "shifted":
        shifts = draw(st.lists(st.integers(-4, 9), min_size=channels, max_size=channels))
        exact = [float(u) * 2.0**s for u, s in zip(wide, shifts, strict=True)]
        sketch.constant("b", stored, quantization(exact, [0] * channels, 0), role="bias")
        return "b", Bias(kind="shifted", shifts=tuple(shifts))
    scale = draw(scales(power_of_two=False))
    sketch.constant("b", stored, quantization([scale], [0]), role="bias")
    values = [int(v) * Fraction(float(np.float32(scale))) for v in stored]
    return "b", _rescaled(sketch, values, wide)


def _rescaled(sketch: Sketch, values: list[Fraction], units: list[Fraction]) -> Bias:
    rounded = [max(-(2**31), min(2**31 - 1, round(v / u))) for v, u in zip(values, units, strict=True)]
    return Bias(kind="rescaled", target_array=sketch.store(np.array(rounded, np.int32)))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Contraction:
    """What Conv, Gemm and MatMul draw alike."""

    op_type: str
    x_shape: tuple[int, ...]
    w_shape: tuple[int, ...]
    y_shape: tuple[int, ...]
    channel_axis: int
    depth: int
    attributes: dict[str, AttributeValue]


def _contraction(draw: Draw, made: _Contraction, *, power_of_two: bool | None, qoperator: bool | None) -> Case:
    powers = not draw(st.booleans()) if power_of_two is None else power_of_two
    kernel = draw(st.booleans()) if qoperator is None else qoperator
    sketch = Sketch()
    free = st.tuples(*(st.sampled_from(c) for c in (ACTIVATIONS, EIGHT_BIT, ("int8", "uint8", "int16"))))
    x_dtype, w_dtype, y_dtype = draw(st.sampled_from(KERNEL_TYPES) if kernel else free)
    x_quant = draw(quantizations(x_dtype, power_of_two=powers))
    sketch.activation("x", made.x_shape, x_dtype, x_quant, role="input")
    weights, w_quant = draw(_weights(made.w_shape, made.channel_axis, w_dtype, power_of_two=powers, one_point=kernel))
    sketch.constant("w", weights, w_quant)
    units = [Fraction(x_quant.scales[0]) * Fraction(s) for s in w_quant.scales]
    channels = made.w_shape[made.channel_axis]
    bias, described = _bias(draw, sketch, units, channels, simple=kernel or made.op_type == "MatMul")
    dtype, y_quant = _output(draw, units[0], power_of_two=powers, dtypes=[y_dtype])
    sketch.activation("y", made.y_shape, dtype, y_quant, role="output")
    limits = _limits(draw, dtype)
    requant = requantization(
        [u / Fraction(y_quant.scales[0]) for u in units],
        dtype,
        reference="scale_f32" if kernel else None,
        limits=limits,
    )
    sketch.op(
        made.op_type,
        ("x", "w", bias),
        "y",
        requant=requant,
        attributes=made.attributes,
        bias=described,
        origin="qoperator" if kernel else "qdq",
        accumulator=_accumulator(draw, made.depth * (1 << 25)),
    )
    inputs = {"x": draw(codes(x_dtype, (draw(st.integers(1, 3)), *made.x_shape)))}
    return Case(manifest=sketch.manifest(["x"], ["y"]), arrays=sketch.arrays, inputs=inputs)


def _limits(draw: Draw, dtype: DType) -> tuple[int, int] | None:
    """Codes left by a fused Relu or Clip; None: the whole range."""
    if not draw(st.booleans()):
        return None
    low, high = QRANGE[dtype]
    first = draw(st.integers(low, low + (high - low) // 2))
    return first, draw(st.integers(first, high))


@st.composite
def windows(draw: Draw, *, pads_below_kernel: bool = False, dilated: bool = True) -> dict[str, tuple[int, ...]]:
    """Two spatial axes with at least one window each: `size`, then the attributes of Conv (`pads`: begins, ends).

    Args:
        draw: given by Hypothesis.
        pads_below_kernel: every window holds data, as pools need it.
        dilated: taps may lie two elements apart.
    """
    columns = []
    for _ in range(2):
        kernel = draw(st.integers(1, 3))
        dilation = draw(st.integers(1, 2)) if dilated else 1
        most = 2 if not pads_below_kernel else kernel - 1 if dilation == 1 else 0
        begin, end = draw(st.integers(0, most)), draw(st.integers(0, most))
        stride = draw(st.integers(1, 3))
        least = max(1, dilation * (kernel - 1) + 1 - begin - end)
        size = least + draw(st.integers(0, 2 * stride))  # any remainder: windows that end at the border, or before it
        columns.append((size, kernel, stride, dilation, begin, end))
    size, kernel, strides, dilations, begins, ends = zip(*columns, strict=True)
    return {"size": size, "kernel_shape": kernel, "strides": strides, "dilations": dilations, "pads": begins + ends}


def _outputs(window: dict[str, tuple[int, ...]], *, ceil_mode: bool = False) -> tuple[int, ...]:
    """Windows per axis, as ONNX defines them (a window that starts in the end padding is dropped in ceil mode)."""
    result = []
    for i in range(2):
        size, begin, end = window["size"][i], window["pads"][i], window["pads"][2 + i]
        reach = window["dilations"][i] * (window["kernel_shape"][i] - 1) + 1
        room, stride = size + begin + end - reach, window["strides"][i]
        count = (-(-room // stride) if ceil_mode else room // stride) + 1
        if ceil_mode and (count - 1) * stride >= size + begin:
            count -= 1
        result.append(count)
    return tuple(result)


@st.composite
def conv_cases(draw: Draw, *, power_of_two: bool | None = None, qoperator: bool | None = None) -> Case:
    """A 2-D Conv: groups, depthwise, dilations, uneven pads, per-channel scales, every kind of bias.

    Args:
        draw: given by Hypothesis.
        power_of_two: all scales 2**k, none, or (None) either.
        qoperator: onnxruntime's QLinearConv formula as reference, a QDQ group, or (None) either.
    """
    window = draw(windows())
    groups = draw(st.integers(1, 3))
    cin, cout = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    batch = draw(st.integers(1, 2))
    attributes: dict[str, AttributeValue] = {k: v for k, v in window.items() if k != "size"}
    made = _Contraction(
        op_type="Conv",
        x_shape=(batch, groups * cin, *window["size"]),
        w_shape=(groups * cout, cin, *window["kernel_shape"]),
        y_shape=(batch, groups * cout, *_outputs(window)),
        channel_axis=0,
        depth=cin * window["kernel_shape"][0] * window["kernel_shape"][1],
        attributes={**attributes, "group": groups},
    )
    return _contraction(draw, made, power_of_two=power_of_two, qoperator=qoperator)


@st.composite
def gemm_cases(draw: Draw, *, power_of_two: bool | None = None, qoperator: bool | None = None) -> Case:
    """A Gemm or a MatMul by a constant matrix."""
    rows, depth, cols = draw(st.integers(1, 3)), draw(st.integers(1, 12)), draw(st.integers(1, 4))
    if draw(st.booleans()):
        trans_a, trans_b = draw(st.integers(0, 1)), draw(st.integers(0, 1))
        made = _Contraction(
            op_type="Gemm",
            x_shape=(depth, rows) if trans_a else (rows, depth),
            w_shape=(cols, depth) if trans_b else (depth, cols),
            y_shape=(rows, cols),
            channel_axis=0 if trans_b else 1,
            depth=depth,
            attributes={"transA": trans_a, "transB": trans_b, "alpha": 1.0, "beta": 1.0},
        )
    else:
        lead = tuple(draw(st.lists(st.integers(1, 2), max_size=2)))
        made = _Contraction(
            op_type="MatMul",
            x_shape=(*lead, rows, depth),
            w_shape=(depth, cols),
            y_shape=(*lead, rows, cols),
            channel_axis=1,
            depth=depth,
            attributes={},
        )
    return _contraction(draw, made, power_of_two=power_of_two, qoperator=qoperator)


@st.composite
def add_cases(draw: Draw, *, power_of_two: bool | None = None, qoperator: bool | None = None) -> Case:
    """An Add of two activations, with ONNX broadcasting."""
    powers = not draw(st.booleans()) if power_of_two is None else power_of_two
    kernel = draw(st.booleans()) if qoperator is None else qoperator
    shapes = draw(hnp.mutually_broadcastable_shapes(num_shapes=2, min_dims=1, max_dims=3, max_side=3))
    sketch, feeds = Sketch(), draw(st.integers(1, 2))
    inputs, units = {}, []
    one = draw(st.sampled_from(EIGHT_BIT))
    for name, shape in zip(("a", "b"), shapes.input_shapes, strict=True):
        dtype = one if kernel else draw(st.sampled_from(ACTIVATIONS))
        quant = draw(quantizations(dtype, power_of_two=powers))
        sketch.activation(name, shape, dtype, quant, role="input")
        inputs[name] = draw(codes(dtype, (feeds, *shape)))
        units.append(Fraction(quant.scales[0]))
    dtype, quant = _output(draw, max(units), power_of_two=powers, dtypes=[one] if kernel else ACTIVATIONS)
    sketch.activation("y", shapes.result_shape, dtype, quant, role="output")
    requant = requantization(
        [u / Fraction(quant.scales[0]) for u in units],
        dtype,
        reference="scale_f32" if kernel else None,
        limits=_limits(draw, dtype),
        inside=kernel,
        shared_shift=True,
    )
    sketch.op("Add", ("a", "b"), "y", requant=requant, origin="qoperator" if kernel else "qdq")
    return Case(manifest=sketch.manifest(["a", "b"], ["y"]), arrays=sketch.arrays, inputs=inputs)


@st.composite
def pool_cases(draw: Draw, *, power_of_two: bool | None = None, qoperator: bool | None = None) -> Case:
    """A MaxPool, AveragePool or GlobalAveragePool; averages may have a fused factor."""
    powers = not draw(st.booleans()) if power_of_two is None else power_of_two
    kind = draw(st.sampled_from(["MaxPool", "AveragePool", "GlobalAveragePool"]))
    kernel = kind != "MaxPool" and (draw(st.booleans()) if qoperator is None else qoperator)
    window = draw(windows(pads_below_kernel=True, dilated=kind == "MaxPool"))
    lead = (draw(st.integers(1, 2)), draw(st.integers(1, 3)))
    ceil_mode = draw(st.booleans())
    sketch = Sketch()
    dtype = draw(st.sampled_from(EIGHT_BIT if kernel else ACTIVATIONS))
    quant = draw(quantizations(dtype, power_of_two=powers))
    x_shape = (*lead, *window["size"])
    sketch.activation("x", x_shape, dtype, quant, role="input")
    attributes: dict[str, AttributeValue] = (
        {}
        if kind == "GlobalAveragePool"
        else {
            **{k: v for k, v in window.items() if k != "size"},
            "ceil_mode": int(ceil_mode),
        }
    )
    size = (1, 1) if kind == "GlobalAveragePool" else _outputs(window, ceil_mode=ceil_mode)
    unit, factor = Fraction(quant.scales[0]), 1.0
    if kind != "MaxPool":
        factor = 1.0 if kernel else draw(st.sampled_from([1.0, 21 * 49 / 1024, 0.984375]))
        attributes["factor"] = factor
    if kind == "AveragePool":
        attributes["count_include_pad"] = draw(st.integers(0, 1))
    counts = window_counts(kind, window, size, bool(attributes.get("count_include_pad", 0)))
    if kernel and attributes.get("count_include_pad"):
        counts = [window["kernel_shape"][0] * window["kernel_shape"][1]]
    y_dtype, y_quant = _output(draw, unit, power_of_two=powers, dtypes=[dtype] if kernel else ACTIVATIONS)
    sketch.activation("y", (*lead, *size), y_dtype, y_quant, role="output")
    requant = requantization(
        [unit * Fraction(factor) / (n * Fraction(y_quant.scales[0])) for n in counts],
        y_dtype,
        reference="scale_f32" if kernel else None,
        limits=_limits(draw, y_dtype),
        inside=kernel and kind == "AveragePool",
    )
    sketch.op(kind, ("x",), "y", requant=requant, attributes=attributes, origin="qoperator" if kernel else "qdq")
    inputs = {"x": draw(codes(dtype, (draw(st.integers(1, 2)), *x_shape)))}
    return Case(manifest=sketch.manifest(["x"], ["y"]), arrays=sketch.arrays, inputs=inputs)


def window_counts(
    kind: str, window: dict[str, tuple[int, ...]], outputs: tuple[int, ...], include_pad: bool
) -> list[int]:
    """Numbers of elements that windows are divided by, ascending and without repetition; [1] for MaxPool."""
    if kind == "MaxPool":
        return [1]
    if kind == "GlobalAveragePool":
        return [window["size"][0] * window["size"][1]]
    per_axis = []
    for i in range(2):
        size, begin, end = window["size"][i], window["pads"][i], window["pads"][2 + i]
        low, high = (-begin, size + end) if include_pad else (0, size)
        starts = (w * window["strides"][i] - begin for w in range(outputs[i]))
        per_axis.append({sum(low <= s + k < high for k in range(window["kernel_shape"][i])) for s in starts})
    return sorted({r * c for r in per_axis[0] for c in per_axis[1]} - {0}) or [1]
