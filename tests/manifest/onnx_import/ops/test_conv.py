import itertools
from typing import Any

import numpy as np
import pytest
from onnx import helper

from manifest.errors import RefusedError
from tests.qdq_models import Sketch, array_of, assert_exact, op_of


def conv(
    shape: tuple[int, ...] = (1, 4, 6, 5),
    weight: tuple[int, ...] = (4, 4, 3, 3),
    *,
    scale: Any = 2.0**-6,
    bias: Any = None,
    bias_scale: float = 2.0**-8,
    zero: int = 0,
    dtype: Any = np.int8,
    **attributes: Any,
) -> Sketch:
    s = Sketch()
    rng = np.random.default_rng(1)
    x = s.qdq(s.input("x", shape), 0.25, zero, dtype, out="a")
    w = s.weight(rng.integers(-50, 51, weight), scale, name="w", **({"axis": 0} if np.ndim(scale) else {}))
    inputs = [x, w] if bias is None else [x, w, s.weight(bias, bias_scale, name="b")]
    c = s.node("Conv", inputs, "c", name="conv", **attributes)
    s.output(s.qdq(c, 2.0, out="y"), [None] * 4)
    return s


@pytest.mark.parametrize(
    ("weight", "attributes"),
    [
        ((4, 4, 3, 3), {}),
        ((6, 2, 2, 3), {"group": 2}),
        ((8, 1, 3, 3), {"group": 4}),
        ((4, 4, 3, 2), {"pads": [1, 0, 0, 1]}),
        ((4, 4, 2, 2), {"pads": [2, 1, 0, 3], "strides": [2, 1]}),
        ((4, 1, 3, 3), {"group": 4, "dilations": [2, 1], "pads": [2, 1, 2, 1]}),
        ((4, 4, 3, 3), {"auto_pad": "SAME_UPPER", "strides": [2, 2]}),
        ((4, 4, 2, 2), {"auto_pad": "SAME_LOWER"}),
        ((4, 4, 1, 1), {"strides": [2, 3]}),
    ],
)
@pytest.mark.parametrize(("zero", "dtype"), [(0, np.int8), (128, np.uint8), (-7, np.int8)])
def test_windows_of_every_kind_equal_onnxruntime(
    weight: tuple[int, ...], attributes: dict[str, Any], zero: int, dtype: Any
) -> None:
    assert_exact(conv(weight=weight, zero=zero, dtype=dtype, **attributes), count=2)


def test_all_defaults_are_filled_in() -> None:
    op = op_of(conv().load().manifest, "Conv")
    assert dict(op.attributes) == {
        "kernel_shape": (3, 3), "strides": (1, 1), "pads": (0, 0, 0, 0), "dilations": (1, 1), "group": 1,
    }  # fmt: skip


def test_auto_pad_is_resolved_to_pads() -> None:
    op = op_of(conv(weight=(4, 4, 2, 2), auto_pad="SAME_UPPER").load().manifest, "Conv")
    assert op.attributes["pads"] == (0, 0, 1, 1)
    assert "auto_pad" not in op.attributes


def test_one_scale_per_channel_gives_one_shift_per_channel() -> None:
    scales = [2.0**-k for k in (6, 5, 7, 6)]
    op = op_of(assert_exact(conv(scale=scales)).manifest, "Conv")
    assert op.requant is not None
    assert (op.requant.reference, op.requant.target) == ("srs", "srs")
    assert op.requant.shifts == (9, 8, 10, 9)  # log2(2 / (0.25 * scale))


def test_scales_beside_powers_of_two_give_multipliers() -> None:
    op = op_of(conv(scale=0.03).load().manifest, "Conv")
    assert op.requant is not None
    assert (op.requant.reference, op.requant.target) == ("rational", "multiplier_shift")
    assert 1 << 30 <= op.requant.multipliers[0] < 1 << 31
    ratio = 0.25 * float(np.float32(0.03)) / 2.0
    assert op.requant.multipliers[0] / 2 ** op.requant.shifts[0] == pytest.approx(ratio, rel=2**-30)


def test_the_bound_comes_from_the_weights_of_the_worst_channel() -> None:
    imported = conv(bias=[1, -2, 3, -4]).load()
    op = op_of(imported.manifest, "Conv")
    weights = array_of(imported, "w").astype(np.int64)
    l1 = np.abs(weights).reshape(4, -1).sum(axis=1)
    assert op.bias is not None
    assert op.bias.shifts == (0,) or op.bias.kind == "accumulator"
    assert op.accumulator is not None
    assert op.accumulator.bound == max(128 * int(t) + abs(b) for t, b in zip(l1, (1, -2, 3, -4), strict=True))


def test_a_clamped_input_narrows_the_bound() -> None:
    """Behind a Relu with zero point 0 only codes 0 to 127 occur."""
    s = Sketch()
    x = s.qdq(s.node("Relu", [s.qdq(s.input("x", (1, 1, 2, 2)), 0.25)]), 0.25)
    c = s.node("Conv", [x, s.weight(np.full((1, 1, 1, 1), -10), 0.5)])
    s.output(s.qdq(c, 2.0, out="y"), (1, 1, 2, 2))
    accumulator = op_of(assert_exact(s).manifest, "Conv").accumulator
    assert accumulator is not None
    assert accumulator.bound == 1270


@pytest.mark.parametrize("exponent", [-10, -9, -8, -7, -3])
def test_int8_biases_of_every_scale_are_exact(exponent: int) -> None:
    imported = assert_exact(conv(bias=[100, -100, 7, 0], bias_scale=2.0**exponent))
    bias = op_of(imported.manifest, "Conv").bias
    assert bias is not None
    assert (bias.kind, bias.shifts) == (("accumulator", ()) if exponent == -8 else ("shifted", (exponent + 8,)))
    assert imported.manifest.tensor("b").dtype == "int8"


def test_a_float_bias_is_kept_and_rounded_for_the_target() -> None:
    s = conv()
    s.nodes[-3].input.append(s.const([0.7, -0.1, 3.0, 0.0], np.float32, "bf"))
    imported = assert_exact(s, target=False)
    op = op_of(imported.manifest, "Conv")
    assert op.bias is not None
    assert op.bias.kind == "rescaled"
    assert op.bias.target_array is not None
    unit = 0.25 * 2.0**-6
    assert imported.arrays[op.bias.target_array].tolist() == [
        round(v / unit) for v in np.array([0.7, -0.1, 3.0, 0.0], np.float32)
    ]
    assert imported.manifest.tensor("bf").dtype == "float32"
    assert op.requant is not None
    assert (op.requant.reference, op.requant.target) == ("rational", "srs")


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"shape": (1, 4, 6), "weight": (4, 4, 3)}, "1-D Conv is not supported"),
        ({"shape": (1, 4, 6, 5, 4), "weight": (4, 4, 3, 3, 3)}, "3-D Conv is not supported"),
        ({"pads": [0, -1, 0, 0]}, "negative pads crop the input"),
        ({"weight": (4, 3, 3, 3)}, "weight does not fit the input"),
        ({"kernel_shape": [2, 2]}, "weight does not fit the input"),
        ({"weight": (3, 2, 3, 3), "group": 2}, "weight does not fit the input"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(kwargs: dict[str, Any], message: str) -> None:
    with pytest.raises(RefusedError, match=message):
        conv(**kwargs).load()


def test_scales_along_the_input_channels_are_refused() -> None:
    s = conv()
    s.nodes[2].input[1] = s.const([0.5, 0.25, 0.5, 0.25])
    s.nodes[2].input[2] = s.const([0, 0, 0, 0], np.int8)
    s.nodes[2].attribute.extend([helper.make_attribute("axis", 1)])
    with pytest.raises(RefusedError, match=r"weight of Conv 'conv' has its scales along axis 1; expected .*\(axis 0\)"):
        s.load()


def test_an_unquantised_weight_names_the_node() -> None:
    s = conv()
    s.nodes[-3].input[1] = s.const(np.ones((4, 4, 3, 3)), np.float32, "wf")
    with pytest.raises(RefusedError, match=r"weight of Conv 'conv' is not quantised; .*got float32 'wf'"):
        s.load()


def test_a_weight_computed_at_run_time_is_refused() -> None:
    s = Sketch()
    x = s.qdq(s.input("x", (1, 4, 6, 5)), 0.5)
    w = s.qdq(s.input("k", (4, 4, 3, 3)), 0.5)
    s.output(s.qdq(s.node("Conv", [x, w], name="conv"), 2.0, out="y"), [None] * 4)
    with pytest.raises(RefusedError, match="weight of Conv 'conv' is computed at run time"):
        s.load()


def qlinear(*, bias: bool = True, **attributes: Any) -> Sketch:
    s = Sketch()
    rng = np.random.default_rng(2)
    x = s.q(s.input("x", (1, 2, 5, 5)), 0.1, 3, np.uint8, out="xq")
    w = s.const(rng.integers(-50, 51, (4, 2, 3, 3)), np.int8, "w")
    names = [x, s.const(0.1), s.const(3, np.uint8), w, s.const([0.02, 0.03, 0.01, 0.05]), s.const([0] * 4, np.int8)]
    names += [s.const(0.3), s.const(100, np.uint8)]
    names += [s.const([5, -5, 900, 0], np.int32, "b")] if bias else []
    s.output(s.node("QLinearConv", names, "y", name="qconv", **attributes), [None] * 4, 2)
    return s


@pytest.mark.parametrize("bias", [True, False])
def test_qlinearconv_is_a_conv_with_the_kernels_formula(bias: bool) -> None:
    imported = assert_exact(qlinear(bias=bias, pads=[1, 1, 1, 1]), target=False)
    op = op_of(imported.manifest, "Conv")
    assert (op.origin, op.inputs) == ("qoperator", ("xq", "w", "b" if bias else ""))
    assert op.requant is not None
    assert (op.requant.reference, op.requant.target, op.requant.zero_point_inside) == (
        "scale_f32",
        "multiplier_shift",
        False,
    )
    if bias:
        quant = imported.manifest.tensor("b").quant
        assert quant is not None
        assert quant.scales == tuple(float(np.float32(0.1) * np.float32(s)) for s in (0.02, 0.03, 0.01, 0.05))


def test_the_target_multiplier_of_qlinearconv_is_the_kernels_float32_one() -> None:
    op = op_of(qlinear().load().manifest, "Conv")
    assert op.requant is not None
    f32 = np.float32
    expected = [float(f32(f32(0.1) * f32(s)) / f32(0.3)) for s in (0.02, 0.03, 0.01, 0.05)]
    got = [m / 2.0**s for m, s in zip(op.requant.multipliers, op.requant.shifts, strict=True)]
    assert got == expected


def test_channels_last_is_refused() -> None:
    s = qlinear()
    s.nodes[-1].domain = "com.microsoft"
    s.nodes[-1].attribute.extend([helper.make_attribute("channels_last", 1)])
    with pytest.raises(RefusedError, match="channels_last is not supported"):
        s.load()


def fused(activation: str, *, quantize: bool = True, **attributes: Any) -> Sketch:
    s = Sketch()
    x = s.qdq(s.input("x", (1, 2, 4, 4)), 0.25)
    w = s.weight(np.arange(8).reshape(4, 2, 1, 1) - 4, 0.5)
    c = s.node(
        "FusedConv",
        [x, w],
        "y" if not quantize else "c",
        name="fc",
        domain="com.microsoft",
        activation=activation,
        **attributes,
    )
    s.output(s.qdq(c, 0.25, out="y") if quantize else c, (1, 4, 4, 4))
    return s


def test_fusedconv_brings_its_activation() -> None:
    op = op_of(fused("Relu").load().manifest, "Conv")
    assert op.activation is not None
    assert (op.activation.type, op.activation.minimum) == ("Relu", 0.0)
    assert op.requant is not None
    assert op.requant.qmin == 0
    clipped = op_of(fused("Clip", activation_params=[-1.0, 2.0]).load().manifest, "Conv")
    assert clipped.requant is not None
    assert (clipped.requant.qmin, clipped.requant.qmax) == (-4, 8)


def test_fusedconv_without_a_rounding_clamps_in_an_op_of_its_own() -> None:
    manifest = fused("Relu", quantize=False).load().manifest
    conv_op, clip = op_of(manifest, "Conv"), op_of(manifest, "Clip")
    assert clip.inputs == conv_op.outputs
    assert clip.attributes == {"minimum": 0.0, "maximum": float(np.finfo(np.float32).max)}


def test_other_activations_are_refused() -> None:
    with pytest.raises(RefusedError, match="activation 'Tanh' is not supported"):
        fused("Tanh").load()


@pytest.mark.parametrize(("weight", "bound", "bits"), [(127, 512 * 127 * 32768, 32), (-128, 2**31, 64)])
def test_int16_activations_may_need_64_bits(weight: int, bound: int, bits: int) -> None:
    s = Sketch(21)
    x = s.qdq(s.input("x", (1, 512, 1, 1)), 2.0**-10, 0, np.int16)
    c = s.node("Conv", [x, s.weight(np.full((1, 512, 1, 1), weight), 0.5)])
    s.output(s.qdq(c, 2.0, 0, np.int16, out="y"), (1, 1, 1, 1))
    accumulator = op_of(s.load().manifest, "Conv").accumulator
    assert accumulator is not None
    assert (accumulator.bound, accumulator.bits) == (bound, bits)


def test_weights_with_zero_points_of_their_own() -> None:
    for zeros in itertools.product((0, 130), repeat=2):
        s = Sketch()
        x = s.qdq(s.input("x", (1, 1, 2, 2)), 0.25)
        w = s.const([[[[200]]], [[[20]]]], np.uint8)
        w = s.node("DequantizeLinear", [w, s.const([0.5, 0.25]), s.const(zeros, np.uint8)], axis=0)
        s.output(s.qdq(s.node("Conv", [x, w]), 4.0, out="y"), (1, 2, 2, 2))
        accumulator = op_of(assert_exact(s).manifest, "Conv").accumulator
        assert accumulator is not None
        assert accumulator.bound == 128 * max(abs(200 - zeros[0]), abs(20 - zeros[1]))
