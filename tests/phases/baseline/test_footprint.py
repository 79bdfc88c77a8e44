"""Bytes of single ops, computed by hand."""

from dataclasses import replace

import pytest

from manifest.device import load_device
from manifest.model import Requantization
from manifest.opset import INTERNAL, OPSET, YES
from phases.baseline.footprint import (
    BIAS_BYTES,
    CHANNEL_SCALE_BYTES,
    KINDS,
    PROGRAM_BYTES,
    Edge,
    Footprint,
    Sizes,
    footprints,
)
from tests.budget_graphs import Build

NPU1 = load_device("npu1")


def only(b: Build, out: str, device: str = "npu1") -> Footprint:
    return footprints(b.manifest(out, device=device), load_device(device))[b.ops[-1].name]


def test_conv_keeps_its_window_rows_and_packed_weights() -> None:
    b = Build()
    f = only(b, b.conv(b.input("x", (1, 3, 10, 12)), 16))
    assert f.weights_bytes == 2 * 1 * 3 * 3 * 8 * 8  # O 16 = 2 x 8, I 3 -> 8
    assert f.window_bytes == 3 * (8 * 12) + 16 * 12  # three rows of C 3 -> 8, one row of 16 channels
    assert f.edges == (Edge(tensor="x", rows=10, row_bytes=96, stride=1, extra=1),)
    assert (f.channels, f.reduction) == (2, 27)  # two blocks of eight channels


def test_unknown_block_shapes_mean_no_padding_of_weights() -> None:
    b = Build()
    f = only(b, b.conv(b.input("x", (1, 3, 10, 12)), 16), device="vek385")
    assert f.weights_bytes == 16 * 3 * 3 * 3


@pytest.mark.parametrize(
    ("kernel", "stride", "pad", "rows", "extra"),
    [(1, 1, 0, 1, 0), (1, 2, 0, 1, -1), (3, 2, 1, 3, 0), (5, 1, 2, 5, 2), (5, 1, 0, 5, 4), (2, 2, 0, 2, 0)],
)
def test_window_follows_the_kernel(kernel: int, stride: int, pad: int, rows: int, extra: int) -> None:
    b = Build()
    f = only(b, b.conv(b.input("x", (1, 8, 11, 11)), 8, kernel, stride, pad))
    width_out = (11 + 2 * pad - kernel) // stride + 1
    assert f.window_bytes == rows * 88 + 8 * width_out
    assert (f.edges[0].stride, f.edges[0].extra) == (stride, extra)


def test_dilation_widens_the_window_and_the_image_bounds_it() -> None:
    b = Build()
    out = b.conv(b.input("x", (1, 8, 20, 4)), 8)
    b.ops[-1] = replace(b.ops[-1], attributes={**b.ops[-1].attributes, "dilations": (3, 3)})
    assert only(b, out).window_bytes == 7 * 32 + 32
    b.ops[-1] = replace(b.ops[-1], attributes={**b.ops[-1].attributes, "dilations": (30, 30)})
    assert only(b, out).window_bytes == 20 * 32 + 32


def test_dense_keeps_its_vectors_and_blocks_of_rows() -> None:
    b = Build()
    f = only(b, b.dense(b.input("x", (1, 30)), 10))
    assert f.weights_bytes == 4 * 2 * 8 * 8  # K 30 -> 4 x 8, N 10 -> 2 x 8
    assert f.window_bytes == 30 + 10
    b = Build()
    assert only(b, b.dense(b.input("x", (16, 30)), 10)).window_bytes == 4 * (30 + 10)  # r = 4 on npu1
    b = Build()
    assert only(b, b.dense(b.input("x", (16, 30)), 10), "npu2").window_bytes == 8 * (30 + 10)
    b = Build()
    assert only(b, b.dense(b.input("x", (3, 30)), 10)).window_bytes == 3 * (30 + 10)
    b = Build()
    assert only(b, b.dense(b.input("x", (3, 30)), 10), "vek385").window_bytes == 30 + 10


def test_sixteen_bit_and_exact_tensors_take_their_bytes() -> None:
    b = Build()
    f = only(b, b.dense(b.input("x", (1, 30), "int16"), 10, dtype="exact"))
    assert f.window_bytes == 30 * 2 + 10 * 4
    op = b.ops[-1]
    assert op.accumulator is not None
    b.ops[-1] = replace(op, accumulator=replace(op.accumulator, bits=64))
    m = b.manifest("n0_out")
    assert footprints(m, NPU1)["n0"].window_bytes == 30 * 2 + 10 * 8
    assert Sizes(m).tensor("n0_out") == 80


def test_bias_tables_and_channel_scales_are_resident() -> None:
    b = Build()
    out = b.dense(b.input("x", (1, 8)), 8)
    b.tensor("bias", (8,), "int32", "bias")
    plain = only(b, out).weights_bytes
    b.ops[-1] = replace(b.ops[-1], inputs=("x", "n0_w", "bias"))
    assert only(b, out).weights_bytes == plain + 8 * BIAS_BYTES
    requant = b.ops[-1].requant
    assert requant is not None
    b.ops[-1] = replace(b.ops[-1], requant=replace(requant, multipliers=(1,) * 8, shifts=(0,) * 8))
    assert only(b, out).weights_bytes == plain + 8 * (BIAS_BYTES + CHANNEL_SCALE_BYTES)
    b = Build()
    out = b.op("Relu", (b.input("x", (1, 8)),), (1, 8))
    assert only(b, out).weights_bytes == 0
    b.ops[-1] = replace(b.ops[-1], requant=Requantization(reference="srs", target="lut", qmin=-128, qmax=127))
    assert only(b, out).weights_bytes == 256
    b = Build()
    out = b.op("Relu", (b.input("x", (1, 8), "int16"),), (1, 8))
    b.ops[-1] = replace(b.ops[-1], requant=Requantization(reference="srs", target="lut", qmin=-128, qmax=127))
    assert only(b, out).weights_bytes == 65536


def test_elementwise_and_pools_keep_rows_only() -> None:
    b = Build()
    x, y = b.input("x", (1, 8, 6, 5)), b.input("y", (1, 8, 6, 5))
    assert only(b, b.op("Add", (x, y), (1, 8, 6, 5))).window_bytes == 3 * 40
    out = b.op("MaxPool", (x,), (1, 8, 3, 2), kernel_shape=(2, 2), strides=(2, 2), pads=(0, 0, 0, 0), dilations=(1, 1))
    assert only(b, out).window_bytes == 2 * 40 + 16


def test_averages_over_the_image_keep_sums() -> None:
    b = Build()
    x = b.input("x", (1, 16, 7, 7))
    f = only(b, b.op("GlobalAveragePool", (x,), (1, 16, 1, 1)))
    assert f.window_bytes == 16 * 7 + 16 * (4 + 1)
    assert f.edges[0].whole
    out = b.op("AveragePool", (x,), (1, 16, 1, 1), kernel_shape=(7, 7), strides=(1, 1), pads=(0,) * 4, dilations=(1, 1))
    f = only(b, out)
    assert f.window_bytes == 16 * 7 + 16
    assert f.edges[0].whole


def test_moves_need_the_whole_tensor_only_where_the_order_changes() -> None:
    b = Build()
    x = b.input("x", (1, 3, 4, 5))
    f = only(b, b.op("Flatten", (x,), (1, 60), axis=1))
    assert (f.window_bytes, f.edges[0].whole) == (4 * 8 * 5, True)
    f = only(b, b.op("Transpose", (x,), (1, 4, 5, 3), perm=(0, 2, 3, 1)))
    assert (f.window_bytes, f.edges[0].whole) == (4 * 8 * 5, True)
    v = b.input("v", (1, 64, 1, 1))
    f = only(b, b.op("Flatten", (v,), (1, 64), axis=1))
    assert (f.window_bytes, f.edges[0].whole) == (64 + 64, False)


@pytest.mark.parametrize(
    ("shape", "axis", "whole"),
    [
        ((1, 8, 4, 4), 1, False),
        ((1, 8, 4, 4), 2, True),
        ((1, 8, 4, 4), -1, False),
        ((4, 8), 1, False),
        ((4, 8), 0, True),
    ],
)
def test_concat_along_rows_waits_for_the_first_input(shape: tuple[int, ...], axis: int, whole: bool) -> None:
    b = Build()
    x, y = b.input("x", shape), b.input("y", shape)
    joined = tuple(d * 2 if i == axis % len(shape) else d for i, d in enumerate(shape))
    edges = only(b, b.op("Concat", (x, y), joined, axis=axis)).edges
    assert [e.whole for e in edges] == [False, whole]


def test_a_product_of_two_activations_keeps_the_whole_right_side() -> None:
    b = Build()
    x, y = b.input("x", (2, 16, 8)), b.input("y", (2, 8, 4))
    f = only(b, b.op("MatMul", (x, y), (2, 16, 4)))
    assert [e.whole for e in f.edges] == [False, True]
    assert f.window_bytes == 4 * 8 + 8 * 4 + 4 * 4  # four rows of each side of the block, all of the right operand
    assert f.weights_bytes == 0


def test_reinterpret_costs_nothing_and_equal_geometry_is_one_body() -> None:
    b = Build()
    x = b.input("x", (1, 8, 8, 8))
    f = only(b, b.op("Reinterpret", (x,), (1, 8, 8, 8)))
    assert (f.window_bytes, f.body, f.program_bytes) == (0, "", 0)
    b = Build()
    y = b.conv(b.conv(b.conv(b.conv(b.input("x", (1, 8, 8, 8)), 8), 16), 8, 1), 8, 3, 2)
    bodies = [f.body for f in footprints(b.manifest(y), NPU1).values()]
    assert bodies[0] == bodies[1]
    assert len(set(bodies)) == 3
    assert "conv_1x1" in bodies[2]


@pytest.mark.parametrize(("kernel", "kind"), [((1, 1), "conv_1x1"), ((1, 3), "conv"), ((3, 1), "conv")])
def test_only_a_one_by_one_kernel_is_pointwise(kernel: tuple[int, int], kind: str) -> None:
    b = Build()
    out = b.conv(b.input("x", (1, 8, 8, 8)), 8)
    b.tensor("n0_w", (8, 8, *kernel), "int8", "weight")
    assert only(b, out).body.split()[1] == kind


def test_depthwise_has_its_own_kernel() -> None:
    b = Build()
    out = b.conv(b.input("x", (1, 8, 8, 8)), 8)
    b.tensor("n0_w", (8, 1, 3, 3), "int8", "weight")
    b.ops[-1] = replace(b.ops[-1], attributes={**b.ops[-1].attributes, "group": 8})
    f = only(b, out)
    assert "conv_depthwise" in f.body
    assert f.weights_bytes == 8 * 9


def test_every_op_that_the_oracle_computes_has_a_kind() -> None:
    array = {k for k, row in OPSET.items() if row.oracle == YES and not row.host}
    types = {k.partition(":")[2] for k in array if k.startswith(":")}
    types = {t for t in types if not t.startswith("QLinear")} - {"Squeeze", "Unsqueeze"} | set(INTERNAL)
    assert types == set(KINDS)
    assert set(KINDS.values()) | {"conv_1x1", "conv_depthwise"} == set(PROGRAM_BYTES)


def test_channels_are_split_by_whole_blocks_of_the_layout() -> None:
    b = Build()
    x = b.input("x", (1, 40))
    b.tensor("w", (20, 40), "int8", "weight")
    f = only(b, b.op("Gemm", (x, "w", ""), (1, 20), transB=1))  # stored (N, K) in blocks of (8, 8)
    assert (f.channels, f.reduction, f.weights_bytes) == (3, 40, 24 * 40)
    b = Build()
    x = b.input("x", (1, 40), "int16")
    b.tensor("w", (40, 20), "int8", "weight")
    f = only(b, b.op("Gemm", (x, "w", ""), (1, 20)))  # int16 x int8 on npu1: blocks of (8, 4)
    assert (f.channels, f.weights_bytes) == (5, 40 * 20)
    b = Build()
    out = b.conv(b.input("x", (1, 12, 8, 8), "int16"), 24)
    b.tensor("n0_w", (24, 6, 3, 3), "int8", "weight")
    b.ops[-1] = replace(b.ops[-1], attributes={**b.ops[-1].attributes, "group": 2})
    f = only(b, out)  # blocks of (2 groups, 4 output, 8 input channels)
    assert (f.channels, f.reduction, f.weights_bytes) == (6, 6 * 9, 2 * 12 * 8 * 9)


def test_sizes_of_every_rank_and_type() -> None:
    b = Build()
    for name, dtype in (("a", "int8"), ("b", "uint8"), ("c", "int16"), ("d", "uint16"), ("e", "int32"), ("f", "int64")):
        b.tensor(name, (2, 3), dtype)  # type: ignore[arg-type]
    b.tensor("g", (2, 3), "float32")
    for name, shape in (("s", ()), ("v", (7,)), ("t", (2, 5, 7)), ("n", (2, 3, 5, 7)), ("z", (2, 2, 2, 2, 2))):
        b.tensor(name, shape)
    sizes = Sizes(b.manifest())
    assert [sizes.item(n) for n in "abcdefg"] == [1, 1, 2, 2, 4, 8, 4]
    assert [(sizes.rows(n), sizes.row(n)) for n in "svatnz"] == [(1, 1), (1, 7), (2, 3), (5, 7), (5, 8 * 7), (1, 32)]
    assert sizes.tensor("n") == 2 * 3 * 5 * 7


def test_without_a_row_layout_channels_are_not_filled_up() -> None:
    b = Build()
    x = b.input("x", (1, 3, 10, 12))
    m = replace(b.manifest(b.op("Relu", (x,), (1, 3, 10, 12))), layouts=())
    assert footprints(m, NPU1)["n0"].window_bytes == 2 * 3 * 12


def test_host_ops_have_no_footprint() -> None:
    b = Build()
    x = b.quantize(b.input("x", (1, 8), "float32"))
    out = b.dequantize(b.dense(x, 8))
    assert list(footprints(b.manifest(out), NPU1)) == ["n1"]
