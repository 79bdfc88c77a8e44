"""Exact values of single elements: by hand, and against the oracle's own on whole graphs."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from manifest.model import Manifest
from manifest.onnx_import import Imported
from oracle.reference.exact import Evaluator, NotExactError
from oracle.run import Oracle
from tests.qdq_models import Sketch
from tests.reference_models import Array, cnn

FEEDS = 3


def evaluator(imported: Imported, inputs: dict[str, Array]) -> Evaluator:
    m = imported.manifest
    return Evaluator(ops=m.ops, tensors=m.by_name(), arrays=imported.arrays, inputs=inputs)


def everything(imported: Imported, inputs: dict[str, Array]) -> dict[str, Array]:
    """All tensors that can be given: inputs and what the oracle computes, without exact ones."""
    made = Oracle(imported.manifest, imported.arrays).run(inputs, keep="all")
    exact = {t.name for t in imported.manifest.tensors if t.dtype == "exact"}
    return {**inputs, **{name: array for name, array in made.items() if name not in exact}}


def check(imported: Imported, inputs: dict[str, Array]) -> set[str]:
    """Every op's output at every tenth element against `Oracle.exact`; returns the op types seen."""
    manifest: Manifest = imported.manifest
    oracle = Oracle(manifest, imported.arrays)
    values = everything(imported, inputs)
    seen = set()
    for op in manifest.ops:
        tensor = manifest.tensor(op.outputs[0])
        if tensor.dtype in ("exact", "float32"):
            continue
        chain = chain_of(manifest, op.name)
        given = {n: a for n, a in values.items() if n != tensor.name}
        indices = np.argwhere(np.ones((FEEDS, *tensor.shape)))[::7]
        expected = oracle.exact(chain, given, tensor.name, indices)
        mine = evaluator(imported, given)
        got = [mine.in_codes(tensor.name, tuple(int(i) for i in index)).value for index in indices]
        assert got == expected, op.name
        seen |= {o.type for o in manifest.ops if o.name in chain}
    return seen


def chain_of(manifest: Manifest, name: str) -> list[str]:
    """The op and those that hand it exact tensors."""
    makers = {output: op for op in manifest.ops for output in op.outputs}
    todo, chain = [name], []
    ops = {op.name: op for op in manifest.ops}
    while todo:
        op = ops[todo.pop()]
        chain.append(op.name)
        todo += [makers[n].name for n in op.inputs if n in makers and manifest.tensor(n).dtype == "exact"]
    return chain


def normal(*shape: int, scale: float = 2.0) -> Array:
    return np.random.default_rng(4).normal(0, scale, (FEEDS, *shape)).astype(np.float32)


@pytest.mark.parametrize("unit", [2.0**-4, 0.0613])
@pytest.mark.parametrize("act", [np.uint8, np.int8])
def test_convolution_net_equals_the_oracle(unit: float, act: Any) -> None:
    seen = check(cnn(unit, act=act).load(), {"x": normal(1, 2, 6, 5)})
    assert seen >= {"Conv", "MaxPool", "AveragePool", "Flatten", "Gemm"}


def grouped(s: Sketch) -> None:
    """Grouped, dilated, strided Conv with a bias of its own scale and a zero point in the weights."""
    rng = np.random.default_rng(0)
    x = s.qdq(s.input("x", (2, 4, 7, 8)), 0.11, 7, np.uint8, out="a")
    w = s.weight(rng.integers(0, 255, (6, 2, 2, 3)), 0.03, 129, np.uint8)
    b = s.dq(s.const(rng.integers(-99, 99, 6), np.int32), 0.002, 0, np.int32)
    attributes: dict[str, Any] = {
        "group": 2,
        "dilations": [2, 1],
        "strides": [1, 2],
        "pads": [0, 1, 2, 0],
        "kernel_shape": [2, 3],
    }
    s.qdq(s.node("Conv", [x, w, b], "c", **attributes), 0.2, 3, np.uint8, out="y")
    s.output("y", (2, 6, 7, 4))


def gemms(s: Sketch) -> None:
    """transA with alpha and beta, then a MatMul on three axes per column, then Reshape and Transpose."""
    rng = np.random.default_rng(0)
    x = s.qdq(s.input("x", (4, 3)), 0.11, 7, np.uint8, out="a")
    w = s.weight(rng.integers(-99, 99, (4, 6)), 0.03)
    b = s.const(rng.normal(size=(1, 6)))
    g = s.qdq(s.node("Gemm", [x, w, b], "g", transA=1, alpha=0.5, beta=2.0), 0.2, 1, np.int8, out="h")
    r = s.node("Reshape", [g, s.const([3, 2, 3], np.int64)], "r")
    t = s.node("Transpose", [r], "t", perm=[1, 0, 2])
    v = s.weight(rng.integers(-99, 99, (3, 5)), np.array([0.01, 0.02, 0.03, 0.04, 0.05], np.float32), axis=1)
    s.qdq(s.node("MatMul", [t, v], "m"), 0.3, 0, np.int8, out="y")
    s.output("y", (2, 3, 5))


def elementwise(s: Sketch) -> None:
    """Add with broadcasting, Mul by a constant, Clip, Concat of two quantizations, an average with a factor."""
    x = s.qdq(s.input("x", (1, 3, 4, 4)), 0.11, 7, np.uint8, out="a")
    const = s.weight([[[5]], [[-7]], [[9]]], 0.13)
    added = s.qdq(s.node("Add", [x, const], "s"), 0.17, 2, np.int8, out="b")
    scaled = s.qdq(s.node("Mul", [added, s.const(0.75)], "k"), 0.1, 1, np.int8, out="d")
    cut = s.node("Clip", [scaled, s.const(-1.0), s.const(3.0)], "l")
    e = s.qdq(cut, 0.05, 3, np.int8, out="e")
    joined = s.qdq(s.node("Concat", [e, added], "j", axis=1), 0.21, 1, np.int8, out="f")
    mean = s.node("Mul", [s.node("GlobalAveragePool", [joined], "p"), s.const(1.0048828)], "q")
    s.qdq(mean, 0.1, 1, np.int8, out="y")
    s.output("y", (1, 6, 1, 1))


def unrounded(s: Sketch) -> None:
    """Two Convs added before they are rounded."""
    rng = np.random.default_rng(0)
    x = s.qdq(s.input("x", (1, 2, 5, 5)), 0.11, 7, np.uint8, out="a")
    convs = [
        s.node("Conv", [x, s.weight(rng.integers(-99, 99, (3, 2, 3, 3)), 0.01 * (i + 1))], f"c{i}", pads=[1, 1, 1, 1])
        for i in range(2)
    ]
    total = s.node("Relu", [s.node("Add", convs, "s")], "r")
    s.qdq(total, 0.2, 3, np.uint8, out="y")
    s.output("y", (1, 3, 5, 5))


@pytest.mark.parametrize(
    ("make", "shape", "types"),
    [
        (grouped, (2, 4, 7, 8), {"Conv"}),
        (gemms, (4, 3), {"Gemm", "MatMul", "Transpose", "Reshape"}),
        (elementwise, (1, 3, 4, 4), {"Add", "Mul", "Clip", "Concat", "GlobalAveragePool"}),
        (unrounded, (1, 2, 5, 5), {"Conv", "Add"}),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_ops_equal_the_oracle(make: Callable[[Sketch], None], shape: tuple[int, ...], types: set[str]) -> None:
    s = Sketch()
    make(s)
    seen = check(s.load(), {"x": normal(*shape)})
    assert seen >= types - {"Clip"}


def test_a_product_by_hand_with_its_absolute_terms() -> None:
    s = Sketch()
    x = s.qdq(s.input("x", (1, 2)), 0.5, 1, np.int8, out="a")
    g = s.node("Gemm", [x, s.weight([[3], [-4]], 0.25)], "g")
    s.qdq(g, 2.0, 0, np.int8, out="y")
    s.output("y", (1, 1))
    imported = s.load()
    found = evaluator(imported, {"a.q": np.array([[[11, 6]]], np.int8)}).in_codes("y.q", (0, 0, 0))
    assert found.value == Fraction(10 * 3 - 5 * 4, 16)
    assert found.size == Fraction(10 * 3 + 5 * 4, 16)
    assert found.count == 2


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_no_number_has_no_exact_value(value: float) -> None:
    s = Sketch()
    s.qdq(s.input("x", (1, 1)), 0.5, out="y")
    s.output("y", (1, 1))
    with pytest.raises(NotExactError):
        evaluator(s.load(), {"x": np.full((1, 1, 1), value, np.float32)}).in_codes("y.q", (0, 0, 0))
