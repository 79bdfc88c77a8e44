"""Directives beside parallelism: streamed weights, depths, edges through memory tiles, several streams of the host."""

from typing import Any

import pytest

from manifest.device import load_device
from manifest.errors import RefusedError
from manifest.onnx_import import Imported
from presim.design import Design, Fifo
from presim.directives import Directives, directives_of
from presim.place import place
from presim.plan.graph import Value
from presim.plan.hostways import grouped, slice_pattern
from presim.timing import load_calibration, time_design
from tests.presim.plan.harness import NPU2, assert_exact, plan_of, whole, with_figures
from tests.presim.plan.models import Net


def dense(inner: int = 64, outer: int = 48, rows: int = 4) -> Imported:
    net = Net((rows, inner))
    return net.done(net.dense(net.x, inner, outer))


def convolution(channels: tuple[int, int] = (32, 32)) -> Imported:
    net = Net((1, channels[0], 5, 6))
    return net.done(net.conv(net.x, channels))


def chain(rows: int = 4) -> Imported:
    net = Net((rows, 32))
    return net.done(net.dense(net.dense(net.x, 32, 32), 32, 32))


def asked(imported: Imported, **entry: Any) -> Directives:
    """The same for every op on the array."""
    ops = [o.name for o in imported.manifest.ops if o.where == "npu"]
    return directives_of(dict.fromkeys(ops, entry), imported.manifest)


def exact(imported: Imported, **entry: Any) -> Design:
    return assert_exact(imported.manifest, imported.arrays, NPU2, asked(imported, **entry))


def of_host(design: Design, direction: str) -> list[str]:
    return [t.fifo for t in design.sequence if t.direction == direction]


@pytest.mark.parametrize("imported", [dense(), convolution()])
@pytest.mark.parametrize(
    ("streams", "fills", "drains"), [(1, 1, 1), (2, 2, 2), (3, 3, 3), (4, 4, 4), (9, 4, 4)], ids=str
)
def test_host_streams_of_a_cascade(imported: Imported, streams: int, fills: int, drains: int) -> None:
    design = exact(imported, parallelism={"cas_num": 4, "cas_length": 4}, host_streams=streams)
    assert len(of_host(design, "fill")) == fills
    assert len(of_host(design, "drain")) == drains
    assert sum(link.kind == "split" for link in design.links) == {1: 1, 2: 2, 3: 1}.get(streams, 0)


def test_host_streams_of_what_is_no_cascade_are_those_of_its_output() -> None:
    design = exact(dense(), parallelism={"cas_num": 6}, host_streams=3)
    assert (len(of_host(design, "fill")), len(of_host(design, "drain"))) == (1, 3)


def test_host_streams_change_nothing_between_two_ops() -> None:
    imported = chain()
    design = exact(imported, parallelism={"cas_num": 2, "cas_length": 2}, host_streams=2)
    assert (len(of_host(design, "fill")), len(of_host(design, "drain"))) == (2, 2)
    between = [f.tensor for f in design.fifos if f.tensor and f.producer.kind == "mem"]
    assert between


def test_odd_channels_are_cut_where_blocks_end() -> None:
    exact(dense(inner=60, outer=44), parallelism={"cas_num": 3, "cas_length": 3}, host_streams=3)


def test_more_parts_than_two_memory_tiles_join() -> None:
    vek280 = load_device("vek280")
    imported = dense(inner=16, outer=37 * 8, rows=2)
    directives = asked(imported, parallelism={"cas_num": 37})
    design = assert_exact(imported.manifest, imported.arrays, vek280, directives)
    assert len(design.workers) == 37
    assert all(len(link.sources) <= 6 for link in design.links)
    assert len(design.links) == 7 + 2 + 1


def test_nearly_the_whole_array_on_one_layer() -> None:
    vek280, calibration = load_device("vek280"), load_calibration()
    cycles = []
    for count, length in ((1, 1), (37, 8)):
        imported = dense(inner=128 * length, outer=64 * count, rows=4)
        directives = asked(imported, parallelism={"cas_num": count, "cas_length": length}, host_streams=12)
        design = place(plan_of(imported.manifest, vek280, directives), vek280, directives)
        cycles.append(time_design(design, vek280, calibration, inferences=3).interval_cycles)
    assert len(design.workers) == 296
    assert cycles[1] < 1.05 * cycles[0]


def test_a_cascade_has_room_for_what_it_gets_before_its_turn() -> None:
    vek280, calibration = load_device("vek280"), load_calibration()
    imported = dense(inner=384, outer=64, rows=16)
    directives = asked(imported, parallelism={"cas_length": 6})
    design = plan_of(imported.manifest, vek280, directives)
    depths = [f.consumers[0].depth for f in design.fifos if f.producer.kind == "mem"]
    assert depths == [2, 3, 4, 5, 6, 7]
    eased = time_design(design, vek280, calibration, inferences=3).interval_cycles
    alone = plan_of(dense(inner=64, outer=64, rows=16).manifest, vek280)
    assert eased < 2 * time_design(alone, vek280, calibration, inferences=3).interval_cycles


@pytest.mark.parametrize("weights", ["resident", "streamed"])
@pytest.mark.parametrize("parallelism", [{}, {"cas_num": 2}])
def test_weights(weights: str, parallelism: dict[str, Any]) -> None:
    design = exact(dense(), weights=weights, parallelism=parallelism)
    assert {s.resident_weights for s in design.splits} == {weights == "resident"}
    assert len(design.workers) == parallelism.get("cas_num", 1)
    assert {s.resident_weights for s in exact(dense(), weights=weights).splits} == {weights == "resident"}


def test_weights_that_no_core_holds_are_not_resident_in_one() -> None:
    imported = dense(inner=256, outer=256)
    with pytest.raises(RefusedError, match=r"PLAN-DIRECTIVE.*weights resident"):
        plan_of(imported.manifest, with_figures(l1_bytes=1024 + 1500), asked(imported, weights="resident"))


def test_a_cascade_does_not_stream_its_weights() -> None:
    with pytest.raises(RefusedError, match=r"PLAN-DIRECTIVE.*weights streamed"):
        plan_of(dense().manifest, NPU2, asked(dense(), weights="streamed", parallelism={"cas_length": 2}))


def depths_of(design: Design, tensor: str) -> set[int | None]:
    return {c.depth for f in design.fifos if f.tensor == tensor for c in f.consumers if c.kind == "worker"}


def test_depth_is_what_is_asked_for_at_least() -> None:
    imported = dense()
    (tensor,) = [t.tensor for t in plan_of(imported.manifest).sequence if t.direction == "fill"]
    assert depths_of(exact(imported, depth=2), tensor) == {2}
    assert depths_of(exact(imported, depth=7), tensor) == {7}


def test_a_depth_beyond_the_descriptors_of_a_core_is_refused() -> None:
    imported = dense()
    exact(imported, depth=14)
    with pytest.raises(RefusedError, match=r"PLAN-DIRECTIVE.*depth 15"):
        plan_of(imported.manifest, NPU2, asked(imported, depth=15))


def test_edges_through_a_memory_tile() -> None:
    imported = chain()
    assert not any(f.producer.kind == "mem" for f in exact(imported, edges="direct").fifos)
    through = [f for f in exact(imported, edges="memtile").fifos if f.producer.kind == "mem"]
    assert len(through) == 2


def test_the_same_directives_give_the_same_plan() -> None:
    imported = dense()
    entry = {"parallelism": {"cas_num": 4, "cas_length": 4}, "host_streams": 3, "depth": 3}
    assert plan_of(imported.manifest, NPU2, asked(imported, **entry)) == exact(imported, **entry)


@pytest.mark.parametrize("groups", range(1, 12))
def test_groups_are_even_and_complete(groups: int) -> None:
    found = grouped(7, groups)
    assert [i for a, b in found for i in range(a, b)] == list(range(7))
    assert max(b - a for a, b in found) - min(b - a for a, b in found) <= 1
    assert len(found) == min(groups, 7)


def test_patterns_of_slices() -> None:
    vector = Value(tensor="x", form=(5, 64))
    assert slice_pattern(vector, 16, 24, 1) == (16, ((5, 64), (24, 1)))
    rows = Value(tensor="x", form=(1, 32, 5, 6))
    assert slice_pattern(rows, 8, 16, 1) == (48, ((5, 192), (96, 1)))
    assert slice_pattern(Value(tensor="x", form=(5, 16384)), 0, 8192, 1)[1] == ((5, 16384), (4, 2048), (2048, 1))
    prime = Value(tensor="x", form=(5, 8 * 1033 * 2))
    assert slice_pattern(prime, 0, 8 * 1033, 1)[1] in ((), ((5, 16528), (2, 4132), (4132, 1)))


def fifo_named(design: Design, name: str) -> Fifo:
    return next(f for f in design.fifos if f.name == name)


def test_slices_say_which_channels_they_carry() -> None:
    design = plan_of(dense().manifest, NPU2, asked(dense(), parallelism={"cas_length": 4}, host_streams=4))
    found = [fifo_named(design, name).slices for name in of_host(design, "fill")]
    assert [(s.axis, s.first, s.count) for (s,) in found] == [("channels", 16 * i, 16) for i in range(4)]
    assert whole(dense().manifest).name == design.dispatch
