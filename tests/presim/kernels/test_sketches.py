"""Small graphs for what real models seldom have, against the oracle."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from manifest.model import Op
from manifest.onnx_import import Imported
from oracle.run import Oracle
from presim.kernels import KERNELS
from presim.kernels.attributes import Part, attributes_of, form_of, kernel_of
from tests.presim.kernels.driver import Bench, Tile
from tests.qdq_models import Sketch, feeds_for, op_of

RNG = np.random.default_rng(11)


@pytest.fixture(autouse=True)
def _same_draws() -> None:
    """Every test draws the same numbers, whatever ran before it in this process."""
    RNG.bit_generator.state = np.random.default_rng(11).bit_generator.state


def codes(*shape: int, low: int = -127, high: int = 128) -> Any:
    return RNG.integers(low, high, shape)


def run(imported: Imported, parts: Callable[[Op], list[Part]] = lambda op: [Part()]) -> set[str]:
    """Check every op on the array; returns the kernels that ran."""
    manifest = imported.manifest
    feeds = feeds_for(imported, 3)
    tensors = Oracle(manifest, imported.arrays).run(feeds, arithmetic="target", keep="stored")
    bench = Bench(manifest=manifest, arrays=imported.arrays)
    kinds = set()
    for op in manifest.ops:
        if op.where == "host" or manifest.tensor(op.outputs[0]).dtype == "float32":
            continue
        wanted = tensors[op.outputs[0]]
        assert len(np.unique(wanted)) > 2, "the case says nothing"
        for feed in range(3):
            inputs = {n: tensors[n][feed] for n in op.inputs if n in tensors}
            for part in parts(op):
                got = bench.run(op, inputs, part)
                axis = 1 if got.ndim == 4 else got.ndim - 1
                channels = slice(part.out_first, part.out_first + got.shape[axis])
                cut = wanted[feed][(slice(None),) * axis + (channels,)]
                np.testing.assert_array_equal(got, cut, err_msg=f"{op.type} {part}")
                kinds.add(part.kernel or kernel_of(op, manifest))
    return kinds


def halves(op: Op) -> list[Part]:
    return [Part(), Part(out_count=8), Part(out_first=8)] if op.type in ("Conv", "AveragePool", "MaxPool") else [Part()]


@pytest.mark.parametrize(
    ("group", "inputs"), [(1, 3), (12, 1), (3, 4), (2, 6)], ids=["plain", "depthwise", "grouped", "two groups"]
)
@pytest.mark.parametrize("window", [{}, {"dilations": [2, 3], "pads": [3, 0, 1, 5], "strides": [2, 1]}])
def test_convolutions(group: int, inputs: int, window: dict[str, Any]) -> None:
    s = Sketch()
    x = s.qdq(s.input("x", (2, group * inputs, 7, 9)), 2**-4, 3, out="xd")
    scales = np.float32(2.0) ** RNG.integers(-9, -5, 12)
    w = s.weight(codes(12, inputs, 3, 2), scales, axis=0)
    bias = s.weight(codes(12) * 50, scales * np.float32(2**-4), dtype=np.int32, axis=0)
    s.qdq(s.node("Conv", [x, w, bias], group=group, **window), 2**-3, -9, out="y")
    s.output("y")
    assert run(s.load(), halves) == {"conv"}


@pytest.mark.parametrize("exact", [False, True])
def test_a_bias_finer_than_the_products_promotes_the_accumulator(exact: bool) -> None:
    """Different shifts per channel; an unrounded result is promoted by the largest."""
    s = Sketch()
    x = s.qdq(s.input("x", (1, 3, 4, 4)), 2**-3, out="xd")
    w = s.weight(codes(4, 3, 1, 1), [2**-5] * 4, axis=0)
    bias = s.weight(codes(4), np.array([2**-10, 2**-8, 2**-11, 2**-6], np.float32), axis=0)
    y = s.node("Conv", [x, w, bias])
    if exact:
        y = s.node("Relu", [y])
        s.output(s.qdq(y, 2**-1, 5, out="y"))
        s.output(s.node("Transpose", [y], "z", perm=[0, 2, 3, 1]))
    else:
        s.output(s.qdq(y, 2**-1, 5, out="y"))
    imported = s.load()
    assert op_of(imported.manifest, "Conv").bias.shifts == (-2, 0, -3, 2)  # type: ignore[union-attr]
    kinds = run(imported)
    assert "conv" in kinds
    if exact:
        form = form_of(imported.manifest, op_of(imported.manifest, "Conv").outputs[0])
        assert form.promotion == (2, 0, 3, 0)
        assert form.units == tuple(Fraction(1, 1 << k) for k in (10, 8, 11, 8))


@pytest.mark.parametrize("include", [0, 1])
@pytest.mark.parametrize("scale", [2**-4, 0.07])
def test_averages_of_windows_of_different_sizes(include: int, scale: float) -> None:
    s = Sketch()
    x = s.qdq(s.input("x", (1, 9, 6, 7)), scale, 9, out="xd")
    pads: dict[str, Any] = {"kernel_shape": [3, 2], "pads": [1, 0, 1, 1], "strides": [2, 2], "ceil_mode": 1}
    s.qdq(s.node("AveragePool", [x], count_include_pad=include, **pads), 2**-5, -7, out="y")
    s.output("y")
    assert run(s.load(), halves) == {"average_pool"}


def test_pools_and_sums_of_accumulators() -> None:
    """Conv -> Relu, MaxPool, GlobalAveragePool and Add without rounding between them."""
    s = Sketch()
    x = s.qdq(s.input("x", (1, 3, 6, 6)), 2**-4, 1, out="xd")
    one = s.node("Conv", [x, s.weight(codes(5, 3, 1, 1), 2**-6)])
    two = s.node("Conv", [x, s.weight(codes(5, 3, 1, 1), 2**-4)])
    total = s.node("Add", [s.node("Relu", [one]), two])
    pooled = s.node("MaxPool", [total], kernel_shape=[2, 2], strides=[2, 2])
    clipped = s.node("Clip", [pooled, s.const(-64.0), s.const(30.0)])
    s.output(s.qdq(s.node("GlobalAveragePool", [clipped]), 2**-2, out="y"))
    s.output(s.qdq(pooled, 2**1, 4, out="z"))
    s.output(s.qdq(clipped, 2**-1, 4, out="c"))
    kinds = run(s.load())
    assert kinds == {"conv", "relu", "add", "max_pool", "clip", "global_average_pool", "requantize"}


@pytest.mark.parametrize("axis", [1, 3])
def test_concat_beside_each_other(axis: int) -> None:
    s = Sketch()
    shapes = [(1, 3, 4, 5), (1, 9, 4, 5)] if axis == 1 else [(1, 3, 4, 5), (1, 3, 4, 2)]
    a = s.qdq(s.input("a", shapes[0]), 2**-4, 1, out="ad")
    b = s.qdq(s.input("b", shapes[1]), 0.11, -20, out="bd")
    fixed = s.weight(codes(1, 3, 4, 5), 2**-5, 3)
    s.output(s.qdq(s.node("Concat", [a, fixed, b], axis=axis), 2**-3, 7, out="y"))
    assert run(s.load()) == {"concat"}


@pytest.mark.parametrize("axis", [0, 2])
def test_concat_one_behind_the_other_requantizes_each(axis: int) -> None:
    s = Sketch()
    a = s.qdq(s.input("a", (1, 3, 4, 5)), 2**-4, 1, out="ad")
    b = s.qdq(s.input("b", (1, 3, 4, 5)), 0.11, -20, out="bd")
    s.output(s.qdq(s.node("Concat", [a, b], axis=axis), 2**-3, 7, out="y"))
    imported = s.load()
    manifest, op = imported.manifest, op_of(imported.manifest, "Concat")
    tensors = Oracle(manifest, imported.arrays).run(feeds_for(imported, 1), arithmetic="target", keep="stored")
    bench = Bench(manifest=manifest, arrays=imported.arrays)
    inputs = {n: tensors[n][0] for n in op.inputs}
    parts = [bench.run(op, inputs, Part(kernel="requantize", operand=i)) for i in (0, 1)]
    np.testing.assert_array_equal(np.concatenate(parts, axis), tensors[op.outputs[0]][0])


@pytest.mark.parametrize("shape", [(), (1, 5, 1, 1), (5, 1, 1), (1, 1, 4, 1), (1, 5, 4, 6), (6,)])
@pytest.mark.parametrize("kind", ["Add", "Mul"])
def test_constants_of_any_extent(kind: str, shape: tuple[int, ...]) -> None:
    s = Sketch()
    x = s.qdq(s.input("x", (1, 5, 4, 6)), 2**-4, 1, out="xd")
    c = s.weight(codes(*shape) if shape else 77, 2**-5, 3)
    s.output(s.qdq(s.node(kind, [c, x] if kind == "Add" else [x, c]), 2**-3, 7, out="y"))
    parts = [Part(), Part(out_count=3), Part(out_first=3, out_count=2)]
    assert run(s.load(), lambda op: parts) == {kind.lower()}


@pytest.mark.parametrize("shape", [(1, 5, 1, 1), (1, 1, 4, 6), (1, 1, 1, 1), (1, 5, 4, 1), (2, 5, 4, 6)])
def test_sums_of_activations_that_are_broadcast(shape: tuple[int, ...]) -> None:
    s = Sketch()
    x = s.qdq(s.input("x", (2, 5, 4, 6)), 2**-4, 1, out="xd")
    b = s.qdq(s.input("b", shape), 0.3, -3, out="bd")
    s.output(s.qdq(s.node("Add", [x, b]), 2**-3, 7, out="y"))
    assert run(s.load()) == {"add"}


def test_products_of_rank_4_have_a_multiplier_per_column() -> None:
    s = Sketch()
    x = s.qdq(s.input("x", (1, 2, 3, 6)), 0.1, 1, out="xd")
    w = s.weight(codes(6, 4), [0.02, 0.5, 0.004, 0.1], axis=1)
    y = s.node("MatMul", [x, w])
    s.output(s.qdq(y, 0.3, 7, out="y"))
    assert run(s.load()) == {"matmul"}
    s.qdq(s.node("Relu", [y]), 0.2, out="z")
    s.output("z")
    assert run(s.load()) == {"matmul", "requantize", "relu"}


def test_products_of_activations_and_with_a_constant_on_the_left() -> None:
    s = Sketch()
    a = s.qdq(s.input("a", (2, 3, 4)), 0.1, 1, out="ad")
    b = s.qdq(s.input("b", (2, 4, 5)), 0.2, -4, out="bd")
    s.output(s.qdq(s.node("MatMul", [a, b]), 0.5, 7, out="y"))
    s.output(s.qdq(s.node("MatMul", [s.weight(codes(5, 3), 0.01, 2), a]), 0.05, out="z"))
    assert run(s.load()) == {"matmul"}


def test_a_transposed_gemm_takes_whole_operands() -> None:
    s = Sketch()
    x = s.qdq(s.input("x", (4, 3)), 0.1, 1, out="xd")
    y = s.node("Gemm", [x, s.weight(codes(5, 4), 0.01)], transA=1, transB=1, alpha=0.5)
    s.output(s.qdq(y, 0.05, out="y"))
    assert run(s.load()) == {"matmul"}


def test_moves_that_also_requantize() -> None:
    s = Sketch()
    x = s.qdq(s.input("x", (1, 3, 4, 5)), 2**-4, 1, out="xd")
    s.output(s.qdq(s.node("Transpose", [x], perm=[0, 3, 1, 2]), 0.11, -5, out="y"))
    s.output(s.qdq(s.node("Flatten", [x]), 2**-3, out="z"))
    s.output(s.qdq(s.node("Reshape", [x, s.const([1, 6, 2, 5], np.int64)]), 2**-5, out="r"))
    w = s.weight(codes(4, 3, 1, 1), [0.1, 0.02, 0.3, 0.004], axis=0)
    s.output(s.qdq(s.node("Transpose", [s.node("Conv", [x, w])], perm=[0, 2, 1, 3]), 0.2, out="t"))
    assert run(s.load()) == {"transpose", "flatten", "reshape", "conv"}


@pytest.mark.parametrize(("dtype", "entries"), [(np.uint8, 256), (np.int8, 256), (np.int16, 65536)])
def test_codes_through_a_table(dtype: type, entries: int) -> None:
    s = Sketch(opset=21)
    x = s.qdq(s.input("x", (1, 3, 4, 5)), 0.1, 9, dtype, out="xd")
    s.output(s.qdq(x, 0.13, 7, out="y"))
    imported = s.load()
    (op,) = (o for o in imported.manifest.ops if o.where == "npu")
    assert op.requant is not None
    tabled = replace(op, requant=replace(op.requant, target="lut", lut="t999999"))
    manifest = replace(imported.manifest, ops=tuple(tabled if o is op else o for o in imported.manifest.ops))
    arrays = {**imported.arrays, "t999999": RNG.permutation(entries).astype(np.uint8).view(np.int8)}
    assert run(replace(imported, manifest=manifest, arrays=arrays)) == {"lut"}


@pytest.mark.parametrize("group", [1, 3, 12])
def test_streamed_weights_with_zero_points_and_groups(group: int) -> None:
    s = Sketch()
    x = s.qdq(s.input("x", (1, 12, 5, 5)), 0.1, 3, out="xd")
    zeros = RNG.integers(1, 200, 12)
    w = s.weight(codes(12, 12 // group, 2, 2, low=0, high=256), [0.01] * 12, zeros, np.uint8, axis=0)
    s.output(s.qdq(s.node("Conv", [x, w], group=group), 1.5, -9, out="y"))
    check_streams(s.load(), "Conv", 12)


def test_streamed_columns_with_zero_points() -> None:
    s = Sketch()
    x = s.qdq(s.input("x", (3, 12)), 0.1, 3, out="xd")
    w = s.weight(codes(12, 12, low=0, high=256), [0.01] * 12, RNG.integers(1, 200, 12), np.uint8, axis=1)
    s.output(s.qdq(s.node("Gemm", [x, w]), 1.5, -9, out="y"))
    check_streams(s.load(), "Gemm", 12)


def check_streams(imported: Imported, kind: str, total: int) -> None:
    """Weights in pieces of whole groups and of less, of all channels and of some."""
    tensors = Oracle(imported.manifest, imported.arrays).run(feeds_for(imported, 1), arithmetic="target", keep="stored")
    op = op_of(imported.manifest, kind)
    bench = Bench(manifest=imported.manifest, arrays=imported.arrays)
    wanted = tensors[op.outputs[0]][0]
    assert len(np.unique(wanted)) > 9
    for first, chunk in ((0, 4), (0, 3), (4, 4), (5, 2)):
        got = bench.streamed(op, {op.inputs[0]: tensors[op.inputs[0]][0]}, Part(out_first=first), chunk)
        np.testing.assert_array_equal(got, wanted[:, first:total])


def test_padding_never_wins_a_maximum() -> None:
    s = Sketch(opset=21)
    x = s.node("Relu", [s.qdq(s.input("x", (1, 3, 4, 4)), 0.01, 0, np.int16)])
    low = s.qdq(s.node("Add", [x, s.weight(-30000, 0.01, 0, np.int16)]), 0.01, 0, np.int16)
    s.output(s.qdq(s.node("MaxPool", [low], kernel_shape=[2, 2], pads=[1, 1, 1, 1]), 0.01, 0, np.int16, out="y"))
    imported = s.load()
    assert "max_pool" in run(imported)


def test_accumulators_finer_than_their_products_are_averaged_and_added() -> None:
    """Shifts of two branches differ; averages over windows of different sizes leave unrounded."""
    s = Sketch()
    x = s.qdq(s.input("x", (1, 3, 6, 6)), 2**-4, 1, out="xd")
    one = s.node("Conv", [x, s.weight(codes(4, 3, 1, 1), 2**-6), s.weight(codes(4), 2**-13)])
    two = s.node("Conv", [x, s.weight(codes(4, 3, 1, 1), 2**-5), s.weight(codes(4), 2**-10)])
    total = s.node("Add", [one, two])
    average = s.node("AveragePool", [one], kernel_shape=[2, 3])
    s.output(s.qdq(total, 0.5, 5, out="y"))
    s.output(s.qdq(average, 0.25, out="z"))
    s.output(s.qdq(s.node("Relu", [average]), 0.125, out="r"))
    s.output(s.qdq(s.node("GlobalAveragePool", [total]), 0.125, out="g"))
    imported = s.load()
    manifest = imported.manifest
    add = op_of(manifest, "Add")
    assert [form_of(manifest, n).promotion for n in (*add.inputs, *add.outputs)] == [(3,), (1,), (3,)]
    assert run(imported) == {"conv", "add", "average_pool", "requantize", "relu", "global_average_pool"}


@pytest.mark.parametrize("kind", ["Add", "AveragePool"])
def test_accumulators_finer_than_their_products_are_rounded_at_once(kind: str) -> None:
    s = Sketch()
    x = s.qdq(s.input("x", (1, 3, 6, 6)), 2**-4, 1, out="xd")
    y = s.node("Conv", [x, s.weight(codes(4, 3, 1, 1), 2**-6), s.weight(codes(4), 2**-13)])
    if kind == "Add":
        y = s.node("Add", [y, s.node("Conv", [x, s.weight(codes(4, 3, 1, 1), 2**-5), s.weight(codes(4), 2**-10)])])
    else:
        y = s.node("AveragePool", [y], kernel_shape=[2, 3])
    s.output(s.qdq(y, 0.5, 5, out="y"))
    assert run(s.load()) == {"conv", "add" if kind == "Add" else "average_pool"}


def test_scales_per_channel_move_with_their_axis() -> None:
    s = Sketch()
    x = s.qdq(s.input("x", (1, 3, 4, 5)), 2**-4, 1, out="xd")
    y = s.node("Conv", [x, s.weight(codes(6, 3, 1, 1), 0.01 * np.arange(1, 7), axis=0)])
    t = s.node("Transpose", [y], perm=[0, 2, 3, 1])
    s.output(s.qdq(t, 0.5, out="y"))
    s.output(s.qdq(s.node("Relu", [t]), 0.25, out="z"))
    back = s.node("Reshape", [t, s.const([20, 6], np.int64)])
    s.output(s.qdq(back, 0.125, out="r"))
    s.output(s.qdq(s.node("Relu", [back]), 0.25, out="q"))
    assert run(s.load()) == {"conv", "transpose", "requantize", "relu", "reshape"}


def test_values_side_by_side_that_nothing_rounds() -> None:
    s = Sketch()
    a = s.qdq(s.input("a", (1, 3, 4, 5)), 2**-4, 1, out="ad")
    b = s.qdq(s.input("b", (1, 2, 4, 5)), 2**-6, -20, out="bd")
    y = s.node("Concat", [a, b], axis=1)
    s.output(y)
    s.output(s.node("Relu", [y]))
    assert run(s.load()) == {"concat", "relu"}


def test_sums_beyond_int64_are_exact() -> None:
    s = Sketch(opset=21)
    a = s.qdq(s.input("a", (1, 40)), 2.0**34, 0, np.int16, out="ad")
    b = s.qdq(s.input("b", (1, 40)), 2.0**-18, 9, np.int16, out="bd")
    s.output(s.qdq(s.node("Add", [a, b]), 2.0**35, 3, np.int16, out="y"))
    imported = s.load()
    values = {n: codes(1, 40, low=-32768, high=32768).astype(np.int16) for n in ("ad.q", "bd.q")}
    bench = Bench(manifest=imported.manifest, arrays=imported.arrays)
    got = bench.run(op_of(imported.manifest, "Add"), values)
    pairs = zip(values["ad.q"][0], values["bd.q"][0], strict=True)
    exact = [Fraction(int(a), 2) + Fraction(int(b) - 9, 1 << 53) for a, b in pairs]
    assert got[0].tolist() == [round(v) + 3 for v in exact]


def test_pads_count_as_onnxruntime_counts_them() -> None:
    """QLinearAveragePool divides by the whole kernel, also where it hangs over the end."""
    s = Sketch()
    x = s.q(s.input("x", (1, 2, 6, 6)), 0.07, 9, out="xq")
    scales = [s.const(0.07), s.const(9, np.int8), s.const(0.05), s.const(3, np.int8)]
    window: dict[str, Any] = {"kernel_shape": [3, 3], "pads": [0, 0, 0, 0], "strides": [3, 2], "ceil_mode": 1}
    y = s.node("QLinearAveragePool", [x, *scales], "yq", domain="com.microsoft", count_include_pad=1, **window)
    s.dq(y, 0.05, 3, out="y")
    s.output("y", (1, 2, 2, 3))
    imported = s.load()
    op = op_of(imported.manifest, "AveragePool")
    assert dict(attributes_of(op, imported.manifest))["counts"] == (9,)
    assert run(imported) == {"average_pool"}


def test_alpha_is_part_of_the_unit() -> None:
    s = Sketch()
    x = s.qdq(s.input("x", (1, 4)), 0.5, 1, out="xd")
    s.output(s.node("Gemm", [x, s.weight(codes(4, 3), 0.25)], alpha=0.75))
    imported = s.load()
    assert form_of(imported.manifest, op_of(imported.manifest, "Gemm").outputs[0]).units == (Fraction(3, 32),)
    assert run(imported) == {"gemm"}


@pytest.mark.parametrize("kind", ["average_pool", "global_average_pool"])
def test_sums_of_averages_wrap(kind: str) -> None:
    """At a width that no device has, since the real ones are proved to be wide enough."""
    row = np.full((1, 3, 8), 100, np.int8)
    if kind == "average_pool":
        attributes: dict[str, Any] = {"kernel": (1, 3), "strides": (1, 1), "dilations": (1, 1), "pads_lr": (0, 0)}
        attributes |= {
            "pads": (0, 0, 0, 0),
            "in_width": 3,
            "count_include_pad": 0,
            "counts": (3,),
            "finish": "exact",
            "out_dtype": "int32",
            "out_channels": 8,
        }
        out = np.zeros((1, 1, 8), np.int32)
        KERNELS[kind](Tile(attributes={**attributes, "x_zero_point": 0, "acc_bits": 8}), row, out)
    else:
        out = np.zeros((1, 8), np.int32)
        tile = Tile(attributes={"out_channels": 8, "x_zero_point": 0, "acc_bits": 8}, scalars={"row": 0})
        KERNELS[kind](tile, row, out)
    assert (out == 300 - 256).all()
