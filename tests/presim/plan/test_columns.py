"""Strips of columns with a halo, cut by the host's transfers."""

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manifest.errors import RefusedError
from manifest.onnx_import import Imported
from presim.kernels.attributes import Forms
from presim.plan.columns import host_pattern, in_strips
from presim.plan.graph import Value, graph_of
from presim.static import check_design
from presim.static.transfers import contiguous, pattern_faults
from tests.presim.plan.harness import NPU2, assert_exact, plan_of, whole, with_figures
from tests.presim.plan.models import Net


def image(width: int) -> Imported:
    """Windows of every kind over a wide image: uneven pads, strides, dilation, an average at the borders."""
    net = Net((1, 8, 5, width))
    x = net.conv(net.x, (8, 8), 5)
    x = net.rounded("MaxPool", [x], kernel_shape=[2, 2], strides=[2, 2], pads=[0, 1, 0, 0])
    x = net.conv(x, (8, 16), strides=[1, 2], dilations=[1, 2], pads=[1, 2, 1, 1])
    x = net.rounded("AveragePool", [x], kernel_shape=[2, 3], pads=[0, 1, 0, 1])
    return net.done(net.rounded("Add", [x, net.weight(net.random(16, 1, 1), 2.0**-5)]))


@pytest.mark.parametrize("width", [63, 64, 65])
def test_strips_compute_what_the_whole_image_gives(width: int) -> None:
    imported = image(width)
    small = with_figures(l1_bytes=5500)
    design = assert_exact(imported.manifest, imported.arrays, small)
    assert {(s.kind, s.parts) for s in design.splits} == {("columns", 2)}
    assert [f.line() for c in check_design(design, small) for f in c.findings if f.severity == "error"] == []


def test_the_host_cuts_overlapping_strips_and_takes_disjoint_ones() -> None:
    design = plan_of(image(64).manifest, with_figures(l1_bytes=5500))
    spans = {
        direction: [(t.offset, t.offset + t.sizes[2]) for t in design.sequence if t.direction == direction]
        for direction in ("fill", "drain")
    }
    (a, b), (c, d) = spans["fill"]
    assert a == 0
    assert c < b < d == 64 * 8
    (_, end), (begin, _) = spans["drain"]
    assert end == begin


def test_as_few_strips_as_fit() -> None:
    design = plan_of(image(2600).manifest)
    assert {s.parts for s in design.splits} == {3}
    assert {s.parts for s in plan_of(image(64).manifest).splits} == {1}


@pytest.mark.parametrize("width", [2048, 2053, 2200])
def test_strips_that_are_longer_than_a_descriptor_codes_go_in_two_dimensions(width: int) -> None:
    net = Net((1, 8, 4, width))
    imported = net.done(net.conv(net.x, (8, 8)))
    design = assert_exact(imported.manifest, imported.arrays, NPU2)
    assert {(s.kind, s.parts) for s in design.splits} == {("columns", 2)}
    assert [f.line() for c in check_design(design, NPU2) for f in c.findings if f.severity == "error"] == []
    assert all(len(t.sizes) == 3 and t.sizes[0] == 4 for t in design.sequence)


@given(
    rows=st.integers(1, 80),
    channels=st.integers(1, 40),
    width=st.integers(2, 6000),
    share=st.floats(0, 1),
    itemsize=st.sampled_from([1, 2, 4]),
)
def test_a_strip_that_the_host_moves_is_what_its_pattern_walks(
    rows: int, channels: int, width: int, share: float, itemsize: int
) -> None:
    columns = max(1, int(share * width))
    value = Value(tensor="x", form=(1, channels, rows, columns), first_column=0, width=width)
    dims = host_pattern(value, itemsize)
    blocks = -(-channels // 8)
    if 8 * columns * itemsize <= 1023 * 4:
        assert dims == ((rows, blocks * width * 8), (blocks, width * 8), (8 * columns, 1))
    if not dims:
        return
    assert pattern_faults(dims, itemsize, "shim") == []
    assert math.prod(size for size, _ in dims) == rows * blocks * columns * 8
    last = sum((size - 1) * stride for size, stride in dims)
    assert last == ((rows * blocks - 1) * width + columns) * 8 - 1
    run = [dim for dim in dims if dim[1] < width * 8 or dim[0] == 1]
    assert contiguous(tuple(run))


def test_a_strip_of_no_factors_is_not_moved() -> None:
    assert host_pattern(Value(tensor="x", form=(1, 8, 4, 1031), first_column=0, width=4000), 1) == ()
    assert host_pattern(Value(tensor="x", form=(1, 8, 4, 1021), first_column=0, width=4000), 1)


@settings(max_examples=25)
@given(
    width=st.integers(9, 40),
    kernel=st.integers(1, 5),
    stride=st.integers(1, 3),
    pads=st.tuples(st.integers(0, 2), st.integers(0, 2)),
    dilation=st.integers(1, 2),
    count=st.integers(2, 4),
)
def test_reach_of_a_strip(
    *, width: int, kernel: int, stride: int, pads: tuple[int, int], dilation: int, count: int
) -> None:
    extent = (kernel - 1) * dilation + 1
    if extent > width or max(pads) >= kernel:
        return
    net = Net((1, 1, 1, width))
    weight = net.weight(net.random(1, 1, 1, kernel), 2.0**-9)
    where: dict[str, Any] = {"pads": [0, pads[0], 0, pads[1]], "strides": [1, stride], "dilations": [1, dilation]}
    imported = net.done(net.rounded("Conv", [net.x, weight], **where))
    graph = graph_of(imported.manifest, whole(imported.manifest))
    strips = in_strips(graph, count, Forms(imported.manifest))
    if strips is None:
        assert graph.outputs[0][1].form[3] < count or pads != (0, 0)
        return
    seen = []
    for node, (_, output) in zip(strips.nodes, strips.outputs, strict=True):
        (value,) = node.inputs
        assert node.pads is not None
        for column in range(output.form[3]):
            taps = [(output.first_column + column) * stride - pads[0] + k * dilation for k in range(kernel)]
            local = [column * stride - node.pads[0] + k * dilation + value.first_column for k in range(kernel)]
            assert taps == local
            inside = [t for t in taps if 0 <= t < width]
            assert all(value.first_column <= t < value.first_column + value.form[3] for t in inside)
            seen.append(output.first_column + column)
    assert seen == list(range(graph.outputs[0][1].form[3]))


def test_paths_that_part_are_not_cut() -> None:
    net = Net((1, 8, 3, 4096))
    fork = net.rounded("Relu", [net.x])
    imported = net.done(net.rounded("Add", [net.conv(fork, (8, 8)), fork]))
    with pytest.raises(RefusedError, match="PLAN-L1"):
        plan_of(imported.manifest, NPU2)


def test_what_needs_all_columns_is_not_cut() -> None:
    net = Net((1, 8, 3, 64))
    imported = net.done(net.rounded("GlobalAveragePool", [net.conv(net.x, (8, 8))]))
    graph = graph_of(imported.manifest, whole(imported.manifest))
    assert in_strips(graph, 2, Forms(imported.manifest)) is None
