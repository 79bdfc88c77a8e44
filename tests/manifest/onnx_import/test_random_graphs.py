"""Random chains of ops with power-of-two scales: importer and oracle against onnxruntime without optimisation."""

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from manifest.errors import RefusedError
from tests.qdq_models import Sketch, assert_exact

Shape = tuple[int, ...]
Step = Callable[[Sketch, str, Shape, np.random.Generator], tuple[str, Shape]]


def _scale(rng: np.random.Generator, low: int, high: int) -> float:
    return float(2.0 ** rng.integers(low, high + 1))


def _quantize(s: Sketch, x: str, shape: Shape, rng: np.random.Generator) -> tuple[str, Shape]:
    dtype, zero = [(np.int8, 0), (np.int8, -128), (np.int8, 5), (np.uint8, 128), (np.uint8, 9)][rng.integers(5)]
    return s.qdq(x, _scale(rng, -4, 0), zero, dtype), shape


def _layer(s: Sketch, x: str, shape: Shape, rng: np.random.Generator) -> tuple[str, Shape]:
    x, _ = _quantize(s, x, shape, rng)
    count = int(rng.integers(2, 5))
    scale = [_scale(rng, -6, -3) for _ in range(count)] if rng.integers(2) else _scale(rng, -6, -3)
    axis: dict[str, Any] = {"axis": 0 if len(shape) == 4 else 1} if isinstance(scale, list) else {}
    bias = [s.weight(rng.integers(-100, 101, count), _scale(rng, -9, -3))] if rng.integers(2) else []
    if len(shape) == 4:
        w = s.weight(rng.integers(-60, 61, (count, shape[1], 1, 2)), scale, **axis)
        return s.node("Conv", [x, w, *bias], pads=[0, 1, 0, 0]), (shape[0], count, *shape[2:])
    w = s.weight(rng.integers(-60, 61, (shape[-1], count)), scale, **axis)
    product = s.node("MatMul", [x, w])
    return (s.node("Add", [product, *bias]) if bias else product), (*shape[:-1], count)


def _relu(s: Sketch, x: str, shape: Shape, rng: np.random.Generator) -> tuple[str, Shape]:
    del rng
    return s.node("Relu", [x]), shape


def _clip(s: Sketch, x: str, shape: Shape, rng: np.random.Generator) -> tuple[str, Shape]:
    low, high = [(-1.0, 6.0), (0.0, 2.5), (-0.390625, 1.0)][rng.integers(3)]
    return s.node("Clip", [x, s.const(low), s.const(high)]), shape


def _add(s: Sketch, x: str, shape: Shape, rng: np.random.Generator) -> tuple[str, Shape]:
    return s.node("Add", [x, s.weight(rng.integers(-100, 101, shape[-1:]), _scale(rng, -6, -2))]), shape


def _double(s: Sketch, x: str, shape: Shape, rng: np.random.Generator) -> tuple[str, Shape]:
    del rng
    return s.node("Add", [x, x]), shape


def _mul(s: Sketch, x: str, shape: Shape, rng: np.random.Generator) -> tuple[str, Shape]:
    return s.node("Mul", [x, s.const([0.5, 1.25, 3.0][rng.integers(3)])]), shape


def _pool(s: Sketch, x: str, shape: Shape, rng: np.random.Generator) -> tuple[str, Shape]:
    if len(shape) != 4 or min(shape[2:]) < 2:
        return x, shape
    kind = ["MaxPool", "AveragePool"][rng.integers(2)]
    return s.node(kind, [x], kernel_shape=[2, 2]), (*shape[:2], shape[2] - 1, shape[3] - 1)


def _transpose(s: Sketch, x: str, shape: Shape, rng: np.random.Generator) -> tuple[str, Shape]:
    perm = [int(p) for p in rng.permutation(len(shape))]
    return s.node("Transpose", [x], perm=perm), tuple(shape[p] for p in perm)


def _flatten(s: Sketch, x: str, shape: Shape, rng: np.random.Generator) -> tuple[str, Shape]:
    del rng
    return s.node("Flatten", [x]), (shape[0], int(np.prod(shape[1:])))


STEPS: list[Step] = [_quantize, _layer, _layer, _relu, _clip, _add, _double, _mul, _pool, _transpose, _flatten]


@given(
    steps=st.lists(st.sampled_from(range(len(STEPS))), min_size=1, max_size=6),
    shape=st.sampled_from([(1, 3, 4, 5), (2, 2, 3, 3), (2, 5)]),
    seed=st.integers(0, 2**16),
    quantized=st.booleans(),
)
def test_whatever_is_imported_equals_onnxruntime(
    steps: list[int], shape: tuple[int, ...], seed: int, quantized: bool
) -> None:
    """Both arithmetics, on every quantised tensor and output; what is not imported is refused in words."""
    rng = np.random.default_rng(seed)
    s = Sketch(17)
    x = s.qdq(s.input("x", shape), _scale(rng, -4, -2), 3)
    size: Shape = shape
    for step in steps:
        x, size = STEPS[step](s, x, size, rng)
    if quantized:
        x, size = _quantize(s, x, size, rng)
    s.output(s.node("Identity", [x], "y"), size)
    try:
        assert_exact(s, count=2)
    except RefusedError as error:
        assert {p.code for p in error.problems} <= {"ONNX-UNITS", "ONNX-NOT-QUANTIZED"}, str(error)  # noqa: PT017
