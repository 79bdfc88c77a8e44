"""Spreads: whole, sliced, streamed, reduced, each where the one before does not fit, one byte on both sides."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from manifest.device import Device, load_device
from manifest.errors import RefusedError
from manifest.onnx_import import Imported
from presim.design import Design
from presim.directives import Directives, directives_of
from presim.kernels.attributes import Forms, Part
from presim.plan.graph import graph_of
from presim.plan.limits import limits_of
from presim.plan.share import Share, need_of, padding_fraction
from tests.presim.plan.harness import NPU2, assert_exact, plan_of, whole, with_figures
from tests.presim.plan.models import Net
from tests.qdq_models import linear


def dense(inner: int = 64, outer: int = 48, rows: int = 4) -> Imported:
    net = Net((rows, inner))
    return net.done(net.dense(net.x, inner, outer))


def convolution(channels: tuple[int, int] = (16, 16), width: int = 6, **attributes: Any) -> Imported:
    net = Net((1, channels[0], 5, width))
    return net.done(net.conv(net.x, channels, **attributes))


def need(imported: Imported, **share: Any) -> int:
    """Bytes of the only op on one worker."""
    (node,) = graph_of(imported.manifest, whole(imported.manifest)).nodes
    return need_of(Share(node=node, part=Part(), **share), Forms(imported.manifest)).total


def room(size: int) -> Device:
    """A device whose cores have exactly `size` bytes to plan with."""
    devices = (with_figures(l1_bytes=n) for n in range(1024 + size, 1024 + 2 * size + 64))
    return next(d for d in devices if limits_of(d).core_bytes == size)


def ways(design: Design) -> list[tuple[str, int, bool]]:
    return [(s.kind, s.parts, s.resident_weights) for s in design.splits]


def asked(imported: Imported, **parallelism: Any) -> Directives:
    (op,) = [o for o in imported.manifest.ops if o.where == "npu"]
    return directives_of({op.name: {"parallelism": parallelism}}, imported.manifest)


@pytest.mark.parametrize("imported", [dense(), convolution()])
def test_one_byte_less_and_the_output_channels_are_split(imported: Imported) -> None:
    size = need(imported)
    assert ways(assert_exact(imported.manifest, imported.arrays, room(size))) == [("output_channels", 1, True)]
    design = assert_exact(imported.manifest, imported.arrays, room(size - 1))
    assert ways(design) == [("output_channels", 2, True)]
    assert [link.kind for link in design.links] == ["join"]


def test_the_need_counts_doubled_objects_and_padding() -> None:
    imported = dense(inner=20, outer=10)
    weights, requant = 24 * 16, 32
    assert need(imported) == weights + requant + 2 * 32 + 2 * 32
    assert need(imported, tight=True) == weights + requant + 32 + 32


def test_weights_are_streamed_where_no_split_holds_them() -> None:
    imported = dense(inner=64, outer=1024)
    design = assert_exact(imported.manifest, imported.arrays, room(9000))
    assert ways(design) == [("output_channels", 1, False)]
    (stream,) = [f for f in design.fifos if f.init_array is not None]
    assert stream.producer.kind == "mem"
    assert stream.init_objects * stream.shape[1] >= 1024


def test_summands_go_over_a_cascade_where_one_block_of_channels_is_too_large() -> None:
    imported = dense(inner=512, outer=8)
    size = 3200
    design = assert_exact(imported.manifest, imported.arrays, room(size))
    assert [kind for kind, _, _ in ways(design)] == ["reduction"]
    assert len(design.cascades) == len(design.workers) - 1
    assert [c.source for c in design.cascades] == [w.name for w in design.workers[:-1]]


def test_channels_are_cut_where_the_rows_themselves_are_too_long() -> None:
    imported = convolution((64, 8), width=32)
    row = 64 * 32
    design = assert_exact(imported.manifest, imported.arrays, room(3 * row))
    assert [link.kind for link in design.links] == ["split"]
    assert design.cascades
    (link,) = design.links
    fifos = {f.name: f for f in design.fifos}
    sizes = [int(np.prod(fifos[t].shape)) for t in link.targets]
    assert sum(sizes) == row
    assert list(link.offsets) == [sum(sizes[:i]) for i in range(len(sizes))]


def test_depthwise_and_grouped_convolutions_are_split_at_whole_groups() -> None:
    for group, channels in ((32, (32, 32)), (2, (32, 32))):
        imported = convolution(channels, group=group)
        design = assert_exact(imported.manifest, imported.arrays, room(need(imported) - 1))
        assert len(design.workers) == 2


def test_no_spread_fits_names_op_budget_need_and_have() -> None:
    net = Net((1, 8, 5, 8192))
    imported = net.done(net.rounded("GlobalAveragePool", [net.x]))
    with pytest.raises(RefusedError) as caught:
        plan_of(imported.manifest, NPU2)
    (problem,) = caught.value.problems
    (op,) = [o for o in imported.manifest.ops if o.type == "GlobalAveragePool"]
    line = problem.line()
    assert problem.code == "PLAN-L1"
    assert op.name in line
    assert str(limits_of(NPU2).core_bytes) in line
    assert str(need(imported, tight=True)) in line
    assert "--cut" in line


@pytest.mark.parametrize(
    ("parallelism", "workers", "links"),
    [
        ({"cas_num": 3}, 3, ["join"]),
        ({"cas_num": 6}, 6, ["join"]),
        ({"cas_length": 4}, 4, ["split"]),
        ({"cas_length": 7}, 7, []),
        ({"cas_num": 2, "cas_length": 3}, 6, ["split", "join"]),
        ({"cas_num": 4, "contract": "outer"}, 4, ["join"]),
        ({"cas_num": 2, "cas_length": 2, "contract": "outer"}, 4, ["split", "join"]),
    ],
)
def test_directives(parallelism: Mapping[str, Any], workers: int, links: list[str]) -> None:
    imported = dense()
    design = assert_exact(imported.manifest, imported.arrays, NPU2, asked(imported, **parallelism))
    assert len(design.workers) == workers
    assert [link.kind for link in design.links] == links


@pytest.mark.parametrize(
    "parallelism",
    [{"cas_num": 7}, {"cas_num": 37}, {"cas_num": 3, "contract": "outer"}],
)
def test_what_cannot_be_spread_so_is_refused(parallelism: Mapping[str, Any]) -> None:
    imported = dense()
    with pytest.raises(RefusedError, match=r"PLAN-DIRECTIVE.*cannot be spread"):
        plan_of(imported.manifest, NPU2, asked(imported, **parallelism))


@pytest.mark.parametrize(("count", "contract"), [(7, "inner"), (8, "outer"), (16, "outer")])
def test_more_workers_than_a_memory_tile_joins_are_joined_in_two_steps(count: int, contract: str) -> None:
    imported = dense(inner=16, outer=64 if contract == "outer" else 8 * count, rows=16)
    design = assert_exact(imported.manifest, imported.arrays, NPU2, asked(imported, cas_num=count, contract=contract))
    assert len(design.workers) == count
    assert all(len(link.sources) <= 6 for link in design.links)
    assert len(design.links) == -(-count // 6) + 1


@pytest.mark.parametrize(
    ("op_type", "scale", "attributes"),
    [
        ("MaxPool", 2.0**-4, {"kernel_shape": [3, 3], "pads": [1] * 4}),
        ("AveragePool", 2.0**-6, {"kernel_shape": [3, 3], "pads": [1] * 4}),
        ("GlobalAveragePool", 2.0**-6, {}),
        ("Relu", 2.0**-3, {}),
    ],
)
def test_channels_that_stay_apart_are_dealt_out(op_type: str, scale: float, attributes: dict[str, Any]) -> None:
    net = Net((1, 32, 6, 16))
    imported = net.done(net.rounded(op_type, [net.x], scale, **attributes))
    design = assert_exact(imported.manifest, imported.arrays, room(need(imported, tight=True) - 1))
    assert [link.kind for link in design.links] == ["split", "join"]
    assert len(design.workers) in (2, 4)


def test_a_depthwise_convolution_gets_its_own_channels_where_rows_are_too_long() -> None:
    imported = convolution((32, 32), width=16, group=32)
    design = assert_exact(imported.manifest, imported.arrays, room(2300))
    assert [link.kind for link in design.links] == ["split", "join"]


def test_layouts_of_weights() -> None:
    imported = dense()
    (op,) = [o for o in imported.manifest.ops if o.where == "npu"]
    found = directives_of({op.name: {"layout": "dense_kn_blocks"}}, imported.manifest)
    (kernel,) = plan_of(imported.manifest, NPU2, found).kernels
    assert dict(kernel.attributes)["layout"] == "dense_kn_blocks"
    wrong = directives_of({op.name: {"layout": "conv_blocks"}}, imported.manifest)
    with pytest.raises(RefusedError, match=r"layout: its weights cannot lie so; expected identity, dense_kn_blocks"):
        plan_of(imported.manifest, NPU2, wrong)


@pytest.mark.parametrize(("device", "block"), [("npu1", (4, 8, 8)), ("npu2", (8, 8, 8))])
def test_products_know_the_block_shape_of_the_device(device: str, block: tuple[int, int, int]) -> None:
    (kernel,) = plan_of(dense().manifest, load_device(device)).kernels
    assert dict(kernel.attributes)["mmul"] == block


def test_a_directive_that_does_not_fit_is_refused() -> None:
    imported = dense()
    with pytest.raises(RefusedError, match="PLAN-L1"):
        plan_of(imported.manifest, room(need(imported, tight=True) - 1), asked(imported, cas_num=1))


def test_rows_of_an_image_are_dealt_out() -> None:
    imported = convolution()
    with pytest.raises(RefusedError, match="PLAN-DIRECTIVE"):
        plan_of(imported.manifest, NPU2, asked(imported, cas_num=2, contract="outer"))
    design = assert_exact(imported.manifest, imported.arrays, NPU2, asked(imported, cas_num=5, contract="outer"))
    assert ways(design) == [("rows", 5, True)]


def test_padding_is_the_part_of_the_weights_that_is_none() -> None:
    forms = {}
    for inner, outer in ((64, 64), (60, 10)):
        imported = linear(np.ones((inner, outer), np.int8)).load()
        (node,) = graph_of(imported.manifest, whole(imported.manifest)).nodes
        forms[outer] = padding_fraction(Share(node=node, part=Part()), Forms(imported.manifest))
    assert forms == {64: 0.0, 10: round(1 - 600 / (64 * 16), 4)}
