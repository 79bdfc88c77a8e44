"""Small graphs and feeds for the tests of the reference, and numpy with one function exchanged."""

from typing import Any

import numpy as np

from tests.qdq_models import Sketch

Array = np.ndarray[Any, Any]
FEEDS = 24


def cnn(unit: float = 2.0**-4, *, act: Any = np.uint8, zero: int = 3, out_zero: int = 5, scales: Any = None) -> Sketch:
    """x [1, 2, 6, 5] -> Conv (uneven pads, bias) -> Relu -> MaxPool -> AveragePool -> Flatten -> Gemm -> y [1, 3].

    Args:
        unit: scale of the input, 2**k or not; the other scales are 2**k times it.
        act: type of the activations.
        zero: zero point of the input.
        out_zero: zero point of every other activation.
        scales: weight scales of the Conv, one per output channel.
    """
    rng = np.random.default_rng(1)
    s = Sketch(opset=13)
    x = s.qdq(s.input("x", (1, 2, 6, 5)), unit, zero, act, out="a")
    w_scale = np.asarray(scales if scales is not None else [unit / 4, unit / 8, unit / 2, unit / 4], np.float32)
    w = s.weight(rng.integers(-9, 10, (4, 2, 3, 3)), w_scale, name="w", axis=0)
    product = (np.float32(unit) * w_scale).astype(np.float32)
    bias = s.dq(s.const(rng.integers(-90, 90, 4), np.int32), product, np.zeros(4), np.int32, axis=0)
    c = s.node("Conv", [x, w, bias], "c", name="conv", kernel_shape=[3, 3], pads=[1, 0, 2, 1], strides=[1, 1])
    r = s.qdq(s.node("Relu", [c], "r", name="relu"), unit / 2, out_zero, act, out="d")
    pooled = s.node("MaxPool", [r], "m", name="max", kernel_shape=[2, 2], pads=[1, 1, 0, 0])
    m = s.qdq(pooled, unit / 2, out_zero, act, out="e")
    p = s.node("AveragePool", [m], "p", name="average", kernel_shape=[2, 2], pads=[0, 1, 0, 0], count_include_pad=1)
    v = s.qdq(p, unit / 4, out_zero, act, out="f")
    flat = s.node("Flatten", [v], "flat", name="flatten", axis=1)
    weights = rng.integers(-9, 10, (3, 4 * 6 * 4))
    g = s.node("Gemm", [flat, s.weight(weights, unit / 4, name="gw")], "g", name="gemm", transB=1)
    s.qdq(g, unit, out_zero, act, out="y")
    s.output("y", (1, 3))
    return s


def sixteen(unit: float = 0.000613, depth: int = 2) -> Sketch:
    """x [1, depth, 6, 5] -> Conv -> y, int16 activations."""
    rng = np.random.default_rng(1)
    s = Sketch(opset=21)
    x = s.qdq(s.input("x", (1, depth, 6, 5)), unit, 0, np.int16, out="a")
    w = s.weight(rng.integers(-128, 128, (4, depth, 3, 3)), np.float32(unit), name="w")
    c = s.node("Conv", [x, w], "c", name="conv", kernel_shape=[3, 3])
    s.qdq(c, unit * 4, 0, np.int16, out="y")
    s.output("y", (1, 4, 4, 3))
    return s


def feeds(shape: tuple[int, ...] = (1, 2, 6, 5), scale: float = 2.0) -> dict[str, Array]:
    """Random feeds for the input x."""
    return {"x": np.random.default_rng(2).normal(0, scale, (FEEDS, *shape)).astype(np.float32)}


class Numpy:
    """numpy with some functions exchanged."""

    def __init__(self, **exchanged: Any) -> None:
        self.__dict__.update(exchanged)

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)
