"""Models and data on which a broken oracle or importer has to show.

Each model is small and has the thing that a mutant breaks: ties, odd zero points, uneven pads, scales per channel.
`write` puts `model.onnx` and `real.npz` into a folder; the bytes are the same every time.
"""

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import onnx

from manifest.io import write_npz
from oracle.reference import run_onnxruntime
from tests.qdq_models import Sketch

Array = npt.NDArray[Any]
Made = tuple[Sketch, dict[str, tuple[int, ...]]]
"""A graph and the shape of each input."""

DEVIATING: Final = frozenset({"gemm_sixth", "gemm_float_ties", "qop_add_fma", "qop_wrap"})
"""Models whose target differs from the file by what a person would accept: `waivers.toml` says so."""
WAIVER: Final = """[[waiver]]
code = "BL011"
reason = "float multiplier of the file, at most one code"
owner = "mutants"
until = 2099-12-31
"""
DECLARED: Final[Mapping[str, str]] = {
    # its wrapping accumulator is far from any float meaning
    "qop_wrap": "[thresholds]\nmax_accuracy_drop = 1.0\nmin_sqnr_db = -200.0\nmin_top1_agreement = 0.0\n",
}
"""More lines of `port.toml`."""
ROOT: Final = Path(__file__).resolve().parents[2]
FEEDS: Final = 24
MICROSOFT: Final = "com.microsoft"
UINT8: Final = onnx.TensorProto.UINT8


def _codes(shape: tuple[int, ...], seed: int, *, spread: int = 40, low: int = -127) -> Array:
    """Bell-shaped int8 codes."""
    drawn = np.random.default_rng(seed).normal(0, spread, shape)
    return np.clip(np.rint(drawn), low, 127).astype(np.int8)


def powers(*exponents: int) -> Array:
    """Scales 2**k, one per channel."""
    return np.ldexp(np.float32(1), exponents).astype(np.float32)


def conv_shift() -> Made:
    """Conv, all scales 2**k: odd zero points, scales per channel, int8 bias of a coarser scale, uneven pads, groups."""
    s, shape = Sketch(), (1, 4, 9, 10)
    x = s.qdq(s.input("x", shape), 2**-5, 119, np.uint8, out="x_real")
    weight = s.weight(_codes((6, 2, 3, 3), 1), powers(-7, -6, -8, -7, -6, -7), name="w", axis=0)
    bias = s.dq(s.const(_codes((6,), 2, spread=60), np.int8, "b"), 2**-5, out="b_real")
    attributes: dict[str, Any] = {"pads": [0, 1, 2, 3], "strides": [2, 1], "dilations": [1, 2], "group": 2}
    y = s.node("Conv", [x, weight, bias], "conv_real", name="conv", **attributes)
    s.qdq(y, 2**-3, 131, np.uint8, out="y")
    s.output("y")
    return s, {"x": shape}


def gemm_shift() -> Made:
    """Two square Gemm with transB, the first with Relu into symmetric int8, all scales 2**k."""
    s, shape = Sketch(), (1, 16)
    x = s.qdq(s.input("x", shape), 2**-5, out="x_real")
    first = s.weight(_codes((16, 16), 3), 2**-7, name="w1")
    h = s.node("Gemm", [x, first], "fc1_real", name="fc1", transB=1)
    h = s.qdq(s.node("Relu", [h], name="relu"), 2**-4, out="h")
    second = s.weight(_codes((16, 16), 4), 2**-7, name="w2")
    y = s.node("Gemm", [h, second], "fc2_real", name="fc2", transB=1)
    s.qdq(y, 2**-3, out="y")
    s.output("y")
    return s, {"x": shape}


def gemm_sixth() -> Made:
    """Gemm whose accumulator counts sixths of an output code: no power of two, and every odd multiple of 3 a tie."""
    s, shape = Sketch(), (1, 16)
    x = s.qdq(s.input("x", shape), 0.5, out="x_real")
    y = s.node("Gemm", [x, s.weight(_codes((16, 12), 5, spread=9), 0.25, name="w")], "fc_real", name="fc")
    s.qdq(y, 0.75, out="y")
    s.output("y")
    return s, {"x": shape}


def gemm_float_ties() -> Made:
    """Gemm whose accumulator counts 7/800 of an output code: float64 takes many of its ties for less than a tie."""
    s, shape = Sketch(), (1, 16)
    x = s.qdq(s.input("x", shape), 7 / 128, out="x_real")
    y = s.node("Gemm", [x, s.weight(_codes((16, 12), 20, spread=60), 1 / 128, name="w")], "fc_real", name="fc")
    s.qdq(y, 25 / 512, out="y")
    s.output("y")
    return s, {"x": shape}


def gemm_wide() -> Made:
    """Gemm of int16 activations: sums beyond 2**24, where float32 is no longer exact."""
    s, shape = Sketch(opset=21), (1, 768)
    x = s.qdq(s.input("x", shape), 2**-13, 0, np.int16, out="x_real")
    y = s.node("Gemm", [x, s.weight(_codes((768, 64), 21), 2**-7, name="w")], "fc_real", name="fc")
    s.qdq(y, 2**-9, 0, np.int16, out="y")
    s.output("y")
    return s, {"x": shape}


def odd_scales() -> Made:
    """MatMul at scales without structure: true division of the input and a 31-bit multiplier."""
    s, shape = Sketch(), (1, 24)
    x = s.qdq(s.input("x", shape), 0.0613, 3, out="x_real")
    y = s.node("MatMul", [x, s.weight(_codes((24, 16), 6), 0.0117, name="w")], "mm_real", name="mm")
    s.qdq(y, 0.37, -5, out="y")
    s.output("y")
    return s, {"x": shape}


def odd_mean() -> Made:
    """A global average over 7 x 7 at scales without structure: a multiplier proved by enumeration."""
    s, shape = Sketch(), (1, 4, 7, 7)
    x = s.qdq(s.input("x", shape), 0.0613, 3, out="x_real")
    s.qdq(s.node("GlobalAveragePool", [x], "gap_real", name="gap"), 0.0117, -5, out="y")
    s.output("y")
    return s, {"x": shape}


def nearly_shift() -> Made:
    """A weight scale one float32 step beside 2**-7."""
    s, shape = Sketch(), (1, 16)
    x = s.qdq(s.input("x", shape), 2**-5, out="x_real")
    scale = np.nextafter(np.float32(2**-7), np.float32(1))
    s.qdq(s.node("Gemm", [x, s.weight(_codes((16, 8), 19), scale, name="w")], name="fc"), 2**-3, out="y")
    s.output("y")
    return s, {"x": shape}


def pools() -> Made:
    """MaxPool and AveragePool with uneven pads and a global average over 35 elements, scales 2**k, no positive code."""
    s, shape = Sketch(), (1, 3, 9, 10)
    x = s.qdq(s.input("x", shape), 2**-4, -70, out="x_real")
    window: dict[str, Any] = {"kernel_shape": [3, 3], "strides": [2, 2]}
    m = s.qdq(s.node("MaxPool", [x], "max_real", name="max", pads=[1, 0, 1, 1], **window), 2**-4, -70, out="m")
    a = s.node(
        "AveragePool", [m], "mean_real", name="mean", kernel_shape=[2, 2], pads=[1, 1, 1, 0], count_include_pad=0
    )
    a = s.qdq(a, 2**-4, -70, out="a")
    g = s.node("GlobalAveragePool", [a], "gap_real", name="gap")
    s.qdq(g, 2**-5, 33, out="y")
    s.output("y")
    return s, {"x": shape}


def layouts() -> Made:
    """Transpose of a cube by a cycle, Concat of two different branches, Reshape; scales 2**k."""
    s, shape = Sketch(), (1, 5, 5, 5)
    x = s.qdq(s.input("x", shape), 2**-5, out="x_real")
    t = s.qdq(s.node("Transpose", [x], "t_real", name="turn", perm=[0, 2, 3, 1]), 2**-5, out="t")
    r = s.qdq(s.node("Relu", [x], "r_real", name="relu"), 2**-5, out="r")
    c = s.qdq(s.node("Concat", [t, r], "c_real", name="join", axis=1), 2**-5, out="c")
    f = s.node("Reshape", [c, s.const([1, 250], np.int64)], "f_real", name="flat")
    y = s.node("Gemm", [f, s.weight(_codes((250, 8), 8, spread=20), 2**-8, name="w")], "fc_real", name="fc")
    s.qdq(y, 2**-3, out="y")
    s.output("y")
    return s, {"x": shape}


def residual() -> Made:
    """Two dense layers and a skip around them: two tensors live at the cut between the layers."""
    s, shape = Sketch(), (1, 16)
    x = s.qdq(s.input("x", shape), 2**-5, out="x_real")
    a = s.qdq(s.node("Gemm", [x, s.weight(_codes((16, 16), 9), 2**-7, name="w1")], name="fc1"), 2**-4, out="a")
    b = s.qdq(s.node("Gemm", [a, s.weight(_codes((16, 16), 10), 2**-7, name="w2")], name="fc2"), 2**-3, out="b")
    s.qdq(s.node("Add", [a, b], "sum_real", name="add"), 2**-3, out="y")
    s.output("y")
    return s, {"x": shape}


def products() -> Made:
    """Two activations multiplied, in a batch of two."""
    s, a, b = Sketch(), (2, 5, 16), (2, 16, 7)
    x = s.qdq(s.input("x", a), 2**-5, 5, out="x_real")
    z = s.qdq(s.input("z", b), 2**-5, -9, out="z_real")
    s.qdq(s.node("MatMul", [x, z], "p_real", name="mm"), 2**-3, 11, out="y")
    s.output("y")
    return s, {"x": a, "z": b}


def shared_weight() -> Made:
    """One initializer under two scales."""
    s, shape = Sketch(), (1, 16)
    x = s.qdq(s.input("x", shape), 2**-5, out="x_real")
    w = s.const(_codes((16, 16), 11), np.int8, "w")
    a = s.qdq(s.node("Gemm", [x, s.dq(w, 2**-7, out="w_fine")], name="fc1"), 2**-4, out="a")
    s.qdq(s.node("Gemm", [a, s.dq(w, 2**-6, out="w_coarse")], name="fc2"), 2**-2, out="y")
    s.output("y")
    return s, {"x": shape}


def reinterpreted() -> Made:
    """Codes written at 2**-5 and read at 2**-4 (legal), then a Gemm."""
    s, shape = Sketch(), (1, 16)
    x = s.dq(s.q(s.input("x", shape), 2**-5, out="x_codes"), 2**-4, out="x_real")
    s.qdq(s.node("Gemm", [x, s.weight(_codes((16, 8), 12), 2**-7, name="w")], name="fc"), 2**-2, out="y")
    s.output("y")
    return s, {"x": shape}


def clipped() -> Made:
    """4-bit activations in int8, as Brevitas writes them: Q, integer Clip to -8..7, DQ."""
    s, shape = Sketch(), (1, 16)
    codes = s.q(s.input("x", shape), 2**-2, out="x_codes")
    codes = s.node("Clip", [codes, s.const(-8, np.int8), s.const(7, np.int8)], "x_small", name="narrow")
    x = s.dq(codes, 2**-2, out="x_real")
    s.qdq(s.node("Gemm", [x, s.weight(_codes((16, 8), 13), 2**-7, name="w")], name="fc"), 2**-4, out="y")
    s.output("y")
    return s, {"x": shape}


def folded() -> Made:
    """A weight stored (N, K) with scales per channel, turned by a Transpose that the importer folds."""
    s, shape = Sketch(), (1, 12)
    x = s.qdq(s.input("x", shape), 2**-5, out="x_real")
    w = s.weight(_codes((12, 12), 14), powers(*[-7, -6, -8] * 4), name="w", axis=0, out="w_real")
    turned = s.node("Transpose", [w], "w_turned", name="turn", perm=[1, 0])
    s.qdq(s.node("MatMul", [x, turned], name="mm"), 2**-3, out="y")
    s.output("y")
    return s, {"x": shape}


def scaled_mean() -> Made:
    """A 6x6 average as XINT8 writes it: mean times 36 * 57 / 2048, all scales 2**k."""
    s, shape = Sketch(), (1, 4, 6, 6)
    x = s.qdq(s.input("x", shape), 2**-5, out="x_real")
    mean = s.node("GlobalAveragePool", [x], name="gap")
    y = s.node("Mul", [mean, s.const(36 * 57 / 2048, name="k")], name="scale")
    s.qdq(y, 2**-6, out="y")
    s.output("y")
    return s, {"x": shape}


def _qop_input(s: Sketch, shape: tuple[int, ...], scale: float, zero: int) -> tuple[str, list[str]]:
    """A quantised graph input and its scale and zero point."""
    pair = [s.const(scale), s.const(zero, np.uint8)]
    return s.node("QuantizeLinear", [s.input("x", shape), *pair], "x_codes", name="q"), pair


def _qop_output(s: Sketch, codes: str, pair: list[str]) -> None:
    """Dequantised and flattened: the largest element is a class."""
    s.node("Flatten", [s.node("DequantizeLinear", [codes, *pair], "y_real", name="dq")], "y", name="flat")
    s.output("y")


def qop_conv() -> Made:
    """QLinearConv whose float32 multiplier is exactly 1/256 in onnxruntime's order of operations and not in another."""
    return _qop_conv(*order_scales())


def qop_shift() -> Made:
    """QLinearConv with scales 2**k and uint8 weights: its float32 multiplier is exact and meets ties."""
    return _qop_conv(2**-5, 2**-7, 2**-4, point=131, dtype=np.uint8)


def _qop_conv(sx: float, sw: float, sy: float, *, point: int = 0, dtype: Any = np.int8) -> Made:
    s, shape = Sketch(), (1, 3, 8, 7)
    x, xs = _qop_input(s, shape, sx, 120)
    codes = np.clip(_codes((5, 3, 3, 3), 15).astype(int) + point, np.iinfo(dtype).min, np.iinfo(dtype).max)
    w = [s.const(codes, dtype, "w"), s.const(sw), s.const(point, dtype)]
    ys = [s.const(sy), s.const(127, np.uint8)]
    y = s.node("QLinearConv", [x, *xs, *w, *ys], "y_codes", name="conv", pads=[1, 1, 0, 1])
    _qop_output(s, y, ys)
    return s, {"x": shape}


def order_scales() -> tuple[float, float, float]:
    """Float32 scales with (sx * sw) / sy == 1/256 and sx * (sw / sy) != 1/256."""
    rng = np.random.default_rng(16)
    f32 = np.float32
    while True:
        sx, sw = f32(rng.uniform(0.026, 0.04)), f32(rng.uniform(0.005, 0.02))
        sy = f32(sx * sw) * f32(256)
        if sx * (sw / sy) != f32(1 / 256):
            return float(sx), float(sw), float(sy)


def qop_add() -> Made:
    """QLinearAdd at half the input scales with odd zero points: every odd sum is a tie."""
    return _qop_add(0.25, 0.25, 0.5)


def qop_add_fma() -> Made:
    """QLinearAdd at scales where a fused multiply-add decides ties otherwise than two roundings."""
    return _qop_add(0.1, 0.3, 0.6)


def _qop_add(sa: float, sb: float, sy: float) -> Made:
    s, shape = Sketch(), (1, 48)
    x, xs = _qop_input(s, shape, sa, 101)
    other = s.node("QuantizeLinear", [s.input("z", shape), s.const(sb), s.const(77, np.uint8)], "z_codes", name="qz")
    ys = [s.const(sy), s.const(93, np.uint8)]
    pair = [s.const(sb), s.const(77, np.uint8)]
    y = s.node("QLinearAdd", [x, *xs, other, *pair, *ys], "y_codes", name="add", domain=MICROSOFT)
    _qop_output(s, y, ys)
    return s, {"x": shape, "z": shape}


def qop_wrap() -> Made:
    """QLinearConv with a bias near 2**31: the int32 accumulator of onnxruntime wraps."""
    s, shape = Sketch(), (1, 2, 6, 6)
    x, xs = _qop_input(s, shape, 2**-5, 128)
    w = [s.const(_codes((3, 2, 3, 3), 17), np.int8, "w"), s.const(2**-7), s.const(0, np.int8)]
    ys = [s.const(2.0**13), s.const(128, np.uint8)]
    bias = s.const([2**31 - 900, 40_000, -(2**31) + 700], np.int32, "b")
    y = s.node("QLinearConv", [x, *xs, *w, *ys, bias], "y_codes", name="conv", pads=[1, 1, 1, 1])
    _qop_output(s, y, ys)
    return s, {"x": shape}


def qop_mean() -> Made:
    """QLinearGlobalAveragePool over 7 x 7: a multiplier of exactly 1/16, in onnxruntime's order of operations only."""
    s, shape = Sketch(), (1, 4, 7, 7)
    sx, sy = mean_scales(49)
    x, xs = _qop_input(s, shape, sx, 120)
    ys = [s.const(sy), s.const(118, np.uint8)]
    y = s.node("QLinearGlobalAveragePool", [x, *xs, *ys], "y_codes", name="gap", domain=MICROSOFT, channels_last=0)
    _qop_output(s, y, ys)
    return s, {"x": shape}


def mean_scales(count: int) -> tuple[float, float]:
    """Float32 scales with sx / (sy * count) == 1/16 and (sx / sy) / count > 1/16: ties of even codes go up."""
    rng, f32 = np.random.default_rng(18), np.float32
    while True:
        sy = f32(rng.uniform(0.007, 0.012))
        sx = f32(sy * f32(count)) / f32(16)
        if f32(sx / sy) / f32(count) > f32(1 / 16):
            return float(sx), float(sy)


MADE: Final[Mapping[str, Callable[[], Made]]] = {
    made.__name__: made
    for made in (
        conv_shift, gemm_shift, gemm_sixth, gemm_float_ties, gemm_wide, odd_scales, odd_mean, nearly_shift, pools,
        layouts, residual, products, shared_weight, reinterpreted, clipped, folded, scaled_mean, qop_conv,
        qop_shift, qop_add, qop_add_fma, qop_wrap, qop_mean,
    )
}  # fmt: skip
DIGITS: Final = "digits_cnn"
"""The bundled float CNN and real images: phase 1 quantizes it."""


def data_for(shapes: Mapping[str, tuple[int, ...]], seed: int = 0) -> dict[str, Array]:
    """Feeds (F, *shape): bell-shaped, so that every activation uses much of its range and little is clipped."""
    rng = np.random.default_rng(seed)
    return {n: rng.normal(0, 1, (FEEDS, *shape)).clip(-3, 3).astype(np.float32) for n, shape in shapes.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """Paths of a model, its data and the port to be made."""

    model: Path
    data: Path
    port: Path


def write(name: str, folder: Path) -> Files:
    """Write model and data of a name into a folder, and what a person accepts about it into the port."""
    files = Files(model=folder / "model.onnx", data=folder / "real.npz", port=folder / "model.port")
    files.port.mkdir(parents=True)
    if name in DEVIATING:
        (files.port / "waivers.toml").write_text(WAIVER, encoding="utf-8")
    if name == DIGITS:
        shutil.copy(ROOT / "examples" / "digits" / "digits_cnn.onnx", files.model)
        shutil.copy(ROOT / "examples" / "digits" / "digits.npz", files.data)
        return files
    sketch, shapes = MADE[name]()
    feeds = data_for(shapes)
    proto = sketch.proto(ir_version=10 if sketch.opset >= 21 else 8)
    result = run_onnxruntime(proto.SerializeToString(), feeds, ["y"])["y"]
    proto.graph.output[0].CopyFrom(onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, result.shape[1:]))
    onnx.save(proto, files.model)
    labels = {"y_true": result.reshape(FEEDS, -1).argmax(axis=1)} if result.ndim == 3 and name not in DECLARED else {}
    write_npz(files.data, {**feeds, **labels})
    declared = ('labels = "y_true"\n' if labels else "") + DECLARED.get(name, "")
    if declared:
        (files.port / "port.toml").write_text(declared, encoding="utf-8")
    return files
